"""Moment starts of hidden Markov models with symbols: windows -> views -> emissions -> chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thirdmoment.exceptions import UnusableMoments
from thirdmoment.linalg import project_to_simplex
from thirdmoment.models.hmm.facts import clear_of_noise
from thirdmoment.models.view_start import FORMED_COLUMNS, ViewStart, ViewTable, view_starts
from thirdmoment.moments.sequences import (
    AdjacentCounts,
    Symbols,
    WindowCounts,
    Windows,
    pair_sums,
    view_laws,
    window_rows,
)
from thirdmoment.recovery.markov import (
    law_of_states,
    transitions_from_blocks,
    transitions_from_pairs,
)
from thirdmoment.streaming import fold, row_ranges

# Outer views have at most this many joint codes.
MOST_CODES = 1000

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
    """Windows of every reach that was asked for, each gathered once."""

    def __init__(self, code: np.ndarray, offsets: np.ndarray, d: int, n_threads: int) -> None:
        self.d, self.n_threads = d, n_threads
        self.longest = int(np.diff(offsets).max())
        self.chunks = list(_chunks(code, offsets))
        self.adjacent = fold(lambda: AdjacentCounts(d), self.chunks, n_threads=n_threads)
        self._windows: dict[int, Windows] = {}

    def windows(self, reach: int) -> Windows:
        if reach not in self._windows:
            found = fold(lambda: WindowCounts(self.d, reach), self.chunks, n_threads=self.n_threads)
            self._windows[reach] = found.finish()
        return self._windows[reach]

    def reaches(self, k: int) -> list[int]:
        """Windows whose outer views have enough codes for k states, and not too many."""
        found = [1] if self.d >= k and self.longest >= 3 else []
        for reach in (2, 3, 4, 5, 6):
            if k <= self.d**reach <= MOST_CODES and 2 * reach + 1 <= self.longest:
                found.append(reach)
        if not found:
            raise UnusableMoments(
                f"Sequences of at most {self.longest} observations of {self.d} symbols cannot "
                f"separate n_components={k} states: past and future of a window need {k} joint "
                f"codes each (and at most {MOST_CODES}). Lower n_components, or give longer "
                "sequences."
            )
        return found

    def solve(self, method: Method, k: int, rng: np.random.Generator) -> SymbolStart:
        """Emissions and chain by one method."""
        windows = self.windows(method.reach)
        if not len(windows.counts):
            raise UnusableMoments("No sequence has three observations, so there is no window.")
        share = np.concatenate(view_laws(windows))
        scale = np.ones(len(share))
        if method.weighted:
            scale = np.where(share > 0, 1 / np.sqrt(np.maximum(share, 1e-300)), 0.0)
        edges = np.concatenate([[0], np.cumsum(windows.sizes)])
        past, present, future = (np.arange(edges[v], edges[v + 1]) for v in range(3))
        ranges = row_ranges(len(windows.counts), size=16_384)
        chunks = [window_rows(windows, scale, a, b) for a, b in ranges]
        table = ViewTable(chunks, [future, past, present], None, [2, 0, 1])
        found = view_starts(
            table, k, method.solver, rng, sharpen=method.weighted, hedge=False,
            n_threads=self.n_threads, arrange=method.weighted, probabilities=not method.weighted,
            sums=pair_sums(windows, scale) if len(share) <= FORMED_COLUMNS else None,
        )[0]  # fmt: skip
        return self._chain(found, found.means / np.where(scale > 0, scale, 1.0)[:, None], method)

    def _chain(self, view: ViewStart, means: np.ndarray, method: Method) -> SymbolStart:
        windows, adjacent = self.windows(method.reach), self.adjacent
        past, now, future = np.split(means, np.cumsum(windows.sizes)[:2])
        laws = np.asarray(project_to_simplex(now.T))
        clipped = -np.minimum(now, 0.0).sum(axis=0)
        if self.d >= len(laws):
            seen = adjacent.pairs.sum(axis=1) + adjacent.pairs.sum(axis=0)
            weights = 1 / np.sqrt(np.maximum(seen / 2, 1.0)) if method.weighted else np.ones(self.d)
            T = transitions_from_pairs(laws.T, adjacent.pairs, weights)
        else:
            T = self._transitions_by_blocks(past, future, view.weights, method.reach)
        start = law_of_states(laws.T, adjacent.first / adjacent.first.sum())
        return SymbolStart(start, T, laws, clipped, view, method.name)

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


def _chunks(code: np.ndarray, offsets: np.ndarray) -> Iterator[Symbols]:
    """Whole sequences, in chunks fixed by the data."""
    first, count = 0, len(offsets) - 1
    while first < count:
        begin = int(offsets[first])
        last = int(np.searchsorted(offsets, begin + CHUNK, side="right")) - 1
        last = min(max(last, first + 1), count)
        end = int(offsets[last])
        yield Symbols(code[begin:end], offsets[first : last + 1] - begin, begin)
        first = last


def symbol_starts(
    moments: SymbolMoments,
    k: int,
    solver: str,
    rng: np.random.Generator,
    *,
    weighted: bool,
    hedge: bool,
) -> list[SymbolStart]:
    """Estimates to refine from, the recommended first.

    With ``hedge``, and unless the first is clear of the noise, also those of the other solvers,
    weightings and reaches: real data is no hidden Markov model, and then they differ. Without it,
    the reach is the one whose windows show k states best.
    """
    reaches = moments.reaches(k)
    first: list[SymbolStart] = []
    problem: UnusableMoments | None = None
    for reach in reaches[: 2 if weighted else 1]:
        try:
            first.append(moments.solve(Method(reach, solver, weighted), k, rng))
        except UnusableMoments as error:
            problem = problem or error
        if first and clear_of_noise(first[0].view, k):
            return first[:1]
    first.sort(key=lambda start: -_strength(start.view, k))
    if not hedge:
        if not first:
            assert problem is not None
            raise problem
        return first[:1]
    found = first
    solvers = ("tensor", "joint") if solver == "auto" else (solver,)
    for reach in reaches[:2]:
        for name in solvers:
            for scaled in (True, False):
                try:
                    found.append(moments.solve(Method(reach, name, scaled), k, rng))
                except UnusableMoments as error:
                    problem = problem or error
    if not found:
        assert problem is not None
        raise problem
    return found


def _strength(view: ViewStart, k: int) -> float:
    """k-th singular value over its noise."""
    return float(view.spectrum[k - 1] / max(view.noise, 1e-300)) if len(view.spectrum) >= k else 0.0
