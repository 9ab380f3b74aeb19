"""Moment starts of hidden Markov models with vectors: windows of features as three views."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._constants import Limit
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.moments.sequences import adjacent_features, centres, vector_windows
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.recovery.markov import state_probabilities, transitions_from_pairs
from thirdmoment.starts.start import MomentFacts, Settings
from thirdmoment.starts.view_facts import window_facts
from thirdmoment.starts.views import ViewEstimates, ViewTable, both_routes, estimate_means, gather
from thirdmoment.streaming import fold, row_ranges

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

    chunks: list[Sample]  # windows: a column of ones, then past, present and future features
    first: np.ndarray  # (q,) mean features of first observations
    pairs: np.ndarray  # (1 + q, 1 + q) E[(1, φ_t) (1, φ_{t+1})ᵀ] of all neighbours

    @property
    def total(self) -> float:
        """Number of windows."""
        return float(sum(chunk.weights.sum() for chunk in self.chunks))


def vector_moments(features: np.ndarray, offsets: np.ndarray) -> VectorMoments:
    """All windows of three observations, in fixed chunks."""
    positions = centres(offsets, 1)
    chunks = [
        vector_windows(features, offsets, positions[a:b])
        for a, b in row_ranges(len(positions), size=10_000)
    ]
    first = features[offsets[:-1]].mean(axis=0)
    return VectorMoments(chunks, first, adjacent_features(features, offsets))


def vector_chains(
    moments: VectorMoments, k: int, settings: Settings, *, name: str = "moments of windows"
) -> list[ChainEstimate]:
    """Estimates to refine from, the recommended first."""
    chunks, q, total = moments.chunks, len(moments.first), moments.total
    if sum(len(chunk.weights) for chunk in chunks) <= 3 * k:
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
