"""Spherical components from whitened moments, and fits to the moments weighted for their noise.

Whitening makes the tensor orthogonal but blows up the noise of weak directions. Here the
decomposition is only the start: weights w and centres y of a mixture are fitted to the first three
moments of standardised data (unit variance in every direction, so that all entries of one order
have about the same error) by least squares,

    n ( ‖Σ w y‖² + ‖M2 - Σ w y yᵀ‖²/2 + ‖M3 - Σ w y⊗y⊗y‖²/6 ),

which is about a chi-square of the moments. It costs O(k q³) a step and no pass over the data, so
components in the wrong place are found and moved here, where a trial takes milliseconds
(docs/decisions/spherical.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist

from thirdmoment._constants import Choice
from thirdmoment.decomposition import Decomposition
from thirdmoment.decomposition.result import power_map


class SphericalEstimate(NamedTuple):
    """Means and weights of the components."""

    means: np.ndarray  # (k, d)
    weights: np.ndarray  # (k,) positive, sum to one
    raw_weights: np.ndarray  # (k,) 1/λ² of the tensor


def recover_spherical(
    found: Decomposition, mean: np.ndarray, E: np.ndarray, eta: np.ndarray
) -> SphericalEstimate:
    """mu_i = m + λ_i E √η θ_i and w_i = 1/λ_i² (N-6) from components (λ_i, θ_i).

    The last coordinate of the tensor is the constant one, so that λ_i θ_i there is one in the
    population; its sign is the sign of the component.
    """
    lam, theta = np.asarray(found.eigenvalues), np.asarray(found.vectors)
    raw = 1 / np.maximum(lam**2, 1e-300)
    lam = np.maximum(lam, 1.0)  # no weight exceeds one
    weights = 1 / lam**2
    centres = (E * np.sqrt(eta)) @ (theta[:-1] * np.where(theta[-1] < 0, -lam, lam))
    return SphericalEstimate(mean + centres.T, weights / weights.sum(), raw)


def component_variances(
    weights: np.ndarray, whitened: np.ndarray, t: np.ndarray, sigma2: float, *, within: float = 100
) -> np.ndarray:
    """sigma_i² from t = E[sigma_h² y] = Σ w_i sigma_i² y_i (SR-10b).

    ``whitened`` (k, q) has y_i in its rows, ``t`` is (q,). The mean variance ``sigma2`` is known
    far better than its parts, so they are kept ``within`` a factor of it: a start with a variance
    far too small would let EM collapse on a few rows.
    """
    solution = np.linalg.lstsq(whitened.T, t, rcond=None)[0]
    return np.clip(solution / np.maximum(weights, 1e-12), sigma2 / within, within * sigma2)


# Moment fits this close to the best are not worse than it by more than chance (chi-square units).
WITHIN_NOISE: Choice[float] = 40.0


class MomentFit(NamedTuple):
    """A mixture fitted to moments in standardised coordinates."""

    weights: np.ndarray  # (k,)
    centres: np.ndarray  # (k, q)
    misfit: float


class StandardMoments(NamedTuple):
    """Noise-corrected moments of centred data with unit variance in each of q directions."""

    second: np.ndarray  # (q, q) = Σ w y yᵀ
    third: np.ndarray  # (q, q, q) = Σ w y⊗y⊗y
    n: float


def fit_to_moments(moments: StandardMoments, start: MomentFit, *, steps: int = 200) -> MomentFit:
    """Least squares from ``start`` by L-BFGS; weights stay on the simplex through a softmax."""
    k, q = start.centres.shape
    logits = np.log(np.maximum(start.weights, 1e-3 / k))
    found = scipy.optimize.minimize(
        lambda theta: _misfit(theta, moments, k, q),
        np.concatenate([logits, start.centres.ravel()]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 20},
    )
    return MomentFit(_softmax(found.x[:k]), found.x[k:].reshape(k, q), float(found.fun))


def _softmax(logits: np.ndarray) -> np.ndarray:
    w = np.exp(logits - logits.max())
    return w / w.sum()


def _misfit(
    theta: np.ndarray, moments: StandardMoments, k: int, q: int
) -> tuple[float, np.ndarray]:
    w, Y = _softmax(theta[:k]), theta[k:].reshape(k, q)
    YY = (Y[:, :, None] * Y[:, None, :]).reshape(k, q * q)
    R3 = moments.third.reshape(q * q, q) - (YY * w[:, None]).T @ Y
    R2 = moments.second - (Y * w[:, None]).T @ Y
    R1 = -(w @ Y)
    value = float((R3**2).sum() / 6 + (R2**2).sum() / 2 + (R1**2).sum())
    cube, square = YY @ R3, Y @ R2  # R3(y, y, ·), R2(y, ·)
    by_weight = -(cube * Y).sum(axis=1) / 3 - (square * Y).sum(axis=1) - 2 * Y @ R1
    by_centre = w[:, None] * (-cube - 2 * square - 2 * R1)
    by_logit = w * (by_weight - w @ by_weight)
    return moments.n * value, moments.n * np.concatenate([by_logit, by_centre.ravel()])


def move_components(
    moments: StandardMoments,
    start: MomentFit,
    rng: np.random.Generator,
    *,
    steps: int = 80,
    sweeps: int = 2,
) -> list[MomentFit]:
    """Try to place each of the lighter components anew where the rest of the tensor asks for one.

    A component is taken out and put at a maximum of the tensor that the others leave; the fit is
    repeated and kept if the misfit falls. Returns the distinct fits seen that are within noise of
    the best, best first.
    """
    best, seen = start, [start]
    for _ in range(sweeps):
        moved = False
        for j in np.argsort(best.weights)[: max(3, len(best.weights) // 2)]:
            for trial in _replacements(moments, best, int(j), rng):
                fit = fit_to_moments(moments, trial, steps=steps // 4)
                if fit.misfit > best.misfit + 2 * WITHIN_NOISE:
                    continue
                fit = fit_to_moments(moments, fit, steps=steps)
                seen.append(fit)
                if fit.misfit < best.misfit - 1.0:
                    best, moved = fit, True
                    break
        if not moved:
            break
    return _distinct(seen)


def _replacements(
    moments: StandardMoments, fit: MomentFit, j: int, rng: np.random.Generator
) -> list[MomentFit]:
    """``fit`` with component j at maxima of the tensor left by the others."""
    k = len(fit.weights)
    rest = np.arange(k) != j
    w, Y = fit.weights[rest], fit.centres[rest]
    R = moments.third - np.einsum("k,ka,kb,kc->abc", w, Y, Y, Y, optimize=True)
    lengths = np.linalg.norm(fit.centres, axis=1)
    size, here = float(np.median(lengths)), fit.centres[j] / max(lengths[j], 1e-300)
    trials = []
    for direction, value in _maxima(R, rng):
        if direction @ here > 0.8:
            continue
        weights, centres = fit.weights.copy(), fit.centres.copy()
        weights[j] = np.clip(value / size**3, 0.3 / k, 2 / k)
        centres[j] = size * direction
        trials.append(MomentFit(weights / weights.sum(), centres, np.inf))
    return trials


def _maxima(
    R: np.ndarray, rng: np.random.Generator, *, starts: int = 30, steps: int = 30, most: int = 3
) -> list[tuple[np.ndarray, float]]:
    """Directions v of local maxima of R(v, v, v), largest first."""
    V = rng.standard_normal((R.shape[0], starts))
    V /= np.linalg.norm(V, axis=0)
    for _ in range(steps):
        V = power_map(R, V)
        V /= np.maximum(np.linalg.norm(V, axis=0), 1e-300)
    values = np.sum(power_map(R, V) * V, axis=0)
    found: list[tuple[np.ndarray, float]] = []
    for i in np.argsort(-values):
        if all(V[:, i] @ other < 0.9 for other, _ in found):
            found.append((V[:, i], float(values[i])))
        if len(found) == most:
            break
    return found


def _distinct(fits: list[MomentFit]) -> list[MomentFit]:
    fits = sorted(fits, key=lambda fit: fit.misfit)
    kept: list[MomentFit] = []
    for fit in fits:
        if fit.misfit > fits[0].misfit + WITHIN_NOISE:
            break
        if all(_far_apart(fit, other) for other in kept):
            kept.append(fit)
    return kept


def _far_apart(a: MomentFit, b: MomentFit) -> bool:
    """Whether some component of one fit is in another place in the other."""
    distance = cdist(a.centres, b.centres)
    i, j = scipy.optimize.linear_sum_assignment(distance)
    return float(distance[i, j].max()) > 0.5 * float(np.median(np.linalg.norm(a.centres, axis=1)))
