"""EM of finite mixtures, accelerated and safeguarded, and what a race has to know of it."""

from __future__ import annotations

import numpy as np

from thirdmoment._constants import Floor
from thirdmoment.likelihood.mixture import Family, MixtureData, Parameters, expectation
from thirdmoment.refinement.em import EMResult, accelerated_em

# Relative gains below this are rounding where rows are float32.
RESOLUTION: Floor[float] = 1e-8


def em_step(
    family: Family, data: MixtureData, parameters: Parameters, *, n_threads: int = 1
) -> tuple[Parameters, float]:
    """Parameters after one EM step and the objective before it."""
    sums, value = expectation(family, data, parameters, n_threads=n_threads)
    return family.maximise(sums), value


def mixture_em(
    family: Family,
    data: MixtureData,
    start: Parameters,
    *,
    tol: float,
    max_steps: int,
    n_threads: int = 1,
) -> EMResult:
    """Accelerated EM from ``start``; the objective is the mean (penalised) log-likelihood.

    Stops when a cycle gains less than ``tol`` units of *total* log-likelihood (gains far below one
    unit cannot matter, whatever the number of rows) or less than float32 can resolve.
    """
    return accelerated_em(
        lambda parameters: em_step(family, data, parameters, n_threads=n_threads),
        family.project(start),
        family.project,
        tol=RESOLUTION,
        atol=tol / data.total,
        max_steps=max_steps,
    )


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
