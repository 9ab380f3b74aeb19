"""Third moments of words in one direction, whitened: what a topic search needs (SR-13 to SR-17).

For a word x only the documents that contain it matter: with one occurrence of x taken out of each,
E3(e_x) is a weighted second moment of what is left. Cost N_x k² + (their non-zeros) + d_x k², with
N_x documents and d_x distinct words in them, whatever the size of the corpus.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def word_moment(
    C: sp.csr_array, Y: np.ndarray, omega: np.ndarray, x: int, W: np.ndarray
) -> np.ndarray:
    """WᵀE3(e_x)W (k, k) from the documents that contain word x (SR-15).

    ``C`` (N_x, d) has their counts, ``Y`` = C W (N_x, k), ``omega`` their weights divided by
    L(L-1)(L-2) and by the total weight of all documents, ``W`` (d, k) the whitening.
    """
    q = omega * np.asarray(C[:, [x]].todense()).ravel()
    rest = Y - W[x]
    g = np.asarray(C.T @ q).ravel()
    g[x] -= q.sum()
    words = np.flatnonzero(g)
    return (rest * q[:, None]).T @ rest - (W[words] * g[words, None]).T @ W[words]


def direction_moment(
    C: sp.csr_array, Y: np.ndarray, omega: np.ndarray, v: np.ndarray, W: np.ndarray
) -> np.ndarray:
    """WᵀE3(v)W (k, k) for any direction v (d,), from all documents (SR-17)."""
    s = np.asarray(C @ v).ravel()
    R = C @ (v[:, None] * W)
    mixed = (Y * omega[:, None]).T @ R
    diagonal = 2 * v * np.asarray(C.T @ omega).ravel() - np.asarray(C.T @ (omega * s)).ravel()
    whole = (Y * (omega * s)[:, None]).T @ Y
    return whole - mixed - mixed.T + (W * diagonal[:, None]).T @ W


def search_matrix(
    third: np.ndarray, m_w: np.ndarray, v_w: np.ndarray, mean_score: float, a0: float
) -> np.ndarray:
    """M(v) = WᵀB(v)W from WᵀE3(v)W for topics with total concentration a0 (SR-15).

    ``m_w`` = WᵀE1, ``v_w`` = W*ᵀv and ``mean_score`` = <E1, v>. W must whiten
    A = (a0+1) E2 - a0 E1 E1ᵀ to convergence, for WᵀE2v is taken from it.
    """
    k = len(m_w)
    common = mean_score * np.eye(k) + np.outer(v_w, m_w) + np.outer(m_w, v_w)
    M = (a0 + 1) * (a0 + 2) / 2 * third - a0 / 2 * common
    return M - a0**2 / 2 * mean_score * np.outer(m_w, m_w)
