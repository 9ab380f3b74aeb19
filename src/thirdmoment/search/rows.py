"""Rows of numbers prepared for queries: whitened once, weighted by every hint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import DenseRows, row_signs
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import MomentEstimator
from thirdmoment.models.read import read_table
from thirdmoment.models.rows import counted_rows
from thirdmoment.moments.directed import DirectedGram, DirectedMoment, DirectedRows
from thirdmoment.moments.views import Sample
from thirdmoment.search.component import Component
from thirdmoment.streaming import fold, row_ranges


class WhitenedRows(NamedTuple):
    """What queries read."""

    Y: np.ndarray  # (n, k) whitened rows
    weights: np.ndarray  # (n,) sum to one
    signs: np.ndarray  # (n,) ±1, the half of a row

    def gram(self, a: np.ndarray, *, n_threads: int) -> DirectedMoment:
        """E[a y yᵀ] and half the difference of its halves. Cost n k²."""
        weighted = self.weights * a
        blocks = (
            DirectedRows(self.Y[i:j], weighted[i:j], self.signs[i:j])
            for i, j in row_ranges(len(self.Y))
        )
        return fold(DirectedGram, blocks, n_threads=n_threads).finish()


class TrainingRows(NamedTuple):
    """Rows that count, with their weights."""

    X: np.ndarray  # (n, d) float64
    weights: np.ndarray  # (n,)

    def samples(self) -> list[Sample]:
        """Chunks for the moments."""
        return [
            Sample(DenseRows(self.X[a:b]), self.weights[a:b], a) for a, b in row_ranges(len(self.X))
        ]

    def whitened(self, Y: np.ndarray) -> WhitenedRows:
        """The rows Y of a whitening, ready for queries."""
        signs = row_signs(0, len(Y)).astype(np.int8)
        return WhitenedRows(Y, self.weights / self.weights.sum(), signs)


def training_rows(X: np.ndarray, weights: np.ndarray | None, k: int) -> TrainingRows:
    """Distinct rows of positive weight in float64."""
    place, w = counted_rows(X, weights, k)
    return TrainingRows(X[place].astype(np.float64), w)


class RowSearch(MomentEstimator):
    """What the searches over rows of numbers share."""

    def search_many(self, hints: Iterable[Any]) -> list[Component]:
        """Components of many hints, one after the other; each runs on ``n_jobs`` threads.

        Parameters
        ----------
        hints : iterable
            Each an array of labelled rows, a tuple or a dict of the arguments of ``search``.
        """
        check_is_fitted(self)
        found = []
        for hint in hints:
            if isinstance(hint, Mapping):
                found.append(self.search(**hint))
            else:
                found.append(self.search(*(hint if isinstance(hint, tuple) else (hint,))))
        return found

    def _labelled(self, samples: Any) -> np.ndarray:
        """Labelled rows (j, d); one row may come without its second axis."""
        if hasattr(samples, "to_frame"):  # a row of a frame, with its names
            samples = samples.to_frame().T
        elif np.ndim(samples) == 1:
            samples = np.asarray(samples, dtype=np.float64)[None]
        return read_table(self, samples, reset=False).astype(np.float64)

    def _direction(self, direction: Any) -> np.ndarray:
        """A direction (d,), scaled so that its largest entry is one."""
        v = np.asarray(direction, dtype=np.float64)
        if v.shape != (self.n_features_in_,):
            raise InvalidInput(
                f"direction has shape {v.shape}; X has {self.n_features_in_} columns."
            )
        if not np.isfinite(v).all() or not np.any(v):
            raise InvalidInput("direction is zero or not finite, so it points at no component.")
        return v / np.abs(v).max()


def one_hint(**hints: Any) -> str:
    """Name of the one hint that was given; raises for none and for several."""
    given = [name for name, value in hints.items() if value is not None]
    if len(given) != 1:
        names = " or ".join(f"{name}=" for name in hints)
        raise InvalidInput(f"Give exactly one kind of hint, {names}; {len(given)} were given.")
    return given[0]
