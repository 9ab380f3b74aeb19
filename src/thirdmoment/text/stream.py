"""Texts that do not fit into memory: read once, their counts kept on disk."""

from __future__ import annotations

import array
import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.streaming import Source
from thirdmoment.text.records import Record
from thirdmoment.text.words import Disk, WordCounter, words_of

# Texts that are counted together: characters, and documents.
BATCH_SIZE: Work[int] = 2**24
BATCH_TEXTS: Work[int] = 50_000


class TextStream(Source):
    """Word counts of texts that are read in chunks; models take it in the place of counts.

    Texts are read once. Their counts wait in a temporary folder that goes with this object; groups,
    times and ids stay in memory.

    Attributes
    ----------
    words : list of str
        Of the columns.
    groups, times, ids : sequence
        One for each document, None where the source has none. Times are ``datetime``.
    dropped : str
        What could not be used, by reason and first place; empty if nothing.
    counter : WordCounter or a vectorizer
        Counts new texts in the same way.
    """

    def __init__(self, read: Counted, again: Callable[[], Iterator[Record]], name: str) -> None:
        self._read, self._again = read, again
        batches = functools.partial(_filled, read)  # nothing that would hold this object
        super().__init__(batches, width=len(read.words), name=name, words=read.words)
        self.counter = read.counter
        self.own_counter = read.counter if isinstance(read.counter, WordCounter) else None
        self.dropped = ""
        self._places = read.places()
        self._sums = np.array(read.sums, dtype=np.uint32)[self._places]
        self.n_rows = len(self._places)
        self.groups: Sequence[Any] = []
        self.times: Sequence[Any] = []
        self.ids: Sequence[Any] = []

    def __repr__(self) -> str:
        return f"TextStream({len(self):,} documents, {self.width:,} words)"

    def close(self) -> None:
        """Remove the temporary folder now."""
        self._read.store.close()

    @property
    def X(self) -> sp.csr_array:
        """All counts in memory."""
        return self.gather()

    def each_text(self) -> Iterator[str]:
        """The texts of all documents one by one, read from the source once more."""
        wanted, row = self._places.tolist(), 0
        for place, record in enumerate(self._again()):
            if row < len(wanted) and place == wanted[row]:
                if _sum(record.text) != int(self._sums[row]):
                    raise self._other_texts()
                yield record.text
                row += 1
        if row < len(wanted):
            raise self._other_texts()

    def _other_texts(self) -> InvalidInput:
        return InvalidInput(
            f"{self.name} has other texts than when it was read: it was changed meanwhile, or its "
            "iterator is not made anew each time. Read it again."
        )

    def texts_at(self, rows: Iterable[int]) -> list[str]:
        """The texts of some documents, read from the source once more."""
        rows = np.asarray(list(rows), dtype=np.int64)
        wanted = dict(zip(self._places[rows].tolist(), self._sums[rows].tolist(), strict=True))
        found: dict[int, str] = {}
        for place, record in enumerate(self._again()):
            if place in wanted:
                found[place] = record.text
                if len(found) == len(wanted):
                    break
        if any(place not in found or _sum(found[place]) != own for place, own in wanted.items()):
            raise self._other_texts()
        return [found[place] for place in self._places[rows].tolist()]

    def __counts__(self) -> tuple[sp.csr_array, list[str], Any]:
        """What a model reads: counts, words, and our own counter."""
        return self.gather(), list(self.words or ()), self.own_counter


def _filled(read: Counted) -> Iterator[sp.csr_array]:
    """Counts of the texts that have a counted word."""
    for X in read.chunks():
        yield X[np.diff(X.indptr) > 0]


def _sum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


class Counted:
    """Counts of batches of texts on disk, and what belongs to each document."""

    def __init__(self, records: Iterator[Record], counter: Any, *, learn: bool) -> None:
        self.counter, self.store = counter, Disk()
        self.groups: list[Any] = []
        self.times: list[Any] = []
        self.ids: list[Any] = []
        self.sums = array.array("I")  # of the texts, to know them again
        self._same: dict[Any, Any] = {}  # equal groups are one object
        batches = self._batches(records)
        if learn:
            self.held = counter.learn(batches, self.store)
        else:
            self.held = [self._put(counter.transform(texts)) for texts in batches]
        self.words = words_of(counter, self._width)

    def _batches(self, records: Iterator[Record]) -> Iterator[list[str]]:
        texts: list[str] = []
        size = 0
        for record in records:
            texts.append(record.text)
            size += len(record.text)
            self.groups.append(self._one(record.group))
            self.times.append(record.time)
            self.ids.append(record.id)
            self.sums.append(_sum(record.text))
            if size >= BATCH_SIZE or len(texts) >= BATCH_TEXTS:
                yield texts
                texts, size = [], 0
        if texts:
            yield texts

    def _one(self, group: Any) -> Any:
        try:
            return self._same.setdefault(group, group)
        except TypeError:  # a list, which has no hash
            return group

    def _put(self, X: Any) -> Any:
        X = sp.csr_array(X)
        self._width = X.shape[1]
        return self.store.put(X.data, X.indices.astype(np.int32), X.indptr)

    _width = 0

    def chunks(self) -> Iterator[sp.csr_array]:
        """Counts of all texts, also of those without a word."""
        for one in self.held:
            data, indices, indptr = self.store.get(one)
            shape = len(indptr) - 1, len(self.words)
            yield sp.csr_array((data.astype(np.float64), indices, indptr), shape=shape)

    def places(self) -> np.ndarray:
        """Numbers of the texts that have a counted word."""
        filled = [np.diff(self.store.get(one)[2]) > 0 for one in self.held]
        return np.flatnonzero(np.concatenate(filled)) if filled else np.empty(0, dtype=np.int64)
