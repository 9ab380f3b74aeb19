"""Chunk sources: where documents come from, cut in pieces that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import as_rows, to_numpy
from thirdmoment.moments.words import Documents

# One chunk for each so many stored counts, at most so many chunks: enough for eight threads,
# few enough that the per-chunk results (a thin block of d rows each) stay small.
CHUNK_NONZEROS = 100_000
MAX_CHUNKS = 8


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


def documents(X: Any, sample_weight: np.ndarray | None = None, *, offset: int = 0) -> Documents:
    """One chunk of documents from a block of rows."""
    rows = as_rows(X)
    lengths = np.asarray(to_numpy(rows.lengths()), dtype=np.float64)
    weights = np.ones(rows.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    return Documents(rows, lengths, weights.astype(np.float64), offset)


def corpus(X: Any, sample_weight: np.ndarray | None = None) -> Corpus:
    """Cut counts in memory (SciPy sparse, NumPy) into chunks of about equal work."""
    X = sp.csr_array(X)
    n_chunks = int(np.clip(X.nnz // CHUNK_NONZEROS, 1, min(MAX_CHUNKS, max(X.shape[0], 1))))
    marks = np.searchsorted(X.indptr, np.linspace(0, X.nnz, n_chunks + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], marks, [X.shape[0]]]))
    chunks = []
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        weight = None if sample_weight is None else sample_weight[start:stop]
        chunks.append(documents(X[start:stop], weight, offset=int(start)))
    return Corpus(tuple(chunks), X.shape, int(X.nnz))
