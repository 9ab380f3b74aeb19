"""Dirichlet proportions: from eigenvalues to their parameters, and how concentrated they are.

Only at the true alpha0 are the adjusted moments those of k components: there the whitened tensor is
exactly orthogonally decomposable (its residual rho vanishes). Everything happens in k dimensions on
raw moments gathered once, so a profile over many alpha0 costs no pass over the data. With two
components every alpha0 of a range fits, so three are needed.

With a0 = Σα the cross moments, less what the common proportions explain (``corrected`` in
``moments``), have the mixture's form: C_uv = M_u diag(c) M_vᵀ with c = α/(a0(a0+1)), third moment
Σ 2α/(a0(a0+1)(a0+2)) M⊗M⊗M. a0 = 0 is the ordinary mixture with c = α = w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thirdmoment._array import array_namespace
from thirdmoment._constants import Choice
from thirdmoment.decomposition import Decomposition, decompose
from thirdmoment.decomposition.result import tensor_values
from thirdmoment.linalg import sum_of_axes
from thirdmoment.recovery.views import CoreMoments, subspaces, symmetric_route

# Total concentration where the data does not tell it: documents of one to three topics.
USUAL: Choice[float] = 1.0


class ConcentrationProfile(NamedTuple):
    """How well each alpha0 explains the moments."""

    alpha0: float  # the estimate
    grid: np.ndarray  # (g,) values tried, ascending
    residual: np.ndarray  # (g,) rho of TF-16
    share: np.ndarray  # (g,) Σ alpha(λ)/alpha0, one at the truth
    bounded: bool  # whether the minimum lies below the largest value that could be tried


# Decomposition at a given alpha0, started at the basis of a neighbour; None where not possible.
Solve = Callable[[float, np.ndarray | None], Decomposition | None]


def implied_share(values: np.ndarray, alpha0: float) -> float:
    """Σ_i alpha_i(λ_i)/alpha0: above one if alpha0 is too small, below if too large (TF-12)."""
    return float(np.sum(4 * (alpha0 + 1) / ((alpha0 + 2) ** 2 * np.asarray(values) ** 2)))


def estimate_concentration(
    solve: Solve, *, lowest: float = 0.01, highest: float = 50.0, points: int = 18
) -> ConcentrationProfile:
    """Minimise the decomposition residual over a logarithmic grid, then around its minimum."""
    tried: dict[float, tuple[float, float]] = {}
    basis: np.ndarray | None = None
    for alpha0 in np.geomspace(lowest, highest, points):
        basis = _try(solve, float(alpha0), basis, tried)
    for _ in range(2):
        for alpha0 in _between_neighbours(tried):
            basis = _try(solve, alpha0, basis, tried)
    grid = np.array(sorted(tried))
    residual = np.array([tried[a][0] for a in grid])
    share = np.array([tried[a][1] for a in grid])
    if not len(grid):
        return ConcentrationProfile(1.0, grid, residual, share, False)
    best = int(np.argmin(residual))
    bounded = best < len(grid) - 1
    return ConcentrationProfile(_parabola(grid, residual, best), grid, residual, share, bounded)


def sampling_residual(T: np.ndarray, V: np.ndarray, dT: np.ndarray, dP: np.ndarray) -> float:
    """Share of a whitened tensor that its sampling noise alone leaves off the diagonal in V.

    A change dP of Pairs changes the whitening, so the error of T is dT - S3(T·dP/2) to first
    order. At the truth, tensor_residual(T, V) is this value or less (V is fitted to the noise).

    Parameters
    ----------
    T : (k, k, k)
        Whitened tensor.
    V : (k, k)
        Orthogonal, its components in columns.
    dT, dP : (k, k, k), (k, k)
        Half the differences of Triples and Pairs between two halves of the data, whitened like T.
    """
    xp = array_namespace(T)
    error = dT - sum_of_axes(xp.tensordot(T, dP / 2, axes=((0,), (0,))))
    diagonal = tensor_values(error, V)
    off = float(xp.sum(error * error) - xp.sum(diagonal * diagonal))
    total = float(xp.sum(T * T))
    return math.sqrt(max(off, 0.0) / total) if total > 0 else math.nan


def _try(
    solve: Solve,
    alpha0: float,
    basis: np.ndarray | None,
    tried: dict[float, tuple[float, float]],
) -> np.ndarray | None:
    found = solve(alpha0, basis)
    if found is None:
        return basis
    tried[alpha0] = found.residual, implied_share(found.eigenvalues, alpha0)
    return found.vectors


def _between_neighbours(tried: dict[float, tuple[float, float]]) -> list[float]:
    grid = np.array(sorted(tried))
    if len(grid) < 2:
        return []
    best = int(np.argmin([tried[a][0] for a in grid]))
    left, right = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return [float(np.sqrt(left * grid[best])), float(np.sqrt(right * grid[best]))]


def _parabola(grid: np.ndarray, residual: np.ndarray, best: int) -> float:
    """Vertex of the parabola through the minimum and its neighbours in log alpha0."""
    if not 0 < best < len(grid) - 1:
        return float(grid[best])
    x, y = np.log(grid[best - 1 : best + 2]), residual[best - 1 : best + 2] ** 2
    a, b, _ = np.polyfit(x - x[1], y, 2)
    move = -b / (2 * a) if a > 0 else 0.0
    return float(np.exp(x[1] + np.clip(move, x[0] - x[1], x[2] - x[1])))


class DirichletEstimate(NamedTuple):
    """Means (q_v, k) of three views, or of the one law they share, and Dirichlet parameters."""

    means: tuple[np.ndarray, ...]
    alpha: np.ndarray  # (k,), the weights where a0 = 0
    decomposition: Decomposition


def recover_dirichlet_views(
    core: CoreMoments, k: int, a0: float, solver: str, rng: np.random.Generator
) -> DirichletEstimate:
    """Different views from corrected core moments: K-7 with the scales of K-14."""
    bases, _ = subspaces(core, k)
    unwhitener, found = symmetric_route(core, bases, k, solver, rng)
    values = np.asarray(found.eigenvalues)
    target = (a0 + 2) / 2 * (unwhitener @ np.asarray(found.vectors)) * values
    alpha = dirichlet_parameters(values, a0)
    pseudo = np.linalg.pinv(target).T / pair_weights(alpha, a0)
    others = [core.pairs[v, 2] @ pseudo for v in (0, 1)]
    return DirichletEstimate((others[0], others[1], target), alpha, found)


def recover_exchangeable(
    T: np.ndarray, unwhitener: np.ndarray, a0: float, solver: str, rng: np.random.Generator
) -> DirichletEstimate:
    """One law per component from the corrected whitened tensor T (k, k, k) (K-1, K-5, K-14)."""
    found = decompose(T, solver, rng)
    values = np.asarray(found.eigenvalues)
    mean = (a0 + 2) / 2 * (unwhitener @ np.asarray(found.vectors)) * values
    return DirichletEstimate((mean,), dirichlet_parameters(values, a0), found)


def dirichlet_parameters(values: np.ndarray, a0: float) -> np.ndarray:
    """α_h = 4 a0(a0+1)/((a0+2)² λ_h²); the weights λ_h⁻² where a0 = 0."""
    inverse = 1 / np.maximum(values, 1e-12) ** 2
    return inverse if a0 == 0 else 4 * a0 * (a0 + 1) / (a0 + 2) ** 2 * inverse


def pair_weights(alpha: np.ndarray, a0: float) -> np.ndarray:
    """c with C_uv = M_u diag(c) M_vᵀ."""
    return alpha if a0 == 0 else alpha / (a0 * (a0 + 1))
