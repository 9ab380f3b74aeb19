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

from thirdmoment._array import DenseRows, as_rows, row_signs
from thirdmoment._constants import Choice, Work
from thirdmoment.moments.views import PairSums, Sample

# Observations of one sequence that fall into the same half.
PIECE: Choice[int] = 50

# Distinct windows are counted in a table of all possible ones up to this many cells.
TABLE_CELLS: Work[int] = 4_000_000


class Symbols(NamedTuple):
    """A chunk of whole sequences of symbols 0..d-1, one after another."""

    codes: np.ndarray  # (n,)
    offsets: np.ndarray  # (S + 1,) where sequences begin, and the end
    first: int = 0  # number of the first observation in the whole data


class Windows(NamedTuple):
    """Distinct windows (past, present, future), and how often each occurs."""

    codes: np.ndarray  # (m, 3)
    counts: np.ndarray  # (m,)
    split: np.ndarray  # (m,) occurrences in one half less those in the other
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


def centres(offsets: np.ndarray, reach: int) -> np.ndarray:
    """Positions with ``reach`` observations of their own sequence on either side."""
    begin, end = offsets[:-1] + reach, offsets[1:] - reach
    count = np.maximum(end - begin, 0)
    shift = np.repeat(begin - (np.cumsum(count) - count), count)
    return np.arange(int(count.sum())) + shift


def halves(positions: np.ndarray, offsets: np.ndarray, first: int = 0) -> np.ndarray:
    """The half (±1) that each position belongs to: one sign a sequence or piece of one."""
    if not len(positions):
        return np.empty(0)
    begin = offsets[np.searchsorted(offsets, positions, side="right") - 1]
    begin = begin + (positions - begin) // PIECE * PIECE
    low, high = int(begin.min()), int(begin.max()) + 1
    return row_signs(first + low, first + high)[begin - low]


def block_codes(codes: np.ndarray, begin: np.ndarray, steps: int, d: int) -> np.ndarray:
    """``steps`` symbols from each position on as one code in base d, the first most significant."""
    out = np.zeros(len(begin), dtype=np.int64)
    for s in range(steps):
        out = out * d + codes[begin + s]
    return out


class WindowCounts:
    """Distinct windows of symbols; cost of a chunk O(n), at most O(n log n)."""

    def __init__(self, n_symbols: int, reach: int = 1) -> None:
        self.d, self.reach = n_symbols, reach
        outer = n_symbols**reach
        self.sizes = np.array([outer, n_symbols, outer])
        self.keys = np.empty(0, dtype=np.int64)
        self.counts: np.ndarray = np.empty(0)
        self.split: np.ndarray = np.empty(0)

    def update(self, chunk: Symbols) -> WindowCounts:
        t = centres(chunk.offsets, self.reach)
        past = block_codes(chunk.codes, t - self.reach, self.reach, self.d)
        future = block_codes(chunk.codes, t + 1, self.reach, self.d)
        key = (past * self.d + chunk.codes[t]) * self.sizes[2] + future
        signs = halves(t, chunk.offsets, chunk.first)
        return self._add(key, np.ones(len(key)), signs)

    def merge(self, other: WindowCounts) -> WindowCounts:
        return self._add(other.keys, other.counts, other.split)

    def _add(self, keys: np.ndarray, counts: np.ndarray, split: np.ndarray) -> WindowCounts:
        keys = np.concatenate([self.keys, keys])
        counts, split = np.append(self.counts, counts), np.append(self.split, split)
        cells = int(np.prod(self.sizes.astype(object)))
        if cells <= TABLE_CELLS:
            total = np.bincount(keys, weights=counts, minlength=cells)
            self.keys = np.flatnonzero(total)
            self.counts = total[self.keys]
            self.split = np.bincount(keys, weights=split, minlength=cells)[self.keys]
        else:
            self.keys, inverse = np.unique(keys, return_inverse=True)
            self.counts = np.bincount(inverse, weights=counts, minlength=len(self.keys))
            self.split = np.bincount(inverse, weights=split, minlength=len(self.keys))
        return self

    def finish(self) -> Windows:
        rest, future = np.divmod(self.keys, self.sizes[2])
        past, present = np.divmod(rest, self.d)
        codes = np.stack([past, present, future], axis=1)
        return Windows(codes, self.counts, self.split, self.sizes)


def view_shares(windows: Windows) -> list[np.ndarray]:
    """Share of each code in each view."""
    total = windows.counts.sum()
    return [
        np.bincount(code, weights=windows.counts, minlength=size) / total
        for code, size in zip(windows.codes.T, windows.sizes, strict=True)
    ]


def pair_sums(windows: Windows, scale: np.ndarray) -> PairSums:
    """Second moments of scaled one-hot codes of the three views side by side, without the rows."""
    starts = np.concatenate([[0], np.cumsum(windows.sizes)])
    D = int(starts[-1])
    out = PairSums(D)
    out.total, out.tilt = float(windows.counts.sum()), float(windows.split.sum())
    out.first = np.concatenate(view_shares(windows)) * scale * out.total
    for u in range(3):
        for v in range(3):
            shape = int(windows.sizes[u]), int(windows.sizes[v])
            key = windows.codes[:, u] * shape[1] + windows.codes[:, v]
            block = slice(starts[u], starts[u + 1]), slice(starts[v], starts[v + 1])
            unit = scale[block[0], None] * scale[None, block[1]]
            for whole, weights in ((out.second, windows.counts), (out.split, windows.split)):
                law = np.bincount(key, weights=weights, minlength=shape[0] * shape[1])
                whole[block] = law.reshape(shape) * unit
    return out


def window_rows(windows: Windows, scale: np.ndarray, start: int, stop: int) -> Sample:
    """Distinct windows start..stop-1 as rows of scaled one-hot codes."""
    shift = np.concatenate([[0], np.cumsum(windows.sizes)[:-1]])
    columns = (windows.codes[start:stop] + shift).ravel()
    m = stop - start
    rows = sp.csr_array(
        (scale[columns], columns, np.arange(0, 3 * m + 1, 3)), shape=(m, len(scale))
    )
    counts, split = windows.counts[start:stop], windows.split[start:stop]
    return Sample(as_rows(rows), counts, start, split)


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
        codes, offsets = chunk.codes, chunk.offsets
        t = neighbours(offsets)
        if self.d**2 <= TABLE_CELLS:
            table = np.bincount(codes[t] * self.d + codes[t + 1], minlength=self.d**2)
            self.pairs = self.pairs + sp.csr_array(table.reshape(self.d, self.d).astype(float))
        else:
            ones = np.ones(len(t))
            pairs = sp.coo_array((ones, (codes[t], codes[t + 1])), shape=(self.d, self.d))
            self.pairs = self.pairs + pairs.tocsr()
        self.first += np.bincount(codes[offsets[:-1]], minlength=self.d)
        return self

    def merge(self, other: AdjacentCounts) -> AdjacentCounts:
        self.pairs = self.pairs + other.pairs
        self.first = self.first + other.first
        return self
