"""Rows of a kernel mixture: views and kernels, densities in folds, starts without moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import array_namespace, like_index, ones, posterior_of, to_numpy
from thirdmoment._constants import Choice, Floor
from thirdmoment.likelihood.gaussians import Block, Diagonal
from thirdmoment.likelihood.mixture import (
    MixtureData,
    Parameters,
    from_posteriors,
    log_joint,
)
from thirdmoment.moments.features import Custom, Delta, Gaussian, Kernel, Laplace, Linear, Product
from thirdmoment.refinement.axis import distinct_values, silverman, spread_of
from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.refinement.mixture import MixtureProblem
from thirdmoment.refinement.race import race
from thirdmoment.refinement.smooth import FoldedData, FoldedRows, SmoothTables, Tables
from thirdmoment.refinement.spread import k_means_labels, spread_centres
from thirdmoment.sizes import PART
from thirdmoment.starts.propose import SPREAD_STARTS
from thirdmoment.starts.start import Settings
from thirdmoment.streaming import Chunk, row_ranges

# The spectral bandwidth is this multiple of the fast rule on all rows (K-15).
SPECTRAL: Choice[float] = 2.0


class View(NamedTuple):
    """One view: its columns, the kernel of its moments and how its density is made."""

    columns: np.ndarray  # columns of the density
    names: tuple[Any, ...]  # kernel of each column, or one callable; empty where nothing varies
    exact: np.ndarray  # (d_v,) columns whose values are compared by equality
    bandwidth: np.ndarray | None  # (smooth columns,) of the density, given by the user
    seen: np.ndarray  # columns that the kernel sees
    spectral: np.ndarray | None = None  # (smooth columns,) of the moments, unless by rule

    @property
    def varies(self) -> bool:
        return bool(self.names)


class KernelRows(NamedTuple):
    """Rows of a kernel mixture, their weights and views."""

    X: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    views: list[View]
    exchangeable: bool  # whether all views have one distribution in a component


def fast_rule(x: np.ndarray, weights: np.ndarray, d: int) -> float:
    """K-15 of all rows together for one of d columns."""
    values, mass = distinct_values(x, weights)
    return float(silverman(*spread_of(values, mass[None]), np.array([weights.sum()]), d)[0])


def spectral_kernel(view: View, X: np.ndarray, weights: np.ndarray) -> Kernel:
    """Kernel of the moments on the columns X (n, d_v) of a view, with the bandwidths of K-15."""
    if callable(view.names[0]):
        return Custom(view.names[0])
    d = X.shape[1]
    scale = SPECTRAL * np.array([fast_rule(column, weights, d) for column in X.T])
    if view.spectral is not None:
        scale[~view.exact] = view.spectral
    if set(view.names) == {"rbf"}:
        return Gaussian(scale)
    if set(view.names) == {"laplace"}:
        return Laplace(scale)
    if set(view.names) == {"delta"}:
        return Delta()
    mean = weights @ X / weights.sum()
    unit = np.sqrt(weights @ (X - mean) ** 2 / weights.sum())
    if set(view.names) == {"linear"}:
        return Linear(mean, unit)
    parts: list[Kernel] = []
    for j, name in enumerate(view.names):
        one = scale[j : j + 1]
        simple: dict[str, Kernel] = {
            "rbf": Gaussian(one),
            "laplace": Laplace(one),
            "delta": Delta(),
            "linear": Linear(mean[j : j + 1], unit[j : j + 1]),
        }
        parts.append(simple[name])
    return Product(tuple(parts))


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


def folded_chunk(family: SmoothTables, views: Sequence[View], chunk: Chunk) -> list[FoldedRows]:
    """Rows of a source sorted into folds by their numbers."""
    out, rows, folds = [], chunk.rows, family.folds
    if not all(isinstance(table, Lattice) for table in family.views):
        rows = to_numpy(rows)  # centres are looked up on the host
    xp = array_namespace(rows)
    for f in range(folds):
        first = (f - chunk.start) % folds
        if first < rows.shape[0]:
            own = rows[first::folds, :]
            parts = tuple(
                table.rows(xp.take(own, like_index(own, view.columns), axis=1))
                for table, view in zip(family.views, views, strict=True)
            )
            place = np.arange(first, rows.shape[0], folds)
            out.append(FoldedRows(parts, ones(len(place), like=own), f, place))
    return out


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


# EM steps of Gaussian components that help to start a kernel mixture.
GAUSSIAN_STEPS: Choice[int] = 100

# Variance floor of standardised columns.
VARIANCE_FLOOR: Floor[float] = 1e-4


def other_shares(
    rows: KernelRows,
    shares: Sequence[np.ndarray],
    k: int,
    settings: Settings,
    *,
    count: int | None = None,
) -> list[tuple[str, np.ndarray]]:
    """Names and shares (n, k) of the components in the rows, from ``count`` groups by k-means.

    ``shares`` has the posteriors of the moment starts. Gaussian components race from these and
    from k-means: their shape is wrong, but has few parameters and leads out of false optima.
    """
    X, weights, rng = rows.X, rows.weights, settings.rng
    groups = [view.columns for view in rows.views]
    if k == 1:
        return [("all rows", np.ones((len(X), 1)))]
    used = np.concatenate(groups)
    centre = weights @ X / weights.sum()
    scale = np.sqrt(weights @ (X - centre) ** 2 / weights.sum())
    Z = ((X - centre) / np.where(scale > 0, scale, 1.0))[:, used]
    first = k_means_labels(Z, weights, spread_centres(Z, weights, k, rng), rounds=30)
    part = np.arange(len(Z))
    if len(Z) > PART:
        part = np.sort(rng.choice(len(Z), PART, replace=False))
    begin = [share[part] for share in shares] + [np.eye(k)[first[part]]]
    for _ in range((SPREAD_STARTS if count is None else count) - 1):
        centres = spread_centres(Z[part], weights[part], k, rng)
        begin.append(np.eye(k)[k_means_labels(Z[part], weights[part], centres, rounds=30)])
    family = _family(groups)
    data = MixtureData([family.rows(Z[part], weights[part])])
    starts = [from_posteriors(family, data, share) for share in begin]
    problem = MixtureProblem(family, data, 0.1, settings.n_threads)
    found = race(problem, starts, max_steps=GAUSSIAN_STEPS, max_swaps=8)
    gaussian = _shares(family, found.parameters, Z, weights)
    return [("k-means", np.eye(k)[first]), ("Gaussian components", gaussian)]


def _family(groups: Sequence[np.ndarray]) -> Diagonal | Block:
    """Gaussian components, dependent within views only."""
    if all(len(group) == 1 for group in groups):
        return Diagonal(VARIANCE_FLOOR)
    sizes = [len(group) for group in groups]
    return Block(VARIANCE_FLOOR, np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))


def _shares(
    family: Diagonal | Block, parameters: Parameters, Z: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    return posterior_of(log_joint(family, parameters, family.rows(Z, weights)))[0].T
