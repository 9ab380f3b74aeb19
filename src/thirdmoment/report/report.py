"""One report for every model: may the fit be trusted, what of it, and what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.refinement.halves import Gain
from thirdmoment.report.findings import STABLE, About, Finding, predicted
from thirdmoment.report.labels import shown
from thirdmoment.starts.start import TRUST

# Components to leave out that are described; of the others only the numbers are given.
NAMED: Wording[int] = 6

# What the verdict says itself.
TOLD = ("unstable", "some unstable", "no gain")


class Thresholds(NamedTuple):
    """Where a number becomes a doubt of a fit that is not refined."""

    snr: float = TRUST.snr  # weakest eigenvalue against the sampling noise
    snr_plain: float = 0.8
    residual: float = 0.3  # share of the third moment left unexplained


LIMITS = Thresholds()


@dataclass(frozen=True, repr=False)
class Report:
    """What a fit found out about itself.

    ``print(report)`` says whether to trust the fit, which components to leave out and what to do
    next; ``print(report.full())`` adds everything that was measured.

    Attributes
    ----------
    level : str
        ``"good"``, ``"care"`` (not as it is), ``"grave"`` (do not trust it) or ``"unknown"``
        (nothing was checked, as with ``refine="none"``).
    verdict : str
        The same in one sentence.
    trust : (k,) array
        For each component the share of its rows (for topics of its top words) that it would keep
        with half of the data; below 0.5 it is not stable. NaN where that was not checked.
    gains : tuple of Gain
        Log-likelihood of held-out data over that of simpler models, with standard errors.
    findings : tuple of Finding
        What to know, gravest first: ``kind``, ``text``, ``action`` and ``level`` of each.
    warnings : tuple of str
        The findings as sentences.
    spectrum : (>= k,) array
        Leading eigenvalues of the second moment, more than k of them where they were found.
    noise : float
        Sampling error of the second moment by split halves.
    snr : float
        k-th eigenvalue divided by the noise; below 1.5 the moments alone do not show the weakest
        component.
    eigengap : float
        Relative drop after the k-th eigenvalue, (s_k - s_{k+1})/s_k.
    condition_number : float
        First eigenvalue over the k-th.
    residual : float
        Share of the whitened third moment that k components leave unexplained.
    clipped_mass : (k,) array
        Negative mass of each component before it was projected on the simplex.
    raw_weights : (k,) array
        Weights before any constraint.
    solver, start : str
        What decomposed the moments, and where the refinement started.
    refine_path : tuple of float
        Objective of the start and after every check of the refinement (for topics the mean
        log-likelihood per word of held-out documents, every five sweeps).
    passes : int
        Passes over the data that the moments took.
    details : mapping
        What this model alone knows.
    """

    n_components: int
    spectrum: np.ndarray
    noise: float
    snr: float
    residual: float
    clipped_mass: np.ndarray
    raw_weights: np.ndarray
    solver: str
    start: str
    passes: int
    refine_path: tuple[float, ...] = ()
    findings: tuple[Finding, ...] = ()
    trust: np.ndarray = field(default_factory=lambda: np.empty(0))
    gains: tuple[Gain, ...] = ()
    labels: tuple[str, ...] = ()
    about: About = field(default_factory=About)
    unchecked: str = "the moments were taken as they are"  # why, where nothing was checked
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        order = ("grave", "care", "note")
        ordered = sorted(self.findings, key=lambda finding: order.index(finding.level))
        object.__setattr__(self, "findings", tuple(ordered))

    @property
    def level(self) -> str:
        """``"good"``, ``"care"``, ``"grave"`` or ``"unknown"``."""
        levels = {finding.level for finding in self.findings}
        for level in ("grave", "care"):
            if level in levels:
                return level
        return "good" if self.gains or self._checked else "unknown"

    @property
    def verdict(self) -> str:
        """Whether to trust the fit, and why."""
        level, about = self.level, self.about
        if level == "unknown":
            return f"Not checked: {self.unchecked}."
        first = self.findings[0] if level in ("care", "grave") else None
        if first is not None and first.kind == "few rows":
            return f"Not checked: {first.reason}."
        if first is not None and first.kind != "unstable":
            head = "Not certain" if first.kind == "little gain" else "Not ready yet"
            head = "Do not trust this fit" if level == "grave" else head
            return f"{head}: {first.reason}."
        k, m = len(self.trust), len(self.trust) - len(self.unstable)
        if k == 1:
            return f"Trust this fit: there is one {about.noun}, and nothing to tell apart."
        weakest = min(self.gains, key=lambda gain: gain.value, default=None)
        also = "" if weakest is None else f" {predicted(weakest)}."
        if not self._checked:
            return f"Trust this fit:{also}"
        if m == k:
            every = "both" if k == 2 else f"all {k}"
            found = f"{every} {about.nouns} come back when half of the {about.data} is left out"
            return f"Trust this fit: {found}, and{also}" if also else f"Trust this fit: {found}."
        lost = about.lost(k - m)
        if level == "grave":
            return f"Do not trust this fit: {k - m} of {k} {about.nouns} {lost}."
        only = "only " if level == "care" else ""
        others = "the other one" if k - m == 1 else f"the other {k - m}"
        also = f" {also[1].upper()}{also[2:]}" if also else ""
        return f"Trust {only}{m} of the {k} {about.nouns}: {others} {lost}.{also}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings as sentences, gravest first."""
        return tuple(map(str, self.findings))

    @property
    def unstable(self) -> np.ndarray:
        """Numbers of the components that are not stable, the worst first."""
        order = np.argsort(self.trust, kind="stable")
        return order[self.trust[order] < STABLE]

    @property
    def eigengap(self) -> float:
        k, s = self.n_components, self.spectrum
        if len(s) <= k or not s[k - 1] > 0:
            return math.nan
        return float((s[k - 1] - s[k]) / s[k - 1])

    @property
    def condition_number(self) -> float:
        k, s = self.n_components, self.spectrum
        return float(s[0] / s[k - 1]) if len(s) >= k and s[k - 1] > 0 else math.inf

    @property
    def _checked(self) -> bool:
        return len(self.trust) > 0 and not np.isnan(self.trust).all()

    def name(self, j: int) -> str:
        """A component in a few words."""
        label = f" ({self.labels[j]})" if j < len(self.labels) and self.labels[j] else ""
        return f"{self.about.noun} {j}{label}"

    def left_out(self) -> str:
        """What to leave out of what is used or shown, worst first."""
        if self.level == "grave":
            return "all"
        if not self._checked or (self.findings and self.findings[0].kind == "little gain"):
            return "not known"
        if not len(self.unstable):
            return "none"
        names = [self.name(int(j)) for j in self.unstable[:NAMED]]
        rest = ", ".join(map(str, self.unstable[NAMED:]))
        names += [f"also {rest}"] if rest else []
        several = "worst first; " if len(self.unstable) > 1 else ""
        return f"{', '.join(names)} ({several}the first {self.about.noun} is number 0)"

    def actions(self) -> list[str]:
        """What to do, with the reason where the verdict does not tell it.

        Where a fit is not to be trusted, only what may change that.
        """
        grave = self.level == "grave"
        told = [f for f in self.findings if f.action and (f.level == "grave" or not grave)]
        return [
            f.action
            if f.kind in TOLD or (i == 0 and f.level != "note")
            else f"{f.action} Why: {f.text}"
            for i, f in enumerate(told)
        ]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self.verdict]
        if len(self.trust) > 1 and self.level != "unknown":
            lines.append(f"Leave out: {self.left_out()}.")
        todo = self.actions()
        for i, text in enumerate(todo, start=1):
            lines.append(f"Next step{f' ({i} of {len(todo)})' if len(todo) > 1 else ''}: {text}")
        if not todo and self.level == "good":
            count = len(self.unstable)
            first = "none" if not count else f"Leave {'it' if count == 1 else 'them'} out"
            other = " other" if count else ""
            lines.append(f"Next step: {first}; these checks found no{other} problem.")
        return shown_lines(lines)

    def full(self) -> str:
        """Everything that was measured, for those who want to know."""
        lines = [str(self), ""]
        if self._checked:
            what = f"Share of its {self.about.kept} that each {self.about.noun} keeps"
            lines.append(f"{what} (below 0.5: not stable):")
            lines += [f"  {self.name(j)}: {value:.2f}" for j, value in enumerate(self.trust)]
        for gain in self.gains:
            lines.append(
                f"Log-likelihood of an unseen {gain.unit} over that {gain.against}: "
                f"{gain.value:+.4g} ± {gain.error:.2g}."
            )
        lines += self._measured()
        lines.extend(f"Note: {f}" for f in self.findings)
        return shown_lines(lines)

    def _measured(self) -> list[str]:
        """What the moments and the refinement showed."""
        lines = [f"Start: {self.start}."]
        if self.solver != "none":
            lines[0] += f" Moments: solver {self.solver}, {self.passes} passes over the data."
        if not math.isnan(self.snr):
            lines.append(
                f"Second moment: eigenvalue {self.n_components} is {self.snr:.2g} times the "
                f"sampling noise, condition number {self.condition_number:.3g}."
            )
        if not math.isnan(self.residual):
            lines.append(
                f"{'Fourth' if self.details.get('order') == 4 else 'Third'} moment: "
                f"{self.residual:.1%} unexplained by {self.n_components} components."
            )
        total = float(np.sum(self.raw_weights)) if len(self.raw_weights) else math.nan
        if not math.isnan(total):
            lines.append(f"Weights that the third moment implies: sum {total:.3g} (1 is exact).")
        if len(self.refine_path) > 1:
            lines.append(
                f"Refinement: {len(self.refine_path) - 1} recorded steps, objective "
                f"{self.refine_path[0]:.4f} to {max(self.refine_path):.4f}."
            )
        return lines

    def _repr_html_(self) -> str:
        from thirdmoment.report.html import report_html

        return report_html(self)

    def outdated(self, reason: str) -> Report:
        """What is left of it once the fit has changed: nothing that was checked."""
        k = len(self.trust)
        return replace(
            self, trust=np.full(k, np.nan), gains=(), findings=(), labels=(), unchecked=reason
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the spectrum against the noise; returns the matplotlib axes."""
        from thirdmoment.report.plot import plot_spectrum

        return plot_spectrum(self.spectrum, self.n_components, self.noise, ax=ax)


def shown_lines(lines: list[str]) -> str:
    """Lines of text in which no word of the data acts on a terminal."""
    return "\n".join(shown(line) for text in lines for line in text.split("\n"))


def moment_findings(*, k: int, snr: float, residual: float, solver: str) -> list[Finding]:
    """Doubts of moments that are the answer themselves (N-11, SC-9)."""
    # the triangular residual of a Schur form is smaller than a diagonal one (SC-9)
    limits = LIMITS._replace(residual=0.15) if "schur" in solver else LIMITS
    found = []
    if snr < limits.snr:
        below = snr < limits.snr_plain
        text = (
            f"The moments do not show all {k} components: eigenvalue {k} is {snr:.2g} times the "
            f"sampling noise, {limits.snr} wanted."
        )
        action = "Use refine='auto', fewer components or more data."
        found.append(Finding("weak moments", text, action, "grave" if below else "care"))
    if residual > limits.residual:
        text = (
            f"{residual:.0%} of the third moment stays unexplained ({limits.residual:.0%} is the "
            "limit): the data do not follow the model with this number of components."
        )
        action = "Use refine='auto', or another number of components."
        found.append(Finding("unexplained", text, action, "care"))
    return found
