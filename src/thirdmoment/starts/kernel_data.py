"""Tables of densities for each view, rows in folds, and counts from weights of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.refinement.smooth import FoldedData, FoldedRows, SmoothTables, Tables
from thirdmoment.starts.kernel import KernelRows
from thirdmoment.starts.kernel_views import View
from thirdmoment.streaming import row_ranges


def density_tables(rows: KernelRows, k: int, rng: np.random.Generator) -> list[Tables]:
    """Where the densities of each view live; one place for all where they share their law."""
    X, weights, views, exchangeable = rows
    mixed = any(np.any(~view.exact) for view in views)
    wide = sum(np.sum(~view.exact) > 2 for view in views)
    share = 1.0 if exchangeable else 1 / max(wide, 1)

    def table(own: np.ndarray, w: np.ndarray, view: View) -> Tables:
        if np.sum(~view.exact) > 2:
            return Centres(own, w, k, rng, scale=view.bandwidth, share=share)
        return Lattice(own, w, k, view.exact, bandwidth=view.bandwidth, shrink=mixed)

    if exchangeable:
        pooled = np.concatenate([X[:, view.columns] for view in views])
        return [table(pooled, np.tile(weights, len(views)), views[0])] * len(views)
    return [table(X[:, view.columns], weights, view) for view in views]


def folded_rows(
    rows: KernelRows, family: SmoothTables, part: np.ndarray | None = None
) -> FoldedData:
    """Rows, or a part of them, sorted into folds and cut into fixed blocks, as EM reads them.

    Rows are distinct and in an order of their own, so folds go by their numbers.
    """
    X, weights, views, _ = rows
    numbers = np.arange(len(X)) if part is None else part
    fold = numbers % family.folds
    chunks = []
    for f in range(family.folds):
        own = np.flatnonzero(fold == f)
        for a, b in row_ranges(len(own)):
            place = own[a:b]
            parts = tuple(
                table.rows(X[np.ix_(numbers[place], view.columns)])
                for table, view in zip(family.views, views, strict=True)
            )
            chunks.append(FoldedRows(parts, weights[numbers[place]], f, place))
    return FoldedData(chunks)


def counts_from(
    family: SmoothTables, data: FoldedData, shares: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Counts (k, folds, Σ G_v) and effective rows (views, k) from weights of rows, view by view.

    ``shares`` has (n, k) for each view, maybe negative: scores, or the same posteriors for all.
    """
    k = shares[0].shape[1]
    counts = np.zeros((k, family.folds, family.size))
    mass, squares = np.zeros((len(shares), k)), np.zeros((len(shares), k))
    for chunk in data.chunks:
        for v, (rows, place) in enumerate(zip(chunk.views, family.place, strict=True)):
            share = shares[v][chunk.place].T * chunk.weights
            counts[:, chunk.fold, place] += rows.add.left_dot(share)
            positive = np.maximum(share, 0.0)
            mass[v] += positive.sum(axis=1)
            squares[v] += (positive**2 / chunk.weights).sum(axis=1)
    return counts, np.maximum(mass**2 / np.maximum(squares, 1e-300), 1.0)
