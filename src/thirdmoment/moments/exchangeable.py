"""Moments of views that share one conditional law (K-4, K-6): all pairs, all triples of views.

The features of the views stand side by side, l blocks of r columns. With y_v the coordinates of
view v, s = Σ_v y_v and Q = Σ_v y_v y_vᵀ, the sum over ordered triples of different views is
s⊗s⊗s - S₃(Q_v⊗s summed over v) + 2 Σ_v y_v⊗y_v⊗y_v: symmetric, without walking through triples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import to_numpy
from thirdmoment.linalg import outer_sum, symmetrise
from thirdmoment.moments.views import Sample


class ExchangeableMoments(NamedTuple):
    """Mean (q,), second (q, q) and third (q, q, q) moment of different views."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray

    def corrected(self, a0: float) -> ExchangeableMoments:
        """Less what proportions from a Dirichlet law of sum a0 explain (K-14); nothing at 0."""
        m = self.first
        third = self.third - a0 / (a0 + 2) * outer_sum(self.second, m)
        third = third + 2 * a0**2 / ((a0 + 1) * (a0 + 2)) * np.einsum("a,b,c->abc", m, m, m)
        second = self.second - a0 / (a0 + 1) * np.outer(m, m)
        return ExchangeableMoments(m, second, third)


def mean_pairs(pairs: np.ndarray, views: int) -> np.ndarray:
    """Average (r, r) of the off-diagonal blocks of E[x xᵀ] (l r, l r), symmetric (K-6)."""
    r = len(pairs) // views
    blocks = pairs.reshape(views, r, views, r)
    off = blocks.sum(axis=(0, 2)) - np.einsum("vavb->ab", blocks)
    return (off + off.T) / (2 * views * (views - 1))


class ExchangeableSums:
    """Moments in the coordinates y = Wᵀz, W (r, q). Cost n·l·(r q + q³)."""

    def __init__(self, W: np.ndarray, views: int, block: int = 4096) -> None:
        self.W, self.views, self.block = W, views, block
        q = W.shape[1]
        self.total = 0.0
        self.first, self.second = np.zeros(q), np.zeros((q, q))
        self.third = np.zeros((q, q, q))

    def update(self, chunk: Sample) -> ExchangeableSums:
        Z = to_numpy(chunk.rows.toarray())
        r, q = self.W.shape
        Y = Z.reshape(len(Z) * self.views, r) @ self.W
        Y = Y.reshape(len(Z), self.views, q)
        self.total += float(chunk.weights.sum())
        for a in range(0, len(Z), self.block):
            y, w = Y[a : a + self.block], chunk.weights[a : a + self.block]
            s = y.sum(axis=1)
            flat, weight = y.reshape(-1, q), np.repeat(w, self.views)
            partner = np.repeat(s, self.views, axis=0)
            self.first += w @ s
            self.second += (s * w[:, None]).T @ s - (flat * weight[:, None]).T @ flat
            for i in range(q):
                own = (flat * (weight * flat[:, i])[:, None]).T
                self.third[i] += (s * (w * s[:, i])[:, None]).T @ s
                # three places for the odd view, one of them here: symmetrised at the end
                self.third[i] += own @ (2 * flat - 3 * partner)
        return self

    def merge(self, other: ExchangeableSums) -> ExchangeableSums:
        self.total += other.total
        self.first += other.first
        self.second += other.second
        self.third += other.third
        return self

    def finish(self) -> ExchangeableMoments:
        pairs = self.views * (self.views - 1)
        third = symmetrise(self.third) / (self.total * pairs * (self.views - 2))
        second = (self.second + self.second.T) / (2 * self.total * pairs)
        return ExchangeableMoments(self.first / (self.total * self.views), second, third)
