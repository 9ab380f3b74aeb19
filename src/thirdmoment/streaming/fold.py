"""Chunks of rows and the one fold over them.

Each chunk is summed into an accumulator of its own, side by side on threads, and the accumulators
are merged in chunk order, so the result depends on the chunks but not on the threads.
"""

from __future__ import annotations

import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    as_rows,
    content_signs,
    key_signs,
    map_in_order,
    row_blocks,
    row_keys,
    to_numpy,
)
from thirdmoment.moments.words import Documents
from thirdmoment.streaming.source import Source, rows_of

logger = logging.getLogger("thirdmoment")


class Accumulator(Protocol):
    """A monoid of moments: unnormalised sums that can be merged."""

    def update(self, chunk: Any) -> Any: ...
    def merge(self, other: Any) -> Any: ...


Monoid = TypeVar("Monoid", bound=Accumulator)


@dataclass(frozen=True)
class Corpus:
    """Documents in memory, in fixed chunks that can be walked many times."""

    chunks: tuple[Documents, ...]
    shape: tuple[int, int]
    nnz: int

    def __iter__(self) -> Iterator[Documents]:
        return iter(self.chunks)

    def astype(self, dtype: str) -> Corpus:
        """The same corpus with its counts in another dtype, for cheaper products."""
        chunks = tuple(c._replace(rows=c.rows.astype(dtype)) for c in self.chunks)
        return replace(self, chunks=chunks)


class Pass(NamedTuple):
    """One walk over a source."""

    what: str
    seconds: float
    bytes: int  # of the counts, as they are held


@dataclass(frozen=True)
class StreamedCorpus:
    """Documents of a source, read anew in every pass; chunks are freed as they were used.

    Copies of a document are in one half, as they are in memory, where they are merged.
    """

    source: Source
    nnz: int
    n_words: float
    dtype: str = "float64"
    passes: list[Pass] = field(default_factory=list)  # one list for all precisions

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    def __iter__(self) -> Iterator[Documents]:
        prepare = functools.partial(_prepared, dtype=self.dtype)
        return (prepare(chunk.rows) for chunk in self.source)

    def reduce(self, new: Callable[[], Monoid]) -> Monoid | None:
        """The fold by the engine that holds the rows; None where that is this process."""
        if not hasattr(self.source, "reduce"):
            return None
        return self.source.reduce(new, functools.partial(_prepared, dtype=self.dtype))

    def astype(self, dtype: str) -> StreamedCorpus:
        return replace(self, dtype=dtype)


def _prepared(rows: Any, dtype: str) -> Documents:
    """Rows of a source as documents."""
    X = sp.csr_array(rows, dtype=np.float64)
    signs = key_signs(row_keys(as_rows(X)))
    return documents(X.astype(dtype, copy=False), signs=signs)


AnyCorpus = Corpus | StreamedCorpus


def documents(
    X: Any, sample_weight: np.ndarray | None = None, *, signs: np.ndarray | None = None
) -> Documents:
    """One chunk of documents from a block of rows; ``signs`` are their halves in the corpus."""
    rows = as_rows(X)
    lengths = np.asarray(to_numpy(rows.lengths()), dtype=np.float64)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    signs = content_signs(rows) if signs is None else signs
    return Documents(rows, lengths, weights.astype(np.float64), signs)


def corpus(X: Any, sample_weight: np.ndarray | None = None) -> Corpus:
    """Cut counts in memory (SciPy sparse, NumPy) into chunks of about equal work."""
    X = sp.csr_array(X)
    chunks, signs = [], content_signs(as_rows(X))
    for start, stop in row_blocks(X):
        weight = None if sample_weight is None else sample_weight[start:stop]
        part = rows_of(X, start, stop)
        chunks.append(documents(part, weight, signs=signs[start:stop]))
    return Corpus(tuple(chunks), X.shape, int(X.nnz))


def row_ranges(n: int, *, size: int = 10_000) -> list[tuple[int, int]]:
    """Fixed blocks of rows [start, stop), the same on any number of threads."""
    count = max(1, -(-n // size))
    edges = np.linspace(0, n, count + 1).astype(int).tolist()
    return list(itertools.pairwise(edges))


def fold(new: Callable[[], Monoid], chunks: Iterable[Any], *, n_threads: int = 1) -> Monoid:
    """Sum of ``new()`` accumulators updated with each chunk, merged in order."""
    if not isinstance(chunks, StreamedCorpus):
        return _folded(new, chunks, n_threads, None)
    begin = time.perf_counter()
    found = chunks.reduce(new)
    if found is None:  # accumulators are large, and memory is short: few of them wait
        found = _folded(new, chunks, n_threads, n_threads + 1)
    chunks.passes.append(Pass(type(found).__name__, time.perf_counter() - begin, 12 * chunks.nnz))
    logger.debug("pass %d: %s, %.1f s", len(chunks.passes), *chunks.passes[-1][:2])
    return found


def _folded(
    new: Callable[[], Monoid], chunks: Iterable[Any], n_threads: int, waiting: int | None
) -> Monoid:
    total: Monoid | None = None

    def work(chunk: Any) -> Monoid:
        return new().update(chunk)

    for part in map_in_order(work, chunks, n_threads=n_threads, waiting=waiting):
        total = part if total is None else total.merge(part)
    return new() if total is None else total
