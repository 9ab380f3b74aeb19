"""Tables of densities for each view, rows in folds, and counts from weights of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.refinement.smooth import FoldedData, FoldedRows, SmoothTables, Tables
from thirdmoment.starts.kernel_views import View
from thirdmoment.streaming import row_ranges


def density_tables(
    X: np.ndarray,
    weights: np.ndarray,
    views: Sequence[View],
    k: int,
    rng: np.random.Generator,
    *,
    exchangeable: bool,
) -> list[Tables]:
    """Where the densities of each view live; one place for all where they share their law."""
    mixed = any(np.any(~view.exact) for view in views)
    if exchangeable:
        pooled = np.concatenate([X[:, view.columns] for view in views])
        one = _table(pooled, np.tile(weights, len(views)), views[0], k, rng, mixed, 1.0)
        return [one] * len(views)
    wide = sum(np.sum(~view.exact) > 2 for view in views)
    share = 1 / max(wide, 1)
    return [_table(X[:, view.columns], weights, view, k, rng, mixed, share) for view in views]


def _table(
    X: np.ndarray,
    weights: np.ndarray,
    view: View,
    k: int,
    rng: np.random.Generator,
    mixed: bool,
    share: float,
) -> Tables:
    if np.sum(~view.exact) > 2:
        return Centres(X, weights, k, rng, scale=view.bandwidth, share=share)
    return Lattice(X, weights, k, view.exact, bandwidth=view.bandwidth, shrink=mixed)


def folded_rows(
    X: np.ndarray,
    weights: np.ndarray,
    views: Sequence[View],
    family: SmoothTables,
    *,
    numbers: np.ndarray | None = None,
) -> FoldedData:
    """Rows sorted into folds and cut into fixed blocks, as EM reads them.

    Rows are distinct and in an order of their own, so folds go by their ``numbers``.
    """
    numbers = np.arange(len(X)) if numbers is None else numbers
    fold = numbers % family.folds
    chunks = []
    for f in range(family.folds):
        rows = np.flatnonzero(fold == f)
        for a, b in row_ranges(len(rows)):
            place = rows[a:b]
            parts = tuple(
                table.rows(X[np.ix_(place, view.columns)])
                for table, view in zip(family.views, views, strict=True)
            )
            chunks.append(FoldedRows(parts, weights[place], f, place))
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
