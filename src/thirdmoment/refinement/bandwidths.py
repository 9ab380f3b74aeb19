"""Bandwidths by cross-validated likelihood (K-16), at the price of a few E-steps.

Smoothing is linear, so the densities without a fold follow from counts that are at hand: a
candidate costs one smoothing and one reading of one view. Candidates are multiples of the fast
rule, first of a whole view, then of each component in it. All of them are compared on a part of the
rows, the best few on all (successive halving).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment._array import map_in_order, posterior_of
from thirdmoment._constants import Choice
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.refinement.smooth import FoldedData, FoldedRows, SmoothTables, fold_sums

# Multiples of the fast rule that a view tries, and of what it chose that each component tries.
OF_VIEWS: Choice[tuple[float, ...]] = (0.15, 0.22, 0.33, 0.5, 0.7, 1.0, 1.4, 2.0)
OF_COMPONENTS: Choice[tuple[float, ...]] = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)

# Candidates that go on from the part of the rows to all of them.
FINALISTS: Choice[int] = 3


class BandwidthSearch:
    """Held-out likelihood with the bandwidths of one view changed at a time."""

    def __init__(
        self, family: SmoothTables, data: FoldedData, parameters: Parameters, n_threads: int
    ) -> None:
        self.sums, _ = fold_sums(family, data, parameters, n_threads=n_threads)
        mass, squares, counts = self.sums
        self.family, self.n_threads = family, n_threads
        total = counts.sum(axis=1)
        self.widths = family.bandwidths(total, family.effective(mass, squares))
        self.kept = family.pooled(total[:, None] - counts)
        self.log_weights = np.log(np.maximum(mass / mass.sum(), 1e-300))[:, None]
        views = range(len(family.views))
        # views of one distribution are changed together
        self.parts = [list(views)] if family.shared else [[v] for v in views]
        self.multiples = np.ones((len(self.parts), len(mass)))

    def run(self, rungs: Sequence[FoldedData]) -> np.ndarray:
        """Multiples (views, k) of the bandwidths at hand; ``rungs`` are growing parts of rows."""
        logs = [[self._read(p, self.multiples[p], rung) for p in range(len(self.parts))]
                for rung in rungs]  # fmt: skip
        k = self.multiples.shape[1]
        for p, part in enumerate(self.parts):
            if not self.family.views[part[0]].tunable:
                continue
            self._choose(p, [np.full(k, c) for c in OF_VIEWS], rungs, logs)
            for h in range(k if k > 1 else 0):
                own, one = self.multiples[p], np.arange(k) == h
                self._choose(p, [np.where(one, own * c, own) for c in OF_COMPONENTS], rungs, logs)
        found = np.empty((len(self.family.views), k))
        for p, part in enumerate(self.parts):
            found[part] = self.multiples[p]
        return found

    def _choose(
        self,
        p: int,
        candidates: list[np.ndarray],
        rungs: Sequence[FoldedData],
        logs: list[list[list[np.ndarray]]],
    ) -> None:
        for i, rung in enumerate(rungs):
            reads = [self._read(p, multiple, rung) for multiple in candidates]
            others = [
                sum(logs[i][q][c] for q in range(len(self.parts)) if q != p) + self.log_weights
                for c in range(len(rung.chunks))
            ]
            values = [self._value(rung, others, read) for read in reads]
            order = np.argsort(values)[::-1]
            kept = 1 if i == len(rungs) - 1 else FINALISTS
            candidates = [candidates[j] for j in order[:kept]]
        self.multiples[p] = candidates[0]
        for i, rung in enumerate(rungs):
            logs[i][p] = self._read(p, candidates[0], rung)

    def _value(self, rung: FoldedData, others: list[np.ndarray], read: list[np.ndarray]) -> float:
        total = 0.0
        for chunk, rest, mine in zip(rung.chunks, others, read, strict=True):
            total += float(chunk.weights @ posterior_of(rest + mine)[1])
        return total / rung.total

    def _read(self, p: int, multiple: np.ndarray, rung: FoldedData) -> list[np.ndarray]:
        """log density (k, m) of part p in each chunk, by tables without the chunk's fold."""
        family = self.family
        tables = [
            family.views[v].table(
                self.kept[..., family.place[v]],
                family.views[v].resolved(self.widths[v] * multiple[:, None]),
            )
            for v in self.parts[p]
        ]

        def one(chunk: FoldedRows) -> np.ndarray:
            found = [
                family.log_view(v, table[:, chunk.fold], chunk.views[v])
                for v, table in zip(self.parts[p], tables, strict=True)
            ]
            return np.sum(found, axis=0)

        return list(map_in_order(one, rung.chunks, n_threads=self.n_threads))
