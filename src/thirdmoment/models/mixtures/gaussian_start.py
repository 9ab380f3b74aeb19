"""Moment starts of Gaussian mixtures: spherical moments, random or given views, spread-out rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import DenseRows
from thirdmoment.decomposition import choose_solver, decompose
from thirdmoment.exceptions import InvalidInput, UnusableMoments
from thirdmoment.models.mixtures.base import MomentFacts, row_ranges
from thirdmoment.models.mixtures.view_start import (
    ViewStart,
    ViewTable,
    incoherence,
    view_starts,
)
from thirdmoment.moments.gaussian import SphericalTriples, spherical_whitening
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.recovery.spherical import component_variances, recover_spherical
from thirdmoment.recovery.weighted import (
    MomentFit,
    StandardMoments,
    fit_to_moments,
    move_components,
)
from thirdmoment.refinement.em import Parameters
from thirdmoment.refinement.spread import k_means_labels, spread_centres
from thirdmoment.streaming import fold

# Distinct moment solutions that the likelihood may choose from.
MOST_STARTS = 6

# The spread-out start looks at no more rows than this.
SPREAD_ROWS = 3_000


class GaussianData(NamedTuple):
    """Centred rows with their weights."""

    X: np.ndarray  # (n, d) float64
    weights: np.ndarray  # (n,)

    def samples(self, features: np.ndarray | None = None) -> list[Sample]:
        Z = self.X if features is None else features
        return [Sample(DenseRows(Z[a:b]), self.weights[a:b], a) for a, b in row_ranges(len(Z))]


def spherical_starts(
    data: GaussianData,
    k: int,
    solver: str,
    rng: np.random.Generator,
    *,
    weighted: bool,
    common: bool,
    n_threads: int,
) -> list[tuple[Parameters, MomentFacts]]:
    """(weights, means, variances) from the noise-corrected moments (SR-9 to SR-12)."""
    samples, d = data.samples(), data.X.shape[1]
    if k > d:
        raise UnusableMoments(
            f"{d} columns can show at most {d} spherical components, fewer than n_components={k}."
        )
    sums = fold(lambda: PairSums(d), samples, n_threads=n_threads)
    white = spherical_whitening(sums, k)
    triples = fold(lambda: SphericalTriples(white), samples, n_threads=n_threads)
    T, t = triples.finish(common_variance=common)
    found = decompose(T, choose_solver(solver), rng)
    plain = recover_spherical(found, white.mean, white.E, white.eta)
    total = float(data.weights.sum())
    fits = [MomentFit(plain.weights, (plain.means - white.mean) @ white.E, np.nan)]
    if weighted and k > 1:
        fits = _weighted_fits(T, white.eta, white.sigma2, fits[0], total, rng)
    facts = MomentFacts(
        np.concatenate([white.spectrum[:1], white.spectrum]),  # the constant counts as the first
        float(np.linalg.norm(sums.noise, 2)),
        found.residual,
        plain.raw_weights,
        np.zeros(k),
        choose_solver(solver),
        2,
        {
            "noise_variance": white.sigma2,
            "decomposition": found.status.value,
            "moment_misfit": tuple(fit.misfit for fit in fits),
        },
        2 * white.sigma2 * float(np.sqrt(d / total)),
    )
    starts: list[tuple[Parameters, MomentFacts]] = []
    for fit in fits:
        whitened = np.concatenate([fit.centres / np.sqrt(white.eta), np.ones((k, 1))], axis=1)
        variances = np.full(k, white.sigma2)
        if not common:
            variances = component_variances(fit.weights, whitened, t, white.sigma2)
        starts.append(((fit.weights, white.mean + fit.centres @ white.E.T, variances), facts))
    return starts


def _weighted_fits(
    T: np.ndarray,
    eta: np.ndarray,
    sigma2: float,
    start: MomentFit,
    total: float,
    rng: np.random.Generator,
) -> list[MomentFit]:
    """Fits to the moments in standardised coordinates, weighted for their noise."""
    size = np.sqrt(eta + sigma2)  # standard deviation of each signal direction
    shrink = np.sqrt(eta) / size
    third = T[:-1, :-1, :-1] * (
        shrink[:, None, None] * shrink[None, :, None] * shrink[None, None, :]
    )
    moments = StandardMoments(np.diag(shrink**2), third, total)
    first = fit_to_moments(moments, start._replace(centres=start.centres / size))
    fits = move_components(moments, first, rng)[:MOST_STARTS]
    return [fit._replace(centres=fit.centres * size) for fit in fits]


def check_views(views: object, n_columns: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Column groups from ``views``: a number of random groups, or the groups themselves."""
    if isinstance(views, (int, np.integer)) and not isinstance(views, bool):
        if views < 3:
            raise InvalidInput(
                f"views={views} is too few: two views do not identify a mixture, three do."
            )
        parts = np.array_split(rng.permutation(n_columns), min(int(views), n_columns))
        return [np.sort(part) for part in parts]
    try:
        groups = [np.atleast_1d(np.asarray(group, dtype=int)) for group in views]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InvalidInput(
            f"views={views!r} must be an integer of at least 3 or a list of column groups."
        ) from None
    if len(groups) < 3:
        raise InvalidInput(
            f"views has {len(groups)} column groups; two views do not identify a mixture, three do."
        )
    flat = np.concatenate(groups)
    outside = flat[(flat < 0) | (flat >= n_columns)]
    if len(outside):
        raise InvalidInput(
            f"views names column {outside[0]}, but X has {n_columns} columns (0 to "
            f"{n_columns - 1})."
        )
    columns, counts = np.unique(flat, return_counts=True)
    if np.any(counts > 1):
        raise InvalidInput(
            f"Views share column {columns[counts > 1][0]}: views must be independent given the "
            "component, so every column may stand in one view only."
        )
    return groups


class ViewFeatures(NamedTuple):
    """Standardised columns with a constant, and how to undo it."""

    table: ViewTable
    scale: np.ndarray  # (d,)
    used: np.ndarray  # (d,) columns that vary


def view_features(data: GaussianData, views: list[np.ndarray], *, weighted: bool) -> ViewFeatures:
    """Columns scaled to unit variance with a constant appended, or as they are (papers' form)."""
    X, w = data
    if not weighted:
        used = np.ones(X.shape[1], dtype=bool)
        names = [str(v) for v in range(len(views))]
        table = ViewTable(data.samples(), views, None, names)
        return ViewFeatures(table, np.ones(X.shape[1]), used)
    scale = np.sqrt(w @ (X * X) / w.sum())
    used = scale > 1e-12 * max(float(scale.max()), 1e-300)
    scale = np.where(used, scale, 1.0)
    features = np.concatenate([X / scale, np.ones((len(X), 1))], axis=1)
    kept = [view[used[view]] for view in views]
    kept = [view for view in kept if len(view)]
    names = [str(v) for v in range(len(kept))]
    table = ViewTable(data.samples(features), kept, X.shape[1], names)
    return ViewFeatures(table, scale, used)


def gaussian_view_starts(
    data: GaussianData,
    k: int,
    views: list[np.ndarray],
    solver: str,
    rng: np.random.Generator,
    *,
    weighted: bool,
    hedge: bool,
    n_threads: int,
) -> list[tuple[Parameters, MomentFacts]]:
    """(weights, means, diagonal variances) from cross moments of views (MV-21)."""
    features = view_features(data, views, weighted=weighted)
    if len(features.table.views) < 3:
        raise UnusableMoments(
            f"{len(features.table.views)} views vary, and fewer than three do not identify a "
            "mixture."
        )
    found = view_starts(
        features.table, k, solver, rng, sharpen=weighted, hedge=hedge, n_threads=n_threads
    )
    return [(_diagonal_parameters(start, features, data), view_facts(start)) for start in found]


def _diagonal_parameters(
    start: ViewStart, features: ViewFeatures, data: GaussianData
) -> Parameters:
    """Means in the columns' own units and the pooled variance within components."""
    d = data.X.shape[1]
    means = (start.means[:d] * features.scale[:, None]).T
    means[:, ~features.used] = 0.0
    total = data.weights @ (data.X * data.X) / data.weights.sum()
    within = total - start.weights @ (means**2)
    within = np.maximum(within, 0.1 * total)
    weights = np.maximum(start.weights, 0.05 / len(start.weights))
    return weights / weights.sum(), means, np.tile(within, (len(means), 1))


def view_facts(start: ViewStart, clipped_mass: np.ndarray | None = None) -> MomentFacts:
    k = len(start.weights)
    return MomentFacts(
        start.spectrum,
        start.noise,
        start.decomposition.residual,
        start.raw_weights,
        np.zeros(k) if clipped_mass is None else clipped_mass,
        start.solver,
        start.passes,
        {
            "decomposition": start.decomposition.status.value,
            "eigenvalue_gap": start.decomposition.gap,
            "draws": start.decomposition.draws,
            "real_draws": start.decomposition.real_draws,
            "incoherence": incoherence(start.means),
            "groups": start.groups,
            "partitions_tried": start.partitions,
            "basis_condition": start.condition,
        },
        start.expected_noise,
    )


def spread_labels(data: GaussianData, k: int, rng: np.random.Generator) -> tuple[slice, np.ndarray]:
    """Labels of a stride of rows by spread-out centres and k-means, on standardised columns."""
    stride = slice(None, None, max(1, len(data.X) // SPREAD_ROWS))
    X, w = data.X[stride], data.weights[stride]
    scale = np.sqrt(w @ (X * X) / w.sum())
    Z = X / np.where(scale > 0, scale, 1.0)
    return stride, k_means_labels(Z, w, spread_centres(Z, w, k, rng))
