"""EM of hidden Markov models, and what either half of the sequences makes of the answer.

Parameters are a tuple (start (k,), T (k, k), emission arrays with the states along their first
axis). A family of `likelihood` says what an emission is; it gets the start in the place of mixture
weights, which only ``project`` touches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import (
    array_namespace,
    by_halves,
    in_double,
    like_one,
    map_in_order,
    to_numpy,
)
from thirdmoment._constants import Choice, Wording, Work
from thirdmoment.likelihood.chains import (
    Chain,
    Scratch,
    expected_counts,
    log_likelihoods,
    posteriors,
)
from thirdmoment.likelihood.mixture import Family, Parameters, Statistics, add_up
from thirdmoment.likelihood.packed import Sequences
from thirdmoment.likelihood.tensor_chains import TensorSequences
from thirdmoment.recovery.markov import stochastic_rows
from thirdmoment.refinement.em import EMResult, Logarithms, accelerated_em, anderson_em
from thirdmoment.refinement.halves import LEAST_ROWS, MOST_ROWS, STEPS, Explained, Pieces
from thirdmoment.sizes import RACE
from thirdmoment.streaming import Streamed, fold, part_of

# Sequences that are added to those seen, with an even start: from one sequence alone the likeliest
# start is certain, and any other sequence would be impossible.
START_COUNT: Choice[float] = 0.01

# A cycle that gains less than this per observation goes on by Anderson mixing.
LARGE_GAIN: Work[float] = 3e-5

# Steps that gain a smaller share of the log-likelihood are the last.
STEADY: Choice[float] = 1e-7


class Observations(NamedTuple):
    """Rows that emissions are evaluated at, and which one each observation shows."""

    chunks: Sequence[Any]  # rows in the form that the family reads, in order
    code: np.ndarray | None  # (n,) row of each observation; None: each its own
    where: Sequences
    log_unit: float = 0.0  # added to log densities: rows may be in other units than the data
    there: TensorSequences | None = None  # the same on a device, where E-steps run there

    @property
    def n(self) -> int:
        return self.where.n

    def part(self, start: int, stop: int) -> Observations:
        """Sequences start..stop-1 of those on a device."""
        if self.there is None or stop - start == len(self.where.lengths):
            return self
        there, (first, last) = self.there.part(start, stop), self.where.offsets[[start, stop]]
        if self.code is not None:  # rows are those of symbols
            return self._replace(code=self.code[first:last], where=there.where, there=there)
        chunks = [part_of(chunk, first, last) for chunk in self.chunks]  # all rows are one
        return self._replace(chunks=chunks, where=there.where, there=there)


class Tables(NamedTuple):
    """Likelihoods of all rows, scaled so that the largest of a row is one."""

    logs: np.ndarray  # (m, k)
    table: np.ndarray  # (m, k) their exponentials
    shift: np.ndarray  # (m,) logarithm of what a row was divided by


def likelihood_tables(
    family: Family, parameters: Parameters, data: Observations, *, n_threads: int = 1
) -> Tables:
    """p(row | state) of every row."""

    def one(chunk: Any) -> Tables:
        logs = in_double(family.log_density((parameters[0], *parameters[2:]), chunk))
        xp = array_namespace(logs)
        shift = xp.max(logs, axis=0)
        shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        logs = (logs - shift).T
        logs = np.ascontiguousarray(logs) if isinstance(logs, np.ndarray) else logs
        return Tables(logs, xp.exp(logs), shift + data.log_unit)

    parts = list(map_in_order(one, data.chunks, n_threads=n_threads))
    if len(parts) == 1:
        return parts[0]
    logs, tables, shifts = zip(*parts, strict=True)
    return Tables(np.concatenate(logs), np.concatenate(tables), np.concatenate(shifts))


def row_counts(data: Observations, m: int) -> np.ndarray:
    """How often each row of the table is observed."""
    if data.code is None:
        return np.ones(m)
    if data.there is not None:
        return data.there.occurrences
    return np.bincount(data.code, minlength=m)


def expectation(
    family: Family,
    data: Observations | StreamedObservations,
    parameters: Parameters,
    *,
    n_threads: int = 1,
    scratch: Scratch | None = None,
) -> tuple[Statistics, float]:
    """Expected starts (k,), transitions (k, k) and the family's statistics, and the objective.

    The objective is the mean (penalised) log-likelihood of an observation.
    """
    if isinstance(data, StreamedObservations):
        found = fold(partial(ChainSums, family, parameters), data.chunks, n_threads=n_threads)
        sums, value = found.sums, found.value
    else:
        sums, value = _chain_sums(family, data, parameters, n_threads, scratch)
    value += family.log_prior((parameters[0], *parameters[2:]))
    value += START_COUNT * float(np.mean(np.log(np.maximum(parameters[0], 1e-300))))
    return sums, value / data.n


def _chain_sums(
    family: Family,
    data: Observations,
    parameters: Parameters,
    n_threads: int,
    scratch: Scratch | None,
) -> tuple[Statistics, float]:
    """Expected statistics of some sequences, and their log-likelihood.

    Where a device has too little memory for all of them, of one half after the other.
    """
    total = ChainSums(family, parameters)

    def some(start: int, stop: int) -> tuple[Statistics, float]:
        part = data.part(start, stop)
        tables = likelihood_tables(family, parameters, part, n_threads=n_threads)
        chain = Chain(parameters[0], parameters[1], tables.table, part.code, tables.logs)
        found = expected_counts(
            chain, part.where, n_threads=n_threads, scratch=scratch, there=part.there
        )
        shift = to_numpy(tables.shift)
        value = float(found.log_likelihood.sum() + shift @ row_counts(part, len(shift)))
        sums = family_statistics(family, part, found.counts, n_threads=n_threads)
        return (found.start, found.transitions, *sums), value

    for each in by_halves(some, len(data.where.lengths), least=2):
        total._add(*each)
    return total.sums, total.value


class StreamedObservations(NamedTuple):
    """All sequences of a source."""

    chunks: Streamed  # of `Observations`
    n: int


class ChainSums:
    """Expected statistics of whole sequences under given parameters, and their log-likelihood."""

    def __init__(self, family: Family, parameters: Parameters) -> None:
        self.family, self.parameters = family, parameters
        self.sums: Statistics = ()
        self.value = 0.0

    def update(self, chunk: Observations) -> ChainSums:
        return self._add(*_chain_sums(self.family, chunk, self.parameters, 1, None))

    def merge(self, other: ChainSums) -> ChainSums:
        return self._add(other.sums, other.value)

    def _add(self, sums: Statistics, value: float) -> ChainSums:
        if self.sums and sums:
            sums = tuple(a + b for a, b in zip(self.sums, sums, strict=True))
        self.sums = sums or self.sums
        self.value += value
        return self


def family_statistics(
    family: Family, data: Observations, counts: np.ndarray, *, n_threads: int = 1
) -> Statistics:
    """Statistics of the emissions from the expected visits (m, k) of each state at each row."""
    tasks, place = [], 0
    if data.there is not None and data.code is None:  # the rows are on a device
        counts = like_one(data.there.empty, counts)
    for chunk in data.chunks:
        size = len(chunk.weights)
        tasks.append((chunk, counts[place : place + size]))
        place += size

    def one(task: tuple[Any, np.ndarray]) -> tuple[Statistics, float]:
        counts = task[1].T
        if isinstance(counts, np.ndarray):
            counts = np.ascontiguousarray(counts)
        return tuple(map(to_numpy, family.statistics(task[0], counts))), 0.0

    return add_up(one, tasks, n_threads=n_threads)[0]


def maximise(family: Family, sums: Statistics) -> Parameters:
    """The M-step. A state that is never left keeps even transitions."""
    start = sums[0] + START_COUNT / len(sums[0])
    return start / start.sum(), stochastic_rows(sums[1]), *family.maximise(sums[2:])[1:]


def project(family: Family, parameters: Parameters) -> Parameters:
    """Extrapolated parameters brought back to valid ones."""
    start, *emission = family.project((parameters[0], *parameters[2:]))
    return start, stochastic_rows(np.maximum(parameters[1], 1e-12)), *emission


class MarkovProblem:
    """A hidden Markov model in a race of starts."""

    def __init__(
        self,
        family: Family,
        data: Any,  # Observations, or StreamedObservations
        tol: float,
        n_threads: int,
        chart: Callable[[Parameters], Logarithms | None] = lambda parameters: None,
    ) -> None:
        self.family, self.data, self.tol, self.n_threads = family, data, tol, n_threads
        self.chart = chart
        self.total = float(data.n)
        self.scratch: Scratch = {}

    def step(self, parameters: Parameters) -> tuple[Parameters, float]:
        sums, value = expectation(
            self.family, self.data, parameters, n_threads=self.n_threads, scratch=self.scratch
        )
        return maximise(self.family, sums), value

    def run(self, parameters: Parameters, steps: int) -> EMResult:
        """Squared extrapolation while gains are large, Anderson mixing for the tail."""
        chart = self.chart(parameters)
        enough = self.tol / self.total
        found = accelerated_em(
            self.step,
            project(self.family, parameters),
            lambda jump: project(self.family, jump),
            tol=STEADY if chart is None else 0.0,
            atol=enough if chart is None else max(enough, LARGE_GAIN),
            max_steps=steps,
        )
        if chart is None or not found.converged:
            return found
        if found.steps >= steps:  # gains are small, but the tail was not run
            return found._replace(converged=False)
        tail = anderson_em(
            self.step, found.parameters, chart, tol=STEADY, atol=enough,
            max_steps=steps - found.steps,
        )  # fmt: skip
        return tail._replace(path=(*found.path, *tail.path), steps=found.steps + tail.steps)

    def collapsed(self, parameters: Parameters) -> int:
        return self.family.collapsed((parameters[0], *parameters[2:]))

    def places(self, parameters: Parameters) -> np.ndarray:
        return parameters[2]

    def replaced(self, best: Parameters, other: Parameters, i: int, j: int) -> Parameters:
        """State i keeps its place in the chain and takes the emission of state j of ``other``."""
        emission = []
        for mine, theirs in zip(best[2:], other[2:], strict=True):
            array = mine.copy()
            array[i] = theirs[j]
            emission.append(array)
        return best[0], best[1], *emission


# Pieces that long sequences are cut into, and how short a piece may be.
PIECES: Wording[int] = 40
SHORTEST: Wording[int] = 15


def two_halves(
    lengths: np.ndarray, k: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Places of the observations of half of the pieces each, and the lengths of their pieces.

    Sequences are cut into pieces, which are drawn: what alternates falls into both halves. None
    where there are too few observations to tell.
    """
    n = int(lengths.sum())
    longest = min(max(n // PIECES, SHORTEST), PIECE)
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    count = -(-lengths // longest)
    owner = np.repeat(np.arange(len(lengths)), count)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    begin = offsets[owner] + rank * longest
    size = np.minimum(longest, offsets[owner] + lengths[owner] - begin)
    if n < LEAST_ROWS * k:
        return None
    drawn, out = rng.permutation(len(begin)), []
    for chosen in (drawn[::2], drawn[1::2]):
        enough = int(np.searchsorted(np.cumsum(size[chosen]), MOST_ROWS)) + 1
        chosen = np.sort(chosen[:enough])
        first, length = begin[chosen], size[chosen]
        shift = np.repeat(first - (np.cumsum(length) - length), length)
        out.append((np.arange(int(length.sum())) + shift, length))
    return out


ONE_STATE = "by a single state"


class MarkovPart:
    """Half of the pieces of all sequences."""

    def __init__(self, problem: MarkovProblem) -> None:
        self.problem, self.data = problem, problem.data
        lengths = problem.data.where.lengths.astype(np.float64)
        self.pieces = Pieces(np.ones(len(lengths)), lengths)

    def run(self, parameters: Parameters) -> Parameters:
        return self.problem.run(parameters, STEPS).parameters

    def explain(self, parameters: Parameters) -> Explained:
        data, threads = self.data, self.problem.n_threads
        found = likelihood_tables(self.problem.family, parameters, data, n_threads=threads)
        tables = Tables(*map(to_numpy, found))
        chain = Chain(parameters[0], parameters[1], tables.table, data.code, tables.logs)
        value, _ = log_likelihoods(chain, data.where, n_threads=threads)
        rows = tables.shift if data.code is None else tables.shift[data.code]
        scores = value + np.add.reduceat(rows, data.where.offsets[:-1])
        return Explained(posteriors(chain, data.where, n_threads=threads), scores)

    def simpler(self, parameters: Parameters) -> dict[str, Parameters]:
        family, data = self.problem.family, self.data
        m = sum(len(chunk.weights) for chunk in data.chunks)
        counts = np.asarray(row_counts(data, m), dtype=np.float64)[:, None]
        sums = family_statistics(family, data, counts)
        one = maximise(family, (np.ones(1), np.ones((1, 1)), *sums))
        shares = self.explain(parameters).posterior.mean(axis=0)
        shares = np.maximum(shares, 1e-12) / np.maximum(shares, 1e-12).sum()
        memoryless = shares, np.tile(shares, (len(shares), 1)), *parameters[2:]
        return {ONE_STATE: one, "when their order is ignored": memoryless}


# Long sequences are represented by pieces of this length.
PIECE: Choice[int] = 2_000


def thinned(
    lengths: np.ndarray, rng: np.random.Generator, size: int = RACE
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of about ``size`` observations, and the lengths of the pieces they form.

    Sequences are cut into pieces of at most `PIECE` observations, of which those around randomly
    spread observations are taken.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    count = -(-lengths // PIECE)
    owner = np.repeat(np.arange(len(lengths)), count)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    begin = offsets[owner] + rank * PIECE
    length = np.minimum(PIECE, offsets[owner + 1] - begin)
    ends = np.cumsum(length)
    typical = float(length @ length) / ends[-1]  # length of the piece an observation is in
    pieces = max(1, round(size / typical))
    # one in each stretch of equal size, at random: even steps may keep time with the lengths
    levels = (np.arange(pieces) + rng.random(pieces)) * ends[-1] / pieces
    chosen = np.unique(np.searchsorted(ends, levels, side="right"))
    begin, length = begin[chosen], length[chosen]
    shift = np.repeat(begin - (np.cumsum(length) - length), length)
    return np.arange(int(length.sum())) + shift, length
