"""Moment starts of hidden Markov models with vectors: windows of features as three views."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._constants import Limit
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.moments.sequences import adjacent_features, centres, vector_windows
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.recovery.markov import state_probabilities, transitions_from_pairs
from thirdmoment.starts.start import MomentFacts, Settings, both_routes
from thirdmoment.starts.view_facts import window_facts
from thirdmoment.starts.views import ViewEstimates, ViewTable, estimate_means, gather
from thirdmoment.streaming import Streamed, fold, row_ranges

# More features than this in a window are too many for the pairs.
MOST_FEATURES: Limit[int] = 900


class ChainEstimate(NamedTuple):
    """A chain and what its states emit, from the moments of windows."""

    start: np.ndarray  # (k,)
    T: np.ndarray  # (k, k)
    emissions: np.ndarray  # (k, q) mean features, or distributions of symbols
    facts: MomentFacts
    name: str
    views: ViewEstimates


class VectorMoments(NamedTuple):
    """Windows of features (n, q), and what observations of any sequence show."""

    chunks: Any  # windows: a column of ones, then past, present and future features
    first: np.ndarray  # (q,) mean features of first observations
    pairs: np.ndarray  # (1 + q, 1 + q) E[(1, φ_t) (1, φ_{t+1})ᵀ] of all neighbours
    total: float  # windows


def vector_moments(features: np.ndarray, offsets: np.ndarray) -> VectorMoments:
    """All windows of three observations, in fixed chunks."""
    positions = centres(offsets, 1)
    chunks = [
        vector_windows(features, offsets, positions[a:b])
        for a, b in row_ranges(len(positions), size=10_000)
    ]
    first = features[offsets[:-1]].mean(axis=0)
    total = float(len(positions))
    return VectorMoments(chunks, first, adjacent_features(features, offsets), total)


def streamed_moments(
    sequences: Streamed, features: Callable[[np.ndarray], np.ndarray], q: int, n_threads: int
) -> VectorMoments:
    """The same of the sequences of a source, whose chunks have ``X``, ``offsets``, ``start``."""
    sums = fold(AdjacentSums, sequences.mapped(partial(_featured, features)), n_threads=n_threads)
    chunks = sequences.mapped(partial(_windows, features), width=1 + 3 * q)
    total = float(max(sums.windows, 0))
    return VectorMoments(chunks, sums.first / sums.sequences, sums.pairs / max(sums.n, 1), total)


def _featured(features: Callable[[np.ndarray], np.ndarray], chunk: Any) -> tuple[Any, Any]:
    return features(chunk.X), chunk.offsets


def _windows(features: Callable[[np.ndarray], np.ndarray], chunk: Any) -> Sample:
    offsets = chunk.offsets
    return vector_windows(features(chunk.X), offsets, centres(offsets, 1), chunk.start)


class AdjacentSums:
    """First observations and products of neighbours, of whole sequences (MV-25)."""

    def __init__(self) -> None:
        self.n = self.sequences = self.windows = 0
        self.first: Any = 0.0
        self.pairs: Any = 0.0

    def update(self, chunk: tuple[np.ndarray, np.ndarray]) -> AdjacentSums:
        if self.sequences:
            return self.merge(AdjacentSums().update(chunk))
        features, offsets = chunk
        size = np.diff(offsets)
        self.n, self.sequences = int(np.sum(size - 1)), len(size)
        self.windows = int(np.maximum(size - 2, 0).sum())
        self.first = features[offsets[:-1]].sum(axis=0)
        self.pairs = adjacent_features(features, offsets) * max(self.n, 1)
        return self

    def merge(self, other: AdjacentSums) -> AdjacentSums:
        self.n, self.sequences = self.n + other.n, self.sequences + other.sequences
        self.windows += other.windows
        self.first = self.first + other.first
        self.pairs = self.pairs + other.pairs
        return self


def vector_chains(
    moments: VectorMoments, k: int, settings: Settings, *, name: str = "moments of windows"
) -> list[ChainEstimate]:
    """Estimates to refine from, the recommended first."""
    chunks, q, total = moments.chunks, len(moments.first), moments.total
    if total <= 3 * k:
        raise UnusableMoments(
            f"The sequences have {total:g} windows of three observations, too few for "
            f"n_components={k}. Give longer sequences, or lower n_components."
        )
    if q > MOST_FEATURES:
        raise UnusableMoments(
            f"{q} features in a window are more than {MOST_FEATURES}. Reduce the columns first."
        )
    past, present, future = (1 + v * q + np.arange(q) for v in range(3))
    table = ViewTable(chunks, [future, past, present], 0, [2, 0, 1])
    sums = fold(lambda: PairSums(1 + 3 * q), chunks, n_threads=settings.n_threads)
    gathered = gather(table, k, settings, sums=sums, arrange=settings.weighted)

    def one(route: Settings) -> ChainEstimate:
        views = estimate_means(gathered, table, k, route)
        facts = window_facts(views, np.zeros(k), total)
        chain = _chain(views, moments, present)
        return ChainEstimate(*chain, facts, f"{name} ({route.solver})", views)

    return both_routes(one, settings, enough=lambda found: found.facts.trusted(total))


def _chain(
    view: ViewEstimates, moments: VectorMoments, present: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, transitions and means from the present's features with a constant."""
    means = view.means[present].T
    lifted = np.concatenate([np.ones((1, len(means))), means.T])  # (1 + q, k)
    T = transitions_from_pairs(lifted, moments.pairs, np.ones(len(lifted)))
    return state_probabilities(lifted, np.append(1.0, moments.first)), T, means
