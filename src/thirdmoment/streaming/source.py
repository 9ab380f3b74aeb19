"""Rows of data in chunks that can be walked many times: what every pass over data reads.

A source says how wide its rows are; how many there are it may learn in the first pass. Chunks carry
the number of their first row, so that nothing depends on where the data is cut. Every entry is
checked as it comes by, and a source that gives other rows in a later pass is refused.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse, row_blocks
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput

# Numbers of a chunk of dense rows.
DENSE_CHUNK: Work[int] = 1_000_000


class Chunk(NamedTuple):
    """Some rows, and the number of the first of them in the whole source."""

    rows: Any  # (m, d) csr_array or ndarray
    start: int


class Source:
    """Rows that are read in chunks, as often as needed.

    Parameters
    ----------
    batches : callable
        Returns a fresh iterator of matrices, NumPy or SciPy, each time it is called.
    width : int, optional
        Columns; those of the first batch by default.
    name : str
        Stands in messages.
    words : sequence, optional
        Names of the columns.

    Attributes
    ----------
    width : int
    n_rows : int or None
        None until all rows were read once.
    progress : callable or None
        Told how many rows of a pass were read, and which share of all (None in a first pass).
    words : list or None
    """

    def __init__(
        self,
        batches: Callable[[], Iterable[Any]],
        *,
        width: int | None = None,
        n_rows: int | None = None,
        name: str = "The source",
        words: Sequence[Any] | None = None,
    ) -> None:
        self._batches, self._width, self.n_rows = batches, width, n_rows
        self.name = name
        self.words = None if words is None else list(words)
        self.given_chunks = True  # whether the user cut the rows, or we did
        self.progress: Callable[[int, float | None], None] | None = None
        self.parts: list[Source] = []  # files that can be opened anywhere, in their order
        self.own_counter: Any = None  # what counted the words, where that was our own rules
        self.named = False  # whether the words are names of the columns of frames
        self.allow_nan = False  # whether cells may be missing
        self._peeked = False  # whether a first batch was looked at for its width
        self._seen: list[tuple[float, ...]] | None = None  # fingerprints of the first whole pass

    def __repr__(self) -> str:
        rows = "rows not counted yet" if self.n_rows is None else f"{self.n_rows:,} rows"
        return f"Source({self.name}, {rows}, {self.width:,} columns)"

    @property
    def width(self) -> int:
        """Columns of every row."""
        if self._width is None:
            first = next(iter(self._iterator()), None)
            if first is None:
                raise InvalidInput(f"{self.name} gives no rows at all.")
            found = self._matrix(first, 0)
            self._width, self._peeked = found.shape[1], found.shape[0] > 0
        return self._width

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; rows are counted by a pass where they are not known."""
        if self.n_rows is None:
            for _ in self:
                pass
        assert self.n_rows is not None
        return self.n_rows, self.width

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Chunk]:
        width, start, seen = self.width, 0, []
        for number, batch in enumerate(self._iterator()):
            rows = self._matrix(batch, number)
            if rows.shape[1] != width:
                raise InvalidInput(
                    f"Chunk {number} of {self.name} has {rows.shape[1]} columns instead of {width}."
                )
            seen.append(_fingerprint(rows))
            if self._seen is not None and not self._same(seen[number], number):
                raise self._changed(number)
            if rows.shape[0]:
                yield Chunk(rows, start)
            start += rows.shape[0]
            if self.progress is not None:
                self.progress(start, start / self.n_rows if self.n_rows else None)
        if self._seen is not None and len(seen) < len(self._seen):
            raise self._changed(len(seen))
        if self.n_rows is not None and start != self.n_rows:
            raise InvalidInput(f"{self.name} announces {self.n_rows} rows, but there are {start}.")
        if start == 0 and self._peeked:
            raise self._changed(0)
        if start == 0:
            raise InvalidInput(f"{self.name} gives no rows at all.")
        self._seen, self.n_rows = seen, start

    def _iterator(self) -> Iterable[Any]:
        batches = self._batches()
        if not hasattr(batches, "__iter__"):
            raise InvalidInput(
                f"{self.name} returned a {type(batches).__name__}, not an iterator of matrices."
            )
        return batches

    def _same(self, own: tuple[float, ...], number: int) -> bool:
        assert self._seen is not None
        return number < len(self._seen) and np.array_equal(own, self._seen[number], equal_nan=True)

    def _changed(self, number: int) -> InvalidInput:
        return InvalidInput(
            f"{self.name} gives other rows than in its first pass (chunk {number}): it was changed "
            "meanwhile, or its iterator is not made anew each time."
        )

    def _matrix(self, batch: Any, number: int) -> Any:
        """A batch as CSR or dense rows of finite numbers."""
        where = f"Chunk {number} of {self.name}"
        self._take_names(batch, where)
        batch = batch if sp.issparse(batch) else np.asarray(batch)
        if batch.ndim != 2:
            raise InvalidInput(f"{where} is no table: it has {batch.ndim} dimensions instead of 2.")
        if sp.issparse(batch):
            check_sparse(batch)
            batch = sp.csr_array(batch)
        if batch.dtype == object:  # a frame with columns of several kinds
            with contextlib.suppress(TypeError, ValueError):
                batch = batch.astype(np.float64)
        if batch.dtype.kind not in "fiub":
            raise InvalidInput(f"{where} holds {batch.dtype} instead of numbers.")
        if batch.dtype not in (np.float32, np.float64):
            batch = batch.astype(np.float64)
        values = batch.data if sp.issparse(batch) else batch
        if not np.isfinite(_total(values)) and not self._all_sound(values):
            raise InvalidInput(f"{where} holds NaN or infinity{_place(batch)}.")
        return batch

    def _take_names(self, batch: Any, where: str) -> None:
        """Names of the columns of frames, which are those of all chunks."""
        names = getattr(batch, "columns", None)
        if names is None or not all(isinstance(name, str) for name in names):
            return
        if self.words is None:
            self.words, self.named = list(names), True
        elif self.named and list(names) != self.words:
            raise InvalidInput(f"{where} has other columns than those before it: {list(names)}.")

    def with_missing(self) -> Source:
        """The same rows, among which NaN stands for a missing cell."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), allow_nan=True)
        return other

    def _all_sound(self, values: np.ndarray) -> bool:
        """Whether all values are finite, or missing where that is allowed."""
        return bool((np.isfinite(values) | (np.isnan(values) & self.allow_nan)).all())

    def gather(self) -> Any:
        """All rows in one matrix in memory, sparse if the chunks are."""
        parts = [chunk.rows if sp.issparse(chunk.rows) else np.array(chunk.rows) for chunk in self]
        if not any(map(sp.issparse, parts)):
            rows = np.concatenate(parts)
            if not self.named:
                return rows
            import pandas  # the frames were pandas' own, or like it

            return pandas.DataFrame(rows, columns=self.words)
        return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts], format="csr"))

    def __counts__(self) -> tuple[Any, list[Any] | None, Any]:
        """What a topic model reads: counts in memory, their words, and no counter."""
        return self.gather(), self.words, None


def _place(batch: Any) -> str:
    """Where the first value stands that is not finite."""
    table = batch.tocoo() if sp.issparse(batch) else None
    if table is not None:
        first = int(np.flatnonzero(~np.isfinite(table.data))[0])
        return f" (row {table.coords[0][first]}, column {table.coords[1][first]} of the chunk)"
    row, column = np.argwhere(~np.isfinite(batch))[0]
    return f" (row {row}, column {column} of the chunk)"


def _total(values: np.ndarray) -> float:
    with np.errstate(all="ignore"):  # large values may have no sum
        return float(values.sum(dtype=np.float64))


def _fingerprint(rows: Any) -> tuple[float, ...]:
    """A few sums that other rows hardly have; far cheaper than a product."""
    if not sp.issparse(rows):
        return (*rows.shape, _total(rows), _total(rows[:: max(1, len(rows) // 64)]))
    starts = int(rows.indptr[:: max(1, rows.shape[0] // 64)].sum(dtype=np.int64))
    place = int(rows.indices.sum(dtype=np.int64))
    return (*rows.shape, _total(rows.data), place, starts)


def from_matrix(X: Any, *, name: str = "X", words: Sequence[Any] | None = None) -> Source:
    """A matrix in memory, or a memory map, in chunks that share its memory."""
    if sp.issparse(X):
        check_sparse(X)
        X = sp.csr_array(X)
        cuts = row_blocks(X)
    else:
        size = max(1, DENSE_CHUNK // max(1, X.shape[1]))
        edges = np.linspace(0, len(X), max(1, -(-len(X) // size)) + 1).astype(int).tolist()
        cuts = list(itertools.pairwise(edges))
    n, d = X.shape
    found = Source(
        lambda: (rows_of(X, start, stop) for start, stop in cuts),
        width=d, n_rows=n, name=name, words=words,
    )  # fmt: skip
    found.given_chunks = False
    return found


def with_column(source: Source, values: np.ndarray) -> Source:
    """The same rows with one more column behind, whose values (n,) are in memory."""

    def batches() -> Iterator[np.ndarray]:
        stop = 0
        for rows, start in source:
            stop = start + rows.shape[0]
            if stop > len(values):
                break
            dense = rows.toarray() if sp.issparse(rows) else rows
            yield np.column_stack([dense, values[start:stop]])
        if stop != len(values):
            there = f"more than {len(values)}" if stop > len(values) else stop
            raise InvalidInput(f"y has {len(values)} entries, but {source.name} has {there} rows.")

    return Source(batches, width=source.width + 1, name=source.name, words=source.words)


def rows_of(X: Any, start: int, stop: int) -> Any:
    """Rows start..stop-1 that share the memory of X."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
    return sp.csr_array(parts, shape=(stop - start, X.shape[1]), copy=False)
