"""Sums of rows by a number that each has, on a device, in an order that the data alone fixes.

Atomic additions change their order from run to run. Here entries are put in the order of their
numbers once, and cut into segments: a program adds up a segment, another the segments of a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array.namespace import Array, array_namespace, like_index, tallied, to_numpy
from thirdmoment._constants import Work

# Entries that one program adds up.
SEGMENT: Work[int] = 4_096


class Ordered(NamedTuple):
    """Entries in the order of their numbers."""

    rows: Array  # (m,) the row that each adds
    values: Array | None  # (m,) what it is multiplied by
    parts: Array  # (segments + 1,) where segments begin
    own: Array  # (size + 1,) at which segment each number begins
    owner: Array  # (segments,) the number of each segment


def ordered(
    numbers: Array, size: int, rows: Array | None = None, values: Array | None = None
) -> Ordered:
    """Entries with ``numbers`` (m,) below ``size``; each adds its own row by default."""
    xp = array_namespace(numbers)
    count = to_numpy(tallied(numbers, None, size)).astype(np.int64)
    parts = -(-count // SEGMENT)
    owner = np.repeat(np.arange(size), parts)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = np.append((np.cumsum(count) - count)[owner] + rank * SEGMENT, count.sum())
    own = np.concatenate([[0], np.cumsum(parts)])
    order = xp.argsort(numbers, stable=True)
    return Ordered(
        order if rows is None else rows[order],
        None if values is None else values[order],
        like_index(order, begin),
        like_index(order, own),
        like_index(order, owner),
    )


def ordered_sums(Y: Array, order: Ordered) -> Array:
    """Sums (size, q) of the rows of Y (n, q), by kernels."""
    from thirdmoment._array import _triton

    parts = _triton.sums(Y.contiguous(), order.rows, order.values, order.parts)
    return sums_of_parts(parts, order)


def sums_of_parts(parts: Array, order: Ordered) -> Array:
    """Sums (size, q) of what was made of each segment (segments, q), by a kernel."""
    from thirdmoment._array import _triton

    each = array_namespace(parts).arange(parts.shape[0], device=parts.device)
    return _triton.sums(parts, each, None, order.own)
