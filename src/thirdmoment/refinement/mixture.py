"""EM of finite mixtures, accelerated and safeguarded."""

from __future__ import annotations

from thirdmoment.likelihood.mixture import Family, MixtureData, Parameters, expectation
from thirdmoment.refinement.em import EMResult, accelerated_em

# Relative gains below this are rounding where rows are float32.
RESOLUTION = 1e-8


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
