"""Moments of Gaussian subspaces: x = U_i z + noise, z ~ N(0, I_p) (SR-22).

A = E[xxᵀ] - sigma² I = Σ w_i P_i with P_i = U_i U_iᵀ, and for side information S = QQᵀ

    B(S) = E[(xᵀSx) xxᵀ] - sigma² tr(AS) I - sigma² tr(S) A - sigma⁴ (tr(S) I + 2S)
           - 2 sigma² (AS + SA) = Σ w_i (tr(P_i S) P_i + 2 P_i S P_i).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.exceptions import RankDeficientMoment
from thirdmoment.moments.views import PairSums


class SubspaceWhitening(NamedTuple):
    """The p k leading directions of the second moment and the noise of the others."""

    E: np.ndarray  # (d, q) leading eigenvectors
    eta: np.ndarray  # (q,) their eigenvalues less sigma²
    sigma2: float  # mean of the remaining eigenvalues
    spectrum: np.ndarray  # (d,) all eigenvalues less sigma²

    @property
    def W(self) -> np.ndarray:
        """(d, q), WᵀAW = I."""
        return self.E / np.sqrt(self.eta)

    @property
    def unwhitener(self) -> np.ndarray:
        """W* (d, q)."""
        return self.E * np.sqrt(self.eta)


def subspace_whitening(sums: PairSums, q: int, *, rtol: float = 1e-10) -> SubspaceWhitening:
    """Noise as the mean of eigenvalues q+1..d of the second moment, signal what exceeds it."""
    values, vectors = np.linalg.eigh(sums.pairs)
    values, vectors = values[::-1], vectors[:, ::-1]
    sigma2 = max(float(np.mean(values[q:])), 0.0) if q < len(values) else 0.0
    eta = values[:q] - sigma2
    floor = rtol * max(float(values[0]), 0.0)
    if q > len(values) or not eta[-1] > floor:
        rank = int(np.sum(eta > floor))
        smallest = float(eta[-1]) if q <= len(values) else 0.0
        raise RankDeficientMoment(rank=rank, k=q, smallest=smallest, floor=floor)
    return SubspaceWhitening(vectors[:, :q], eta, sigma2, values - sigma2)


def directed_subspace(raw: np.ndarray, white: SubspaceWhitening, Q: np.ndarray) -> np.ndarray:
    """R = WᵀB(S)W from raw = E[‖Qᵀx‖² y yᵀ], y = Wᵀx and S = QQᵀ (SR-22, whitened).

    The term 2 Q_w Q_wᵀ is printed without its factor 2 in the paper.
    """
    W, s = white.W, white.sigma2
    G, Q_w, C = W.T @ W, W.T @ Q, white.unwhitener.T @ Q
    trace, inside = float(np.sum(Q**2)), float(np.sum(C**2))  # tr S and tr(AS)
    mixed = C @ Q_w.T
    R = raw - s * inside * G - s * trace * np.eye(len(G))
    return R - s**2 * (trace * G + 2 * Q_w @ Q_w.T) - 2 * s * (mixed + mixed.T)
