"""Rows of a multi-view mixture: features for the moments, and a likelihood to judge them by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import DenseRows, as_rows
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.gaussians import Block, Diagonal, with_floor
from thirdmoment.likelihood.mixture import Family, MixtureData
from thirdmoment.models.tables import with_rows
from thirdmoment.models.units import BELIEVABLE
from thirdmoment.moments.views import Sample
from thirdmoment.refinement.race import Refined
from thirdmoment.starts.views import ViewTable
from thirdmoment.streaming import Chunk, Streamed, fold, row_ranges


class ViewRows(NamedTuple):
    """Rows in units of their columns."""

    X: Any  # (m, d) all of them, or a sample
    weights: np.ndarray  # (m,)
    whole: Streamed | None = None  # all rows of a source


class Prepared(NamedTuple):
    """Features whose cross moments are taken, and how to read the columns' means off them."""

    table: ViewTable
    scale: np.ndarray  # (D,) features were divided by it
    linear: np.ndarray  # (d,) feature that holds each column


def prepare_views(
    rows: ViewRows, views: list[np.ndarray], *, lift: int, weighted: bool, n_threads: int
) -> Prepared:
    """Columns of views, with their products where lifted, of unit size where weighted."""
    X, w, whole = rows
    d, sparse, groups = X.shape[1], sp.issparse(X), views
    if lift == 2:
        views = _product_views(groups, d)
        X, sparse = _with_products(groups, X.toarray() if sparse else X), False
        whole = whole and whole.mapped(partial(with_rows, partial(_with_products, groups)))
    D = X.shape[1]
    scale, names = np.ones(D), list(range(len(views)))
    if weighted:
        if whole is None:
            squares = X.multiply(X) if sparse else X * X
            scale = np.sqrt(np.asarray(w @ squares).ravel() / w.sum())
        else:
            sums = fold(SquareSums, whole, n_threads=n_threads)
            scale = np.sqrt(sums.total / sums.n)
        used = scale > 1e-12 * max(float(scale.max(initial=0.0)), 1e-300)
        scale = np.where(used, scale, 1.0)
        kept = {v: view[used[view]] for v, view in enumerate(views) if used[view].any()}
        names, views = list(kept), list(kept.values())
    if len(views) < 3:
        raise UnusableMoments(
            f"{len(views)} views vary, and fewer than three do not identify a mixture."
        )
    samples: Any = None
    if whole is None:
        samples = _samples(X, scale, w, constant=weighted)
    else:
        make = partial(_sample, scale, weighted)
        samples = whole.mapped(make, width=D + int(weighted))
    table = ViewTable(samples, views, D if weighted else None, names)
    return Prepared(table, np.append(scale, 1.0) if weighted else scale, np.arange(d))


def _samples(Z: Any, scale: np.ndarray, w: np.ndarray, *, constant: bool) -> list[Sample]:
    """Scaled features in fixed chunks, with a last column of ones where asked for."""
    if sp.issparse(Z):
        Z = (sp.csr_array(Z) @ sp.diags_array(1 / scale)).tocsr()
        if constant:
            Z = sp.hstack([Z, sp.csr_array(np.ones((Z.shape[0], 1)))], format="csr")
        ranges = row_ranges(Z.shape[0])
        return [Sample(as_rows(Z[a:b]), w[a:b], a) for a, b in ranges]
    Z = Z / scale
    if constant:
        Z = np.concatenate([Z, np.ones((len(Z), 1))], axis=1)
    return [Sample(DenseRows(Z[a:b]), w[a:b], a) for a, b in row_ranges(len(Z))]


def _sample(scale: np.ndarray, constant: bool, chunk: Chunk) -> Sample:
    """Rows of a source as `_samples` makes them."""
    rows = chunk.rows / scale
    if constant:
        rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    return Sample(DenseRows(rows), np.ones(len(rows)), chunk.start)


class SquareSums:
    """Sum of the squares of each column."""

    def __init__(self) -> None:
        self.n, self.total = 0, np.zeros(1)

    def update(self, chunk: Chunk) -> SquareSums:
        self.n, self.total = self.n + len(chunk.rows), self.total + (chunk.rows**2).sum(axis=0)
        return self

    def merge(self, other: SquareSums) -> SquareSums:
        self.n, self.total = self.n + other.n, self.total + other.total
        return self


def _product_views(groups: list[np.ndarray], width: int) -> list[np.ndarray]:
    """Features of each view among the columns and the products behind them."""
    views = []
    for group in groups:
        size = len(group) * (len(group) + 1) // 2
        views.append(np.concatenate([group, width + np.arange(size)]))
        width += size
    return views


def _with_products(groups: list[np.ndarray], Z: np.ndarray) -> np.ndarray:
    """Columns, then the products of the columns of each view (MV-20, order 1 + 2)."""
    parts = [Z]
    for group in groups:
        i, j = np.triu_indices(len(group))
        parts.append(Z[:, group[i]] * Z[:, group[j]])
    return np.concatenate(parts, axis=1)


class Components(NamedTuple):
    """What is learned of k components, in units of the columns."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, d)
    covariances: list[np.ndarray]  # (k, d_v, d_v), or variances (k, d_v)
    groups: list[np.ndarray]  # columns of each view


def view_part(
    X: Any, found: Components
) -> tuple[Callable[[np.ndarray, np.ndarray], tuple[Family, MixtureData]], Refined]:
    """Some rows of X with other weights as a mixture, and the components as its answer.

    Where one view has variances only, wide as it is, no other covariance is looked at.
    """
    weights, means, covariances, groups = found
    plain = any(cov.ndim == 2 for cov in covariances)
    family: Any = Diagonal(BELIEVABLE) if plain else Block(BELIEVABLE, groups)

    def part(place: np.ndarray, some: np.ndarray) -> tuple[Family, MixtureData]:
        rows = X[place].toarray() if sp.issparse(X) else X[place]
        return family, MixtureData([family.rows(rows.astype(np.float64), some)])

    spreads = [at_least(cov, BELIEVABLE) for cov in covariances]
    if plain:
        variances = np.ones_like(means)
        for group, cov in zip(groups, spreads, strict=True):
            full = cov.ndim == 3
            variances[:, group] = np.diagonal(cov, axis1=1, axis2=2) if full else cov
        spreads = [variances]
    return part, Refined(family.project((weights, means, *spreads)))


def at_least(covariances: np.ndarray, floor: float) -> np.ndarray:
    """Variances (k, d), or covariances (k, d, d), with nothing below the floor."""
    if covariances.ndim == 2:
        return np.maximum(covariances, floor)
    return with_floor(covariances, floor)


def as_full(covariance: np.ndarray) -> np.ndarray:
    if covariance.ndim == 3:
        return covariance
    return covariance[:, :, None] * np.eye(covariance.shape[1])


def variances_of(covariance: np.ndarray) -> np.ndarray:
    """Variances (k, d_v) of full or diagonal covariances."""
    return np.diagonal(covariance, axis1=1, axis2=2) if covariance.ndim == 3 else covariance
