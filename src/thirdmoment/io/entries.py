"""Numbers from text files, plain or compressed, in blocks: memory follows what was read.

A header is a promise, not a size to allocate: arrays grow with the entries that are there, and the
first entry beyond the promise ends the reading. A small file that unfolds without end, or without a
line break, is refused within one block.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import effective_threads, map_in_order
from thirdmoment._constants import Limit, Work
from thirdmoment.exceptions import InvalidInput

# Bytes of text that are looked at together; no line may be longer.
BLOCK: Work[int] = 1 << 20

# Threads that turn text into numbers; each holds some blocks.
READERS: Work[int] = 4

# Documents without words are rare: a header may promise so many more than there are entries.
EMPTY_DOCUMENTS: Limit[int] = 1_000_000
DOCUMENTS_PER_ENTRY: Limit[int] = 10

# Whole numbers from here on are not exact in float64.
EXACT: Limit[int] = 2**53

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


class Numbers(NamedTuple):
    """Numbers of some lines of text, one line after another."""

    values: np.ndarray
    ends: np.ndarray  # (lines,) how many there are up to the end of each line

    def table(self, columns: int) -> np.ndarray:
        """The same as (lines, columns); every line must have so many."""
        found = np.diff(self.ends, prepend=0)
        wrong = found[found != columns]
        if len(wrong):
            raise ValueError(f"a line has {wrong[0]} numbers instead of {columns}")
        return self.values.reshape(-1, columns)


def numbers(file: BinaryIO, *, colons: bool = False) -> Iterator[Numbers]:
    """Numbers of a text file, about BLOCK bytes at a time; ``colons`` part them like blanks."""
    threads = min(READERS, effective_threads(None))
    return map_in_order(
        lambda block: _parsed(block, colons), _blocks(file), n_threads=threads, blas=False
    )


def _parsed(block: bytes, colons: bool) -> Numbers:
    from thirdmoment.io._compiled import POWERS, parse_numbers

    text = np.frombuffer(block, dtype=np.uint8)
    values = np.empty(len(text) // 2 + 1)
    ends = np.empty(block.count(b"\n") + 1, dtype=np.int64)
    count, lines, stuck = parse_numbers(text, colons, POWERS, values, ends)
    return _carefully(block, colons) if stuck >= 0 else Numbers(values[:count], ends[:lines])


def start_of(raw: BinaryIO, entry: zipfile.ZipInfo) -> int:
    """Where the bytes of an entry of a zip file begin: behind its local header."""
    raw.seek(entry.header_offset)
    local = raw.read(30)
    if local[:4] != b"PK\x03\x04":
        raise InvalidInput(f"{entry.filename} is not where it should be")
    name, extra = (int.from_bytes(local[i : i + 2], "little") for i in (26, 28))
    return entry.header_offset + 30 + name + extra


def _carefully(block: bytes, colons: bool) -> Numbers:
    """The same for numbers of any form, and for comments and queries of svmlight files."""
    values: list[float] = []
    ends = []
    for line in block.split(b"\n"):
        if colons:
            head, *rest = line.partition(b"#")[0].split() or [b""]
            _check_pairs(head, rest)
            line = b" ".join(
                [head, *(one.replace(b":", b" ") for one in rest if one[:4] != b"qid:")]
            )
        if b"_" in line:
            raise ValueError("a number has an underscore")
        found = [float(one) for one in line.split()]
        if found:
            values += found
            ends.append(len(values))
    return Numbers(np.array(values), np.array(ends, dtype=np.int64))


def _check_pairs(head: bytes, rest: list[bytes]) -> None:
    """A number first, and column:value behind it."""
    pairs = (one.split(b":") for one in rest if one[:4] != b"qid:")
    if b":" in head or not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise ValueError("a line is not of the form number column:value column:value ...")


def read_table(file: BinaryIO, promised: int, columns: int, dtype: type) -> np.ndarray:
    """The promised number of lines of so many numbers each, neither more nor fewer."""
    found = list(tables(file, promised, columns, dtype))
    return np.concatenate(found) if found else np.empty((0, columns), dtype)


def tables(file: BinaryIO, promised: int, columns: int, dtype: type) -> Iterator[np.ndarray]:
    """The same, block by block."""
    count = 0
    for block in numbers(file):
        table = block.table(columns)
        count += len(table)
        if count > promised:
            raise ValueError(f"its header announces {promised} lines, but there are more")
        if dtype == np.int64 and not np.all((table == np.rint(table)) & (abs(table) < EXACT)):
            raise ValueError("it has numbers that are not whole where whole ones are expected")
        yield table.astype(dtype, copy=False)
    if count < promised:
        raise ValueError(f"its header announces {promised} lines, but there are {count}")


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
    n: int, d: int, rows: np.ndarray, words: np.ndarray, values: np.ndarray, *, first: int = 0
) -> sp.csr_array:
    """Counts from document and word numbers that start at one; ``first`` documents came before."""
    check_shape(n, d, len(values) + first)
    for name, place, size, before in (("document", rows, n, first), ("word", words, d, 0)):
        if len(place) and not (place.min() >= 1 and place.max() <= size):
            wrong = place.min() if place.min() < 1 else place.max()
            raise ValueError(f"{name} {wrong + before} is not one of 1 to {size + before}")
    entries = values.astype(np.float64), (rows - 1, words - 1)
    return sp.coo_array(entries, shape=(n, d)).tocsr()
