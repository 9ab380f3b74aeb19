"""What topics say about documents: proportions by folding in, completion, draws.

The likelihood of a document is that of its words in the order they stand, so there is no
multinomial coefficient. (One topic for each document is the family of `likelihood.categories`.)

The folding-in step is H <- H ⊙ (R Cᵀ) + alpha, rows normalised, with R = X/(H C) on the support of
X: the expected topic counts of a document plus the prior. Documents are independent, so rows are
cut into fixed blocks that run side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import bdtr, ndtri

from thirdmoment._array import (
    Array,
    as_rows,
    blas_as_before,
    by_halves,
    effective_threads,
    is_tensors,
    joined,
    map_in_order,
    row_blocks,
    row_keys,
    scrambled,
)
from thirdmoment._constants import Choice
from thirdmoment.likelihood import tensor_documents
from thirdmoment.likelihood.tensor_documents import FLOOR, LARGE_COUNT

# Prior count of every word in every topic of a refined mixture: no word is impossible.
SMOOTHING: Choice[float] = 0.05


def draw_documents(laws: np.ndarray, length: float, rng: np.random.Generator) -> sp.csr_array:
    """Word counts (n, d) of documents with Poisson lengths, words drawn from the rows of laws."""
    laws = laws.astype(np.float64)
    laws = laws / laws.sum(axis=1, keepdims=True)
    lengths = rng.poisson(length, size=len(laws))
    rows = [rng.multinomial(m, law) for m, law in zip(lengths, laws, strict=True)]
    return sp.csr_array(sp.vstack([sp.csr_array(row[None, :].astype(np.float64)) for row in rows]))


def fold_in(
    topics: np.ndarray,
    alpha: np.ndarray,
    X: Any,
    *,
    n_steps: int = 100,
    tol: float = 0.0,
    n_threads: int | None = None,
) -> np.ndarray:
    """Proportions H (n, k), rows sum to one, of documents X (n, d) under topics (k, d).

    Stops a document when its proportions move by less than ``tol`` in L1. Cost n_steps·nnz·k.
    """
    if is_tensors(X):
        return tensor_documents.fold_in(topics, alpha, X, n_steps=n_steps, tol=tol)
    from thirdmoment.likelihood import _compiled

    X = sp.csr_array(X)
    words = _word_major(topics)
    H = np.full((X.shape[0], words.shape[1]), 1 / words.shape[1], dtype=np.float64)
    prior = np.ascontiguousarray(alpha, dtype=np.float64)
    arrays = _csr_arrays(X)

    def work(rows: tuple[int, int]) -> None:
        _compiled.fold_in_rows(*rows, *arrays, words, prior, n_steps, tol, H)

    _for_blocks(work, X, n_threads)
    return H


def word_log_likelihood(
    topics: np.ndarray, H: np.ndarray, X: Any, *, n_threads: int | None = None
) -> np.ndarray:
    """Σ_j x_j log(H C)_j of each document (n,)."""
    if is_tensors(X):
        return tensor_documents.word_log_likelihood(topics, H, X)
    from thirdmoment.likelihood import _compiled

    X = sp.csr_array(X)
    words = _word_major(topics)
    out = np.empty(X.shape[0])
    arrays = _csr_arrays(X)

    def work(rows: tuple[int, int]) -> None:
        _compiled.log_likelihood_rows(*rows, *arrays, words, H, out)

    _for_blocks(work, X, n_threads)
    return out


def completion_scores(
    topics: np.ndarray,
    alpha: np.ndarray,
    first: sp.csr_array,
    second: sp.csr_array,
    *,
    n_steps: int = 50,
    tol: float = 0.0,
    n_threads: int | None = None,
) -> np.ndarray:
    """Log-likelihood of the second half of each document given its first (n,)."""

    def some(one: Any, other: Any) -> Array:
        H = fold_in(topics, alpha, one, n_steps=n_steps, tol=tol, n_threads=n_threads)
        return word_log_likelihood(topics, H, other, n_threads=n_threads)

    if not is_tensors(first):
        return some(first, second)
    parts = by_halves(lambda a, b: some(first.part(a, b), second.part(a, b)), first.shape[0])
    return joined(list(parts))


def completed(
    topics: np.ndarray,
    alpha: np.ndarray,
    X: Any,
    seed: int,
    *,
    n_steps: int = 50,
    n_threads: int | None = None,
) -> tuple[Array, float]:
    """`completion_scores` (n,) of the two halves of each document, and the words of the second."""

    def some(rows: Any) -> tuple[Array, float]:
        first, second = split_counts(rows, seed)
        each = completion_scores(topics, alpha, first, second, n_steps=n_steps, n_threads=n_threads)
        return each, float(second.data.sum())

    if not is_tensors(X):
        return some(sp.csr_array(X))
    parts = by_halves(lambda a, b: some(X.part(a, b)), X.shape[0])
    each, words = zip(*parts, strict=True)
    return joined(each), sum(words)


def split_counts(X: Any, seed: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Split each count by Binomial(c, 1/2) into two halves; real values are rounded first.

    What is drawn hangs on the content of the document and the seed alone: in another order, or
    among other documents, a document is split alike.
    """
    if is_tensors(X):
        return tensor_documents.split_counts(X, seed)
    X = sp.csr_array(X)
    counts = np.rint(X.data)
    keys = scrambled(row_keys(as_rows(X)) + np.uint64(seed % 2**64))
    each = np.repeat(keys, np.diff(X.indptr)) ^ scrambled(X.indices.astype(np.uint64))
    uniform = (scrambled(each) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    part = _half_of(counts, uniform)
    halves = []
    for values in (part, counts - part):
        half = sp.csr_array((values, X.indices, X.indptr), shape=X.shape).copy()
        half.eliminate_zeros()
        halves.append(half)
    return halves[0], halves[1]


def _half_of(counts: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Draws of Binomial(c, 1/2) from uniform numbers; of its normal limit for large counts."""
    part = np.clip(np.rint(counts / 2 + np.sqrt(counts) / 2 * ndtri(uniform)), 0, counts)
    values, first = np.unique(np.sort(counts), return_index=True)
    groups = np.split(np.argsort(counts, kind="stable"), first)[1:]
    for c, own in zip(values, groups, strict=True):
        if c <= LARGE_COUNT:
            edges = bdtr(np.arange(c), int(c), 0.5)
            part[own] = np.searchsorted(edges, uniform[own], side="right")
    return part


def _word_major(topics: np.ndarray) -> np.ndarray:
    """Topics as (d, k), clipped and normalised: a word's row is contiguous."""
    C = np.clip(np.asarray(topics, dtype=np.float64), FLOOR, None)
    return np.ascontiguousarray((C / C.sum(axis=1, keepdims=True)).T)


def _csr_arrays(X: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float64, copy=False),
    )


@blas_as_before
def _for_blocks(
    work: Callable[[tuple[int, int]], None], X: sp.csr_array, n_threads: int | None
) -> None:
    """Rows are independent here, so the blocks may be small."""
    threads = effective_threads(None) if n_threads is None else n_threads
    blocks = row_blocks(X, nonzeros=4096, most=64)
    list(map_in_order(work, blocks, n_threads=threads))
