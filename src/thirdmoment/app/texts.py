"""Many strings in one array, which can stay on disk and be shared."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from thirdmoment.exceptions import InvalidInput


@dataclass(frozen=True, eq=False)
class Texts:
    """Strings one after another, as UTF-8; what has no such form becomes a question mark."""

    blob: np.ndarray  # (bytes,) uint8
    ends: np.ndarray  # (n,) where each string ends

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> str:
        return self._bytes(i).decode("utf-8", "replace")

    def start(self, i: int, size: int) -> str:
        """The first characters of a string, of a long one without reading the rest."""
        return self._bytes(i, 4 * size).decode("utf-8", "ignore")[:size]

    def _bytes(self, i: int, most: int | None = None) -> bytes:
        start, end = int(self.ends[i - 1]) if i else 0, int(self.ends[i])
        return self.blob[start : end if most is None else min(end, start + most)].tobytes()

    def check(self) -> None:
        """Raise where strings lie outside the bytes, as in a damaged file."""
        blob, ends = np.asarray(self.blob), np.asarray(self.ends)
        whole = blob.ndim == ends.ndim == 1 and blob.dtype == np.uint8 and ends.dtype == np.int64
        if (
            not whole
            or np.any(np.diff(ends, prepend=0) < 0)
            or (len(ends) and ends[-1] > len(blob))
        ):
            raise InvalidInput("its texts are not where they should be")


def pack(strings: Iterable[str]) -> Texts:
    """Strings in memory as one array."""
    parts = [one.encode("utf-8", "replace") for one in strings]
    ends = np.fromiter(itertools.accumulate(map(len, parts)), np.int64, len(parts))
    return Texts(np.frombuffer(b"".join(parts), np.uint8), ends)


def pack_on_disk(strings: Iterable[str]) -> Texts:
    """Strings that come one by one in a temporary file, which goes with the process."""
    sizes = []
    with tempfile.TemporaryFile(prefix="thirdmoment-") as file:
        for one in strings:
            sizes.append(file.write(one.encode("utf-8", "replace")))
        file.flush()
        ends = np.cumsum(sizes, dtype=np.int64)
        empty = np.empty(0, np.uint8)
        blob = np.asarray(np.memmap(file, np.uint8, "r")) if sum(sizes) else empty
    return Texts(blob, ends)
