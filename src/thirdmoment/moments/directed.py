"""Weighted second moments of whitened rows, with the difference of two halves of the data.

Every search needs Σ a_i y_i y_iᵀ for weights a that depend on its hint; the halves give the noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
