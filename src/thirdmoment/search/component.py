"""What a search returns: one component, and whether it is the one that was meant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.recovery.search import FoundComponent, alignment, resolution
from thirdmoment.report import Finding, Report
from thirdmoment.report.report import LIMITS as FIT_LIMITS


class Limits(NamedTuple):
    """Where a diagnostic becomes a warning (conventions; docs/decisions/search.md)."""

    gap_snr: float = 3.0
    stability: float = 0.9
    consistency: tuple[float, float] = (0.8, 1.25)
    alignment: float = 0.5
    weight: float = 1.1  # one, but for noise
    label_score: float = 0.0


LIMITS = Limits()
LEAST_SNR = FIT_LIMITS.snr
# Multiples of the noise that the eigenvalue after the k-th may have.
MORE_COMPONENTS: Wording[float] = 3.0


@dataclass(frozen=True, repr=False, eq=False)
class SearchReport:
    """How far the answer of a search can be trusted.

    Attributes
    ----------
    scores : array
        Estimates of the scores of all components with the hint, largest first.
    margin : float
        Largest score over the second, less one; infinite where no other is positive.
    gap_snr : float
        Gap between the two over the sampling noise (two halves of the data); where the model
        holds, an answer below 3 is a blend of components.
    stability : float
        Agreement of the two halves on the component, 0 to 1.
    consistency : float
        One where moments of the second and third order agree on the scale of the component; nan
        for subspaces, whose scale is not known otherwise.
    alignment : float
        Cosine of the component and the hint in whitened space. The others say that the hint
        singles out *some* component, this one whether it is the one that was meant.
    label_score : float
        How much better the component explains the labels than the data as a whole does: mean
        log-likelihood ratio for labels, log of the lift that the moments give a word; nan for bare
        directions. At most zero means that it is another component.
    warnings : tuple of str
        Why the hint is not informative; empty if it is.
    details : mapping
        What this kind of search alone knows.
    """

    scores: np.ndarray
    margin: float
    gap_snr: float
    stability: float
    consistency: float
    alignment: float
    label_score: float = math.nan
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not self.warnings:
            return "Trust this answer: the hint singles out one component."
        first, *rest = self.warnings
        lines = [f"Do not trust this answer: {first[0].lower()}{first[1:]}"]
        lines.extend(f"Also: {text}" for text in rest)
        return "\n".join(lines)

    def full(self) -> str:
        """The verdict and everything that was measured."""
        numbers = {
            "margin over the next component": self.margin,
            "gap over the sampling noise": self.gap_snr,
            "stability": self.stability,
            "consistency": self.consistency,
            "alignment with the hint": self.alignment,
            "label score": self.label_score,
        }
        told = [f"{name} {value:.3g}" for name, value in numbers.items() if np.isfinite(value)]
        return f"{self}\nMeasured: {', '.join(told)}."


@dataclass(frozen=True, repr=False, eq=False)
class Component:
    """One component of a mixture, found from a hint.

    Attributes
    ----------
    weight : float
        Share of the component.
    parameters : array
        What describes it: a topic (d,), a mean (d,), coefficients (d,) or a basis (d, p).
    margin, alignment : float
        See `SearchReport`.
    informative : bool
        Whether the hint singles out one component and that component is the one that was meant.
    report : SearchReport
    """

    weight: float
    parameters: np.ndarray
    margin: float
    alignment: float
    informative: bool
    report: SearchReport

    def __repr__(self) -> str:
        verdict = "informative" if self.informative else "not informative"
        return (
            f"{type(self).__name__}(weight={self.weight:.3g}, margin={self.margin:.2g}, "
            f"alignment={self.alignment:.2f}, {verdict})"
        )


def judge(
    *,
    gap_snr: float,
    stability: float,
    consistency: float,
    alignment: float,
    weight: float,
    label_score: float = math.nan,
    limits: Limits = LIMITS,
) -> list[str]:
    """Reasons why a hint is not informative, most important first."""
    found = []
    if not alignment >= limits.alignment:
        found.append(
            f"The component found is not what the hint points at (alignment {alignment:.2f}, "
            f"{limits.alignment} wanted): the hint belongs to several components, or another one "
            "outweighs it. Give more labels or words, or a hint that the others do not share."
        )
    if label_score <= limits.label_score:
        degree = "hardly" if label_score > 0 else "no"
        found.append(
            f"The component explains the hint {degree} better than the data as a whole does (label "
            f"score {label_score:.3g}, above {limits.label_score:g} wanted): it is another one, or "
            "n_components is too small."
        )
    if not gap_snr >= limits.gap_snr:
        found.append(
            f"The gap to the next component is {gap_snr:.2g} times the sampling noise "
            f"({limits.gap_snr:g} wanted): the answer may be a blend of several. Give a clearer "
            "hint, fewer components or more data."
        )
    elif not stability >= limits.stability:
        found.append(
            f"Two halves of the data agree on the component only to {stability:.2f} "
            f"({limits.stability} wanted): it is uncertain."
        )
    low, high = limits.consistency
    if not (low <= consistency <= high or math.isnan(consistency)):
        found.append(
            f"Second and third moments disagree on its scale (ratio {consistency:.2f}, {low} to "
            f"{high} wanted): the model does not hold, or n_components does not fit."
        )
    if not 0 < weight <= limits.weight:
        found.append(f"Its weight came out as {weight:.2g}: it is not a component of the mixture.")
    return found


def search_report(
    found: FoundComponent,
    M: np.ndarray,
    difference: np.ndarray,
    hint: np.ndarray,
    *,
    label_score: float = math.nan,
    details: Mapping[str, Any] | None = None,
    extra: Sequence[str] = (),
    limits: Limits = LIMITS,
) -> SearchReport:
    """The diagnostics of section 8 for a component found in M; ``hint`` (k,) is whitened."""
    clear = resolution(M, difference, found.scores)
    aligned = alignment(found.direction, hint)
    reasons = judge(
        gap_snr=clear.gap_snr,
        stability=clear.stability,
        consistency=found.consistency,
        alignment=aligned,
        weight=found.weight,
        label_score=label_score if len(found.scores) > 1 else math.nan,
        limits=limits,
    )
    return SearchReport(
        scores=found.scores,
        margin=found.margin,
        gap_snr=clear.gap_snr,
        stability=clear.stability,
        consistency=found.consistency,
        alignment=aligned,
        label_score=label_score,
        warnings=(*extra, *reasons),
        details=dict(details or {}),
    )


def preparation_report(
    spectrum: np.ndarray, noise: float, k: int, *, passes: int, notes: Sequence[Finding] = ()
) -> Report:
    """What the preparation of a search saw of the second moment."""
    snr = float(spectrum[k - 1] / noise) if noise > 0 else math.inf
    nothing = np.full(k, np.nan)
    found = list(notes)
    found += [
        Finding("more components", text, "Raise n_components.", "care")
        for text in more_components(spectrum, noise, k)
    ]
    if snr < LEAST_SNR:
        text = (
            f"Eigenvalue {k} of the second moment is {snr:.2g} times the sampling noise "
            f"({LEAST_SNR:g} wanted): the weakest components are blurred. Every answer says "
            "whether it is clear; fewer components give clearer and less specific ones."
        )
        found.append(Finding("blurred", text))
    return Report(
        n_components=k,
        spectrum=spectrum,
        noise=noise,
        snr=snr,
        residual=math.nan,
        clipped_mass=nothing,
        raw_weights=nothing,
        solver="search",
        start="second moment, prepared for queries",
        passes=passes,
        findings=tuple(found),
        unchecked="a search says of each answer whether it is clear",
    )


def more_components(spectrum: np.ndarray, noise: float, k: int) -> tuple[str, ...]:
    """A reason against every answer where the second moment shows more than k components."""
    if len(spectrum) <= k or not spectrum[k] > MORE_COMPONENTS * noise > 0:
        return ()
    return (
        f"There seem to be more than {k} components: eigenvalue {k + 1} of the second moment still "
        f"is {spectrum[k] / noise:.2g} times the sampling noise, and an answer may be a blend.",
    )
