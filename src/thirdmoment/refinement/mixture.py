"""EM for finite mixtures, written once: E-step, M-step, acceleration, safeguard.

A family of component laws says four things (`Family`); weights, posteriors, likelihood, threads
and acceleration are the same for all of them. Parameters are a tuple of arrays with the weights
(k,) first. Components run along the first axis: maxima and sums over the few components are then
whole-row operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from thirdmoment._array import map_in_order
from thirdmoment.refinement.em import EMResult, Parameters, accelerated_em

Statistics = tuple[np.ndarray, ...]

# Relative gains below this are rounding where rows are float32.
RESOLUTION = 1e-8


class Chunk(Protocol):
    """Rows of data in the form that a family reads fastest."""

    @property
    def weights(self) -> np.ndarray: ...  # (m,)


class Family(Protocol):
    """What one kind of component law knows."""

    def log_density(self, parameters: Parameters, chunk: Any) -> np.ndarray:
        """log p(row | component) (k, m), a new array."""

    def statistics(self, chunk: Any, posterior: np.ndarray) -> Statistics:
        """Sums over rows, masses (k,) first, of posteriors (k, m) already times the weights."""

    def maximise(self, statistics: Statistics) -> Parameters:
        """The M-step."""

    def project(self, parameters: Parameters) -> Parameters:
        """Extrapolated parameters brought back to valid ones."""

    def log_prior(self, parameters: Parameters) -> float:
        """Log density of the prior, zero where there is none."""

    def collapsed(self, parameters: Parameters) -> int:
        """Components that shrank to a point, where the likelihood has no limit."""


class MixtureData:
    """Chunks of rows and their total weight."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = tuple(chunks)
        self.total = float(sum(chunk.weights.sum() for chunk in self.chunks))


def log_joint(family: Family, parameters: Parameters, chunk: Any) -> np.ndarray:
    """log Pr(row, component) (k, m)."""
    joint = family.log_density(parameters, chunk)
    weights = np.maximum(parameters[0].astype(np.float64), 1e-300)
    joint += np.log(weights).astype(joint.dtype)[:, None]
    return joint


def posteriors(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors, in place of the log joint (k, m), and log-likelihoods (m,)."""
    top = joint.max(axis=0)
    joint -= top
    np.exp(joint, out=joint)
    total = joint.sum(axis=0)
    joint /= total
    np.log(total, out=total)
    total += top
    return joint, total


def expectation(
    family: Family, data: MixtureData, parameters: Parameters, *, n_threads: int = 1
) -> tuple[Statistics, float]:
    """Expected statistics and the mean penalised log-likelihood at ``parameters``."""

    def one(chunk: Any) -> tuple[Statistics, float]:
        posterior, likelihood = posteriors(log_joint(family, parameters, chunk))
        value = float(chunk.weights @ likelihood)
        posterior *= chunk.weights.astype(posterior.dtype)
        return family.statistics(chunk, posterior), value

    sums, value = add_up(one, data.chunks, n_threads=n_threads)
    return sums, (value + family.log_prior(parameters)) / data.total


def add_up(
    work: Callable[[Any], tuple[Statistics, float]], chunks: Sequence[Any], *, n_threads: int
) -> tuple[Statistics, float]:
    """Sum of what ``work`` returns for each chunk, in chunk order."""
    if len(chunks) == 1:
        return work(chunks[0])
    total: list[np.ndarray] = []
    value = 0.0
    for part, more in map_in_order(work, chunks, n_threads=n_threads):
        value += more
        if not total:
            total = [array.astype(np.float64) for array in part]
        else:
            for whole, array in zip(total, part, strict=True):
                whole += array
    return tuple(total), value


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
