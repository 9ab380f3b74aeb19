"""Smoothed nonparametric EM of multi-view mixtures, guarded by held-out likelihood.

As in npEM (Benaglia, Chauveau and Hunter 2009) posteriors weight a kernel density estimate of each
view in each component. Rows fall into folds, and the posterior of a row comes from densities that
were made without its fold: the objective is the held-out log-likelihood of every row at every step,
no row keeps a component because it once had it, and the best step is known. (The folds leak a
little: posteriors of the other rows have seen densities with the row in them.) The fold of a row is
its number among the distinct rows, so equal rows and rows of weight two are treated alike.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from thirdmoment._array import (
    array_namespace,
    by_halves,
    like_one,
    map_in_order,
    posterior_of,
    to_numpy,
    total_of,
)
from thirdmoment._constants import Choice, Floor
from thirdmoment.likelihood.mixture import MixtureData, Parameters, Statistics
from thirdmoment.refinement.em import EMResult, Step
from thirdmoment.refinement.lattice import ViewRows
from thirdmoment.refinement.mixture import with_component
from thirdmoment.streaming import Streamed, fold, part_of

# Densities of a row are made without its fold, a fifth of the rows.
FOLDS: Choice[int] = 5

# Densities are no smaller than this share of the largest (K-13).
FLOOR: Floor[float] = 1e-10

# Probability of a value that was never seen.
LEAST_PROBABILITY: Floor[float] = 1e-12

# Steps without a gain of held-out likelihood after which EM stops.
PATIENCE: Choice[int] = 3


class Tables(Protocol):
    """Densities of one view for all components (`Lattice`, `Centres`)."""

    size: int
    d: int

    @property
    def cell(self) -> float: ...
    @property
    def peak(self) -> float: ...
    @property
    def smooth(self) -> bool: ...
    @property
    def tunable(self) -> bool: ...
    def check(self, columns: int) -> None: ...
    def rows(self, X: np.ndarray) -> ViewRows: ...
    def bandwidths(self, counts: np.ndarray, effective: np.ndarray) -> np.ndarray: ...
    def resolved(self, bandwidths: np.ndarray) -> np.ndarray: ...
    def table(self, counts: np.ndarray, bandwidths: np.ndarray) -> np.ndarray: ...
    def places(self, table: np.ndarray) -> np.ndarray: ...
    def points_of(self, *, clipped: bool = False) -> np.ndarray: ...
    def draw(self, table: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray: ...


class FoldedRows(NamedTuple):
    """Rows of one fold, view by view."""

    views: tuple[ViewRows, ...]
    weights: np.ndarray  # (m,)
    fold: int
    place: np.ndarray  # (m,) row numbers in the whole table

    def part(self, start: int, stop: int) -> FoldedRows:
        """Rows start..stop-1."""
        views = tuple(part_of(view, start, stop) for view in self.views)
        return FoldedRows(views, self.weights[start:stop], self.fold, self.place[start:stop])


class FoldedData(MixtureData):
    """All folds."""

    chunks: tuple[FoldedRows, ...]


def places_of(sizes: Sequence[int]) -> list[slice]:
    """Where the nodes of each view stand among those of all."""
    edges = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]


class SmoothTables:
    """Products of nonparametric distributions; parameters (weights, tables (k, folds, Σ G_v)).

    Slot f of the tables is made without fold f. ``multipliers`` (views, k) scale the bandwidths of
    the fast rule. With ``shared`` all views have one distribution.
    """

    def __init__(
        self,
        views: Sequence[Tables],
        k: int,
        *,
        folds: int = FOLDS,
        multipliers: np.ndarray | None = None,
        shared: bool = False,
    ) -> None:
        self.views = list(views)
        self.folds = folds if any(view.smooth for view in views) else 1
        self.multipliers = np.ones((len(views), k)) if multipliers is None else multipliers
        self.shared = shared
        self.place = places_of([view.size for view in views])
        self.size = self.place[-1].stop if views else 0

    def tuned(self, multipliers: np.ndarray) -> SmoothTables:
        """The same tables with other multiples of the fast rule."""
        k = multipliers.shape[1]
        return SmoothTables(
            self.views, k, folds=self.folds, multipliers=multipliers, shared=self.shared
        )

    def log_density(self, parameters: Parameters, chunk: FoldedRows) -> np.ndarray:
        views = self.log_views(parameters[1][:, chunk.fold], chunk.views)
        return functools.reduce(operator.add, views)

    def log_views(self, tables: np.ndarray, rows: Sequence[ViewRows]) -> list[np.ndarray]:
        """log p_v(x_v | h) (k, m) of each view from tables (k, Σ G_v), kept above a floor."""
        return [self.log_view(v, tables[:, place], rows[v]) for v, place in enumerate(self.place)]

    def log_view(self, v: int, table: np.ndarray, rows: ViewRows) -> np.ndarray:
        """log p_v(x_v | h) (k, m) from the table (k, G_v) of one view."""
        view = self.views[v]
        low = FLOOR * float(table.max()) * view.peak if view.smooth else LEAST_PROBABILITY
        read = rows.read.dot_t(table)
        xp = array_namespace(read)
        return xp.log(xp.clip(read, max(low, 1e-300), None))

    def statistics(self, chunk: FoldedRows, posterior: np.ndarray) -> Statistics:
        """Masses (k,), squares (k,) and the counts (k, Σ G_v) of the chunk's fold."""
        xp = array_namespace(posterior)
        counts = xp.concat([rows.add.left_dot(posterior) for rows in chunk.views], axis=1)
        squares = posterior**2 / xp.clip(chunk.weights, 1e-300, None)
        return xp.sum(posterior, axis=1), xp.sum(squares, axis=1), counts

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, squares, counts = statistics
        mass = np.maximum(mass, 1e-300)
        return mass / mass.sum(), self.tables(counts, self.effective(mass, squares))

    def effective(self, mass: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Rows (views, k) behind each density, (Σ r)²/Σ r²."""
        rows = np.maximum(mass**2 / np.maximum(squares, 1e-300), 1.0)
        return np.tile(rows, (len(self.views), 1))

    def tables(
        self, counts: np.ndarray, effective: np.ndarray, *, whole: bool = False
    ) -> np.ndarray:
        """Densities (k, folds, Σ G_v) without each fold, or (k, 1, Σ G_v) of all rows.

        ``counts`` (k, folds, Σ G_v) may be negative; ``effective`` (views, k) rows stand behind.
        """
        total = counts.sum(axis=1, keepdims=True)
        widths = self.bandwidths(total[:, 0], effective)
        kept = total if whole or self.folds == 1 else total - counts
        kept = self.pooled(kept)
        parts = [
            view.table(kept[..., place], width)
            for view, place, width in zip(self.views, self.place, widths, strict=True)
        ]
        return np.concatenate(parts, axis=2)

    def bandwidths(self, total: np.ndarray, effective: np.ndarray) -> list[np.ndarray]:
        """Bandwidths (k, d_v) of each view from counts (k, Σ G_v) of all rows."""
        if self.shared:
            total = self.pooled(total)
            effective = np.tile(effective.sum(axis=0), (len(self.views), 1))
        found = []
        for v, view in enumerate(self.views):
            positive = np.maximum(total[:, self.place[v]], 0.0)
            width = view.bandwidths(positive, effective[v]) * self.multipliers[v][:, None]
            found.append(view.resolved(width))
        return found

    def pooled(self, counts: np.ndarray) -> np.ndarray:
        """Counts (..., Σ G_v) of all views together in the place of each, where they share."""
        if not self.shared:
            return counts
        views = len(self.views)
        parts = counts.reshape(*counts.shape[:-1], views, self.size // views)
        return np.broadcast_to(parts.sum(axis=-2, keepdims=True), parts.shape).reshape(counts.shape)


class StreamedFolds(NamedTuple):
    """All rows of a source."""

    chunks: Streamed  # lists of `FoldedRows`
    total: float


class FoldedSums:
    """What `fold_sums` adds up, of the rows of a source."""

    def __init__(self, family: SmoothTables, parameters: Parameters) -> None:
        k = len(parameters[0])
        self.family, self.parameters, self.value = family, parameters, 0.0
        self.mass, self.squares = np.zeros(k), np.zeros(k)
        self.counts = np.zeros((k, family.folds, family.size))

    def update(self, chunk: list[FoldedRows]) -> FoldedSums:
        for rows in chunk:
            found = fold_sums(self.family, FoldedData([rows]), self.parameters)
            (mass, squares, counts), value = found
            self.mass += mass
            self.squares += squares
            self.counts += counts
            self.value += value * total_of(rows.weights)
        return self

    def merge(self, other: FoldedSums) -> FoldedSums:
        self.mass += other.mass
        self.squares += other.squares
        self.counts += other.counts
        self.value += other.value
        return self


def fold_sums(
    family: SmoothTables, data: Any, parameters: Parameters, *, n_threads: int = 1
) -> tuple[Statistics, float]:
    """Masses, squares and counts (k, folds, Σ G_v) of one E-step, and the held-out objective."""
    if isinstance(data, StreamedFolds):
        sums = fold(partial(FoldedSums, family, parameters), data.chunks, n_threads=n_threads)
        return (sums.mass, sums.squares, sums.counts), sums.value / data.total
    log_weights = np.log(np.maximum(parameters[0], 1e-300))[:, None]

    def some(chunk: FoldedRows) -> tuple[int, Statistics, float]:
        joint = family.log_density(parameters, chunk)
        joint += like_one(joint, log_weights)
        posterior, likelihood = posterior_of(joint)
        value = float(chunk.weights @ like_one(chunk.weights, likelihood))
        posterior *= chunk.weights
        return chunk.fold, tuple(map(to_numpy, family.statistics(chunk, posterior))), value

    def one(chunk: FoldedRows) -> list[tuple[int, Statistics, float]]:
        n = len(chunk.weights)

        def rows(a: int, b: int) -> tuple[int, Statistics, float]:
            return some(chunk if b - a == n else chunk.part(a, b))

        return list(by_halves(rows, n))

    k = len(parameters[0])
    mass, squares = np.zeros(k), np.zeros(k)
    counts = np.zeros((k, family.folds, family.size))
    total = 0.0
    found = map_in_order(one, data.chunks, n_threads=n_threads)
    for number, part, value in itertools.chain.from_iterable(found):
        mass += part[0]
        squares += part[1]
        counts[:, number] += part[2]
        total += value
    return (mass, squares, counts), total / data.total


def smooth_step(
    family: SmoothTables, data: Any, parameters: Parameters, *, n_threads: int = 1
) -> tuple[Parameters, float]:
    """Parameters after one EM step and the objective before it."""
    sums, value = fold_sums(family, data, parameters, n_threads=n_threads)
    return family.maximise(sums), value


def guarded_em(
    step: Step, start: Parameters, total: float, *, tol: float, max_steps: int
) -> EMResult:
    """EM steps while the held-out likelihood gains, the best parameters on the way.

    Stops when a step changes the sum over ``total`` rows by less than ``tol`` or after `PATIENCE`
    steps without a gain. The path ends with the objective of the parameters returned.
    """
    current, best = start, (start, -np.inf)
    path: list[float] = []
    converged, behind = False, 0
    for steps in range(max_steps + 1):
        after, value = step(current)
        change = value - path[-1] if path else np.inf
        path.append(value)
        behind = 0 if value > best[1] else behind + 1
        if value > best[1]:
            best = current, value
        if abs(change) * total <= tol or behind >= PATIENCE:
            converged = True
            break
        current = after
    return EMResult(best[0], (*path, best[1]), converged, steps)


class SmoothProblem:
    """A nonparametric mixture in a race of starts, by held-out likelihood."""

    def __init__(self, family: SmoothTables, data: Any, tol: float, n_threads: int) -> None:
        self.family, self.data, self.tol, self.n_threads = family, data, tol, n_threads
        self.total = data.total

    def collapsed(self, parameters: Parameters) -> int:
        """Held-out likelihood has a limit."""
        return 0

    def replaced(self, best: Parameters, other: Parameters, i: int, j: int) -> Parameters:
        return with_component(best, other, i, j)

    def run(self, parameters: Parameters, steps: int) -> EMResult:
        return guarded_em(
            lambda at: smooth_step(self.family, self.data, at, n_threads=self.n_threads),
            parameters,
            self.data.total,
            tol=self.tol,
            max_steps=steps,
        )

    def places(self, parameters: Parameters) -> np.ndarray:
        family = self.family
        tables = parameters[1][:, 0]
        found = [
            view.places(tables[:, place])
            for view, place in zip(family.views, family.place, strict=True)
        ]
        return np.concatenate(found, axis=1)
