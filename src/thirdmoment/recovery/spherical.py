"""Means, weights and variances of a spherical mixture from its whitened tensor (N-6, SR-10b)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.decomposition import Decomposition


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
