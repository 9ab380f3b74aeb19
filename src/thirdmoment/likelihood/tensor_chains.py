"""Chains on a device: sequences cut into blocks that work side by side, in double precision.

On a GPU with Triton the recursions are kernels that walk along the blocks, and every sum is taken
in a fixed order; elsewhere they are the steps of packed.py.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from thirdmoment._array import (
    Array,
    Ordered,
    add_rows,
    has_kernels,
    is_too_large,
    like_index,
    like_one,
    ordered,
    ordered_sums,
    tallied,
    to_numpy,
)
from thirdmoment.likelihood import packed
from thirdmoment.likelihood._compiled import SMALL
from thirdmoment.likelihood.packed import Packing, Sequences, blocks_of_sequences, sequences


class Counted(NamedTuple):
    """What an E-step on a device finds."""

    counts: Array  # (n, k) on the device, or of symbols (m, k) on the host
    transitions: np.ndarray  # (k, k)
    start: np.ndarray  # (k,)
    log_likelihood: np.ndarray  # (S,)


class TensorSequences:
    """Where sequences begin and end, and which symbols they show, on a device.

    ``like`` is an array there in double precision, ``code`` (n,) the symbols below ``symbols``.
    """

    def __init__(
        self, where: Sequences, like: Array, code: Array | None = None, symbols: int = 0
    ) -> None:
        self.where, self.code, self.symbols = where, code, symbols
        self.empty = like[:0]
        self.blocks = blocks_of_sequences(where.offsets)
        self.begin = like_index(like, self.blocks.begin)
        self.length = like_index(like, self.blocks.length)
        self.size, self.n = len(self.blocks.begin), where.n
        self._parts: dict[tuple[int, int], TensorSequences] = {}

    def part(self, start: int, stop: int) -> TensorSequences:
        """Sequences start..stop-1; the same ones are asked for in every step."""
        self.__dict__.pop("by_symbol", None)  # of all, for which there was no room
        if (start, stop) not in self._parts:
            first, last = self.where.offsets[[start, stop]]
            code = None if self.code is None else self.code[first:last]
            where = sequences(self.where.lengths[start:stop])
            self._parts[start, stop] = TensorSequences(where, self.empty, code, self.symbols)
        return self._parts[start, stop]

    @cached_property
    def packing(self) -> Packing:
        """The same blocks in the order of the steps."""
        return packed.pack(self.where.offsets)

    @cached_property
    def occurrences(self) -> np.ndarray:
        """How often each symbol occurs."""
        return to_numpy(tallied(self.code, None, self.symbols)).astype(np.float64)

    @cached_property
    def by_symbol(self) -> Ordered:
        """Observations in the order of their symbols."""
        return ordered(self.code, self.symbols)


def count(start: np.ndarray, T: np.ndarray, table: Array, there: TensorSequences) -> Counted | None:
    """Expected visits, transitions and starts; None where numbers got too small to be scaled."""
    rows = like_one(there.empty, table)
    here = like_one(rows, T), like_one(rows, start)
    if has_kernels(rows) and len(T) <= packed.WIDEST:
        try:
            return _counted_by_kernels(*here, rows, there)
        except Exception as error:  # of Triton, which may not be there
            if not is_too_large(error):
                raise
    return _counted_in_steps(*here, rows, there)


def _counted_in_steps(
    T: Array, start: Array, rows: Array, there: TensorSequences
) -> Counted | None:
    code = there.code
    seen = rows if code is None else rows[code]
    found = packed.forward_backward(seen, T, start, there.packing)
    if not float(found.least) > SMALL:
        return None
    value, counts = to_numpy(found.log_likelihood), found.posteriors
    if code is not None:
        counts = to_numpy(add_rows(counts, code, there.symbols))
    return Counted(counts, to_numpy(found.transitions), to_numpy(found.start), value)


def _counted_by_kernels(
    T: Array, start: Array, rows: Array, there: TensorSequences
) -> Counted | None:
    from thirdmoment.likelihood import _triton as kernels

    blocks, code = there.blocks, there.code
    chain = rows.contiguous(), code, T.contiguous()
    if blocks.links:
        shape = there.size, len(T), len(T)
        _, N, sizes, _ = kernels.chain_forward(chain, there, start, units=True)
        ends = to_numpy(N).reshape(shape), to_numpy(sizes).reshape(shape[:2])
        found = packed.messages(*ends, to_numpy(T), to_numpy(start), blocks.links)
        entry, leave = (like_one(rows, part) for part in found)
    else:
        entry, leave = packed.outer_messages(T, start, there.size)
    alpha, last, value, least = kernels.chain_forward(chain, there, entry)
    before, pairs, small = kernels.chain_backward(chain, there, leave, alpha)
    if not min(float(least.min()), float(small.min())) > SMALL:
        return None
    if blocks.links:
        pairs = pairs + _linked(T, rows, last, before, there)
    total = np.bincount(blocks.sequence, weights=to_numpy(value))
    firsts = alpha[there.begin[like_index(there.begin, blocks.first)], :].sum(0)
    counts = alpha
    if code is not None:
        counts = to_numpy(ordered_sums(alpha, there.by_symbol))
    return Counted(counts, to_numpy(pairs * T), to_numpy(firsts), total)


def _linked(T: Array, rows: Array, last: Array, before: Array, there: TensorSequences) -> Array:
    """Transitions from block to block, before they are multiplied by T."""
    links = (np.concatenate(part) for part in zip(*there.blocks.links, strict=True))
    own, prior = (like_index(there.begin, part) for part in links)
    place = there.begin[own]
    place = place if there.code is None else there.code[place]
    weighted = rows[place, :] * before[own, :]
    share = (last[prior, :] * (weighted @ T.T)).sum(1)
    return last[prior, :].T @ (weighted / share[:, None])
