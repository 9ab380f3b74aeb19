"""Starts of mixtures, from other mixtures, labels or shares, and the race among them."""

from __future__ import annotations

import numpy as np

from thirdmoment.likelihood.mixture import (
    Family,
    MixtureData,
    Parameters,
    add_up,
    log_joint,
    posteriors,
)
from thirdmoment.refinement.em import EMResult
from thirdmoment.refinement.mixture import mixture_em
from thirdmoment.refinement.race import FINALISTS, MAX_SWAPS, Refined, Start, race


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


class MixtureProblem:
    """A mixture in a race: all arrays have the components along their first axis."""

    def __init__(self, family: Family, data: MixtureData, tol: float, n_threads: int) -> None:
        self.family, self.data, self.tol, self.n_threads = family, data, tol, n_threads
        self.total = data.total

    def run(self, parameters: Parameters, steps: int) -> EMResult:
        return mixture_em(
            self.family,
            self.data,
            parameters,
            tol=self.tol,
            max_steps=steps,
            n_threads=self.n_threads,
        )

    def collapsed(self, parameters: Parameters) -> int:
        return self.family.collapsed(parameters)

    def places(self, parameters: Parameters) -> np.ndarray:
        return parameters[1]

    def replaced(self, best: Parameters, other: Parameters, i: int, j: int) -> Parameters:
        return with_component(best, other, i, j)


def with_component(best: Parameters, other: Parameters, i: int, j: int) -> Parameters:
    """``best`` with its component i replaced by component j of ``other``; shared arrays stay."""
    out = []
    for mine, theirs in zip(best, other, strict=True):
        array = mine.copy()
        if len(mine) == len(best[0]):
            array[i] = theirs[j]
        out.append(array)
    out[0] = out[0] / out[0].sum()
    return tuple(out)


def refine(
    family: Family,
    data: MixtureData,
    starts: list[Start],
    *,
    tol: float,
    max_steps: int,
    n_threads: int = 1,
    max_swaps: int = MAX_SWAPS,
    finalists: int = FINALISTS,
) -> Refined:
    """The race among starts of one mixture."""
    problem = MixtureProblem(family, data, tol, n_threads)
    return race(problem, starts, max_steps=max_steps, max_swaps=max_swaps, finalists=finalists)
