"""Starts of a refinement with what their moments showed, and the report of the one that won."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from thirdmoment.exceptions import UnusableMoments, warn
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.models.given import GIVEN
from thirdmoment.refinement.race import FINALISTS, Refined
from thirdmoment.report import Finding, Judged, Report, moment_findings
from thirdmoment.report.findings import unfinished, unusable
from thirdmoment.report.report import LIMITS


class Trust(NamedTuple):
    """When the moments alone are as good a start as any (docs/decisions/starts.md)."""

    rows: int = 2000
    snr: float = LIMITS.snr  # as in the report: what it doubts is raced
    residual: float = 0.1
    weight_sum: float = 0.1
    least_weight: float = 0.25  # in units of an even share


TRUST = Trust()

# Mean log-likelihood of an observation that the last five steps gain where EM has not ended.
STILL_GAINING = 1e-4


class MomentFacts(NamedTuple):
    """What the report says about the moments of one start."""

    spectrum: np.ndarray
    noise: float
    residual: float
    raw_weights: np.ndarray
    clipped_mass: np.ndarray
    solver: str
    passes: int
    details: dict[str, Any]
    expected_noise: float = np.inf  # by formula: unlike the split halves the same for weights

    def reordered(self, order: np.ndarray) -> MomentFacts:
        """The numbers of each component in the order of the fitted ones."""
        return self._replace(
            raw_weights=self.raw_weights[order], clipped_mass=self.clipped_mass[order]
        )

    def trusted(self, rows: float) -> bool:
        """Whether nothing known speaks against them; then no other start is tried.

        They are clear of the noise by both gauges, k components explain the third moment, and the
        weights that follow are those of k components.
        """
        k, limits = len(self.raw_weights), TRUST
        seen = float(self.spectrum[k - 1]) if len(self.spectrum) >= k else 0.0
        clear = seen > self.expected_noise and seen >= limits.snr * self.noise
        whole = abs(float(self.raw_weights.sum()) - 1) <= limits.weight_sum
        none_tiny = float(self.raw_weights.min()) >= limits.least_weight / k
        fits = self.residual < limits.residual
        return rows >= limits.rows and clear and whole and none_tiny and fits


class Candidate(NamedTuple):
    """Parameters to refine from; ``facts`` is None for a start without moments."""

    parameters: Parameters
    name: str
    facts: MomentFacts | None


# Starts from spread-out rows that race against moments which are not clear.
SPREAD_STARTS = 12


def propose(
    moments: Callable[[], list[Candidate]],
    others: Callable[[int | None], list[Candidate]],
    *,
    trusted: Callable[[MomentFacts], bool],
    n_starts: int | str,
    refining: bool,
    given: Candidate | None = None,
) -> tuple[list[Candidate], list[Finding]]:
    """The starts of a fit, the moments first, and notes for the report.

    ``others`` gives so many starts without moments, or with None as many as the model holds to be
    enough. They race where the moments are not trusted, or where ``n_starts`` asks for them; a
    ``given`` start always does. Without refinement there are the moments alone, and unusable ones
    are an error.
    """
    found: list[Candidate] = []
    notes: list[Finding] = []
    try:
        found = moments()
    except UnusableMoments as error:
        if not refining:
            raise
        notes.append(unusable(str(error)))
    if not refining:
        return found, notes
    facts = found[0].facts if found else None
    clear = facts is not None and trusted(facts)
    found += [] if given is None else [given]
    if n_starts == "auto":
        return found + ([] if clear else others(None)), notes
    count = max(int(n_starts), 0 if found else 1)  # at least one start of any kind
    return found + (others(count) if count else []), notes


def finalists(n_starts: int | str, least: int = FINALISTS) -> int:
    """Starts that are run to the end: more where a user asks for many."""
    return least if isinstance(n_starts, str) else max(least, n_starts // 3)


def by_hand_or_first(candidates: Sequence[Candidate]) -> Candidate:
    """The start to take as it is where nothing is refined."""
    return next((one for one in candidates if one.name == GIVEN), candidates[0])


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


def refinement_report(
    k: int,
    chosen: Candidate,
    refined: Refined,
    *,
    order: np.ndarray | None,
    refining: bool,
    judged: Judged,
    notes: Sequence[Finding] = (),
    candidates: Sequence[Candidate] = (),
    details: dict[str, Any] | None = None,
) -> Report:
    """What the moments of the chosen start showed, and how the refinement went.

    ``order`` has the component of the start that became each fitted one.
    """
    facts = chosen.facts or next((c.facts for c in candidates if c.facts), None)
    if chosen.facts is not None and order is not None:
        facts = chosen.facts.reordered(order)
    found = [
        *notes,
        *judged.findings(k, refining=refining),
        *_race_notes(chosen, refined, candidates),
    ]
    more = {"em_steps": refined.steps, "swaps": refined.swaps, "starts": refined.values}
    more |= details or {}
    snr = np.nan
    if facts is None:
        nothing = np.full(k, np.nan)
        facts = MomentFacts(np.empty(0), np.nan, np.nan, nothing, nothing, "none", 0, {})
    else:
        spectrum = facts.spectrum
        seen = float(spectrum[k - 1]) if len(spectrum) >= k else 0.0
        snr = np.inf if facts.noise == 0 else seen / facts.noise
        if not refining:
            found += moment_findings(k=k, snr=snr, residual=facts.residual, solver=facts.solver)
    return Report(
        n_components=k,
        spectrum=facts.spectrum,
        noise=facts.noise,
        snr=snr,
        residual=facts.residual,
        clipped_mass=facts.clipped_mass,
        raw_weights=facts.raw_weights,
        solver=facts.solver,
        start=chosen.name,
        passes=facts.passes,
        refine_path=refined.path,
        findings=tuple(found),
        **judged.fields(k),
        details={**facts.details, **more},
    )


def _race_notes(
    chosen: Candidate, refined: Refined, candidates: Sequence[Candidate]
) -> list[Finding]:
    """What the race tells a user: what was passed over, left behind or found once only."""
    notes = []
    if refined.passed_over > 0:
        text = (
            f"A solution with {refined.passed_over:.3g} more units of log-likelihood was passed "
            "over: a component of it had collapsed on a few rows, where likelihood has no limit."
        )
        notes.append(Finding("passed over", text))
    names = [one.name for one in candidates]
    if GIVEN in names and chosen.name != GIVEN and len(refined.values) == len(names):
        mine = refined.values[names.index(GIVEN)]
        text = (
            f"The start given by hand was left behind: after its short run it stood at {mine:.6g} "
            f"for an observation, the answer is at {refined.path[-1]:.6g} ({chosen.name})."
        )
        notes.append(Finding("start left behind", text, "Look at the start that you gave."))
    next_best = refined.next_best()
    if next_best is not None:
        text = (
            f"Only one start led to this solution: of the {len(refined.ends)} that were run to the "
            f"end the next best ended {next_best:.3g} units of log-likelihood lower. Another "
            "random_state may end elsewhere; raise n_starts to make it hang less on that."
        )
        notes.append(Finding("only one start", text))
    return notes
