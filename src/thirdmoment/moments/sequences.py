"""Windows of sequences as three views: past, present, future (MV-23, MV-24, MV-26).

Given the state at t, what came before, the observation at t and what comes after are independent:
every window of every sequence is a sample of a three-view mixture whose component is that state,
stationary or not. Windows never cross the border of a sequence. Outer views may reach several
steps, which helps where one step shows too little (fewer symbols than states, slow chains).

`WindowCounts` gathers distinct windows of symbols; `vector_windows` puts vectors side by side for
the accumulators of views.py. Halves for the noise gauge are made of whole sequences, long ones cut
into pieces of `PIECE` observations, because neighbouring windows overlap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    DenseRows,
    array_namespace,
    key_signs,
    like_index,
    like_one,
    ones,
    regular_rows,
    row_signs,
    tallied,
    to_numpy,
)
from thirdmoment._constants import Choice, Work
from thirdmoment.moments.views import PairSums, Sample

# Observations of one sequence that fall into the same half.
PIECE: Choice[int] = 50

# Distinct windows are counted in a table of all possible ones up to this many cells.
TABLE_CELLS: Work[int] = 4_000_000


class Symbols(NamedTuple):
    """A chunk of whole sequences of symbols 0..d-1, one after another."""

    codes: Array  # (n,) on any device
    offsets: np.ndarray  # (S + 1,) where sequences begin, and the end
    first: int = 0  # number of the first observation in the whole data

    def sequences(self, start: int, stop: int) -> Symbols:
        """Sequences start..stop-1."""
        a, b = self.offsets[[start, stop]]
        return Symbols(self.codes[a:b], self.offsets[start : stop + 1] - a, self.first + int(a))


class Windows(NamedTuple):
    """Distinct windows (past, present, future), and how often each occurs."""

    codes: Array  # (m, 3)
    counts: Array  # (m,)
    split: Array  # (m,) occurrences in one half less those in the other
    sizes: np.ndarray  # (3,) possible codes of each view


def whole_sequences(offsets: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Numbers [first, last) of neighbouring sequences with about ``size`` observations together.

    A longer sequence stands alone; the cut depends on nothing but the data.
    """
    found, first, count = [], 0, len(offsets) - 1
    while first < count:
        end = offsets[first] + size
        last = int(np.searchsorted(offsets, end, side="right")) - 1
        last = min(max(last, first + 1), count)
        found.append((first, last))
        first = last
    return found


def inner(chunk: Symbols, before: int, after: int) -> Array:
    """Positions with so many observations of their own sequence before and after them."""
    offsets = chunk.offsets
    if isinstance(chunk.codes, np.ndarray):
        return _between(offsets[:-1] + before, offsets[1:] - after)
    xp, places = array_namespace(chunk.codes), like_index(chunk.codes, offsets)
    t = xp.arange(chunk.codes.shape[0], device=chunk.codes.device)
    own = xp.searchsorted(places, t, side="right")
    kept = (t - places[own - 1] >= before) & (places[own] - t > after)
    return xp.nonzero(kept)[0]


def centres(offsets: np.ndarray, reach: int) -> np.ndarray:
    """Positions with ``reach`` observations of their own sequence on either side."""
    return _between(offsets[:-1] + reach, offsets[1:] - reach)


def _between(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """All positions of these ranges."""
    count = np.maximum(end - begin, 0)
    shift = np.repeat(begin - (np.cumsum(count) - count), count)
    return np.arange(int(count.sum())) + shift


def halves(positions: Array, offsets: np.ndarray, first: int = 0) -> Array:
    """The half (±1) that each position belongs to: one sign a sequence or piece of one."""
    if not isinstance(positions, np.ndarray):
        places = like_index(positions, offsets)
        own = array_namespace(positions).searchsorted(places, positions, side="right")
        begin = places[own - 1]
        return key_signs(first + begin + (positions - begin) // PIECE * PIECE)
    if not len(positions):
        return np.empty(0)
    begin = offsets[np.searchsorted(offsets, positions, side="right") - 1]
    begin = begin + (positions - begin) // PIECE * PIECE
    low, high = int(begin.min()), int(begin.max()) + 1
    return row_signs(first + low, first + high)[begin - low]


def block_codes(codes: Array, begin: Array, steps: int, d: int) -> Array:
    """``steps`` symbols from each position on as one code in base d, the first most significant."""
    out = array_namespace(begin).zeros_like(begin)
    for s in range(steps):
        out = out * d + codes[begin + s]
    return out


class WindowCounts:
    """Distinct windows of symbols; cost of a chunk O(n), at most O(n log n)."""

    def __init__(self, n_symbols: int, reach: int = 1) -> None:
        self.d, self.reach = n_symbols, reach
        outer = n_symbols**reach
        self.sizes = np.array([outer, n_symbols, outer])
        self.keys: Array = np.empty(0, dtype=np.int64)
        self.counts: Array = np.empty(0)
        self.split: Array = np.empty(0)

    def update(self, chunk: Symbols) -> WindowCounts:
        t = inner(chunk, self.reach, self.reach)
        past = block_codes(chunk.codes, t - self.reach, self.reach, self.d)
        future = block_codes(chunk.codes, t + 1, self.reach, self.d)
        key = (past * self.d + chunk.codes[t]) * self.sizes[2] + future
        signs = halves(t, chunk.offsets, chunk.first)
        return self._add(key, ones(len(key), like=key), signs)

    def merge(self, other: WindowCounts) -> WindowCounts:
        return self._add(other.keys, other.counts, other.split)

    def _add(self, keys: Array, counts: Array, split: Array) -> WindowCounts:
        xp = array_namespace(keys)
        if len(self.keys):
            parts = (self.keys, keys), (self.counts, counts), (self.split, split)
            keys, counts, split = (xp.concat(part) for part in parts)
        cells = int(np.prod(self.sizes.astype(object)))
        if cells <= TABLE_CELLS:
            total = tallied(keys, counts, cells)
            self.keys = xp.nonzero(total)[0]
            self.counts = total[self.keys]
            self.split = tallied(keys, split, cells)[self.keys]
        else:
            self.keys, inverse = xp.unique_inverse(keys)
            self.counts = tallied(inverse, counts, len(self.keys))
            self.split = tallied(inverse, split, len(self.keys))
        return self

    def finish(self) -> Windows:
        d, size = self.d, int(self.sizes[2])
        parts = [self.keys // (d * size), self.keys // size % d, self.keys % size]
        codes = array_namespace(self.keys).stack(parts, axis=1)
        return Windows(codes, self.counts, self.split, self.sizes)


def view_shares(windows: Windows) -> list[np.ndarray]:
    """Share of each code in each view."""
    total = float(windows.counts.sum())
    return [
        to_numpy(tallied(windows.codes[:, v], windows.counts, int(size))) / total
        for v, size in enumerate(windows.sizes)
    ]


def pair_sums(windows: Windows, scale: np.ndarray) -> PairSums:
    """Second moments of scaled one-hot codes of the three views side by side, without the rows."""
    starts = np.concatenate([[0], np.cumsum(windows.sizes)])
    out, unit = PairSums(int(starts[-1])), ones(0, like=windows.counts)
    out.total, out.tilt = float(windows.counts.sum()), float(windows.split.sum())
    out.first = np.concatenate(view_shares(windows)) * scale * out.total
    xp, shape = array_namespace(unit), out.second.shape
    out.second, out.split = (xp.zeros(shape, dtype=unit.dtype, device=unit.device) for _ in "ab")
    for u in range(3):
        for v in range(3):
            shape = int(windows.sizes[u]), int(windows.sizes[v])
            key = windows.codes[:, u] * shape[1] + windows.codes[:, v]
            block = slice(starts[u], starts[u + 1]), slice(starts[v], starts[v + 1])
            size = like_one(unit, scale[block[0], None] * scale[None, block[1]])
            for whole, weights in ((out.second, windows.counts), (out.split, windows.split)):
                law = tallied(key, weights, shape[0] * shape[1])
                whole[block] = law.reshape(shape) * size
    return out


def window_rows(windows: Windows, scale: np.ndarray, start: int, stop: int) -> Sample:
    """Distinct windows start..stop-1 as rows of scaled one-hot codes."""
    codes = windows.codes[start:stop, :]
    shift = like_index(codes, np.concatenate([[0], np.cumsum(windows.sizes)[:-1]]))
    columns = codes + shift
    unit = like_one(ones(0, like=codes), scale)
    rows = regular_rows(columns, unit[columns], len(scale))
    return Sample(rows, windows.counts[start:stop], start, windows.split[start:stop])


def vector_windows(
    features: np.ndarray, offsets: np.ndarray, positions: np.ndarray, first: int = 0
) -> Sample:
    """Windows around ``positions``: features (n, q) of past, present and future side by side.

    The first column is the constant one; ``first`` is the number of the first observation.
    """
    parts = [np.ones((len(positions), 1)), *(features[positions + s] for s in (-1, 0, 1))]
    signs = halves(positions, offsets, first)
    return Sample(DenseRows(np.concatenate(parts, axis=1)), np.ones(len(positions)), 0, signs)


def neighbours(offsets: np.ndarray) -> np.ndarray:
    """Positions whose next observation belongs to the same sequence."""
    inside = np.ones(int(offsets[-1]), dtype=bool)
    inside[offsets[1:] - 1] = False
    return np.flatnonzero(inside)


def adjacent_features(features: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """E[(1, φ_t) (1, φ_{t+1})ᵀ] (1 + q, 1 + q) over all neighbours (MV-25)."""
    t = neighbours(offsets)
    lifted = np.concatenate([np.ones((len(features), 1)), features], axis=1)
    return lifted[t].T @ lifted[t + 1] / max(len(t), 1)


class AdjacentCounts:
    """Pairs of neighbouring symbols and first symbols of all sequences of any length (MV-25)."""

    def __init__(self, n_symbols: int) -> None:
        self.d = n_symbols
        self.pairs = sp.csr_array((n_symbols, n_symbols))
        self.first = np.zeros(n_symbols)

    def update(self, chunk: Symbols) -> AdjacentCounts:
        codes, t = chunk.codes, inner(chunk, 0, 1)
        if self.d**2 <= TABLE_CELLS:
            key = codes[t] * self.d + codes[t + 1]
            table = to_numpy(tallied(key, None, self.d**2)).astype(float)
            self.pairs = self.pairs + sp.csr_array(table.reshape(self.d, self.d))
        else:
            both = to_numpy(codes[t]), to_numpy(codes[t + 1])
            pairs = sp.coo_array((np.ones(len(t)), both), shape=(self.d, self.d))
            self.pairs = self.pairs + pairs.tocsr()
        begin = like_index(codes, chunk.offsets[:-1])
        self.first += to_numpy(tallied(codes[begin], None, self.d))
        return self

    def merge(self, other: AdjacentCounts) -> AdjacentCounts:
        self.pairs = self.pairs + other.pairs
        self.first = self.first + other.first
        return self
