"""Lines of ``number column:value column:value``: svmlight, and LDA-C of Blei."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment.io.entries import check_shape, numbers, open_text
from thirdmoment.streaming.source import Source


def extent(path: Path) -> tuple[int, int]:
    """Smallest and largest number of a column in a file of pairs."""
    low, high = np.inf, -1.0
    with open_text(path) as file:
        for block in numbers(file, colons=True):
            if not len(block.ends):
                continue  # comments only
            columns = _split(block.values, block.ends)[1]
            low = min(low, columns.min(initial=np.inf))
            high = max(high, columns.max(initial=-1))
    return int(low) if np.isfinite(low) else 1, int(high)


def _split(
    values: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First numbers of lines, columns and values of the pairs behind them, and their starts."""
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    size = ends - starts - 1
    if np.any(size % 2):
        raise ValueError("a line has a column without a value")
    own = np.ones(len(values), dtype=bool)
    own[starts] = False
    rest = values[own]
    columns = rest[0::2]
    if len(columns) and not (np.all(columns == np.rint(columns)) and columns.min() >= 0):
        raise ValueError("its columns are not whole numbers")
    check_shape(0, int(columns.max(initial=0)), 0)
    return values[starts], columns, rest[1::2], np.concatenate([[0], np.cumsum(size // 2)])


def pairs_of(path: Path, base: int, width: int, *, counted: bool) -> Source:
    """Lines of ``number column:value column:value``; ``counted`` ones begin with their length."""
    check_shape(0, width, 0)

    def batches() -> Iterator[Any]:
        with open_text(path) as file:
            for block in numbers(file, colons=True):
                if not len(block.ends):
                    continue
                first, columns, values, indptr = _split(block.values, block.ends)
                if counted and not np.array_equal(first, np.diff(indptr)):
                    raise ValueError("a line has another number of words than it announces")
                if columns.max(initial=-1) - base >= width:
                    raise ValueError(f"column {int(columns.max())} is beyond its width of {width}")
                X = sp.csr_array(
                    (values, (columns - base).astype(np.int32), indptr), shape=(len(first), width)
                )
                X.sum_duplicates()
                yield X

    return Source(batches, width=width)
