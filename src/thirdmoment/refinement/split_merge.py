"""Ways out of a local optimum of many Gaussian components: split one, merge two others, EM again.

Where EM is stuck one component often covers two groups while two others share one. Both show in
the rows that belong to them: what a split gains and what a merger costs is computed on these alone,
and the pairs that promise a gain are tried on all rows (docs/decisions/starts.md).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from thirdmoment._array import posterior_of, to_numpy
from thirdmoment._constants import Choice
from thirdmoment.likelihood.gaussians import Block, Diagonal, GaussianRows, Spherical
from thirdmoment.likelihood.mixture import (
    MixtureData,
    Parameters,
    expectation,
    from_posteriors,
    log_joint,
)
from thirdmoment.refinement.mixture import MixtureProblem, mixture_em
from thirdmoment.refinement.race import CLOSE, LEVEL, STAGES, Refined, risen

# From so many components on moves are tried; with few, starts that differ find as much.
MANY_COMPONENTS: Choice[int] = 10

ROUNDS: Choice[int] = 10  # of moves, at most
MOVES: Choice[int] = 5  # tried in one round
SPLIT_STEPS: Choice[int] = 6  # of EM on two halves of one component
LEAST_ROWS: Choice[int] = 10  # of a component that may be split


Gaussians: TypeAlias = Spherical | Diagonal | Block


class Move(NamedTuple):
    """Component ``split`` becomes two and ``merged`` become one."""

    promise: float  # units of log-likelihood, on the rows concerned
    split: int
    merged: tuple[int, int]
    halves: Parameters  # of two components
    whole: Parameters  # of one


def split_and_merge(problem: MixtureProblem, refined: Refined, *, max_steps: int) -> Refined:
    """The refined mixture, or the runner-up, after all moves that raised its likelihood, and EM.

    If both end in the same place, the answer does not hang on the start.
    """
    best = _moved_on(problem, refined, max_steps)
    if refined.contest.second is None:
        return best._replace(contest=best.contest._replace(ends=()))
    start, parameters = refined.contest.second
    value = problem.run(parameters, 0).path[-1]
    second = refined._replace(parameters=parameters, path=(value,), chosen=start, converged=False)
    other = _moved_on(problem, second, max_steps)
    steps = best.steps + other.steps - refined.steps
    behind = (best.path[-1] - other.path[-1]) * problem.total
    if behind < 0:  # where they are level, the first start is as good a name
        path = (*best.path, other.path[-1])
        best = other if behind < -LEVEL else other._replace(chosen=best.chosen, path=path)
    return best._replace(steps=steps, contest=best.contest._replace(ends=(0.0, abs(behind))))


def _moved_on(problem: MixtureProblem, refined: Refined, max_steps: int) -> Refined:
    """All moves from one solution, and EM to the end."""
    family, data, total = problem.family, problem.data, problem.total
    assert isinstance(family, Spherical | Diagonal | Block)
    best, value, path = refined.parameters, refined.path[-1], refined.path
    steps, made, converged = refined.steps, 0, refined.converged
    for _ in range(ROUNDS):
        moves = promising_moves(family, data, best)
        together = [moves] if len(moves) > 1 else []
        for chosen in [*together, *([move] for move in moves)]:
            short = problem.run(moved(family, best, chosen), STAGES[-1])
            steps += short.steps
            if not (value - short.path[-1]) * total < CLOSE:
                continue
            found = problem.run(short.parameters, max_steps)
            steps += found.steps
            gained = (found.path[-1] - value) * total > LEVEL
            if gained and problem.collapsed(found.parameters) <= problem.collapsed(best):
                path = (*path, *risen(found.path, value))
                best, value, converged = found.parameters, found.path[-1], found.converged
                made += len(chosen)
                break
        else:
            break
    if not converged and not made:  # moves are run to their limit already
        last = problem.run(best, max_steps)
        best, path, converged = last.parameters, (*path, *last.path[1:]), last.converged
        steps += last.steps
    return refined._replace(
        parameters=best, path=path, steps=steps, converged=converged, swaps=refined.swaps + made
    )


def promising_moves(family: Gaussians, data: MixtureData, parameters: Parameters) -> list[Move]:
    """Moves of different components that gain on their own rows, the best first."""
    groups, overlap = _groups(family, data, parameters)
    splits = {j: found for j, rows in enumerate(groups) if (found := _split(family, *rows))}
    mergers = sorted(
        (_merger(family, parameters, groups, pair) for pair in _neighbours(parameters, overlap)),
        key=lambda merger: merger[0],
    )
    moves: list[Move] = []
    used: set[int] = set()
    for j in sorted(splits, key=lambda j: -splits[j][0]):
        for cost, pair, whole in mergers:
            if used.isdisjoint({j, *pair}) and j not in pair:
                promise = splits[j][0] - cost
                if promise > LEVEL:
                    moves.append(Move(promise, j, pair, splits[j][1], whole))
                    used |= {j, *pair}
                break
        if len(moves) == MOVES:
            break
    return moves


def moved(family: Gaussians, parameters: Parameters, moves: list[Move]) -> Parameters:
    """Parameters after the moves, as a start of EM."""
    out = [array.copy() for array in parameters]
    for move in moves:
        a, b = move.merged
        for array, halves, whole in zip(out[1:], move.halves[1:], move.whole[1:], strict=True):
            array[a], array[b], array[move.split] = whole[0], halves[0], halves[1]
        weights = out[0]
        weights[a] += weights[b]
        weights[b] = weights[move.split] * move.halves[0][0]
        weights[move.split] *= move.halves[0][1]
    return family.project(tuple(out))


def _groups(
    family: Gaussians, data: MixtureData, parameters: Parameters
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Rows and weights of each component, and how much components share rows (k, k)."""
    k, d = parameters[1].shape
    overlap = np.zeros((k, k))
    parts: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(k)]
    for chunk in data.chunks:
        assert isinstance(chunk, GaussianRows)
        share = to_numpy(posterior_of(log_joint(family, parameters, chunk))[0])
        X, w = (to_numpy(part).astype(np.float64) for part in (chunk.X[:, :d], chunk.weights))
        overlap += (share * w) @ share.T
        label = share.argmax(axis=0)
        for j in range(k):
            parts[j].append((X[label == j], w[label == j]))
    np.fill_diagonal(overlap, 0.0)
    joined = [tuple(np.concatenate(column) for column in zip(*own, strict=True)) for own in parts]
    return [(X, w) for X, w in joined], overlap


def _neighbours(parameters: Parameters, overlap: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of components that share rows or have the nearest means."""
    means = parameters[1]
    pairs = set()
    for a, mean in enumerate(means):
        apart = ((means - mean) ** 2).sum(axis=1)
        apart[a] = np.inf
        for b in (int(np.argmin(apart)), int(np.argmax(overlap[a]))):
            pairs.add((min(a, b), max(a, b)))
    return sorted(pair for pair in pairs if pair[0] != pair[1])


def _fitted(family: Gaussians, X: np.ndarray, w: np.ndarray) -> tuple[Parameters, float]:
    """One component of these rows, and their log-likelihood."""
    data = MixtureData([family.rows(X, w)])
    one = from_posteriors(family, data, np.ones((len(X), 1)))
    return one, expectation(family, data, one)[1] * data.total


def _split(family: Gaussians, X: np.ndarray, w: np.ndarray) -> tuple[float, Parameters] | None:
    """What two components instead of one gain on their rows, and these two."""
    if w.sum() < max(LEAST_ROWS, 2 * X.shape[1]):
        return None
    side = _longest(X - w @ X / w.sum(), w) > 0
    data = MixtureData([family.rows(X, w)])
    start = from_posteriors(family, data, np.stack([side, ~side], axis=1).astype(float))
    found = mixture_em(family, data, start, tol=0.1, max_steps=SPLIT_STEPS)
    if family.collapsed(found.parameters):
        return None
    gain = found.path[-1] * data.total - _fitted(family, X, w)[1]
    return gain, found.parameters


def _longest(rest: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Scores (n,) of centred rows along their widest direction, by power iteration."""
    direction = rest[np.argmax(np.einsum("ad,ad->a", rest, rest))]
    for _ in range(20):
        direction = (w * (rest @ direction)) @ rest
        direction = direction / max(float(np.linalg.norm(direction)), 1e-300)
    return rest @ direction


def _merger(
    family: Gaussians,
    parameters: Parameters,
    groups: list[tuple[np.ndarray, np.ndarray]],
    pair: tuple[int, int],
) -> tuple[float, tuple[int, int], Parameters]:
    """What one component instead of two costs on their rows, and this one."""
    X, w = (np.concatenate([groups[j][i] for j in pair]) for i in (0, 1))
    both = tuple(array[list(pair)] for array in parameters)
    if not len(X):
        return 0.0, pair, tuple(array[:1] for array in both)
    both = (both[0] / both[0].sum(), *both[1:])
    data = MixtureData([family.rows(X, w)])
    one, alone = _fitted(family, X, w)
    return expectation(family, data, both)[1] * data.total - alone, pair, one
