"""What the columns of views show: covariances by scores, and facts for the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment.moments.views import Sample, ScoreSums
from thirdmoment.recovery.covariance import conditional_covariances, linear_scores
from thirdmoment.starts.start import MomentFacts
from thirdmoment.starts.views import ViewEstimates
from thirdmoment.streaming import Streamed, fold


class Wanted(NamedTuple):
    """A view whose covariances are wanted."""

    columns: np.ndarray
    features: np.ndarray  # all that were made of these columns, which must not score
    diagonal: bool  # variances alone


def view_covariances(
    chunks: Sequence[Sample] | Streamed,
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


def partition_facts(means: np.ndarray, groups: Sequence[np.ndarray]) -> dict[str, float]:
    """How well columns were spread over three groups (MV-22), from means (D, k) of all columns.

    ``incoherence`` is c_M = (D/k) max_i ‖U[i, :]‖², from 1 to D/k; ``group_size_wanted`` the size
    with which Theorem D.1 vouches for a random partition (very conservative); ``partition_ratio``
    the smallest σ_k(M_v) √(D/|I_v|) / σ_k(M) of the groups at hand, 1/2 in the theorem.
    """
    D, k = means.shape
    U, s, _ = np.linalg.svd(means, full_matrices=False)
    c = float(D / k * np.max(np.sum(U[:, :k] ** 2, axis=1)))
    ratios = []
    for group in groups:
        own = np.linalg.svd(means[group], compute_uv=False)
        least = own[k - 1] if len(own) >= k else 0.0
        ratios.append(least * np.sqrt(D / max(len(group), 1)) / max(s[-1], 1e-300))
    return {
        "incoherence": c,
        "group_size_wanted": float(32 / 9 * c * k * np.log(3 * k / 0.1)),
        "partition_ratio": float(min(ratios)),
    }
