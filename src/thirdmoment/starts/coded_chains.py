"""Starts of hidden Markov models with codes: moments of symbols or columns, contexts, chance."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from thirdmoment._constants import Choice
from thirdmoment.likelihood.categories import Categories, one_hot
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.moments.sequences import AdjacentCounts, Symbols
from thirdmoment.recovery.markov import chain_of
from thirdmoment.refinement.chains import Observations, family_statistics
from thirdmoment.starts.contexts import context_chain
from thirdmoment.starts.start import Settings, Start
from thirdmoment.starts.stretches import stretches
from thirdmoment.starts.symbols import (
    MOST_CODES,
    SymbolData,
    SymbolMoments,
    symbol_chains,
    symbol_data,
)
from thirdmoment.starts.windows import streamed_moments, vector_chains, vector_moments
from thirdmoment.streaming import Streamed

# Starts without moments that race against them.
RANDOM_STARTS: Choice[int] = 2

# Blocks of a sequence are compared by the shares of codes up to this many codes of all columns;
# rare codes tell as much as frequent ones.
STRETCH_CODES: Choice[int] = 64

# Moment estimates have zeros, from which EM hardly recovers: this share of the whole is mixed in.
SOFTENING: Choice[float] = 0.02


class CodedData(NamedTuple):
    """Codes in the forms that starts need."""

    X: np.ndarray  # (n, l) codes
    symbols: int  # distinct rows
    data: Observations
    family: Categories
    share: np.ndarray  # (m,) of each distinct row
    n_threads: int
    whole: WholeCodes | None = None  # of what the rows are a sample

    @property
    def as_symbols(self) -> bool:
        """Whether distinct rows are few enough to be told apart as they are."""
        if self.whole is not None:
            return self.whole.symbols is not None
        return self.X.shape[1] == 1 or self.symbols <= MOST_CODES

    def tables(self, laws: np.ndarray) -> np.ndarray:
        """Tables of the columns (k, Σ d_v) from distributions of the distinct rows (k, m)."""
        sums = family_statistics(self.family, self.data, laws.T)
        return self.family.normalised(sums[1])

    def softened(self, parameters: Parameters) -> Parameters:
        """A little of the whole mixed into every distribution."""
        start, T, tables = parameters
        k, e = len(start), SOFTENING
        whole = self.tables(self.share[None])
        return (1 - e) * start + e / k, (1 - e) * T + e / k, (1 - e) * tables + e * whole


class WholeCodes(NamedTuple):
    """All sequences of a source."""

    rows: Streamed  # chunks with ``X`` (m, l), ``offsets`` and ``start``
    symbols: SymbolData | None  # None where distinct rows are too many to be told apart


def moment_starts(coded: CodedData, k: int, settings: Settings) -> list[Start]:
    """Starts from windows of three views; distinct rows are symbols where they are few."""
    offsets = coded.data.where.offsets
    if coded.as_symbols:
        assert coded.data.code is not None
        data = coded.whole and coded.whole.symbols
        data = data or symbol_data(coded.data.code, offsets, coded.symbols, coded.data.there)
        chains = symbol_chains(SymbolMoments(data, k, settings))
        found = [Start((c.start, c.T, coded.tables(c.emissions)), c.name, c.facts) for c in chains]
    else:
        features, q = partial(_one_hot, coded.family.sizes), int(coded.family.sizes.sum())
        if coded.whole is None:
            windows = vector_moments(features(coded.X), offsets)
        else:
            windows = streamed_moments(coded.whole.rows, features, q, settings.n_threads)
        chains = vector_chains(windows, k, settings)
        tables = [coded.family.normalised(np.maximum(c.emissions, 0.0)) for c in chains]
        found = [
            Start((c.start, c.T, table), c.name, c.facts)
            for c, table in zip(chains, tables, strict=True)
        ]
    if settings.hedge:
        found = [c._replace(parameters=coded.softened(c.parameters)) for c in found]
    return found


def _one_hot(sizes: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.asarray(one_hot(X, sizes).toarray())


def other_starts(
    coded: CodedData, k: int, rng: np.random.Generator, count: int | None
) -> list[Start]:
    """Starts without third moments: symbols with like neighbours, stretches, and random laws.

    With ``count`` so many, the random ones last.
    """
    found = []
    if coded.as_symbols:
        assert coded.data.code is not None
        whole = Symbols(coded.data.code, coded.data.where.offsets)
        adjacent = AdjacentCounts(coded.symbols).update(whole)
        chain = context_chain(adjacent, coded.share, k, rng)
        if chain is not None:
            parameters = (*chain[:2], coded.tables(chain[2]))
            found.append(Start(parameters, "classes of symbols with like neighbours"))
    found += _stretch_starts(coded, k, rng)
    for i in range(RANDOM_STARTS if count is None else count - len(found)):
        laws = coded.share * rng.gamma(1.0, size=(k, len(coded.share)))
        tables = coded.tables(laws / laws.sum(axis=1, keepdims=True))
        T = rng.dirichlet(np.ones(k), size=k)
        found.append(Start((np.full(k, 1 / k), T, tables), f"random tables {i}"))
    return found[:count]


def _stretch_starts(coded: CodedData, k: int, rng: np.random.Generator) -> list[Start]:
    """States that last: the shares of the codes in a block say what state it is."""
    m, code = coded.symbols, coded.data.code
    if int(coded.family.sizes.sum()) > STRETCH_CODES or code is None:
        return []
    table = np.concatenate([np.asarray(c.rows.toarray()) for c in coded.data.chunks])
    share = np.maximum(coded.share @ table, 1e-12)
    offsets, found = coded.data.where.offsets, []
    for name, states in stretches(table / np.sqrt(share), offsets, k, rng, code=code):
        laws = np.bincount(states * m + code, minlength=k * m).reshape(k, m)
        laws = (laws + coded.share) / (laws.sum(axis=1, keepdims=True) + 1)
        found.append(Start((*chain_of(states, offsets, k), coded.tables(laws)), name))
    return found
