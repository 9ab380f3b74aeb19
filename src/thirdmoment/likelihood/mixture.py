"""Finite mixtures: what a family of component distributions must know, the E-step and ways into it.

A family of component distributions says what `Family` lists, and makes chunks of rows (``rows``);
weights, posteriors, likelihood, threads and acceleration are the same for all of them. Parameters
are a tuple of arrays with the weights (k,) first; the second tells components apart, one row each.
Components run along the first axis: maxima and sums over the few components are then whole-row
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from thirdmoment._array import (
    Array,
    in_double,
    like_one,
    map_in_order,
    posterior_of,
    to_numpy,
    total_of,
)
from thirdmoment.streaming import Streamed, fold

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
    """Chunks of rows, in memory or of a source, and their total weight."""

    def __init__(self, chunks: Sequence[Chunk] | Streamed, total: float | None = None) -> None:
        self.chunks: Any = chunks if isinstance(chunks, Streamed) else tuple(chunks)
        if total is None:
            total = float(sum(total_of(chunk.weights) for chunk in self.chunks))
        self.total = total


def log_joint(family: Family, parameters: Parameters, chunk: Any) -> Array:
    """log Pr(row, component) (k, m)."""
    joint = family.log_density(parameters, chunk)
    weights = np.maximum(parameters[0].astype(np.float64), 1e-300)
    joint += like_one(joint, np.log(weights))[:, None]
    return joint


def expectation(
    family: Family, data: MixtureData, parameters: Parameters, *, n_threads: int = 1
) -> tuple[Statistics, float]:
    """Expected statistics and the mean penalised log-likelihood at ``parameters``."""
    found = fold(partial(ExpectedSums, family, parameters), data.chunks, n_threads=n_threads)
    sums = tuple(to_numpy(part) for part in found.sums)  # a device is waited for here alone
    return sums, (float(found.value) + family.log_prior(parameters)) / data.total


class ExpectedSums:
    """Expected statistics of rows under given parameters, and their log-likelihood."""

    def __init__(self, family: Family, parameters: Parameters) -> None:
        self.family, self.parameters = family, parameters
        self.sums: Statistics = ()
        self.value: Any = 0.0

    def update(self, chunk: Any) -> ExpectedSums:
        posterior, likelihood = posterior_of(log_joint(self.family, self.parameters, chunk))
        value = chunk.weights @ like_one(chunk.weights, likelihood)
        posterior *= like_one(posterior, chunk.weights)
        return self._add(self.family.statistics(chunk, posterior), value)

    def merge(self, other: ExpectedSums) -> ExpectedSums:
        return self._add(other.sums, other.value)

    def _add(self, sums: Statistics, value: Any) -> ExpectedSums:
        if self.sums and sums:  # in float64, whatever the rows are
            pairs = zip(self.sums, sums, strict=True)
            sums = tuple(in_double(a) + in_double(b) for a, b in pairs)
        self.sums = sums or self.sums
        self.value = self.value + value
        return self


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
    pairs: Iterable[BothChunks],
    *,
    n_threads: int = 1,
) -> Parameters:
    """Parameters of another family from the posteriors of this one: one E-step, one M-step."""
    new = partial(CarriedSums, source, parameters, target)
    found = fold(new, pairs, n_threads=n_threads)
    return target.maximise(tuple(to_numpy(part) for part in found.sums))


class BothChunks(NamedTuple):
    """The same rows as either of two families reads them."""

    first: Any
    second: Any


class CarriedSums(ExpectedSums):
    """Statistics of one family by the posteriors of another."""

    def __init__(self, family: Family, parameters: Parameters, target: Family) -> None:
        super().__init__(family, parameters)
        self.target = target

    def update(self, chunk: BothChunks) -> CarriedSums:
        posterior, _ = posterior_of(log_joint(self.family, self.parameters, chunk.first))
        posterior *= like_one(posterior, chunk.second.weights)
        self._add(self.target.statistics(chunk.second, posterior), 0.0)
        return self


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
        w = chunk.weights
        found = family.statistics(chunk, like_one(w, np.ascontiguousarray(share.T)) * w)
        return tuple(map(to_numpy, found)), 0.0

    return family.maximise(add_up(one, tasks, n_threads=1)[0])
