"""Sequences of a source: whole ones in every chunk, one look at all, and a sample of pieces."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import scrambled
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.hmm.sequences import check_sum, chunk_lengths, read_lengths
from thirdmoment.models.tables import dense_rows, name_columns
from thirdmoment.refinement.chains import PIECE
from thirdmoment.streaming import Chunk, Source, Streamed, fold
from thirdmoment.streaming.dask import DaskSource

# Observations of the sample that starts race on; a source that has no more is read into memory.
SAMPLED: Choice[int] = 100_000


class SequenceChunk(NamedTuple):
    """Whole sequences, one after another."""

    X: np.ndarray  # (m, columns)
    lengths: np.ndarray
    start: int  # number of the first observation in the source

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths)])


class SampledPieces:
    """Pieces of sequences with the smallest keys, up to so many observations."""

    def __init__(self, most: int) -> None:
        self.most, self.n = most, 0
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # keys, lengths, rows

    def add(self, chunk: SequenceChunk) -> None:
        """Sequences, long ones cut."""
        count = -(-chunk.lengths // PIECE)
        owner = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        size = np.minimum(PIECE, chunk.lengths[owner] - rank * PIECE)
        begin = chunk.offsets[owner] + rank * PIECE
        keys = scrambled((chunk.start + begin).astype(np.uint64))
        self._keep(keys, size, begin, chunk.X)

    def merge(self, other: SampledPieces) -> None:
        self.parts += other.parts
        self.n += other.n
        if self.n > 2 * self.most:
            self._trim()

    def _keep(self, keys: np.ndarray, size: np.ndarray, begin: np.ndarray, X: np.ndarray) -> None:
        order = np.argsort(keys, kind="stable")
        kept = order[: max(1, int(np.sum(np.cumsum(size[order]) <= self.most)))]
        length = size[kept]
        shift = np.repeat(begin[kept] - (np.cumsum(length) - length), length)
        rows = X[np.arange(int(length.sum())) + shift]
        self.parts.append((keys[kept], length, rows))
        self.n += len(rows)

    def _trim(self) -> None:
        keys, size, rows = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        self.parts, self.n = [], 0
        self._keep(keys, size, np.cumsum(size) - size, rows)

    def sequences(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the sample and the lengths of its pieces."""
        self._trim()
        _, size, rows = self.parts[0]
        return rows, size


class SequenceLook:
    """What one pass sees of the sequences; ``table`` looks at their rows."""

    def __init__(self, table: Callable[[], Any]) -> None:
        self.new_table, self.table = table, table()
        self.n = self.sequences = self.longest = self.short = self.windows = 0
        self.sample = SampledPieces(SAMPLED)

    def update(self, chunk: SequenceChunk) -> SequenceLook:
        if self.n:
            return self.merge(SequenceLook(self.new_table).update(chunk))
        lengths = chunk.lengths
        self.table.update(Chunk(chunk.X, chunk.start))
        self.n, self.sequences = int(lengths.sum()), len(lengths)
        self.longest, self.short = int(lengths.max()), int(np.sum(lengths < 3))
        self.windows = int(np.maximum(lengths - 2, 0).sum())
        self.sample.add(chunk)
        return self

    def merge(self, other: SequenceLook) -> SequenceLook:
        if not other.n:
            return self
        self.table.merge(other.table)
        self.n, self.sequences = self.n + other.n, self.sequences + other.sequences
        self.longest = max(self.longest, other.longest)
        self.short, self.windows = self.short + other.short, self.windows + other.windows
        self.sample.merge(other.sample)
        return self


class WholeSequences(NamedTuple):
    """All sequences of a source."""

    chunks: Streamed  # of `SequenceChunk`
    look: SequenceLook


def open_sequences(
    model: Any, source: Source, lengths: Any, read: Callable[[Any], np.ndarray], table: Any
) -> WholeSequences | None:
    """Sequences of a source, or None where they are few and better read into memory.

    Without ``lengths`` every chunk is a sequence. ``read`` makes rows of numbers what the model
    observes, ``table`` makes what looks at them.
    """
    cut = _EveryChunk()
    if lengths is None and not source.given_chunks:
        chunk_lengths(source)  # which says what is missing
    if lengths is not None:
        lengths = read_lengths(lengths, source.n_rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if isinstance(source, DaskSource):
            cut = _Blocks(offsets, source.sizes)
        else:
            source, cut = _recut(source, offsets), _ByOffsets(offsets)
    chunks = Streamed(source, partial(_sequences, cut, read), source.width, tell=model._log)
    look = fold(partial(SequenceLook, table), chunks, n_threads=model._threads())
    if lengths is not None:
        check_sum(lengths, look.n)
    if look.n <= SAMPLED:
        return None
    name_columns(model, source)
    size = 8 * look.n * source.width
    chunks.passes[0] = chunks.passes[0]._replace(bytes=size)
    whole = Streamed(source, chunks.prepare, source.width, size, model._log, chunks.passes)
    return WholeSequences(whole, look)


def _sequences(cut: _EveryChunk, read: Callable[[Any], np.ndarray], chunk: Chunk) -> SequenceChunk:
    return SequenceChunk(read(dense_rows(chunk.rows)), cut.lengths(chunk), chunk.start)


class _EveryChunk:
    """A chunk is a sequence."""

    def lengths(self, chunk: Chunk) -> np.ndarray:
        return np.array([chunk.rows.shape[0]], dtype=np.int64)


class _ByOffsets(_EveryChunk):
    """Sequences begin at these rows of the source."""

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets

    def lengths(self, chunk: Chunk) -> np.ndarray:
        stop = chunk.start + chunk.rows.shape[0]
        first, last = np.searchsorted(self.offsets, [chunk.start, stop])
        return np.diff(self.offsets[first : last + 1])


class _Blocks(_EveryChunk):
    """Sequences of each block of a Dask collection, whose rows are numbered by block."""

    def __init__(self, offsets: np.ndarray, sizes: tuple[Any, ...]) -> None:
        if not all(size == size for size in sizes):
            raise InvalidInput(
                "Lengths need blocks of known sizes: call X.compute_chunk_sizes() first."
            )
        ends = np.cumsum(sizes).astype(np.int64)
        if not np.isin(ends, offsets).all():
            raise InvalidInput(
                "A block of X ends within a sequence. Give X.rechunk with blocks of whole ones."
            )
        edges = np.searchsorted(offsets, np.concatenate([[0], ends]))
        self.parts = [np.diff(offsets[a : b + 1]) for a, b in itertools.pairwise(edges)]

    def lengths(self, chunk: Chunk) -> np.ndarray:
        return self.parts[chunk.start >> 32]


def _recut(source: Source, offsets: np.ndarray) -> Source:
    """The same rows in chunks that end where sequences do."""

    def batches() -> Iterator[Any]:
        waiting: list[Any] = []
        for chunk in source:
            rows, start = dense_rows(chunk.rows), chunk.start
            stop = start + rows.shape[0]
            last = int(offsets[np.searchsorted(offsets, stop, side="right") - 1])
            if last <= start:  # within a sequence
                waiting.append(rows)
                continue
            yield np.concatenate([*waiting, rows[: last - start]])
            waiting = [rows[last - start :]] if last < stop else []
        if waiting:
            check_sum(np.diff(offsets), stop)
            raise InvalidInput(f"{source.name} ends within a sequence.")

    return Source(batches, width=source.width, n_rows=source.n_rows, name=source.name,
                  words=source.words)  # fmt: skip
