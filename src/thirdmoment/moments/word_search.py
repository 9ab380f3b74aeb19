"""Moments in a given direction: of words, of documents, of any rows.

Every search needs Σ a_i y_i y_iᵀ for weights a that depend on its hint; the halves give the noise.

For a word x only the documents that contain it matter: with one occurrence of x taken out of each,
E3(e_x) is a weighted second moment of what is left. Cost N_x k² + (their non-zeros) + d_x k², with
N_x documents and d_x distinct words in them, whatever the size of the corpus.

Both moments come with the difference of two halves of the documents, from which the search takes
its noise: ``signs`` is ±1, the half of a document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Work

# Words that are taken at once: new memory costs more than the sums where they are many.
BLOCK: Work[int] = 1_000


class DirectedMoment(NamedTuple):
    """A sum over all rows, and the sum over one half less that over the other."""

    whole: np.ndarray  # (k, k)
    difference: np.ndarray  # (k, k)


class DirectedRows(NamedTuple):
    """A block of whitened rows with the weights that a hint gives them."""

    Y: np.ndarray  # (m, k)
    a: np.ndarray  # (m,)
    signs: np.ndarray  # (m,) ±1, the half of a row


class DirectedGram:
    """Σ a y yᵀ over each half of the rows."""

    def __init__(self) -> None:
        self.halves: np.ndarray | float = 0.0  # (2, k, k)

    def update(self, chunk: DirectedRows) -> DirectedGram:
        first = chunk.signs > 0
        self.halves = self.halves + np.stack(
            [(chunk.Y[mine] * chunk.a[mine, None]).T @ chunk.Y[mine] for mine in (first, ~first)]
        )
        return self

    def merge(self, other: DirectedGram) -> DirectedGram:
        self.halves = self.halves + other.halves
        return self

    def finish(self) -> DirectedMoment:
        first, second = np.asarray(self.halves)
        return DirectedMoment(first + second, first - second)


def word_moment(
    C: sp.csr_array,
    Y: np.ndarray,
    q: np.ndarray,
    signs: np.ndarray,
    x: int,
    W: np.ndarray,
) -> DirectedMoment:
    """WᵀE3(e_x)W from the documents that contain word x (SR-15).

    ``C`` (N_x, d) has their counts, ``Y`` = C W (N_x, k), ``q`` (N_x,) their counts of x times
    omega/(L(L-1)(L-2)), ``W`` (d, k) the whitening.
    """
    rest = (Y - W[x]) * np.sqrt(q).astype(Y.dtype)[:, None]
    halves = []
    for mine in (signs > 0, signs < 0):
        weight = np.where(mine, q, 0.0)
        g = np.asarray(C.T @ weight.astype(C.dtype), dtype=np.float64)  # Σ q c
        g[x] -= weight.sum()
        part = rest[mine]
        halves.append(part.T @ part - _weighed(W, g))  # S.T @ S is one triangle for BLAS
        if g[x] < 0:  # less than one occurrence, where values are no counts
            halves[-1] -= float(g[x]) * np.outer(W[x], W[x])
    return DirectedMoment(halves[0] + halves[1], halves[0] - halves[1])


def _weighed(W: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Wᵀ diag(g) W (k, k) over the rows of positive g (d,), in blocks that stay in the cache."""
    words = np.flatnonzero(g > 0)
    root = np.sqrt(g[words]).astype(W.dtype)
    total, room = np.zeros((W.shape[1],) * 2), np.empty((BLOCK, W.shape[1]), W.dtype)
    for a in range(0, len(words), BLOCK):
        some = words[a : a + BLOCK]
        own = np.take(W, some, axis=0, out=room[: len(some)], mode="clip")
        own *= root[a : a + BLOCK, None]
        total += own.T @ own
    return total


def direction_moment(
    C: sp.csr_array,
    Y: np.ndarray,
    omega: np.ndarray,
    signs: np.ndarray,
    v: np.ndarray,
    W: np.ndarray,
) -> DirectedMoment:
    """WᵀE3(v)W for any direction v (d,), from all documents (SR-17).

    ``omega`` (n,) has the weights of the documents divided by L(L-1)(L-2).
    """
    v = v.astype(Y.dtype)
    s = C @ v
    R = C @ (v[:, None] * W)
    halves = []
    for sign in (1, -1):
        mine = np.flatnonzero(signs == sign)
        weight, y = omega[mine].astype(Y.dtype), Y[mine]
        mixed = (y * weight[:, None]).T @ R[mine]
        both = np.zeros((C.shape[0], 2), dtype=Y.dtype)
        both[mine, 0], both[mine, 1] = weight, weight * s[mine]
        sums = C.T @ both
        diagonal = 2 * v * sums[:, 0] - sums[:, 1]
        whole = (y * both[mine, 1:]).T @ y
        halves.append(whole - mixed - mixed.T + (W * diagonal[:, None]).T @ W)
    return DirectedMoment(halves[0] + halves[1], halves[0] - halves[1])


def search_matrix(
    third: np.ndarray, m_w: np.ndarray, v_w: np.ndarray, mean_score: float, a0: float
) -> np.ndarray:
    """M(v) = WᵀB(v)W from WᵀE3(v)W for topics with total concentration a0 (SR-15).

    ``m_w`` = WᵀE1, ``v_w`` = WᵀAv and ``mean_score`` = <E1, v>, for W that whitens
    A = (a0+1) E2 - a0 E1 E1ᵀ.
    """
    k = len(m_w)
    common = mean_score * np.eye(k) + np.outer(v_w, m_w) + np.outer(m_w, v_w)
    M = third_factor(a0) * third - a0 / 2 * common
    return M - a0**2 / 2 * mean_score * np.outer(m_w, m_w)


def third_factor(a0: float) -> float:
    """(a0+1)(a0+2)/2, the coefficient of E3 in B (SR-14)."""
    return (a0 + 1) * (a0 + 2) / 2
