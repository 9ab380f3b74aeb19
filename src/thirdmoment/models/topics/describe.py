"""Starts of a topic model, and what the report says about their moments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment.recovery.topics import TopicEstimate
from thirdmoment.report.findings import unusable
from thirdmoment.starts.words import TopicStart


class Candidate(NamedTuple):
    """Topics to refine from, and where they came from."""

    topics: np.ndarray  # (k, d)
    weights: np.ndarray  # (k,)
    alpha0: float
    start: str  # for the report
    moments: TopicStart | None
    estimate: TopicEstimate | None = None  # the one of the rank that made these topics

    @property
    def trusted(self) -> bool:
        """Whether the moments explain themselves up to their noise."""
        return self.moments is not None and self.moments.trusted


def describe_moments(chosen: Candidate, k: int, solver: str) -> dict[str, Any]:
    """Fields of the report that come from the moments, for the start that was chosen."""
    found, estimate = chosen.moments, chosen.estimate
    if found is None or estimate is None:
        return _without_moments(chosen.start, k)
    snr = float(found.spectrum[k - 1] / found.noise) if found.noise > 0 else np.inf
    measured: dict[str, Any] = {
        "snr": snr,
        "residual": found.decomposition.residual,
        "clipped_mass": estimate.clipped_mass,
        "raw_weights": estimate.raw_weights,
    }
    return {
        **measured,
        "spectrum": found.spectrum,
        "noise": found.noise,
        "solver": solver,
        "passes": found.passes,
        "details": _details(found, estimate),
    }


def _details(found: TopicStart, estimate: TopicEstimate) -> dict[str, Any]:
    return {
        "ranks_tried": len(found.estimates),
        "subspace_residual": found.subspace_residual,
        "decomposition": found.decomposition.status.value,
        "eigenvalue_gap": found.decomposition.gap,
        "draws": found.decomposition.draws,
        "real_draws": found.decomposition.real_draws,
        "negative_components": estimate.spurious,
        "topic_scale": estimate.scale,
        "concentration_profile": found.solved.profile,
        "trusted": found.trusted,
        "unexplained_over_noise": found.solved.unexplained,
    }


def _without_moments(start: str, k: int) -> dict[str, Any]:
    nothing = np.full(k, np.nan)
    return {
        "snr": np.nan,
        "residual": np.nan,
        "clipped_mass": nothing,
        "raw_weights": nothing,
        "spectrum": np.empty(0),
        "noise": np.nan,
        "solver": "none",
        "passes": 1,
        "findings": (unusable(start),),
        "details": {},
    }
