"""Several starts, one answer: short EM from each, long EM from the best, then swaps.

Starts that end in different places often differ in one or two components. After the long run the
components in which a runner-up differs most are tried in the place of their partners (`swap`):
what one start missed another may have found. The likelihood never falls on the way from a start,
and the better one is kept, but for runs in which a component collapsed: their likelihood has no
limit and says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist

from thirdmoment.refinement.em import EMResult, Parameters
from thirdmoment.refinement.mixture import (
    Family,
    MixtureData,
    add_up,
    log_joint,
    mixture_em,
    posteriors,
)

# EM steps of a start in each stage of the comparison.
STAGES = (7, 10, 16)

# A start so few units of log-likelihood behind the best stays in the race whatever it gained.
CLOSE = 200.0

# Runs so close in log-likelihood are level.
LEVEL = 1.0

# Components of a racing start further behind than this are not taken over.
FAR_BEHIND = 500.0

# Components this far apart, in units of the spread of all, are different ones.
DIFFERENT = 0.3


class Start(NamedTuple):
    """Parameters to refine from, and their name for the report."""

    parameters: Parameters
    name: str


class Refined(NamedTuple):
    """Where the refinement ended."""

    parameters: Parameters
    path: tuple[float, ...]
    steps: int
    converged: bool
    chosen: int  # which start
    swaps: int  # components taken over from other starts
    values: tuple[float, ...]  # objective of every start after its short run


def carry_over(
    source: Family,
    parameters: Parameters,
    source_data: MixtureData,
    target: Family,
    target_data: MixtureData,
    *,
    n_threads: int = 1,
) -> Parameters:
    """Parameters of another family from the posteriors of this one: one E-step, one M-step."""

    def one(pair: tuple) -> tuple[tuple[np.ndarray, ...], float]:
        posterior, _ = posteriors(log_joint(source, parameters, pair[0]))
        posterior *= pair[1].weights.astype(posterior.dtype)
        return target.statistics(pair[1], posterior), 0.0

    pairs = list(zip(source_data.chunks, target_data.chunks, strict=True))
    return target.maximise(add_up(one, pairs, n_threads=n_threads)[0])


def from_labels(family: Family, data: MixtureData, labels: np.ndarray, k: int) -> Parameters:
    """Parameters of components whose rows are labelled 0..k-1, in the order of the chunks."""
    return from_posteriors(family, data, np.eye(k)[labels])


def from_posteriors(family: Family, data: MixtureData, shares: np.ndarray) -> Parameters:
    """One M-step from the share (n, k) that each component has in each row."""
    place, tasks = 0, []
    for chunk in data.chunks:
        tasks.append((chunk, shares[place : place + len(chunk.weights)]))
        place += len(chunk.weights)

    def one(task: tuple) -> tuple[tuple[np.ndarray, ...], float]:
        chunk, share = task
        return family.statistics(chunk, share.T * chunk.weights), 0.0

    return family.maximise(add_up(one, tasks, n_threads=1)[0])


def refine(
    family: Family,
    data: MixtureData,
    starts: list[Start],
    *,
    tol: float,
    max_steps: int,
    n_threads: int = 1,
    max_swaps: int = 4,
) -> Refined:
    """Short EM from every start, long EM from the best, swaps with the runners-up."""

    def run(parameters: Parameters, steps: int) -> EMResult:
        return mixture_em(family, data, parameters, tol=tol, max_steps=steps, n_threads=n_threads)

    trials, racing = _compare(run, starts, data.total)
    chosen = _winner(trials, racing, data.total)
    best = run(trials[chosen].parameters, max_steps)
    if family.collapsed(best.parameters):
        chosen, best = _not_collapsed(family, run, trials, chosen, best, max_steps)
    first = trials[chosen]
    path = (*first.path, *best.path[1:]) if first.path else best.path
    steps = best.steps + sum(trial.steps for trial in trials)
    values = tuple(trial.path[-1] for trial in trials if trial.path)
    parameters, value, swaps = best.parameters, best.path[-1], 0
    others = [
        trial.parameters
        for i, trial in enumerate(trials)
        if i in racing and i != chosen and (value - values[i]) * data.total < FAR_BEHIND
    ]
    for candidate in _swapped(parameters, others, max_swaps) if max_steps > STAGES[-1] else []:
        found = run(candidate, STAGES[-1])
        steps += found.steps
        if found.path[-1] > value + tol / data.total:
            longer = run(found.parameters, max_steps)
            parameters, value, steps = longer.parameters, longer.path[-1], steps + longer.steps
            path, swaps, best = (*path, value), swaps + 1, longer
    return Refined(parameters, path, steps, best.converged, chosen, swaps, values)


def _compare(
    run: Callable[[Parameters, int], EMResult], starts: list[Start], total: float
) -> tuple[list[EMResult], list[int]]:
    """A few EM steps from each start, more for those that stay in the race.

    A start is out if repeating what it gained last would not bring it to the front, or if it is in
    the same place as a better one; no more than half go on from one stage to the next. Returns the
    runs and those still racing.
    """
    if len(starts) == 1:
        return [EMResult(starts[0].parameters, (), False, 0)], [0]
    trials = [run(start.parameters, STAGES[0]) for start in starts]
    racing = list(range(len(starts)))
    for steps in STAGES[1:]:
        racing = _still_racing(trials, racing, total)
        if len(racing) < 2:
            break
        for i in racing:
            more = run(trials[i].parameters, steps)
            path = (*trials[i].path, *more.path[1:])
            trials[i] = more._replace(path=path, steps=trials[i].steps + more.steps)
    return trials, racing


def _not_collapsed(
    family: Family,
    run: Callable[[Parameters, int], EMResult],
    trials: list[EMResult],
    chosen: int,
    best: EMResult,
    max_steps: int,
) -> tuple[int, EMResult]:
    """The best other start whose components keep a size, or ``best`` if there is none.

    On a component that shrinks to a few equal values the likelihood has no limit, so a higher one
    says nothing.
    """
    others = sorted(set(range(len(trials))) - {chosen}, key=lambda i: -trials[i].path[-1])
    for i in others[:4]:
        found = run(trials[i].parameters, max_steps)
        if not family.collapsed(found.parameters):
            return i, found
    return chosen, best


def _winner(trials: list[EMResult], racing: list[int], total: float) -> int:
    """The best run; of runs that are level, the first, which is from the moments."""
    if len(racing) == 1:
        return racing[0]
    front = max(trials[i].path[-1] for i in racing)
    return min(i for i in racing if (front - trials[i].path[-1]) * total <= LEVEL)


def _still_racing(trials: list[EMResult], racing: list[int], total: float) -> list[int]:
    first = _winner(trials, racing, total)
    order = [first, *sorted(set(racing) - {first}, key=lambda i: -trials[i].path[-1])]
    front = max(trials[i].path[-1] for i in racing)
    kept: list[int] = []
    for i in order[: len(order) // 2 + 1]:
        path = trials[i].path
        gained = path[-1] - path[-min(len(path), 2)]
        places = (_apart(trials[i].parameters, trials[j].parameters)[0].max() for j in kept)
        behind = (front - path[-1]) * total
        if behind <= max(CLOSE, gained * total) and all(place > DIFFERENT for place in places):
            kept.append(i)
    return kept


def _apart(a: Parameters, b: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """Distance of each component of ``a`` to its partner in ``b``, and the partners.

    In units of the spread of the components themselves, column by column.
    """
    spread = a[1].std(axis=0)
    unit = np.where(spread > 0, spread, 1.0) * np.sqrt(a[1].shape[1])
    distance = cdist(a[1] / unit, b[1] / unit)
    _, partner = scipy.optimize.linear_sum_assignment(distance)
    return distance[np.arange(len(partner)), partner], partner


def _swapped(best: Parameters, others: list[Parameters], most: int) -> list[Parameters]:
    """``best`` with one component taken from another solution, the most different ones first."""
    if len(best[0]) < 3:
        return []
    found: list[tuple[float, Parameters]] = []
    for other in others:
        apart, partner = _apart(best, other)
        for i in np.argsort(-apart)[:2]:
            if apart[i] > DIFFERENT:
                found.append((float(apart[i]), _replace(best, other, int(i), int(partner[i]))))
    found.sort(key=lambda pair: -pair[0])
    return [parameters for _, parameters in found[:most]]


def _replace(best: Parameters, other: Parameters, i: int, j: int) -> Parameters:
    """Component i of ``best`` replaced by component j of ``other``; shared arrays stay."""
    out = []
    for mine, theirs in zip(best, other, strict=True):
        array = mine.copy()
        if len(mine) == len(best[0]):
            array[i] = theirs[j]
        out.append(array)
    out[0] = out[0] / out[0].sum()
    return tuple(out)
