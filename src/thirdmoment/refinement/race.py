"""Several starts, one answer: a short run from each, a long run from the best, then swaps.

Starts that end in different places often differ in one or two components. After the long run the
components in which a runner-up differs most are tried in the place of their partners: what one
start missed another may have found. The likelihood never falls on the way from a start, and the
better one is kept, but for runs in which a component collapsed: their likelihood has no limit and
says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist

from thirdmoment._constants import Choice
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.refinement.em import EMResult

# EM steps of a start in each stage of the comparison.
STAGES: Choice[tuple[int, ...]] = (7, 10, 16)

# A start so few units of log-likelihood behind the best stays in the race whatever it gained, and
# its components may be taken over.
CLOSE: Choice[float] = 200.0

# Starts that are run to the end.
FINALISTS: Choice[int] = 4
MAX_SWAPS: Choice[int] = 4  # components of runners-up that are tried after that

# EM steps over all rows of a source, after those on a sample (docs/decisions/streams.md).
LAST_STEPS: Choice[int] = 7

# Runs so close in log-likelihood are level.
LEVEL: Choice[float] = 1.0

# Components this far apart, in units of the spread of all, are different ones.
DIFFERENT: Choice[float] = 0.3


class Problem(Protocol):
    """What a race has to know of a model."""

    @property
    def total(self) -> float: ...  # rows; objectives are means over them

    @property
    def tol(self) -> float: ...  # a gain of total log-likelihood that does not matter

    def run(self, parameters: Parameters, steps: int) -> EMResult:
        """Accelerated EM of at most so many steps."""

    def collapsed(self, parameters: Parameters) -> int:
        """Components that shrank to a point, where the likelihood has no limit."""

    def places(self, parameters: Parameters) -> np.ndarray:
        """Where the components are (k, q), to tell different solutions apart."""

    def replaced(self, best: Parameters, other: Parameters, i: int, j: int) -> Parameters:
        """``best`` with its component i replaced by component j of ``other``."""


class Contest(NamedTuple):
    """What a race among several starts showed."""

    values: tuple[float, ...] = ()  # objective of every start after its short run
    ends: tuple[float, ...] = ()  # log-likelihood by which each long run is behind the best of them
    second: tuple[int, Parameters] | None = None  # another start whose long run is the next best
    passed_over: float = 0.0  # log-likelihood that a run with a collapsed component had more

    def next_best(self) -> float | None:
        """How far behind the next solution is, if of several long runs no two led to the answer."""
        lower = [end for end in self.ends if end > LEVEL]
        alone = sum(abs(end) <= LEVEL for end in self.ends) < 2
        return min(lower) if alone and lower else None

    @property
    def rival(self) -> Parameters | None:
        """Where the next best start ended."""
        return self.second[1] if self.second else None


class Refined(NamedTuple):
    """Where the refinement ended."""

    parameters: Parameters
    path: tuple[float, ...] = ()
    steps: int = 0
    converged: bool = True
    chosen: int = 0  # which start
    swaps: int = 0  # components taken over from other starts
    contest: Contest = Contest()

    def finished(self, last: Refined) -> Refined:
        """This race, ended by another run: on all data after a part, or in higher precision."""
        steps = self.steps + last.steps
        return self._replace(
            parameters=last.parameters, path=last.path, steps=steps, converged=last.converged
        )

    def shifted(self, by: float) -> Refined:
        """The same with all objectives in other units."""
        values = tuple(value + by for value in self.contest.values)
        return self._replace(
            path=tuple(value + by for value in self.path),
            contest=self.contest._replace(values=values),
        )


def race(
    problem: Problem,
    starts: Sequence[Parameters],
    *,
    max_steps: int,
    max_swaps: int = MAX_SWAPS,
    stages: tuple[int, ...] = STAGES,
    finalists: int = FINALISTS,
) -> Refined:
    """Short EM from every start, long EM from the best few, swaps with the runners-up."""
    run, total = problem.run, problem.total
    trials, racing = _compare(problem, starts, stages)
    chosen = _winner(trials, racing, total)
    chosen, best, long_runs = _finals(problem, trials, chosen, finalists, max_steps)
    highest = max(found.path[-1] for found in long_runs.values())
    first = trials[chosen]
    path = (*first.path, *best.path[1:]) if first.path else best.path
    steps = sum(trial.steps for trial in (*trials, *long_runs.values()))
    values = tuple(trial.path[-1] for trial in trials if trial.path)
    parameters, value, swaps = best.parameters, best.path[-1], 0
    reached = value
    others = [
        trial.parameters
        for i, trial in enumerate(trials)
        if i in racing and i != chosen and (value - values[i]) * total < CLOSE
    ]
    swapping = max_swaps > 0 and max_steps > stages[-1]
    for candidate in _swapped(problem, parameters, others, max_swaps) if swapping else []:
        found = _finite(run(candidate, stages[-1]))
        steps += found.steps
        if found.path[-1] > value + problem.tol / total:
            longer = _finite(run(found.parameters, max_steps))
            steps += longer.steps
            if not longer.path[-1] > value:
                continue
            if problem.collapsed(longer.parameters) > problem.collapsed(parameters):
                highest = max(highest, longer.path[-1])
                continue
            path = (*path, *risen(longer.path, value))
            parameters, value, swaps, best = longer.parameters, longer.path[-1], swaps + 1, longer
    behind = tuple((reached - found.path[-1]) * total for found in long_runs.values())
    behind = behind if len(behind) > 2 else ()  # two say little
    passed_over = (highest - value) * total
    passed_over = passed_over if passed_over > LEVEL else 0.0
    second = _second(problem, long_runs, chosen)
    contest = Contest(values, behind, second, passed_over)
    return Refined(parameters, path, steps, best.converged, chosen, swaps, contest)


def ended_on_all(
    problem: Problem, refined: Refined, max_steps: int, *, resident: bool = False
) -> Refined:
    """A race on a sample of a source, ended on all rows; where these are ``resident``, to the end.

    Else by a few EM steps. Whether it converged is known of the sample then: these steps only bring
    it from there to all rows.
    """
    if resident:
        return refined.finished(race(problem, [refined.parameters], max_steps=max_steps))
    last = race(problem, [refined.parameters], max_steps=min(LAST_STEPS, max_steps))
    return refined.finished(last)._replace(converged=refined.converged)


def _second(
    problem: Problem, long_runs: dict[int, EMResult], chosen: int
) -> tuple[int, Parameters] | None:
    """The best other start whose components keep a size, and where it ended."""
    rest = {i: run for i, run in long_runs.items() if i != chosen}
    rest = {
        i: run
        for i, run in rest.items()
        if np.isfinite(run.path[-1]) and not problem.collapsed(run.parameters)
    }
    best = max(rest, key=lambda i: rest[i].path[-1], default=None)
    return None if best is None else (best, rest[best].parameters)


def risen(path: Sequence[float], before: float) -> list[float]:
    """The last six values of a run that went on from elsewhere, as far as above ``before``.

    Filled up with the first of them: a jump must not look like steps that still gain.
    """
    above = [value for value in path[-6:] if value > before]
    return above[:1] * (6 - len(above)) + above


def _compare(
    problem: Problem, starts: Sequence[Parameters], stages: tuple[int, ...]
) -> tuple[list[EMResult], list[int]]:
    """A few EM steps from each start, more for those that stay in the race.

    A start is out if repeating what it gained last would not bring it to the front, or if it is in
    the same place as a better one; no more than half go on from one stage to the next. Returns the
    runs and those still racing.
    """
    if len(starts) == 1:
        return [EMResult(starts[0], (), False, 0)], [0]
    trials = [_finite(problem.run(start, stages[0])) for start in starts]
    racing = list(range(len(starts)))
    for steps in stages[1:]:
        racing = _still_racing(problem, trials, racing)
        if len(racing) < 2:
            break
        for i in racing:
            more = _finite(problem.run(trials[i].parameters, steps))
            path = (*trials[i].path, *more.path[1:])
            trials[i] = more._replace(path=path, steps=trials[i].steps + more.steps)
    return trials, racing


def _finite(run: EMResult) -> EMResult:
    """A run that ended in NaN is the last."""
    if np.isfinite(run.path[-1]):
        return run
    return run._replace(path=(*run.path[:-1], -np.inf))


def _finals(
    problem: Problem, trials: list[EMResult], chosen: int, finalists: int, max_steps: int
) -> tuple[int, EMResult, dict[int, EMResult]]:
    """Long runs from the chosen start and the next best: the order after short ones is not final.

    A few more are run where a component collapsed in all: on one that shrinks to a few equal values
    the likelihood has no limit, so a higher one says nothing. Returns which is best, and every run.
    """
    others = sorted(set(range(len(trials))) - {chosen}, key=lambda i: -trials[i].path[-1])
    best = _finite(problem.run(trials[chosen].parameters, max_steps))
    runs = {chosen: best}
    sound = np.isfinite(best.path[-1]) and not problem.collapsed(best.parameters)
    for count, i in enumerate(others, start=1):
        if count >= finalists + (0 if sound else FINALISTS):
            break
        found = _finite(problem.run(trials[i].parameters, max_steps))
        runs[i] = found
        whole = np.isfinite(found.path[-1]) and not problem.collapsed(found.parameters)
        better = (found.path[-1] - best.path[-1]) * problem.total > LEVEL
        if (whole and not sound) or (better and whole == sound):
            chosen, best, sound = i, found, whole
    return chosen, best, runs


def _winner(trials: list[EMResult], racing: list[int], total: float) -> int:
    """The best run; of runs that are level, the first, which is from the moments."""
    if len(racing) == 1:
        return racing[0]
    front = max(trials[i].path[-1] for i in racing)
    if not np.isfinite(front):  # none led anywhere
        return racing[0]
    return min(i for i in racing if (front - trials[i].path[-1]) * total <= LEVEL)


def _still_racing(problem: Problem, trials: list[EMResult], racing: list[int]) -> list[int]:
    total = problem.total
    first = _winner(trials, racing, total)
    order = [first, *sorted(set(racing) - {first}, key=lambda i: -trials[i].path[-1])]
    front = max(trials[i].path[-1] for i in racing)
    kept: list[int] = []
    for i in order[: len(order) // 2 + 1]:
        path = trials[i].path
        gained = path[-1] - max((value for value in path if value < path[-1]), default=path[-1])
        places = [problem.places(trials[m].parameters) for m in (i, *kept)]
        apart = (_apart(places[0], other)[0].max() for other in places[1:])
        behind = (front - path[-1]) * total
        if behind <= max(CLOSE, gained * total) and all(place > DIFFERENT for place in apart):
            kept.append(i)
    return kept


def _apart(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of each component, a row of ``a``, to its partner in ``b``, and the partners.

    In units of the spread of the components themselves, column by column.
    """
    spread = a.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0) * np.sqrt(a.shape[1])
    distance = cdist(a / unit, b / unit)
    _, partner = scipy.optimize.linear_sum_assignment(distance)
    return distance[np.arange(len(partner)), partner], partner


def _swapped(
    problem: Problem, best: Parameters, others: list[Parameters], most: int
) -> list[Parameters]:
    """``best`` with one component taken from another solution, the most different ones first."""
    here = problem.places(best)
    if len(here) < 3:
        return []
    found: list[tuple[float, Parameters]] = []
    for other in others:
        apart, partner = _apart(here, problem.places(other))
        for i in np.argsort(-apart)[:2]:
            if apart[i] > DIFFERENT:
                swap = problem.replaced(best, other, int(i), int(partner[i]))
                found.append((float(apart[i]), swap))
    found.sort(key=lambda pair: -pair[0])
    return [parameters for _, parameters in found[:most]]
