"""Moment starts of hidden Markov models with vectors: windows of features as three views."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.exceptions import UnusableMoments
from thirdmoment.models.hmm.facts import clear_of_noise
from thirdmoment.models.view_start import ViewStart, ViewTable, gather, solve
from thirdmoment.moments.sequences import centres, vector_windows
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.recovery.markov import law_of_states, transitions_from_pairs
from thirdmoment.streaming import fold, row_ranges

# More features than this in a window are too many for the pairs.
MOST_FEATURES = 900


class VectorStart(NamedTuple):
    """A chain and the mean features of its states, from moments."""

    start: np.ndarray  # (k,)
    T: np.ndarray  # (k, k)
    means: np.ndarray  # (k, q)
    view: ViewStart
    name: str
    chunks: list[Sample]  # windows: a column of ones, then past, present and future features


def window_chunks(features: np.ndarray, offsets: np.ndarray) -> list[Sample]:
    """All windows of three observations of features (n, q), in fixed chunks."""
    positions = centres(offsets, 1)
    return [
        vector_windows(features, offsets, positions[a:b])
        for a, b in row_ranges(len(positions), size=10_000)
    ]


def vector_starts(
    chunks: list[Sample],
    first: np.ndarray,
    k: int,
    solver: str,
    rng: np.random.Generator,
    *,
    weighted: bool,
    hedge: bool,
    n_threads: int,
    name: str = "moments of windows",
) -> list[VectorStart]:
    """Estimates to refine from, the recommended first.

    ``chunks`` are windows of features (1 + 3q columns), ``first`` (q,) the mean features of first
    observations.
    """
    q = len(first)
    total = float(sum(chunk.weights.sum() for chunk in chunks))
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
    sums = fold(lambda: PairSums(1 + 3 * q), chunks, n_threads=n_threads)
    moments = gather(table, k, rng, n_threads=n_threads, sums=sums, arrange=weighted)
    found: list[VectorStart] = []
    problem: UnusableMoments | None = None
    for route in ("tensor", "joint") if solver == "auto" else (solver,):
        try:
            view = solve(moments, table, k, route, rng, sharpen=weighted)
        except UnusableMoments as error:
            problem = problem or error
            continue
        chain = _chain(view, sums, present, future, first)
        found.append(VectorStart(*chain, view, f"{name} ({route})", chunks))
        if not hedge or clear_of_noise(view, k):
            break
    if not found:
        assert problem is not None
        raise problem
    return found


def _chain(
    view: ViewStart, sums: PairSums, present: np.ndarray, future: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, transitions and means from the present's features with a constant."""
    means = view.means[present].T
    lifted = np.concatenate([np.ones((1, len(means))), means.T])  # (1 + q, k)
    rows, columns = np.append(0, present), np.append(0, future)
    pairs = sums.pairs[np.ix_(rows, columns)]
    T = transitions_from_pairs(lifted, pairs, np.ones(len(lifted)))
    return law_of_states(lifted, np.append(1.0, first)), T, means
