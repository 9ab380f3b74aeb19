"""Views that each pick their own component from proportions θ ~ Dirichlet(α) (K-14).

With a0 = Σα the cross moments, less what the common proportions explain (``corrected`` in
``moments``), have the mixture's form: C_uv = M_u diag(c) M_vᵀ with c = α/(a0(a0+1)), third moment
Σ 2α/(a0(a0+1)(a0+2)) M⊗M⊗M. a0 = 0 is the ordinary mixture with c = α = w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.decomposition import Decomposition, decompose
from thirdmoment.recovery.views import CoreMoments, subspaces, symmetric_route


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
