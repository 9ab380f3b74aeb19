"""Which total concentration a fit believes in (docs/decisions/concentration.md)."""

from __future__ import annotations

import numpy as np

from thirdmoment.models.topics.describe import Candidate
from thirdmoment.models.topics.refine import RefinedTopics, TopicRefiner


def settle_concentration(
    refiner: TopicRefiner, refined: RefinedTopics, start: Candidate, *, fixed: bool
) -> np.ndarray:
    """Dirichlet parameters after refinement: shares of the refined topics times alpha0.

    alpha0 is the given one, that of the moments where they could be trusted, or else the one under
    which the held-out documents are predicted best.
    """
    found = start.moments
    trusted = found is not None and found.concentration_trusted
    if fixed or trusted:
        return start.alpha0 * refined.shares
    return refiner.choose_alpha0(refined) * refined.shares


def concentration_note(
    k: int, concentration: object, start: Candidate, *, held_out: bool
) -> list[str]:
    """What to tell about the concentration."""
    if concentration != "auto":
        return []
    if k < 3:
        return [
            "With fewer than three topics the concentration cannot be seen in the moments; 1.0 was "
            "taken. Give concentration= if you know it."
        ]
    found = start.moments
    if found is None or found.concentration_trusted:
        return []
    how = (
        "it was chosen by held-out likelihood instead"
        if held_out
        else "a usual value was taken instead; give concentration= if you know it"
    )
    return [
        "The moments do not single out a concentration (the data does not follow the model closely "
        f"enough); {how}."
    ]
