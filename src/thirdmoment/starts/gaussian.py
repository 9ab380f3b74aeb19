"""Starts of Gaussian mixtures from the moments of views and from spread-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import Array, DenseRows, array_namespace, like_one, ones
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.moments.views import Sample
from thirdmoment.refinement.spread import k_means_labels, spread_centres, weight_quantiles
from thirdmoment.sizes import LOOK
from thirdmoment.starts.start import MomentFacts, Settings
from thirdmoment.starts.view_facts import Wanted, view_covariances, view_facts
from thirdmoment.starts.views import ViewEstimates, ViewTable, view_starts, width_of
from thirdmoment.streaming import Chunk, Streamed, row_ranges


class GaussianData(NamedTuple):
    """Centred rows in units of their own, with their weights."""

    X: np.ndarray  # (n, d) float64
    weights: np.ndarray  # (n,)
    location: np.ndarray  # (d,) what was subtracted, in the same units
    whole: Whole | None = None  # of what X is a sample, None where it is everything
    device: Any = None  # that EM on these rows runs on, None for the host

    def samples(self, make: Make | None = None, *, width: int | None = None) -> Samples:
        """All rows, or features that are made of them, in chunks."""
        if self.whole is not None:
            return self.whole.rows.mapped(partial(_sample, make), width=width)
        Z = self.X if make is None else make(self.X)
        return [Sample(DenseRows(Z[a:b]), self.weights[a:b], a) for a, b in row_ranges(len(Z))]

    @property
    def total(self) -> float:
        """Rows that the table is worth."""
        return float(self.weights.sum()) if self.whole is None else self.whole.total

    @property
    def squares(self) -> np.ndarray:
        """Mean square (d,) of each column."""
        if self.whole is not None:
            return self.whole.squares
        return self.weights @ (self.X * self.X) / self.weights.sum()


class Whole(NamedTuple):
    """Centred rows of a source."""

    rows: Streamed  # chunks with float64 rows in the same units
    total: float
    squares: np.ndarray  # (d,) mean square of each column


Make = Callable[[Array], Array]
Samples = Sequence[Sample] | Streamed


def _sample(make: Make | None, chunk: Chunk) -> Sample:
    rows = chunk.rows if make is None else make(chunk.rows)
    return Sample(DenseRows(rows), ones(rows.shape[0], like=rows), chunk.start)


class ViewFeatures(NamedTuple):
    """Standardised columns with a constant, and how to undo it."""

    table: ViewTable
    scale: np.ndarray  # (d,)
    used: np.ndarray  # (d,) columns that vary


def view_features(data: GaussianData, views: list[np.ndarray], *, weighted: bool) -> ViewFeatures:
    """Columns scaled to unit variance with a constant appended, or as they are (papers' form)."""
    d, location = data.X.shape[1], data.location
    if not weighted:  # never centred: without a constant that would cost a rank
        used = np.ones(d, dtype=bool)
        samples = data.samples(partial(moved_by, location))
        table = ViewTable(samples, views, None, list(range(len(views))))
        return ViewFeatures(table, np.ones(d), used)
    scale = np.sqrt(data.squares)
    used = scale > 1e-12 * max(float(scale.max()), 1e-300)
    scale = np.where(used, scale, 1.0)
    kept = {v: view[used[view]] for v, view in enumerate(views) if used[view].any()}
    samples = data.samples(partial(scaled_with_constant, scale), width=d + 1)
    table = ViewTable(samples, list(kept.values()), d, list(kept))
    return ViewFeatures(table, scale, used)


def moved_by(location: np.ndarray, X: Array) -> Array:
    """Rows (n, d) plus ``location`` (d,)."""
    return X + like_one(X, location)


def scaled_with_constant(scale: np.ndarray, X: Array) -> Array:
    """Rows (n, d + 1) over ``scale`` (d,), with a last column of ones."""
    xp = array_namespace(X)
    return xp.concat([X / like_one(X, scale), xp.ones_like(X[:, :1])], axis=1)


def gaussian_view_starts(
    data: GaussianData, k: int, views: list[np.ndarray], settings: Settings, *, block: bool
) -> list[tuple[Parameters, MomentFacts]]:
    """(weights, means, diagonal variances) from cross moments of views (MV-21).

    Without ``hedge`` the moment estimate itself: each component's own variances, or with ``block``
    the covariances of each view.
    """
    features = view_features(data, views, weighted=settings.weighted)
    if len(features.table.views) < 3:
        raise UnusableMoments(
            f"{len(features.table.views)} views vary, and fewer than three do not identify a "
            "mixture."
        )
    out: list[tuple[Parameters, MomentFacts]] = []
    for found in view_starts(features.table, k, settings):
        parameters = _diagonal_parameters(found, features, data)
        means = parameters[1]
        if not settings.hedge:  # the estimate itself is wanted, not a start
            groups = views if block else [own[own < data.X.shape[1]] for own in found.groups]
            wanted = [Wanted(group, group, not block) for group in groups]
            own = _own_covariances(found, features, data, wanted, n_threads=settings.n_threads)
            parameters = (found.weights, means, *own)
        out.append((parameters, view_facts(found, (means + data.location).T)))
    return out


def _diagonal_parameters(
    start: ViewEstimates, features: ViewFeatures, data: GaussianData
) -> Parameters:
    """Means in the columns' own units and the pooled variance within components."""
    d = data.X.shape[1]
    means = (start.means[:d] * features.scale[:, None]).T
    if features.table.constant is None:
        means = means - data.location
    means[:, ~features.used] = 0.0
    total = data.squares
    within = total - start.weights @ (means**2)
    within = np.maximum(within, 0.1 * total)
    weights = np.maximum(start.weights, 0.05 / len(start.weights))
    return weights / weights.sum(), means, np.tile(within, (len(means), 1))


def _own_covariances(
    found: ViewEstimates,
    features: ViewFeatures,
    data: GaussianData,
    wanted: list[Wanted],
    *,
    n_threads: int,
) -> list[np.ndarray]:
    """Covariances of each view, or variances (k, d) of all columns, by scores (MV-18)."""
    chunks = features.table.chunks
    scale = np.append(features.scale, 1.0)[: width_of(chunks)]
    covariances, _ = view_covariances(chunks, found, wanted, scale, n_threads=n_threads)
    if not wanted[0].diagonal:
        return covariances
    out = np.full((len(found.weights), data.X.shape[1]), 1e-6 * float(np.mean(data.squares)))
    for one, variances in zip(wanted, covariances, strict=True):
        out[:, one.columns] = variances
    return [out]


def spread_labels(
    data: GaussianData, k: int, rng: np.random.Generator, *, greedy: bool
) -> tuple[GaussianData, np.ndarray]:
    """Some rows and their labels by spread-out centres and k-means, on standardised columns."""
    rows = weight_quantiles(data.weights, LOOK)
    everything = len(rows) == len(data.X)
    part = data._replace(whole=None, device=None)
    if not everything:
        part = GaussianData(data.X[rows], np.ones(len(rows)), data.location)
    scale = np.sqrt(part.weights @ (part.X * part.X) / part.weights.sum())
    Z = part.X / np.where(scale > 0, scale, 1.0)
    centres = spread_centres(Z, part.weights, k, rng, greedy=greedy)
    return part, k_means_labels(Z, part.weights, centres)
