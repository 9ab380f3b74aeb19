"""Finite mixtures: what a family of component distributions must know, the E-step and ways into it.

A family of component distributions says what `Family` lists, and makes chunks of rows (``rows``);
weights, posteriors, likelihood, threads and acceleration are the same for all of them. Parameters
are a tuple of arrays with the weights (k,) first; the second tells components apart, one row each.
Components run along the first axis: maxima and sums over the few components are then whole-row
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from thirdmoment._array import map_in_order

Parameters = tuple[np.ndarray, ...]
Statistics = tuple[np.ndarray, ...]


class Chunk(Protocol):
    """Rows of data in the form that a family reads fastest."""

    @property
    def weights(self) -> np.ndarray: ...  # (m,)


class Family(Protocol):
    """What one kind of component distribution knows."""

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


def carry_over(
    source: Family,
    parameters: Parameters,
    target: Family,
    data: tuple[MixtureData, MixtureData],
    *,
    n_threads: int = 1,
) -> Parameters:
    """Parameters of another family from the posteriors of this one: one E-step, one M-step.

    ``data`` has the same rows as either family reads them.
    """

    def one(pair: tuple) -> tuple[tuple[np.ndarray, ...], float]:
        posterior, _ = posteriors(log_joint(source, parameters, pair[0]))
        posterior *= pair[1].weights.astype(posterior.dtype)
        return target.statistics(pair[1], posterior), 0.0

    pairs = list(zip(data[0].chunks, data[1].chunks, strict=True))
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
