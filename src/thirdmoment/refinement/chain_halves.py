"""What either half of the sequences makes of a fitted chain."""

from __future__ import annotations

import numpy as np

from thirdmoment.likelihood.chains import Chain, log_likelihoods, posteriors
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.refinement.chains import (
    MarkovProblem,
    family_statistics,
    likelihood_tables,
    maximise,
    row_counts,
)
from thirdmoment.refinement.halves import LEAST_ROWS, MOST_ROWS, STEPS, Explained, Pieces
from thirdmoment.refinement.thin import PIECE

# Pieces that long sequences are cut into, and how short a piece may be.
PIECES, SHORTEST = 40, 15


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
        tables = likelihood_tables(self.problem.family, parameters, data, n_threads=threads)
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
