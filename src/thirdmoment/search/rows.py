"""Rows of a search: reading, labels, and the components of all rows from a few labelled ones.

Moments see spherical components only. Segments of photographs, and most groups in real tables, are
not: elliptical components started at the labelled rows themselves find them better
(docs/decisions/search.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import DenseRows, row_signs
from thirdmoment._constants import Choice, Floor
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.gaussians import Block, Spherical
from thirdmoment.likelihood.mixture import MixtureData, Parameters, log_joint
from thirdmoment.models.base import MomentEstimator
from thirdmoment.models.read import read_table
from thirdmoment.models.rows import counted_rows
from thirdmoment.moments.views import Sample
from thirdmoment.moments.word_search import DirectedGram, DirectedMoment, DirectedRows
from thirdmoment.refinement.mixture import mixture_em
from thirdmoment.search.component import Component
from thirdmoment.starts.given import Shape, around_means
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


# Rows that the refinement looks at, and its EM steps.
ASSIGN_STEPS: Choice[int] = 30

# Smallest variance, as a share of that of the column that varies least.
FLOOR: Floor[float] = 1e-4


class Assigner(NamedTuple):
    """A mixture that says which component a row belongs to."""

    family: Spherical | Block
    parameters: Parameters

    def labels(self, X: np.ndarray) -> np.ndarray:
        """Most probable component (n,) of rows in the units of the start."""
        chunk = self.family.rows(X, np.ones(len(X)))
        return np.argmax(log_joint(self.family, self.parameters, chunk), axis=0)


def assigner(X: np.ndarray, weights: np.ndarray, means: np.ndarray, *, n_threads: int) -> Assigner:
    """Gaussian components of centred rows from ``means`` (k, d), spherical or full by BIC."""
    d, k, total = X.shape[1], len(means), float(weights.sum())
    spread = weights @ (X * X) / total
    varies = spread[spread > 1e-12 * spread.max()]
    floor = max(FLOOR * float(varies.min()), 1e-100) if len(varies) else 1e-100
    whole = [np.arange(d)]
    spreads: list[tuple[str, Spherical | Block, int]] = [("spherical", Spherical(floor), k)]
    full = k * d * (d + 1) // 2
    if full < total:  # more numbers than rows cannot pay
        spreads.append(("full", Block(floor, whole), full))
    best, highest = None, -np.inf
    for kind, family, numbers in spreads:
        data = MixtureData([family.rows(X, weights)])
        start = family.project(around_means(X, weights, means, Shape(kind, whole)))
        found = mixture_em(
            family, data, start, tol=0.02, max_steps=ASSIGN_STEPS, n_threads=n_threads
        )
        value = total * found.path[-1] - 0.5 * (k * d + k - 1 + numbers) * np.log(total)
        if best is None or value > highest:
            best, highest = Assigner(family, found.parameters), value
    assert best is not None
    return best
