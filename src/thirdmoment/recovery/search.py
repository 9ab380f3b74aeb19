"""One component from side information v, in whitened space (SR-1 to SR-8, SR-23, section 8).

A mixture with components mu_i and weights w_i has m = Σ w_i mu_i, A = Σ w_i mu_i mu_iᵀ and, for a
vector v with scores s_i = <mu_i, v>, B(v) = Σ w_i s_i mu_i mu_iᵀ. Whitened with A (WᵀAW = I, W* the
un-whitener) the matrix M = WᵀBW = Σ s_i theta_i theta_iᵀ has the component with the largest score
as its leading eigenvector: one k×k eigenproblem finds it, and none of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from thirdmoment._array import Array, to_numpy
from thirdmoment._constants import Choice
from thirdmoment.exceptions import MomentWarning, RankDeficientMoment, warn
from thirdmoment.linalg import project_to_simplex

# Single-vector subspace searches take the λ/3 rule once another subspace may be in the way (SR-23).
THIRD_RULE: Choice[float] = 0.8


# Largest negative mass of a topic that is projected away.
PROJECTED: Choice[float] = 0.2


class FoundComponent(NamedTuple):
    """The component with the largest score, and what the search saw of the others."""

    component: np.ndarray  # mu_1 (d,)
    weight: float  # w_1
    direction: np.ndarray  # u (k,), whitened, with u·m_w > 0
    scores: np.ndarray  # (k,) estimates of all s_i, descending
    consistency: float  # r of SR-4, one in population

    @property
    def margin(self) -> float:
        """s_1/s_2 - 1, infinite where no other score is positive (SR-2)."""
        if len(self.scores) < 2 or not self.scores[1] > 0:
            return np.inf
        return float(self.scores[0] / self.scores[1] - 1)


def whitened_search(
    M: np.ndarray, m_w: np.ndarray, unwhitener: np.ndarray, v_w: np.ndarray
) -> FoundComponent:
    """The component with the algebraically largest score (SR-3). Cost O(k³ + d k).

    ``M`` (k, k) is WᵀBW, ``m_w`` = Wᵀm, ``unwhitener`` W* (d, k) and ``v_w`` = W*ᵀv. Scores of any
    sign will do; the sign of the eigenvector does not matter.
    """
    scores = np.linalg.eigvalsh((M + M.T) / 2)[::-1]
    return leading_component(M, m_w, unwhitener, v_w)._replace(scores=scores)


def leading_component(
    M: np.ndarray, m_w: np.ndarray, unwhitener: np.ndarray, v_w: np.ndarray
) -> FoundComponent:
    """`whitened_search` without the scores of the other components, which cost as much again."""
    values, vectors = _leading((M + M.T) / 2, 1)
    u, s = vectors[:, 0], float(values[0])
    u = -u if u @ m_w < 0 else u
    a = float(u @ m_w)
    shown = float(u @ v_w)  # <w~, v> = s sqrt(w_1)
    consistency = a * s / shown if shown != 0 else np.nan
    scale = a if a != 0 else np.nan
    if consistency < 0:  # only noise gives m and v opposite signs; v was asked for (SR-4)
        scale = shown / s
    component = unwhitener @ u.astype(unwhitener.dtype) / scale  # no copy in double precision
    return FoundComponent(component, scale**2, u, values, consistency)


# The cancellation method finds the null vector q of λ_max A - B, and q ∝ W u: with the exact λ the
# two are one and the same for any m, A and B (SR-7; Ray et al. use an inexact one).
cancelled_search = whitened_search


def word_distribution(found: FoundComponent) -> tuple[np.ndarray, float]:
    """The topic on the simplex, and its negative mass.

    A little negative mass is noise, and the projection takes as much noise off the other words.
    Much of it says that the concentration or the model is wrong; the projection would then leave a
    few words only, so negative entries are set to zero and the others keep their proportions.
    """
    raw = np.nan_to_num(found.component.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if not np.any(raw > 0):
        return np.full(len(raw), 1 / len(raw)), 1.0
    negative = float(-raw[raw < 0].sum())
    if negative <= PROJECTED:
        return project_to_simplex(raw[None])[0], negative
    law = np.maximum(raw, 0.0)
    return law / law.sum(), negative


def positive_rank(values: Array, k: int, *, rtol: float = 1e-6) -> int:
    """k, or the number of usable eigenvalues where there are fewer; raises for none."""
    values = to_numpy(values)
    rank = int(np.sum(values[:k] > rtol * max(float(values[0]), 0.0)))
    if rank == 0:
        raise RankDeficientMoment(rank=0, k=k, smallest=float(values[0]), floor=0.0)
    return rank


def usable_rank(values: np.ndarray, k: int, *, rtol: float = 1e-6) -> int:
    """`positive_rank`, with a warning where it is below k."""
    rank = positive_rank(values, k, rtol=rtol)
    tell_rank(rank, k)
    return rank


def tell_rank(rank: int, k: int) -> None:
    """Warn where a search sees fewer components than it was asked for."""
    if rank < k:
        warn(
            f"The second moment has {rank} usable eigenvalues, fewer than n_components={k}: the "
            f"search sees {rank} components. Lower n_components to {rank}, or give more data.",
            MomentWarning,
        )


class Resolution(NamedTuple):
    """How far the leading eigenvectors stand out of the sampling noise (section 8)."""

    gap_snr: float  # gap after them over ‖difference of the halves‖₂/2
    stability: float  # how well the two halves agree on them, 0 to 1


def resolution(M: np.ndarray, difference: np.ndarray, values: np.ndarray, p: int = 1) -> Resolution:
    """Noise of the p leading eigenvectors of M from two halves of the data, W fixed.

    ``difference`` (k, k) is (M_A - M_B)/2 of the halves, so that M ± difference are the two;
    ``values`` (k,) are the eigenvalues of M, descending.
    """
    if len(M) <= p:  # nothing else to be confused with
        return Resolution(np.inf, 1.0)
    M, difference = (M + M.T) / 2, (difference + difference.T) / 2
    noise = float(np.max(np.abs(np.linalg.eigvalsh(difference))))
    gap = float(values[p - 1] - values[p])
    halves = [_leading(M + sign * difference, p)[1] for sign in (1, -1)]
    agreement = np.linalg.svd(halves[0].T @ halves[1], compute_uv=False)
    return Resolution(gap / noise if noise > 0 else np.inf, float(np.min(agreement)))


def _leading(S: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The p leading eigenvalues, ascending, and eigenvectors (k, p) of a symmetric matrix."""
    k = len(S)
    return scipy.linalg.eigh(S, subset_by_index=[k - p, k - 1])


def alignment(direction: np.ndarray, hint: np.ndarray) -> float:
    """Cosine of the component found and the whitened hint: is it the one that was meant?

    In population the hint W*ᵀv is Σ √w_i s_i theta_i, so the square is the share that the component
    has in what the hint points at.
    """
    size = float(np.linalg.norm(hint))
    return float(direction @ hint) / size if size > 0 else 0.0


class FoundSubspace(NamedTuple):
    """An orthonormal basis and the eigenvalues it was chosen by."""

    basis: np.ndarray  # U_1 (d, p)
    eigenvalues: np.ndarray  # (p k,) of the whitened B, descending
    directions: np.ndarray  # (p k, p) its eigenvectors that were taken
    third_rule: bool  # whether eigenvalues near a third of the largest were taken


def subspace_search(
    R: np.ndarray, unwhitener: np.ndarray, p: int, *, single: bool
) -> FoundSubspace:
    """The p-dimensional subspace that holds most of the labels (SR-23).

    ``R`` (p k, p k) is the whitened B(S). For one label (``single``) each subspace has eigenvalues
    3 s_i once and s_i p - 1 times, so its members are told by that pattern where another subspace
    comes near; with several labels, or for p = 1, the leading p always are the target.
    """
    values, vectors = np.linalg.eigh((R + R.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    chosen = np.arange(p)
    near = single and 1 < p < len(values) and values[p] > THIRD_RULE * values[0] / 3
    if near:
        order = np.argsort(np.abs(values[1:] - values[0] / 3), kind="stable")
        chosen = np.concatenate([[0], 1 + order[: p - 1]])
    basis = np.linalg.qr(unwhitener @ vectors[:, chosen])[0]
    return FoundSubspace(basis, values, vectors[:, chosen], bool(near))
