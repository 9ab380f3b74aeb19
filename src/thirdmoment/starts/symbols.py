"""Moment starts of hidden Markov models with symbols: windows -> views -> emissions -> chain."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import add_rows, in_long, like_index, like_one, ones, to_numpy
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.tensor_chains import TensorSequences
from thirdmoment.linalg import project_to_simplex
from thirdmoment.moments.sequences import (
    AdjacentCounts,
    Symbols,
    WindowCounts,
    Windows,
    inner,
    pair_sums,
    view_shares,
    whole_sequences,
    window_rows,
)
from thirdmoment.recovery.markov import (
    state_probabilities,
    transitions_from_blocks,
    transitions_from_pairs,
)
from thirdmoment.starts.start import Settings, both_routes
from thirdmoment.starts.view_facts import window_facts
from thirdmoment.starts.views import Gathered, ViewTable, estimate_means, gather
from thirdmoment.starts.windows import ChainEstimate
from thirdmoment.streaming import Streamed, fold, row_ranges

# Outer views of more than one step have at most this many joint codes.
MOST_BLOCKS: Choice[int] = 400

# Symbols that are told apart in windows as they are.
MOST_CODES: Choice[int] = 1000

# With more symbols than that, this many of the most frequent are told apart in windows.
KEPT_SYMBOLS: Choice[int] = 300

# Sequences are gathered in chunks of about this many observations.
CHUNK: Work[int] = 250_000

# Distinct windows that a device works on at once.
LARGE_BLOCK: Work[int] = 2_000_000


class SymbolData(NamedTuple):
    """Sequences of symbols."""

    chunks: Any  # list of `Symbols`, or a stream of them
    longest: int
    share: np.ndarray  # (d,) how often each symbol occurs


def symbol_data(
    code: np.ndarray, offsets: np.ndarray, d: int, there: TensorSequences | None = None
) -> SymbolData:
    """Symbols in memory, in chunks of whole sequences, or all of them where a device has them."""
    if there is None:
        chunks = [
            Symbols(code[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a], int(offsets[a]))
            for a, b in whole_sequences(offsets, CHUNK)
        ]
    else:
        chunks = [Symbols(in_long(there.code), offsets)]
    count = np.bincount(code, minlength=d) if there is None else there.occurrences
    share = count / max(len(code), 1)
    return SymbolData(chunks, int(np.diff(offsets).max()), share)


def _grouped(group: np.ndarray, chunk: Symbols) -> Symbols:
    return chunk._replace(codes=like_index(chunk.codes, group)[chunk.codes])


class ScoredSymbols:
    """Σ of scores of past and future at each symbol (d, k)."""

    def __init__(self, group: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        self.group, self.before, self.after = group, before, after
        self.out = np.zeros((len(group), len(before)))

    def update(self, chunk: Symbols) -> ScoredSymbols:
        t, codes = inner(chunk, 1, 1), chunk.codes
        group = like_index(codes, self.group)[codes]
        kind = ones(0, like=codes)
        kind = ones(0, like=codes)
        before, after = (like_one(kind, part.T) for part in (self.before, self.after))
        r = before[group[t - 1], :] + after[group[t + 1], :]
        self.out = self.out + to_numpy(add_rows(r, codes[t], len(self.out)))
        return self

    def merge(self, other: ScoredSymbols) -> ScoredSymbols:
        self.out = self.out + other.out
        return self


class SymbolMoments:
    """Windows of symbols and their moments for k states, gathered once."""

    def __init__(self, data: SymbolData, k: int, settings: Settings) -> None:
        self.k, self.settings = k, settings
        self.chunks, self.longest, self.share = data
        d = len(self.share)
        self.adjacent = fold(lambda: AdjacentCounts(d), self.chunks, n_threads=settings.n_threads)
        self.group = np.arange(d)  # what a symbol is in a window
        if d > MOST_CODES:  # rare symbols count as one there, which leaves the chain as it is
            self.group = frequent(self.share)
        self.d = int(self.group.max()) + 1

    @cached_property
    def reach(self) -> int:
        """Steps to either side: the fewest whose outer views have enough codes for k states."""
        k = self.k
        if self.longest < 3:
            raise UnusableMoments("No sequence has three observations, so there is no window.")
        if self.d >= k:
            return 1
        for reach in range(2, 7):
            if k <= self.d**reach <= MOST_BLOCKS and 2 * reach + 1 <= self.longest:
                return reach
        raise UnusableMoments(
            f"Sequences of at most {self.longest} observations of {self.d} symbols cannot "
            f"separate n_components={k} states: past and future of a window need {k} joint "
            f"codes each (and at most {MOST_BLOCKS}). Lower n_components, or give longer "
            "sequences."
        )

    @cached_property
    def windows(self) -> Windows:
        chunks, reach = self.chunks, self.reach
        if self.d < len(self.group):
            grouped = partial(_grouped, self.group)
            streamed = isinstance(chunks, Streamed)
            chunks = chunks.mapped(grouped) if streamed else [grouped(one) for one in chunks]
        make = partial(WindowCounts, self.d, reach)
        return fold(make, chunks, n_threads=self.settings.n_threads).finish()

    @property
    def total(self) -> float:
        """Number of windows."""
        return float(self.windows.counts.sum())

    @cached_property
    def gathered(self) -> tuple[Gathered, ViewTable, np.ndarray]:
        """Moments of the three views of a window, and the scale of their columns."""
        windows, weighted = self.windows, self.settings.weighted
        share = np.concatenate(view_shares(windows))
        scale = np.ones(len(share))
        if weighted:
            scale = np.where(share > 0, 1 / np.sqrt(np.maximum(share, 1e-300)), 0.0)
        edges = np.concatenate([[0], np.cumsum(windows.sizes)])
        past, present, future = (np.arange(edges[v], edges[v + 1]) for v in range(3))
        size = 16_384 if isinstance(windows.counts, np.ndarray) else LARGE_BLOCK
        ranges = row_ranges(len(windows.counts), size=size)
        chunks = [window_rows(windows, scale, a, b) for a, b in ranges]
        views, names = [future, past, present], [2, 0, 1]
        table = ViewTable(chunks, views, None, names, probabilities=not weighted)
        sums = pair_sums(windows, scale)
        return gather(table, self.k, self.settings, sums=sums, arrange=weighted), table, scale

    def solve(self, settings: Settings) -> ChainEstimate:
        """Emissions and chain by one solver."""
        moments, table, scale = self.gathered
        views = estimate_means(moments, table, self.k, settings)
        means = views.means / np.where(scale > 0, scale, 1.0)[:, None]
        windows, adjacent = self.windows, self.adjacent
        past, now, future = np.split(means, np.cumsum(windows.sizes)[:2])
        if self.d < len(self.group):
            now = self._all_symbols(past, future)
        total = now.sum(axis=0)  # one, but for noise (MV-12 for distributions)
        now = now / np.where(np.abs(total) > 1e-3 * np.abs(now).sum(axis=0), total, 1.0)
        laws = np.asarray(project_to_simplex(now.T))
        if self.d >= len(laws):
            seen = (adjacent.pairs.sum(axis=1) + adjacent.pairs.sum(axis=0)) / 2
            even = np.ones(len(seen))
            weights = 1 / np.sqrt(np.maximum(seen, 1.0)) if settings.weighted else even
            T = transitions_from_pairs(laws.T, adjacent.pairs, weights)
        else:
            T = self._transitions_by_blocks(past, future, views.weights)
        start = state_probabilities(laws.T, adjacent.first / adjacent.first.sum())
        facts = window_facts(views, -np.minimum(now, 0.0).sum(axis=0), self.total)
        steps = "" if self.reach == 1 else f" over {self.reach} steps"
        name = f"moments of windows{steps} ({settings.solver})"
        return ChainEstimate(start, T, laws, facts, name, views)

    def _all_symbols(self, past: np.ndarray, future: np.ndarray) -> np.ndarray:
        """Distributions of all symbols, the rare ones too, by scores of past and future (MV-17)."""
        scores = np.linalg.pinv(np.concatenate([past, future]))
        before, after = np.split(scores, [self.d], axis=1)
        new = partial(ScoredSymbols, self.group, before, after)
        return fold(new, self.chunks, n_threads=self.settings.n_threads).out

    def _transitions_by_blocks(
        self, past: np.ndarray, future: np.ndarray, w: np.ndarray
    ) -> np.ndarray:
        """MV-26: the block that begins at t, by scores of the past, against the block after it."""
        windows, reach = self.windows, self.reach
        windows = windows._replace(codes=to_numpy(windows.codes), counts=to_numpy(windows.counts))
        block = windows.codes[:, 1] * self.d ** (reach - 1) + windows.codes[:, 2] // self.d
        scores = np.linalg.pinv(past).T[windows.codes[:, 0]] * windows.counts[:, None]
        size = self.d**reach
        now = np.stack([np.bincount(block, weights=c, minlength=size) for c in scores.T], axis=1)
        now = now / windows.counts.sum() / np.maximum(w, 1e-6)
        return transitions_from_blocks(now, future)


def frequent(share: np.ndarray) -> np.ndarray:
    """New numbers of symbols: the most frequent keep one each, all others share the last."""
    group = np.full(len(share), KEPT_SYMBOLS)
    group[np.argsort(-share, kind="stable")[:KEPT_SYMBOLS]] = np.arange(KEPT_SYMBOLS)
    return group


def symbol_chains(moments: SymbolMoments) -> list[ChainEstimate]:
    """Estimates to refine from, the recommended first.

    Windows reach one step either way, or as far as it takes where d < k.
    """
    return both_routes(
        moments.solve,
        moments.settings,
        enough=lambda found: found.facts.trusted(moments.total),
    )
