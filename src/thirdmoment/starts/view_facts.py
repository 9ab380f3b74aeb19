"""What the columns of views show: covariances by scores, and facts for the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment.moments.views import Sample, ScoreSums
from thirdmoment.recovery.covariance import conditional_covariances, linear_scores
from thirdmoment.starts.start import MomentFacts
from thirdmoment.starts.views import ViewEstimates, partition_facts
from thirdmoment.streaming import fold


class Wanted(NamedTuple):
    """A view whose covariances are wanted."""

    columns: np.ndarray
    features: np.ndarray  # all that were made of these columns, which must not score
    diagonal: bool  # variances alone


def view_covariances(
    chunks: Sequence[Sample],
    start: ViewEstimates,
    wanted: Sequence[Wanted],
    scale: np.ndarray,
    *,
    n_threads: int,
) -> tuple[list[np.ndarray], int]:
    """Covariances of each view by linear scores of the others (MV-18), in the columns' units.

    The second result counts variances that had to be made feasible.
    """
    D = len(scale)
    out: list[np.ndarray] = []
    moved = 0
    for columns, own, diagonal in wanted:
        scores = linear_scores(start.means, ~np.isin(np.arange(D), own))
        make = partial(ScoreSums, columns, scores, diagonal=diagonal)
        sums = fold(make, chunks, n_threads=n_threads)
        found, more = conditional_covariances(sums, start.weights, scale[columns])
        out.append(found)
        moved += more
    return out, moved


def view_facts(
    start: ViewEstimates, means: np.ndarray, clipped_mass: np.ndarray | None = None
) -> MomentFacts:
    """What the report says about a start from views with means (D, k) in the columns' units."""
    k, D = len(start.weights), len(means)
    groups = [group[group < D] for group in start.groups]
    clipped = np.zeros(k) if clipped_mass is None else clipped_mass
    return estimate_facts(start, clipped, {"groups": groups, **partition_facts(means, groups)})


def window_facts(start: ViewEstimates, clipped_mass: np.ndarray, windows: float) -> MomentFacts:
    """What so many windows of a sequence showed; their noise has no formula, only two halves."""
    found = estimate_facts(start, clipped_mass, {"windows": windows})
    noise = found.noise if found.noise > 0 else np.nan  # too few pieces for two halves
    return found._replace(noise=noise, expected_noise=0.0)


def estimate_facts(
    start: ViewEstimates, clipped_mass: np.ndarray, details: dict[str, Any]
) -> MomentFacts:
    """What estimates from any views showed, with more ``details``."""
    found, pairs = start.decomposition, start.pairs
    return MomentFacts(
        pairs.spectrum,
        pairs.noise,
        found.residual,
        start.raw_weights,
        clipped_mass,
        start.solver,
        {
            "passes": pairs.passes,
            "decomposition": found.status.value,
            "eigenvalue_gap": found.gap,
            "draws": found.draws,
            "real_draws": found.real_draws,
            "partitions_tried": pairs.partitions,
            "basis_condition": start.condition,
            **details,
        },
        pairs.expected_noise,
    )
