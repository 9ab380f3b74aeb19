"""Cumulants of whitened observations: third and fourth order (TF-18, TF-20, TF-23)."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import to_numpy
from thirdmoment.linalg import add_symmetric_cube, fill_symmetric
from thirdmoment.moments.views import Sample


class CumulantSums:
    """Third and fourth moments of y = Wᵀ(x - m) for one white observation a row (TF-23).

    Cost n k³ for the third order, n k⁴/4 for the fourth.
    """

    def __init__(self, W: np.ndarray, mean: np.ndarray, *, fourth: bool, block: int = 4096) -> None:
        k = W.shape[1]
        self.W, self.mean, self.block = W, mean, block
        self.total = 0.0
        self.cube = np.zeros((k, k, k))
        self.upper = np.triu_indices(k)
        size = len(self.upper[0]) if fourth else 0
        self.quartic = np.zeros((size, size))

    def update(self, chunk: Sample) -> CumulantSums:
        Y = (to_numpy(chunk.rows.toarray()) - self.mean) @ self.W
        w = chunk.weights
        self.total += float(w.sum())
        for s in range(0, len(w), self.block):
            y, weight = Y[s : s + self.block], w[s : s + self.block]
            add_symmetric_cube(self.cube, weight, y)
            if len(self.quartic):
                pair = y[:, self.upper[0]] * y[:, self.upper[1]]
                self.quartic += (pair * weight[:, None]).T @ pair
        return self

    def merge(self, other: CumulantSums) -> CumulantSums:
        self.total += other.total
        self.cube += other.cube
        self.quartic += other.quartic
        return self

    def third(self) -> np.ndarray:
        """E[y⊗y⊗y] (k, k, k): the third cumulant."""
        return fill_symmetric(self.cube) / self.total

    def fourth(self) -> np.ndarray:
        """Fourth cumulant (k, k, k, k) of white y: E[y⊗⁴] less the three pairings (TF-20)."""
        k = self.W.shape[1]
        place = np.zeros((k, k), dtype=int)
        place[self.upper] = np.arange(len(self.upper[0]))
        place = np.maximum(place, place.T)
        Q = self.quartic[place[:, :, None, None], place[None, None, :, :]] / self.total
        return Q - pairings(np.eye(k))


def pairings(P: np.ndarray) -> np.ndarray:
    """P_ij P_mn + P_im P_jn + P_in P_jm (k, k, k, k): the fourth moment of a Gaussian."""
    outer = P[:, :, None, None] * P[None, None, :, :]
    return outer + outer.transpose(0, 2, 1, 3) + outer.transpose(0, 3, 2, 1)


class QuadrupleSums:
    """E[z_1⊗z_2⊗z_3⊗z_4] of four centred views in k coordinates each (TF-20)."""

    def __init__(self, bases: list[np.ndarray], mean: np.ndarray, *, block: int = 1024) -> None:
        self.bases, self.mean, self.block = bases, mean, block
        k = bases[0].shape[1]
        self.total = 0.0
        self.sum = np.zeros((k * k, k * k))

    def update(self, chunk: Sample) -> QuadrupleSums:
        X = to_numpy(chunk.rows.toarray()) - self.mean
        z = [X @ V for V in self.bases]
        w = chunk.weights
        self.total += float(w.sum())
        for s in range(0, len(w), self.block):
            a, b, c, d = (part[s : s + self.block] for part in z)
            left = ((a * w[s : s + self.block, None])[:, :, None] * b[:, None, :]).reshape(
                len(a), -1
            )
            self.sum += left.T @ (c[:, :, None] * d[:, None, :]).reshape(len(a), -1)
        return self

    def merge(self, other: QuadrupleSums) -> QuadrupleSums:
        self.total += other.total
        self.sum += other.sum
        return self

    def finish(self) -> np.ndarray:
        k = self.bases[0].shape[1]
        return (self.sum / self.total).reshape(k, k, k, k)
