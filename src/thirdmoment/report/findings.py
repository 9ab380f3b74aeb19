"""What there is to say about a fit: findings with the action that they call for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thirdmoment.refinement.halves import Gain

# A component that keeps less of itself than this is shaky (see halves.py).
STEADY = 0.5

# Shares of steady components below which a fit is used with care, or not at all
# (docs/benchmarks/alarms.md).
MOST_STEADY, FEW_STEADY = 0.6, 1 / 3

# The default limit of steps.
USUAL_STEPS = 100


class Finding(NamedTuple):
    """One thing to know about a fit, and what to do about it."""

    kind: str  # a name for tables and programs
    text: str  # what was found
    action: str = ""  # what to do
    level: str = "note"  # "grave": do not trust the fit; "care": trust it less; "note"

    def __str__(self) -> str:
        return f"{self.text} {self.action}".strip()

    @property
    def reason(self) -> str:
        """The text up to its first pause, as part of a sentence."""
        short = re.sub(r" \([^)]*\)", "", self.text).split(":")[0].split(". ")[0].rstrip(".")
        return short[0].lower() + short[1:]


def steady_findings(
    trust: np.ndarray, noun: str, *, data: str = "rows", fewer: str = "n_components"
) -> list[Finding]:
    """Where some components are shaky."""
    if np.isnan(trust).all():
        return []
    k, m = len(trust), int(np.sum(trust >= STEADY))
    if m == k:
        return []
    verb = "changes" if k - m == 1 else "change"
    text = f"{k - m} of {k} {plural(noun)} {verb} when half of the {data} is left out."
    more = f"give more {data}"
    if m / k < FEW_STEADY:
        few = f"set {fewer} to {m}, or {more}" if m > 1 else f"{more}, or ask for far fewer"
        return [Finding("unsteady", text, f"Fit fewer {plural(noun)}: {few}.", "grave")]
    if m / k < MOST_STEADY:
        return [
            Finding("unsteady", text, f"Set {fewer} to about {m}, or {more}.", "care"),
        ]
    action = f"Leave the shaky {plural(noun) if k - m > 1 else noun} out of what you report."
    return [Finding("some shaky", text, action)]


def few_rows(data: str, noun: str, least: int) -> list[Finding]:
    """Where there is too little data to check a fit on its halves."""
    text = f"There are fewer than {least} {data} for each {noun}: too few to check the fit."
    return [
        Finding("few rows", text, f"Ask for fewer {plural(noun)}, or give more {data}.", "care")
    ]


def gain_findings(gains: Sequence[Gain], instead: str, data: str = "rows") -> list[Finding]:
    """Where held-out data do not clearly prefer the fit to something simpler."""
    unclear = [gain for gain in gains if not gain.clear]
    if not unclear:
        return []
    least = min(unclear, key=lambda gain: gain.value)
    if least.value <= 0:
        text = f"Held-out {plural(least.unit)} are no likelier than {least.against}."
        return [Finding("no gain", text, instead, "grave")]
    text = f"Held-out {plural(least.unit)} are not clearly likelier than {least.against}."
    action = f"Give more {data} before you rely on it. Or: {instead}"
    return [Finding("little gain", text, action, "care")]


def unfinished(limit: int, text: str) -> Finding:
    """EM, or sweeps, that ended at their limit while they still gained."""
    steps = max(2 * limit, USUAL_STEPS)
    return Finding("unfinished", text, f"Raise max_refine_iter to {steps} or more.", "care")


def collapsed_finding(count: int, k: int, nouns: str, floor: float) -> Finding:
    """Components whose variance is at its floor."""
    text = (
        f"{count} of {k} {nouns} have a variance at its floor ({floor:.2g} of the data's): they "
        "sit on equal or rounded values, and likelihood, AIC and BIC say little. Fewer "
        f"{nouns}, or a larger reg_covar where values are rounded, would change that."
    )
    return Finding("collapsed", text)


def unusable(reason: str) -> Finding:
    """Moments that could not be used."""
    text = f"The moments were not usable: {reason} The fit started otherwise."
    return Finding("no moments", text)


def plural(noun: str) -> str:
    """The noun for several."""
    return f"{noun}es" if noun.endswith("ss") else f"{noun}s"


def likelier(gain: Gain) -> str:
    """A gain in words: how much likelier held-out data are."""
    factor = math.exp(min(gain.value, 700.0))
    if factor < 1.005:
        size = "no likelier than"
    elif factor > 1000:
        size = "over 1,000 times as likely as"
    else:
        size = f"{factor:.{2 if factor < 10 else 0}f} times as likely as"
    return f"held-out {plural(gain.unit)} are {size} {gain.against}"
