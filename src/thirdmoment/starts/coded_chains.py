"""Starts of hidden Markov models with codes: moments of symbols or columns, contexts, chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.likelihood.categories import Categories
from thirdmoment.likelihood.codes import one_hot
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.moments.sequences import AdjacentCounts, Symbols
from thirdmoment.recovery.markov import chain_of
from thirdmoment.refinement.chains import Observations, family_statistics
from thirdmoment.starts.contexts import context_starts
from thirdmoment.starts.propose import Candidate
from thirdmoment.starts.stretches import stretches
from thirdmoment.starts.symbols import SymbolMoments, symbol_starts
from thirdmoment.starts.window_facts import window_facts
from thirdmoment.starts.windows import vector_moments, vector_starts

# Distinct rows of several columns are symbols up to this many; beyond, columns are features.
MOST_SYMBOLS = 1000

# Starts without moments that race against them.
RANDOM_STARTS = 2

# Blocks of a sequence are compared by the shares of codes up to this many codes of all columns;
# rare codes tell as much as frequent ones.
STRETCH_CODES = 64

# Moment estimates have zeros, from which EM hardly recovers: this share of the whole is mixed in.
SOFTENING = 0.02


class CodedData(NamedTuple):
    """Codes in the forms that starts need."""

    X: np.ndarray  # (n, l) codes
    symbols: int  # distinct rows
    data: Observations
    family: Categories
    share: np.ndarray  # (m,) of each distinct row
    n_threads: int

    def tables(self, laws: np.ndarray) -> np.ndarray:
        """Tables of the columns (k, Σ d_v) from laws of the distinct rows (k, m)."""
        sums = family_statistics(self.family, self.data, laws.T)
        return self.family.normalised(sums[1])

    def softened(self, parameters: Parameters) -> Parameters:
        """A little of the whole mixed into every law."""
        start, T, tables = parameters
        k, e = len(start), SOFTENING
        whole = self.tables(self.share[None])
        return (1 - e) * start + e / k, (1 - e) * T + e / k, (1 - e) * tables + e * whole


def moment_candidates(
    coded: CodedData,
    k: int,
    solver: str,
    rng: np.random.Generator,
    *,
    weighted: bool,
    refining: bool,
) -> list[Candidate]:
    """Starts from windows of three views; distinct rows are symbols where they are few."""
    where = coded.data.where
    found: list[Candidate] = []
    if coded.X.shape[1] == 1 or coded.symbols <= MOST_SYMBOLS:
        assert coded.data.code is not None
        moments = SymbolMoments(
            coded.data.code, where.offsets, coded.symbols, k, rng, coded.n_threads
        )
        for s in symbol_starts(moments, solver, weighted=weighted, hedge=refining):
            facts = window_facts(s.view, s.clipped, s.windows)
            found.append(Candidate((s.start, s.T, coded.tables(s.laws)), s.name, facts))
    else:
        features = np.asarray(one_hot(coded.X, coded.family.sizes).toarray())
        for v in vector_starts(
            vector_moments(features, where.offsets), k, solver, rng,
            weighted=weighted, hedge=refining, n_threads=coded.n_threads,
        ):  # fmt: skip
            tables = coded.family.normalised(np.maximum(v.means, 0.0))
            found.append(
                Candidate(
                    (v.start, v.T, tables), v.name, window_facts(v.view, np.zeros(k), v.windows)
                )
            )
    if refining:
        found = [c._replace(parameters=coded.softened(c.parameters)) for c in found]
    return found


def other_candidates(
    coded: CodedData, k: int, rng: np.random.Generator, count: int | None
) -> list[Candidate]:
    """Starts without third moments: symbols with like neighbours, stretches, and random laws.

    With ``count`` so many, the random ones last.
    """
    found = []
    if coded.X.shape[1] == 1 or coded.symbols <= MOST_SYMBOLS:
        assert coded.data.code is not None
        whole = Symbols(coded.data.code, coded.data.where.offsets)
        adjacent = AdjacentCounts(coded.symbols).update(whole)
        for c in context_starts(adjacent, coded.share, k, rng):
            found.append(Candidate((c.start, c.T, coded.tables(c.laws)), c.name, None))
    found += _stretch_candidates(coded, k, rng)
    for i in range(RANDOM_STARTS if count is None else count - len(found)):
        laws = coded.share * rng.gamma(1.0, size=(k, len(coded.share)))
        tables = coded.tables(laws / laws.sum(axis=1, keepdims=True))
        T = rng.dirichlet(np.ones(k), size=k)
        found.append(Candidate((np.full(k, 1 / k), T, tables), f"random laws {i}", None))
    return found[:count]


def _stretch_candidates(coded: CodedData, k: int, rng: np.random.Generator) -> list[Candidate]:
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
        found.append(Candidate((*chain_of(states, offsets, k), coded.tables(laws)), name, None))
    return found
