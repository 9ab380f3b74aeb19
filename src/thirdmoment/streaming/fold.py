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

import joblib
import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    LEAST_ROWS,
    Array,
    array_namespace,
    as_rows,
    by_halves,
    content_signs,
    give_back,
    if_room,
    is_tensors,
    key_signs,
    like_one,
    map_in_order,
    row_blocks,
    row_keys,
    single_threaded_blas,
    tensor_rows,
    to_numpy,
)
from thirdmoment._constants import Work
from thirdmoment.moments.words import Documents
from thirdmoment.streaming.source import Chunk, Source, rows_of
from thirdmoment.streaming.tensors import TensorSource

logger = logging.getLogger("thirdmoment")

# Numbers of a source that go into one accumulator: to clear and merge a large one has its price.
TOGETHER: Work[int] = 1_500_000


FIRST = ("offset", "start")  # fields of a chunk that say which row of all its first one is


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

    def empty(self, dtype: Any) -> Array:
        """An array without entries, as products of these rows are."""
        rows = self.chunks[0].rows
        return rows.asarray(np.empty(0)) if is_tensors(rows) else np.empty(0, dtype)

    def astype(self, dtype: str) -> Corpus:
        """The same corpus with its counts in another dtype, for cheaper products."""
        chunks = tuple(c._replace(rows=c.rows.astype(dtype)) for c in self.chunks)
        return replace(self, chunks=chunks)


class Pass(NamedTuple):
    """One walk over a source."""

    what: str
    seconds: float
    bytes: int  # of the rows, as they are held


@dataclass(frozen=True)
class Streamed:
    """Chunks of a source, made anew in every pass and freed as they were used.

    ``prepare`` makes of a `Chunk` what an accumulator takes. It runs where that does: on a thread,
    or on the worker that holds the rows.
    """

    source: Source
    prepare: Callable[[Chunk], Any]
    width: int  # columns of what ``prepare`` makes
    bytes: int = 0  # of the rows in one pass
    tell: Callable[..., None] = logger.debug
    passes: list[Pass] = field(default_factory=list)  # one list for all that is made of a source
    device: Any = None  # where ``prepare`` puts rows, None for the host

    @property
    def stream(self) -> Streamed:
        return self

    @property
    def resident(self) -> bool:
        """Whether the rows themselves are on a device, where all of them have room."""
        return isinstance(self.source, TensorSource)

    def __iter__(self) -> Iterator[Any]:
        return map(self.prepare, self.source)

    def mapped(self, then: Callable[[Any], Any], *, width: int | None = None) -> Streamed:
        """The same chunks, taken one step further."""
        prepare = functools.partial(_after, self.prepare, then)
        return replace(self, prepare=prepare, width=self.width if width is None else width)

    def fold(self, new: Callable[[], Monoid], n_threads: int) -> Monoid:
        """One pass, by the engine that holds the rows."""
        begin = time.perf_counter()
        if hasattr(self.source, "reduce"):
            found = self.source.reduce(new, self.prepare)
        elif self.source.parts and jobs_elsewhere() != 1:
            found = _merged(new, self._elsewhere(new))
        else:  # accumulators are large, and memory is short: few of them wait
            work = functools.partial(_updated, new, self.prepare)
            tasks: Iterable[Any] = self.source
            if self.device is None:
                tasks = _together(self.source)
            else:
                work = functools.partial(_summed_rows, new, prepare=self.prepare)
            parts = map_in_order(work, tasks, n_threads=n_threads, waiting=n_threads)
            found = _merged(new, parts)
        give_back()
        took = time.perf_counter() - begin
        self.passes.append(Pass(type(found).__name__, took, self.bytes))
        self.tell("pass %d over %s: %s, %.1f s", len(self.passes), self.source.name,
                  self.passes[-1].what, took)  # fmt: skip
        return found

    def _elsewhere(self, new: Callable[[], Monoid]) -> Iterable[Monoid]:
        """Sums of each file of a source, by the engine that joblib was told to use."""
        backend, _ = joblib.parallel.get_active_backend()
        lazily = bool(getattr(backend, "supports_return_generator", False))
        engine = joblib.Parallel(return_as="generator" if lazily else "list")
        return engine(
            joblib.delayed(_summed)(new, self.prepare, part, number)
            for number, part in enumerate(self.source.parts)
        )


def jobs_elsewhere() -> int:
    """Workers of the engine that `joblib.parallel_config` names; 1 where threads are meant."""
    backend, n_jobs = joblib.parallel.get_active_backend()
    here = type(backend).__name__ in ("ThreadingBackend", "SequentialBackend")
    return 1 if here else n_jobs or 1


def _summed(
    new: Callable[[], Monoid], prepare: Callable[[Chunk], Any], part: Source, number: int
) -> Monoid:
    """One file, opened where this runs; its rows are numbered by the file."""
    found = new()
    with single_threaded_blas():
        for rows, start in part:
            found = found.update(prepare(Chunk(rows, (number << 32) + start)))
    return found


def _after(first: Callable[[Any], Any], then: Callable[[Any], Any], chunk: Any) -> Any:
    return then(first(chunk))


def _updated(new: Callable[[], Monoid], prepare: Callable[[Any], Any], chunks: list[Any]) -> Monoid:
    found = new()
    chunks.reverse()
    while chunks:  # each is freed when the next one comes
        found = found.update(prepare(chunks.pop()))
    return found


def _together(source: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Neighbouring chunks that go into one accumulator, by their sizes alone."""
    held: list[Chunk] = []
    size = 0
    for chunk in source:
        held.append(chunk)
        size += chunk.rows.nnz if sp.issparse(chunk.rows) else chunk.rows.size
        if size >= TOGETHER:
            yield held
            held, size = [], 0
    if held:
        yield held


@dataclass(frozen=True)
class StreamedCorpus:
    """Documents of a source, read anew in every pass.

    Copies of a document are in one half, as they are in memory, where they are merged.
    """

    rows: Streamed  # counts as the source has them
    nnz: int
    n_words: float
    dtype: str = "float64"
    device: Any = None  # that passes run on, None for the host

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.source.shape

    @property
    def stream(self) -> Streamed:
        if self.device is None:
            return self.rows.mapped(functools.partial(_prepared, dtype=self.dtype))
        there = replace(self.rows, device=self.device)
        return there.mapped(functools.partial(_sent, device=self.device))

    def __iter__(self) -> Iterator[Documents]:
        return iter(self.stream)

    def empty(self, dtype: Any) -> Array:
        """An array without entries, as products of these rows are."""
        if self.device is None:
            return np.empty(0, dtype)
        return tensor_rows(sp.csr_array((1, 1)), self.device).asarray(np.empty(0))

    def astype(self, dtype: str) -> StreamedCorpus:
        return replace(self, dtype=dtype)


def _prepared(chunk: Chunk, dtype: str) -> Documents:
    """Rows of a source as documents."""
    X = sp.csr_array(chunk.rows, dtype=np.float64)
    signs = key_signs(row_keys(as_rows(X)))
    return documents(X.astype(dtype, copy=False), signs=signs)


def _sent(chunk: Chunk, device: Any) -> Documents:
    """Rows of a source as documents on a device."""
    rows = tensor_rows(sp.csr_array(chunk.rows), device)
    return documents(rows, signs=key_signs(row_keys(rows)))


AnyCorpus = Corpus | StreamedCorpus


def documents(
    X: Any, sample_weight: Array | None = None, *, signs: Array | None = None
) -> Documents:
    """One chunk of documents from a block of rows; ``signs`` are their halves in the corpus."""
    rows = X if is_tensors(X) else as_rows(X)
    if is_tensors(rows):
        lengths = rows.lengths()
        weights = array_namespace(lengths).ones_like(lengths)
        weights = weights if sample_weight is None else like_one(lengths, sample_weight)
        return Documents(rows, lengths, weights, content_signs(rows) if signs is None else signs)
    lengths = np.asarray(to_numpy(rows.lengths()), dtype=np.float64)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    signs = content_signs(rows) if signs is None else signs
    return Documents(rows, lengths, weights.astype(np.float64), signs)


def corpus(X: Any, sample_weight: Array | None = None) -> Corpus:
    """Cut counts in memory (SciPy sparse, NumPy) into chunks of about equal work.

    Tensors on a device are one chunk: it works on all rows at once.
    """
    if is_tensors(X):
        return Corpus((documents(X, sample_weight),), X.shape, X.nnz)
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
    stream = getattr(chunks, "stream", None)
    if stream is not None:
        return stream.fold(new, n_threads)
    tasks = map_in_order(functools.partial(_summed_rows, new), chunks, n_threads=n_threads)
    return _merged(new, tasks)


def _summed_rows(
    new: Callable[[], Monoid], chunk: Any, *, prepare: Callable[[Any], Any] | None = None
) -> Monoid:
    """One chunk; where a device has too little memory for it, one half of it after the other."""
    whole = hasattr(chunk, "sequences")  # sequences are not cut
    size = len(chunk.offsets) - 1 if whole else rows_in(chunk)

    def one(start: int, stop: int) -> Monoid:
        part = chunk
        if stop - start < size:
            part = chunk.sequences(start, stop) if whole else part_of(chunk, start, stop)
        return new().update(part if prepare is None else prepare(part))

    return _merged(new, by_halves(one, size, least=2 if whole else LEAST_ROWS))


def kept(rows: Streamed) -> tuple[Any, ...] | Streamed:
    """Chunks of tensors made once, where their device has room for all and one more; others as
    they come.
    """

    def made() -> tuple[Any, ...] | Streamed:
        found = tuple(rows)
        next(iter(rows), None)  # work needs room, too
        return found

    return if_room(made, lambda: rows) if rows.resident else rows


def rows_in(chunk: Any) -> int:
    """Rows of a chunk of any kind; none of whole sequences and all else that is not cut."""
    if hasattr(chunk, "offsets") or not hasattr(chunk, "_asdict"):
        return 0
    parts = (part for part in chunk if hasattr(part, "shape") or hasattr(part, "_asdict"))
    first = next(parts, ())
    return int(first.shape[0]) if hasattr(first, "shape") else rows_in(first)


def part_of(chunk: Any, start: int, stop: int) -> Any:
    """Rows start..stop-1 of a chunk of any kind, all that has rows cut alike."""
    n = rows_in(chunk)
    found = {}
    for name, value in chunk._asdict().items():
        if hasattr(value, "_asdict"):
            found[name] = part_of(value, start, stop)
        elif hasattr(value, "shape") and value.shape[0] == n:
            found[name] = value.part(start, stop) if hasattr(value, "part") else value[start:stop]
    places = {name: getattr(chunk, name) + start for name in FIRST if hasattr(chunk, name)}
    return chunk._replace(**found, **places)


def _merged(new: Callable[[], Monoid], parts: Iterable[Monoid]) -> Monoid:
    total: Monoid | None = None
    for part in parts:
        total = part if total is None else total.merge(part)
        del part  # large, and not needed while the next one is waited for
    return new() if total is None else total
