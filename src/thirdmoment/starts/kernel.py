"""Moment start of kernel mixtures: features -> cross moments -> embeddings -> weights of rows.

The embeddings mu_{v|h} are only a step: linear scores of the *other* views weight the rows (K-9),
which gives densities, expectations and the start of EM without another kernel evaluation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import DenseRows, to_numpy
from thirdmoment._constants import Limit, Work
from thirdmoment.decomposition import choose_solver
from thirdmoment.exceptions import InvalidInput, RankDeficientMoment, UnusableMoments
from thirdmoment.linalg import whiten
from thirdmoment.moments.features import (
    FeatureMap,
    Kernel,
    exchangeable_gram_map,
    fourier_map,
    gram_bytes,
    gram_maps,
    pivoted_map,
)
from thirdmoment.moments.views import ExchangeableSums, PairSums, Sample, mean_pairs
from thirdmoment.recovery.covariance import linear_scores
from thirdmoment.recovery.dirichlet import (
    pair_weights,
    recover_dirichlet_views,
    recover_exchangeable,
)
from thirdmoment.starts.kernel_rows import KernelRows, spectral_kernel
from thirdmoment.starts.start import MomentFacts, Settings
from thirdmoment.starts.view_facts import estimate_facts
from thirdmoment.starts.views import (
    PairFacts,
    ViewEstimates,
    ViewTable,
    gather,
    view_starts,
    width_of,
)
from thirdmoment.streaming import fold, row_ranges

# Gram matrices may take this much memory.
MOST_GRAM_BYTES: Limit[int] = 2 * 2**30

# Features up to this size are made once; larger ones anew in every pass.
KEPT_BYTES: Work[int] = 2**29


class FeatureTable(NamedTuple):
    """Features of the varying views side by side."""

    table: ViewTable
    peaks: np.ndarray  # (views,) mean of κ(x, x)
    used: list[int]  # numbers of the views that take part


class FeatureOptions(NamedTuple):
    """How kernel features are made."""

    method: str  # "low-rank", "exact" or "fourier"
    rank: int


class Embeddings(NamedTuple):
    """Embeddings of all views and what weights rows by them."""

    features: FeatureTable
    views: ViewEstimates
    pair_weights: np.ndarray  # (k,) c with C_uv = M_u diag(c) M_vᵀ: the weights of a mixture

    def facts(self) -> MomentFacts:
        """What the report says about the moments."""
        used, columns = self.features.used, self.features.table.views
        sizes = {v: len(own) for v, own in zip(used, columns, strict=True)}
        return estimate_facts(self.views, np.zeros(len(self.views.weights)), {"features": sizes})


def feature_table(
    rows: KernelRows, k: int, options: FeatureOptions, rng: np.random.Generator
) -> FeatureTable:
    """Features of all varying views, by landmarks, Fourier draws or Gram matrices."""
    X, weights, views, _ = rows
    used = [v for v, view in enumerate(views) if view.varies]
    if len(used) < 3:
        raise UnusableMoments(
            f"{len(used)} of {len(views)} views vary, and fewer than three do not identify a "
            "mixture."
        )
    blocks = [X[:, views[v].seen] for v in used]
    maps = _maps(rows._replace(views=[views[v] for v in used]), blocks, k, options, rng)
    chunks = FeatureChunks(maps, blocks, weights)
    peaks = np.zeros(len(used))
    edges = np.concatenate([[0], np.cumsum(chunks.sizes)])
    columns = [np.arange(edges[i], edges[i + 1]) for i in range(len(used))]
    for chunk in chunks:
        squares = chunk.weights @ chunk.rows.toarray() ** 2
        peaks += [squares[own].sum() for own in columns]
    table = ViewTable(chunks, columns, None, used, noisy=True)
    return FeatureTable(table, peaks / weights.sum(), used)


class FeatureChunks(Sequence[Sample]):
    """Features of fixed blocks of rows, made when asked for, and kept where they are small."""

    def __init__(
        self, maps: list[FeatureMap], blocks: list[np.ndarray], weights: np.ndarray
    ) -> None:
        self.maps, self.blocks, self.weights = maps, blocks, weights
        self.ranges = row_ranges(len(weights))
        self.sizes = [one(block[:1]).shape[1] for one, block in zip(maps, blocks, strict=True)]
        small = 8 * len(weights) * sum(self.sizes) <= KEPT_BYTES
        self.kept: dict[int, Sample] | None = {} if small else None

    def __len__(self) -> int:
        return len(self.ranges)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if self.kept is not None and i in self.kept:
            return self.kept[i]
        a, b = self.ranges[i]
        parts = [one(block[a:b]) for one, block in zip(self.maps, self.blocks, strict=True)]
        made = Sample(DenseRows(np.concatenate(parts, axis=1)), self.weights[a:b], a)
        if self.kept is not None:
            self.kept[i] = made
        return made


def _maps(
    rows: KernelRows,
    blocks: list[np.ndarray],
    k: int,
    options: FeatureOptions,
    rng: np.random.Generator,
) -> list[FeatureMap]:
    _, weights, views, exchangeable = rows
    method, rank = options
    if exchangeable:
        pooled, repeated = np.concatenate(blocks), np.tile(weights, len(blocks))
        kernels: list[Kernel] = [spectral_kernel(views[0], pooled, repeated)]
    else:
        kernels = [spectral_kernel(v, B, weights) for v, B in zip(views, blocks, strict=True)]
    if method == "exact":
        _check_memory(len(weights), len(blocks), exchangeable)
        if exchangeable:
            return [exchangeable_gram_map(kernels[0], blocks, weights, k)] * len(blocks)
        return list(gram_maps(kernels, blocks, weights, k))
    if method == "fourier":
        drawn = [fourier_map(kernel, rng, size=rank) for kernel in kernels]
        return list(drawn * len(blocks) if exchangeable else drawn)
    if exchangeable:
        return [pivoted_map(kernels[0], pooled, repeated, rng, most=rank)] * len(blocks)
    return [
        pivoted_map(kernel, block, weights, rng, most=rank)
        for kernel, block in zip(kernels, blocks, strict=True)
    ]


def _check_memory(n: int, views: int, exchangeable: bool) -> None:
    needed = gram_bytes(n, views, exchangeable=exchangeable)
    if needed > MOST_GRAM_BYTES:
        raise InvalidInput(
            f"features='exact' needs about {needed / 2**30:.1f} GiB for the Gram matrices of {n} "
            f"rows and {views} views ({MOST_GRAM_BYTES / 2**30:.0f} GiB is the limit). Use "
            "features='low-rank', which gives the same answer to rounding at full rank, or fewer "
            "rows."
        )


def embeddings(
    features: FeatureTable, k: int, settings: Settings, *, a0: float, exchangeable: bool
) -> list[Embeddings]:
    """Embeddings by the route that the model calls for, the recommended first."""
    table = features.table
    D = width_of(table.chunks)
    sums = fold(lambda: PairSums(D), table.chunks, n_threads=settings.n_threads)
    if exchangeable:
        found = [_exchangeable(features, sums, k, settings, a0)]
    elif a0 > 0:
        found = [_dirichlet(features, sums, k, settings, a0)]
    else:
        found = [
            Embeddings(features, views, views.weights)
            for views in view_starts(table, k, settings, sums=sums)
        ]
    return [
        one._replace(views=one.views.expecting(_expected_noise(features, sums, one.views.groups)))
        for one in found
    ]


def _expected_noise(features: FeatureTable, sums: PairSums, groups: Sequence[np.ndarray]) -> float:
    """Sampling error of a pair of groups, by the variance term of matrix concentration.

    √(max(‖E z_u z_uᵀ‖ κ_v, ‖E z_v z_vᵀ‖ κ_u)/n) for the noisiest pair, κ the mean square length of
    the features: unlike split halves it is the same for a row of weight two and a row given twice.
    """
    views, worst = features.table.views, 0.0
    tops = [float(np.linalg.norm(sums.pairs[np.ix_(g, g)], 2)) for g in groups]
    lengths = [
        sum(float(peak) for own, peak in zip(views, features.peaks, strict=True) if own[0] in group)
        for group in groups
    ]
    for u, v in itertools.permutations(range(len(groups)), 2):
        worst = max(worst, tops[u] * lengths[v])
    return float(np.sqrt(worst / sums.total))


def _exchangeable(
    features: FeatureTable, sums: PairSums, k: int, settings: Settings, a0: float
) -> Embeddings:
    """One distribution for all views: average over all pairs and triples of views (K-6)."""
    table = features.table
    views, r = len(table.views), len(table.views[0])
    mean = sums.mean.reshape(views, r).mean(axis=0)
    second = mean_pairs(sums.pairs, views) - a0 / (a0 + 1) * np.outer(mean, mean)
    if r < k:
        raise RankDeficientMoment(rank=r, k=k, smallest=0.0, floor=0.0)
    white = whiten(second, k)
    make = partial(ExchangeableSums, white.W, views)
    moments = fold(make, table.chunks, n_threads=settings.n_threads)
    T = moments.finish().corrected(a0).third
    name = choose_solver(settings.solver)
    found = recover_exchangeable(T, white.B, a0, name, settings.rng)
    means = np.tile(found.means[0], (views, 1))
    raw = found.alpha if a0 == 0 else found.alpha / found.alpha.sum()
    spectrum = np.sort(np.linalg.eigvalsh(second))[::-1][: 2 * k + 10]
    noise = float(np.linalg.norm(mean_pairs(sums.noise, views), 2))
    one = ViewEstimates(
        means, raw / raw.sum(), raw, found.decomposition, name, tuple(table.views[:3]),
        float(np.linalg.cond(found.means[0])), PairFacts(spectrum, noise, np.inf, 1, 2),
    )  # fmt: skip
    return Embeddings(features, one, pair_weights(found.alpha, a0))


def _dirichlet(
    features: FeatureTable, sums: PairSums, k: int, settings: Settings, a0: float
) -> Embeddings:
    """Different views with Dirichlet proportions: three groups first, then every view (K-14)."""
    gathered = gather(features.table, k, settings, sums=sums)
    name = "tensor" if settings.solver == "auto" else settings.solver
    core = gathered.core.corrected(a0)
    found = recover_dirichlet_views(core, k, a0, name, settings.rng)
    means = np.zeros((gathered.bases[0].shape[0], k))
    for V, M in zip(gathered.bases, found.means, strict=True):
        means += V @ M
    weights = found.alpha / found.alpha.sum()
    spectrum = np.linalg.svd(core.pairs[0, 1], compute_uv=False)
    one = ViewEstimates(
        means, weights, weights, found.decomposition, name, gathered.groups,
        float(np.linalg.cond(found.means[2])), gathered.facts._replace(spectrum=spectrum),
    )  # fmt: skip
    return Embeddings(features, one, pair_weights(found.alpha, a0))


def weighted_rows(found: Embeddings, views: int, a0: float, *, stacked: bool) -> list[np.ndarray]:
    """n A_v (n, k) of every view: the weight of each row in its law in each component (K-9, K-14).

    A_v = (zᵀR_v - offset)/n with R_v the scores of all views but v, stacked or, as in the paper,
    the mean of those of each view. Views that take no part in the moments are weighted by all that
    do. One pass.
    """
    chunks, k = found.features.table.chunks, found.views.means.shape[1]
    scores = np.concatenate([_scores(found, v, stacked) for v in range(views)], axis=1)
    parts = [to_numpy(chunk.rows.dot(scores)) for chunk in chunks]
    total = sum(chunk.weights @ part for chunk, part in zip(chunks, parts, strict=True))
    mean = total / sum(float(chunk.weights.sum()) for chunk in chunks)
    rows = np.concatenate(parts) - a0 / (a0 + 1) * mean
    return [rows[:, v * k : (v + 1) * k] for v in range(views)]


def _scores(found: Embeddings, v: int, stacked: bool) -> np.ndarray:
    """Coefficients (D, k) with mean 1/c_h on component h and zero elsewhere, without view v."""
    table, M = found.features.table, found.views.means
    others = [columns for name, columns in zip(table.names, table.views, strict=True) if name != v]
    rows = np.zeros((len(others), len(M)), dtype=bool)
    for i, columns in enumerate(others):
        rows[i, columns] = True
    if stacked:
        scores = linear_scores(M, np.any(rows, axis=0))
    else:
        scores = np.mean([linear_scores(M, own) for own in rows], axis=0)
    return scores / np.maximum(found.pair_weights, 1e-12)
