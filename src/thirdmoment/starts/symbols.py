"""Moment starts of hidden Markov models with symbols: windows -> views -> emissions -> chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import add_rows
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.linalg import project_to_simplex
from thirdmoment.moments.sequences import (
    AdjacentCounts,
    Symbols,
    WindowCounts,
    Windows,
    centres,
    pair_sums,
    view_laws,
    whole_sequences,
    window_rows,
)
from thirdmoment.recovery.markov import (
    law_of_states,
    transitions_from_blocks,
    transitions_from_pairs,
)
from thirdmoment.starts.views import Gathered, ViewStart, ViewTable, gather, solve
from thirdmoment.starts.window_facts import clear_of_noise
from thirdmoment.streaming import fold, row_ranges

# Outer views of more than one step have at most this many joint codes.
MOST_BLOCKS = 400

# Symbols that are told apart in windows as they are.
MOST_CODES = 1000

# With more symbols than that, this many of the most frequent are told apart in windows.
KEPT_SYMBOLS = 300

# Sequences are gathered in chunks of about this many observations.
CHUNK = 250_000


class SymbolStart(NamedTuple):
    """A chain and its emissions, from moments."""

    start: np.ndarray  # (k,)
    T: np.ndarray  # (k, k)
    laws: np.ndarray  # (k, d) of the symbols in each state, on the simplex
    clipped: np.ndarray  # (k,) negative mass that was projected away
    view: ViewStart
    name: str
    windows: float  # how many were seen


class Method(NamedTuple):
    """One way to the parameters."""

    reach: int
    solver: str
    weighted: bool

    @property
    def name(self) -> str:
        steps = "" if self.reach == 1 else f" over {self.reach} steps"
        return f"moments of windows{steps} ({self.solver}{'' if self.weighted else ', unweighted'})"


class SymbolMoments:
    """Windows of every reach and their moments for k states, each gathered once."""

    def __init__(
        self,
        code: np.ndarray,
        offsets: np.ndarray,
        d: int,
        k: int,
        rng: np.random.Generator,
        n_threads: int,
    ) -> None:
        self.k, self.rng, self.n_threads = k, rng, n_threads
        self.longest = int(np.diff(offsets).max())
        self.share = np.bincount(code, minlength=d) / max(len(code), 1)
        self.chunks = [
            Symbols(code[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a], int(offsets[a]))
            for a, b in whole_sequences(offsets, CHUNK)
        ]
        self.adjacent = fold(lambda: AdjacentCounts(d), self.chunks, n_threads=n_threads)
        self.group = np.arange(d)  # what a symbol is in a window
        if d > MOST_CODES:  # rare symbols count as one there, which leaves the chain as it is
            self.group = frequent(self.share)
        self.d = int(self.group.max()) + 1
        self._windows: dict[int, Windows] = {}
        self._gathered: dict[tuple[int, bool], tuple[Gathered, ViewTable, np.ndarray]] = {}

    def windows(self, reach: int) -> Windows:
        if reach not in self._windows:
            chunks = self.chunks
            if self.d < len(self.group):
                chunks = [chunk._replace(codes=self.group[chunk.codes]) for chunk in chunks]
            found = fold(lambda: WindowCounts(self.d, reach), chunks, n_threads=self.n_threads)
            self._windows[reach] = found.finish()
        return self._windows[reach]

    def total(self, reach: int) -> float:
        """Number of windows."""
        return float(self.windows(reach).counts.sum())

    def reaches(self) -> list[int]:
        """Windows whose outer views have enough codes for k states, and not too many."""
        k = self.k
        found = [1] if self.d >= k and self.longest >= 3 else []
        for reach in (2, 3, 4, 5, 6):
            if k <= self.d**reach <= MOST_BLOCKS and 2 * reach + 1 <= self.longest:
                found.append(reach)
        if not found:
            raise UnusableMoments(
                f"Sequences of at most {self.longest} observations of {self.d} symbols cannot "
                f"separate n_components={k} states: past and future of a window need {k} joint "
                f"codes each (and at most {MOST_BLOCKS}). Lower n_components, or give longer "
                "sequences."
            )
        return found

    def gathered(self, reach: int, weighted: bool) -> tuple[Gathered, ViewTable, np.ndarray]:
        """Moments of the three views of a window, and the scale of their columns."""
        if (reach, weighted) not in self._gathered:
            windows = self.windows(reach)
            if not len(windows.counts):
                raise UnusableMoments("No sequence has three observations, so there is no window.")
            share = np.concatenate(view_laws(windows))
            scale = np.ones(len(share))
            if weighted:
                scale = np.where(share > 0, 1 / np.sqrt(np.maximum(share, 1e-300)), 0.0)
            edges = np.concatenate([[0], np.cumsum(windows.sizes)])
            past, present, future = (np.arange(edges[v], edges[v + 1]) for v in range(3))
            ranges = row_ranges(len(windows.counts), size=16_384)
            chunks = [window_rows(windows, scale, a, b) for a, b in ranges]
            table = ViewTable(chunks, [future, past, present], None, [2, 0, 1])
            found = gather(
                table, self.k, self.rng, n_threads=self.n_threads,
                sums=pair_sums(windows, scale), arrange=weighted,
            )  # fmt: skip
            self._gathered[reach, weighted] = found, table, scale
        return self._gathered[reach, weighted]

    def solve(self, method: Method) -> SymbolStart:
        """Emissions and chain by one method."""
        moments, table, scale = self.gathered(method.reach, method.weighted)
        found = solve(
            moments, table, self.k, method.solver, self.rng,
            sharpen=method.weighted, probabilities=not method.weighted,
        )  # fmt: skip
        return self._chain(found, found.means / np.where(scale > 0, scale, 1.0)[:, None], method)

    def _chain(self, view: ViewStart, means: np.ndarray, method: Method) -> SymbolStart:
        windows, adjacent = self.windows(method.reach), self.adjacent
        past, now, future = np.split(means, np.cumsum(windows.sizes)[:2])
        if self.d < len(self.group):
            now = self._all_symbols(past, future)
        total = now.sum(axis=0)  # one, but for noise (MV-12 for laws)
        now = now / np.where(np.abs(total) > 1e-3 * np.abs(now).sum(axis=0), total, 1.0)
        laws = np.asarray(project_to_simplex(now.T))
        clipped = -np.minimum(now, 0.0).sum(axis=0)
        if self.d >= len(laws):
            seen = (adjacent.pairs.sum(axis=1) + adjacent.pairs.sum(axis=0)) / 2
            weights = 1 / np.sqrt(np.maximum(seen, 1.0)) if method.weighted else np.ones(len(seen))
            T = transitions_from_pairs(laws.T, adjacent.pairs, weights)
        else:
            T = self._transitions_by_blocks(past, future, view.weights, method.reach)
        start = law_of_states(laws.T, adjacent.first / adjacent.first.sum())
        return SymbolStart(start, T, laws, clipped, view, method.name, float(windows.counts.sum()))

    def _all_symbols(self, past: np.ndarray, future: np.ndarray) -> np.ndarray:
        """Laws of all symbols, the rare ones too, by scores of past and future (MV-17)."""
        scores = np.linalg.pinv(np.concatenate([past, future]))
        before, after = np.split(scores, [self.d], axis=1)
        out = np.zeros((len(self.group), past.shape[1]))
        for chunk in self.chunks:
            t = centres(chunk.offsets, 1)
            group = self.group[chunk.codes]
            r = before.T[group[t - 1]] + after.T[group[t + 1]]
            out += add_rows(r, chunk.codes[t], len(out))
        return out

    def _transitions_by_blocks(
        self, past: np.ndarray, future: np.ndarray, w: np.ndarray, reach: int
    ) -> np.ndarray:
        """MV-26: the block that begins at t, by scores of the past, against the block after it."""
        windows = self.windows(reach)
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


def symbol_starts(
    moments: SymbolMoments, solver: str, *, weighted: bool, hedge: bool
) -> list[SymbolStart]:
    """Estimates to refine from, the recommended first.

    Windows reach one step either way, or as far as it takes where d < k. With ``hedge``, and unless
    the first estimate is clear of the noise, that of the other solver joins: real data is no hidden
    Markov model, and then they differ.
    """
    found: list[SymbolStart] = []
    problem: UnusableMoments | None = None
    reach = moments.reaches()[0]
    for name in ("tensor", "joint") if solver == "auto" else (solver,):
        try:
            found.append(moments.solve(Method(reach, name, weighted)))
        except UnusableMoments as error:
            problem = problem or error
            continue
        if not hedge or clear_of_noise(found[0].view, moments.k, moments.total(reach)):
            break
    if not found:
        assert problem is not None
        raise problem
    return found
