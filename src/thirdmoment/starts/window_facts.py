"""What windows showed about a hidden Markov model, for the report and for trust."""

from __future__ import annotations

import numpy as np

from thirdmoment.starts.facts import CLEAR_SNR, MomentFacts
from thirdmoment.starts.views import ViewStart

# The moments alone are the start when the k-th singular value is so many times the noise, the next
# one at most so many times, and so little of the third moment is unexplained.
CLEAR_NEXT = 1.5
CLEAR_RESIDUAL = 0.15

# With fewer windows other starts are always tried.
CLEAR_WINDOWS = 2000


def clear_of_noise(view: ViewStart, k: int, windows: float) -> bool:
    """Whether so many windows show exactly k states: then no other start is tried."""
    s, noise = view.spectrum, view.noise
    if len(s) < k or not noise > 0 or windows < CLEAR_WINDOWS:
        return False
    following = s[k] if len(s) > k else 0.0
    clear = s[k - 1] > CLEAR_SNR * noise and following < CLEAR_NEXT * noise
    return bool(clear and view.decomposition.residual < CLEAR_RESIDUAL)


def window_facts(view: ViewStart, clipped: np.ndarray, windows: float) -> MomentFacts:
    """What the report says about a start from windows."""
    return MomentFacts(
        view.spectrum,
        view.noise if view.noise > 0 else np.nan,  # too few pieces for two halves
        view.decomposition.residual,
        view.raw_weights,
        clipped,
        view.solver,
        view.passes,
        {
            "decomposition": view.decomposition.status.value,
            "eigenvalue_gap": view.decomposition.gap,
            "draws": view.decomposition.draws,
            "real_draws": view.decomposition.real_draws,
            "basis_condition": view.condition,
            "clear": clear_of_noise(view, len(view.weights), windows),
            "windows": windows,
        },
    )


def is_clear(facts: MomentFacts) -> bool:
    """Whether a start can be taken without trying others."""
    return bool(facts.details["clear"])
