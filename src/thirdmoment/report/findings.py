"""What there is to say about a fit: findings with the action that they call for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thirdmoment._array import Room
from thirdmoment._constants import Wording
from thirdmoment.refinement.halves import CLEARLY, LEAST_ROWS, Gain

# A component that keeps less of itself than this is not stable (see halves.py).
STABLE: Wording[float] = 0.5

# Shares of stable components below which a fit is used in part, or not at all
# (docs/benchmarks/alarms.md).
MOST_STABLE: Wording[float] = 0.6
FEW_STABLE: Wording[float] = 1 / 3

# Below this share fewer components are proposed.
NEARLY_ALL: Wording[float] = 0.8

# A gain of log-likelihood that is none, whatever the error.
NOTHING: Wording[float] = 0.02

# The default limit of steps.
USUAL_STEPS: Wording[int] = 100


class Finding(NamedTuple):
    """One thing to know about a fit, and what to do about it."""

    kind: str  # a name for tables and programs
    text: str  # what was found
    action: str = ""  # what to do
    level: str = "note"  # "grave": do not trust the fit; "care": not as it is; "note"

    def __str__(self) -> str:
        return f"{self.text} {self.action}".strip()

    @property
    def reason(self) -> str:
        """The text up to its first pause, as part of a sentence."""
        short = re.sub(r" \([^)]*\)", "", self.text).split(":")[0].split(". ")[0].rstrip(".")
        return short[0].lower() + short[1:]


class About(NamedTuple):
    """What a model calls its components and its data."""

    noun: str = "component"
    data: str = "rows"
    kept: str = "rows"  # what a stable component keeps most of
    least: int = LEAST_ROWS  # data for each component from which on the fit is checked

    @property
    def nouns(self) -> str:
        return plural(self.noun)

    def lost(self, count: int) -> str:
        """What those that are not stable do."""
        verb = "does" if count == 1 else "do"
        return f"{verb} not come back when half of the {self.data} is left out"


def stable_findings(
    trust: np.ndarray, about: About, weights: np.ndarray | None = None
) -> list[Finding]:
    """Where some components are not stable; their number counts, and their weights."""
    stable = trust >= STABLE
    k, m = len(trust), int(np.sum(stable))
    if m == k:
        return []
    share = m / k
    if weights is not None:
        share = min(share, float(weights[stable].sum() / weights.sum()))
    text = f"{k - m} of {k} {about.nouns} {about.lost(k - m)}."
    if share < FEW_STABLE:
        fewer = f"Set n_components to {m}" if 1 < m < k else "Set n_components far lower"
        return [Finding("unstable", text, f"{fewer}, or give more {about.data}.", "grave")]
    them = "it" if k - m == 1 else "them"
    if share < MOST_STABLE:
        fewer = f"Leave {them} out, or set n_components to about {m} and read the new report."
        return [Finding("unstable", text, fewer, "care")]
    action = f"Leave {them} out, or try another n_components." if share < NEARLY_ALL else ""
    return [Finding("some unstable", text, action)]


def few_rows(about: About) -> list[Finding]:
    """Where there is too little data to check a fit on its halves."""
    copies = " (copies count once)" if about.noun == "topic" else ""
    text = f"There are fewer than {about.least} {about.data} for each {about.noun}{copies}."
    action = f"Ask for fewer {about.nouns}, or give more {about.data}."
    return [Finding("few rows", text, action, "care")]


def gain_findings(gains: Sequence[Gain], instead: str, about: About) -> list[Finding]:
    """Where data that was set aside does not clearly prefer the fit to something simpler."""
    unclear = [gain for gain in gains if not gain.clear]
    if not unclear:
        return []
    least = min(unclear, key=lambda gain: gain.value)
    if least.value + CLEARLY * least.error <= NOTHING:
        text = f"{unseen(least).capitalize()} are predicted no better than {least.against}."
        return [Finding("no gain", text, instead, "grave")]
    text = f"Whether {unseen(least)} are predicted better than {least.against} cannot be told."
    lower = instead[0].lower() + instead[1:]
    action = f"Give more {about.data}; without them {lower}"
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


def equal_rows(distinct: int, k: int, noun: str = "component") -> list[Finding]:
    """That all rows are equal, where they are and more than one component was asked for."""
    if distinct > 1 or k == 1:
        return []
    text = f"All rows are equal: they show one {noun}, not {k}."
    return [Finding("equal rows", text, f"Use one {noun}, or give other rows.", "grave")]


def plural(noun: str) -> str:
    """The noun for several."""
    return f"{noun}es" if noun.endswith("ss") else f"{noun}s"


def unseen(gain: Gain) -> str:
    """The data that was predicted."""
    return "words of unseen documents" if gain.unit == "word" else f"unseen {plural(gain.unit)}"


def predicted(gain: Gain) -> str:
    """A gain in words: how well unseen data are predicted."""
    factor = math.exp(min(gain.value, 700.0))
    size = f"{factor:.{2 if factor < 10 else 0}f} times as well as"
    if factor < 1.005:
        size = "no better than"
    elif factor > 1000:
        size = "over 1,000 times as well as"
    return f"{unseen(gain)} are predicted {size} {gain.against}"


def memory_note(room: Room | None) -> list[Finding]:
    """What to tell where blocks of rows had to be made smaller on a device."""
    if room is None or not room.halvings:
        return []
    times = "once" if room.halvings == 1 else f"{room.halvings} times"
    text = (
        "The GPU had too little memory for all rows at once: blocks of rows were halved or kept on "
        f"the host {times}. That takes longer and changes nothing else."
    )
    return [Finding("memory", text)]
