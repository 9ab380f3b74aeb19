"""Chunk sources: where documents come from, cut in pieces that do not depend on the machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import as_rows, content_signs, row_blocks, to_numpy
from thirdmoment.moments.words import Documents


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
        part = _rows_of(X, start, stop)
        chunks.append(documents(part, weight, signs=signs[start:stop]))
    return Corpus(tuple(chunks), X.shape, int(X.nnz))


def _rows_of(X: sp.csr_array, start: int, stop: int) -> sp.csr_array:
    """Rows start..stop-1 that share the memory of X."""
    first, last = X.indptr[start], X.indptr[stop]
    parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
    return sp.csr_array(parts, shape=(stop - start, X.shape[1]), copy=False)


def row_ranges(n: int, *, size: int = 10_000) -> list[tuple[int, int]]:
    """Fixed blocks of rows [start, stop), the same on any number of threads."""
    count = max(1, -(-n // size))
    edges = np.linspace(0, n, count + 1).astype(int).tolist()
    return list(itertools.pairwise(edges))
