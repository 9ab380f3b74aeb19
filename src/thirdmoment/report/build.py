"""The one builder of reports for fits that are refined from raced starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from thirdmoment._constants import Wording
from thirdmoment.exceptions import warn
from thirdmoment.refinement.halves import Examined
from thirdmoment.refinement.race import Refined
from thirdmoment.report.findings import (
    About,
    Finding,
    few_rows,
    gain_findings,
    stable_findings,
    unfinished,
)
from thirdmoment.report.report import Report, moment_findings
from thirdmoment.starts.given import GIVEN
from thirdmoment.starts.start import Start, no_facts


class Judged(NamedTuple):
    """A fit that was examined, or could not be."""

    examined: Examined | None  # None where nothing was checked
    labels: tuple[str, ...] = ()  # each component in a few words, in the fitted order
    about: About = About()
    instead: str = "Use fewer components."  # where data that was set aside asks for less
    weights: np.ndarray | None = None  # (k,) of the components, in the fitted order

    @property
    def checked(self) -> bool:
        return self.examined is not None and not np.isnan(self.examined.trust).all()

    def findings(self, k: int, *, refining: bool = True) -> list[Finding]:
        """Where components are not stable, no better than something simpler, or not to check."""
        gains = () if self.examined is None else self.examined.gains
        found = gain_findings(gains, self.instead, self.about)
        if self.examined is None or not self.checked:
            return found + (few_rows(self.about) if refining and k > 1 else [])
        stable = stable_findings(self.examined.trust, self.about, self.weights)
        if found:  # says all there is to do
            stable = [one._replace(action="", level="note") for one in stable]
        return [*found, *stable]

    def fields(self, k: int) -> dict[str, Any]:
        """Fields of the report."""
        nothing = Examined(np.full(k, 1.0 if k == 1 else np.nan), ())
        examined = self.examined or nothing
        return {
            "trust": examined.trust,
            "gains": examined.gains,
            "labels": self.labels,
            "about": self.about,
        }


# Mean log-likelihood of an observation that the last five steps gain where EM has not ended.
STILL_GAINING: Wording[float] = 1e-4


def note_unfinished(
    path: Sequence[float], converged: bool, total: float, limit: int
) -> list[Finding]:
    """A note and a warning where EM ended at its limit while it still gained.

    Objectives are means over ``total`` observations.
    """
    gained = recent_gain(path)
    if converged or limit == 0 or not (gained > STILL_GAINING and gained * total > 1):
        return []
    found = unfinished(
        limit,
        f"The fit was stopped at max_refine_iter={limit} while the likelihood still rose: the last "
        f"five steps gained {gained * total:.3g} units, {gained:.2g} an observation.",
    )
    warn(str(found), ConvergenceWarning)
    return [found]


def recent_gain(path: Sequence[float]) -> float:
    """What the last five recorded steps gained."""
    return path[-1] - path[-min(len(path), 6)] if path else 0.0


class Proposed(NamedTuple):
    """The start that won, all that raced, and the component of it that became each fitted one."""

    chosen: Start
    starts: Sequence[Start] = ()
    order: np.ndarray | None = None


def refinement_report(
    refined: Refined,
    proposed: Proposed,
    judged: Judged,
    *,
    k: int | None = None,
    refining: bool,
    notes: Sequence[Finding] = (),
    details: dict[str, Any] | None = None,
) -> Report:
    """What the moments of the chosen start showed, and how the refinement went."""
    chosen, candidates, order = proposed
    k = len(refined.parameters[0]) if k is None else k
    facts = chosen.facts or next((c.facts for c in candidates if c.facts), None)
    if chosen.facts is not None and order is not None:
        facts = chosen.facts.reordered(order)
    found = [
        *notes,
        *judged.findings(k, refining=refining),
        *_race_notes(chosen, refined, candidates),
    ]
    more = {"em_steps": refined.steps, "swaps": refined.swaps, "starts": refined.contest.values}
    more |= details or {}
    used = facts is not None
    facts = facts or no_facts(k)
    if used and not refining:
        found += moment_findings(
            k=k, snr=facts.snr(k), residual=facts.residual, solver=facts.solver
        )
    return Report(
        n_components=k,
        spectrum=facts.spectrum,
        noise=facts.noise,
        snr=facts.snr(k),
        residual=facts.residual,
        clipped_mass=facts.clipped_mass,
        raw_weights=facts.raw_weights,
        solver=facts.solver,
        start=chosen.name,
        passes=facts.details["passes"],
        refine_path=refined.path,
        findings=tuple(found),
        **judged.fields(k),
        details={**facts.details, **more},
    )


def _race_notes(chosen: Start, refined: Refined, candidates: Sequence[Start]) -> list[Finding]:
    """What the race tells a user: what was passed over, left behind or found once only."""
    notes, contest = [], refined.contest
    if contest.passed_over > 0:
        text = (
            f"A solution with {contest.passed_over:.3g} more units of log-likelihood was passed "
            "over: a component of it had collapsed on a few rows, where likelihood has no limit."
        )
        notes.append(Finding("passed over", text))
    names = [one.name for one in candidates]
    if GIVEN in names and chosen.name != GIVEN and len(contest.values) == len(names):
        mine = contest.values[names.index(GIVEN)]
        text = (
            f"The start given by hand was left behind: after its short run it stood at {mine:.6g} "
            f"for an observation, the answer is at {refined.path[-1]:.6g} ({chosen.name})."
        )
        notes.append(Finding("start left behind", text, "Look at the start that you gave."))
    next_best = contest.next_best()
    if next_best is not None:
        text = (
            f"Only one start led to this solution: of the {len(contest.ends)} that were run to the "
            f"end the next best ended {next_best:.3g} units of log-likelihood lower. Another "
            "random_state may end elsewhere; raise n_starts to make it hang less on that."
        )
        notes.append(Finding("only one start", text))
    return notes
