"""What the columns of views show: covariances by scores, and facts for the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from thirdmoment.moments.views import Sample, ScoreSums
from thirdmoment.recovery.covariance import conditional_covariances, linear_scores
from thirdmoment.starts.facts import MomentFacts
from thirdmoment.starts.views import ViewStart, partition_facts
from thirdmoment.streaming import fold


def view_covariances(
    chunks: Sequence[Sample],
    start: ViewStart,
    views: Sequence[tuple[np.ndarray, np.ndarray]],
    scale: np.ndarray,
    diagonal: Sequence[bool],
    *,
    n_threads: int,
) -> tuple[list[np.ndarray], int]:
    """Covariances of each view by linear scores of the others (MV-18), in the columns' units.

    ``views`` has for each the columns wanted and all features made of them, which must not score.
    The second result counts variances that had to be made feasible.
    """
    D = len(scale)
    out: list[np.ndarray] = []
    moved = 0
    for (columns, own), thin in zip(views, diagonal, strict=True):
        scores = linear_scores(start.means, ~np.isin(np.arange(D), own))
        sums = fold(partial(ScoreSums, columns, scores, diagonal=thin), chunks, n_threads=n_threads)
        found, more = conditional_covariances(sums, start.weights, scale[columns])
        out.append(found)
        moved += more
    return out, moved


def view_facts(
    start: ViewStart, means: np.ndarray, clipped_mass: np.ndarray | None = None
) -> MomentFacts:
    """What the report says about a start from views with means (D, k) in the columns' units."""
    k, D = len(start.weights), len(means)
    groups = [group[group < D] for group in start.groups]
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
            "groups": groups,
            "partitions_tried": start.partitions,
            "basis_condition": start.condition,
            **partition_facts(means, groups),
        },
        start.expected_noise,
    )
