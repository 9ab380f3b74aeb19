"""Numbers from text files, plain or compressed, in blocks: memory follows what was read.

A header is a promise, not a size to allocate: arrays grow with the entries that are there, and the
first entry beyond the promise ends the reading. A small file that unfolds without end, or without a
line break, is refused within one block.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Limit, Work

# Bytes of text that are looked at together; no line may be longer.
BLOCK: Work[int] = 1 << 20

# Documents without words are rare: a header may promise so many more than there are entries.
EMPTY_DOCUMENTS: Limit[int] = 1_000_000
DOCUMENTS_PER_ENTRY: Limit[int] = 10

# Columns are counted by 32 bits.
MOST_COLUMNS: Limit[int] = 2**31 - 1


def open_text(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb"))


def short_line(file: BinaryIO) -> str:
    """The next line that is not empty, which is a header and therefore short."""
    for _ in range(100):
        line = file.readline(10_000)
        if line.strip():
            return line.decode("utf-8")
    raise ValueError("its header is missing")


def check_promise(n: int, d: int, entries: int) -> None:
    """Refuse headers that no table of counts can have."""
    if min(n, d, entries) < 0 or entries > n * d:
        raise ValueError(f"{n} documents and {d} words have no {entries} entries")


def read_table(file: BinaryIO, promised: int, columns: int, dtype: type) -> np.ndarray:
    """The promised number of lines of so many numbers each, neither more nor fewer."""
    found: list[np.ndarray] = []
    count = 0
    for block in _blocks(file):
        table: np.ndarray = np.loadtxt(io.BytesIO(block), dtype=dtype, ndmin=2, comments=None)
        if table.size and table.shape[1] != columns:
            raise ValueError(f"a line has {table.shape[1]} numbers instead of {columns}")
        count += len(table) if table.size else 0
        if count > promised:
            raise ValueError(f"its header announces {promised} lines, but there are more")
        found.append(table.reshape(-1, columns))
    if count < promised:
        raise ValueError(f"its header announces {promised} lines, but there are {count}")
    return np.concatenate(found) if found else np.empty((0, columns), dtype)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about BLOCK bytes at a time."""
    rest = b""
    while block := file.read(BLOCK):
        end = block.rfind(b"\n") + 1
        if end == 0 and len(rest) + len(block) > BLOCK:
            raise ValueError(f"it has a line of more than {BLOCK} bytes")
        whole, rest = (rest + block[:end], block[end:]) if end else (b"", rest + block)
        if not whole.isspace() and whole:
            yield whole
    if rest.strip():
        yield rest


def check_shape(n: int, d: int, entries: int) -> None:
    """Refuse sizes that the entries do not bear out, before anything of that size is made."""
    if n < 0 or d < 0 or d > MOST_COLUMNS:
        raise ValueError(f"a table of {n} documents and {d} words cannot be")
    if n > EMPTY_DOCUMENTS + DOCUMENTS_PER_ENTRY * entries:
        raise ValueError(f"it announces {n} documents but has only {entries} entries")


def from_entries(
    n: int, d: int, rows: np.ndarray, words: np.ndarray, values: np.ndarray
) -> sp.csr_array:
    """Counts from document and word numbers that start at one."""
    check_shape(n, d, len(values))
    for name, place, size in (("document", rows, n), ("word", words, d)):
        if len(place) and not (place.min() >= 1 and place.max() <= size):
            wrong = place.min() if place.min() < 1 else place.max()
            raise ValueError(f"{name} {wrong} is not one of 1 to {size}")
    entries = values.astype(np.float64), (rows - 1, words - 1)
    return sp.coo_array(entries, shape=(n, d)).tocsr()
