"""Collapsed sweeps over documents, and sweeps that part one topic from a background.

The zero-order collapsed update (CVB0; Asuncion, Welling, Smyth and Teh 2009) gives each distinct
word w of document a the responsibilities

    γ_j ∝ (N_aj - e_j + α_j) (N_wj - e_j + η) / (N_j + dη)

with N the expected counts and e the word's own share in them. Here all documents of a sweep read
the word counts of the last one, and e is taken from the counts themselves instead of being stored
for every word of every document. So the state is one (n, k) and one (d, k) array, the result does
not depend on the order of documents or the number of threads, and a document of weight two is the
same as two documents. docs/decisions/refinement.md has the measurements.

Each of these documents is taken for a mixture of the topic and of what the corpus is without it,
in a share of its own. One step of EM gives the topic the words it explains; more steps draw it to
whatever the documents have in common (docs/decisions/search.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    add_rows,
    array_namespace,
    by_halves,
    copied,
    if_room,
    in_fixed_order,
    is_tensors,
    like_one,
    made_by_halves,
    map_in_order,
    row_blocks,
    to_numpy,
    with_room,
)
from thirdmoment._constants import Choice, Work
from thirdmoment.likelihood.documents import fold_in
from thirdmoment.likelihood.tensor_documents import entries

# Sweeps run in float32 from this many stored counts on: half the memory traffic. Below it they run
# in float64, where a weight equals repetition to rounding.
SINGLE_PRECISION_FROM: Work[int] = 20_000

# Documents whose counts are in double precision together.
PART: Work[int] = 1_000_000


class CollapsedCounts(NamedTuple):
    """Expected counts after a sweep.

    Those of documents on a device are tensors of the host where it has no room for them.
    """

    documents: Array  # (n, k)
    words: Array  # (d, k)

    def kept(self) -> CollapsedCounts:
        """These counts, whatever later sweeps write over them."""
        if isinstance(self.documents, np.ndarray):
            return self._replace(documents=self.documents.copy())
        return self._replace(documents=copied(self.documents))


class Sweeper:
    """Sweeps over one set of documents; rows are cut into fixed blocks for the threads."""

    def __init__(self, X: sp.csr_array, weights: np.ndarray, *, eta: float, n_threads: int) -> None:
        self.dtype = np.dtype(np.float32 if X.nnz >= SINGLE_PRECISION_FROM else np.float64)
        self.X, self.eta, self.n_threads = X, self.dtype.type(eta), n_threads
        self.weights = weights
        self.arrays = (
            X.indptr.astype(np.int64, copy=False),
            X.indices.astype(np.int32, copy=False),
            X.data.astype(self.dtype),
            weights.astype(self.dtype),
        )
        self.blocks = row_blocks(X)

    def start(self, topics: np.ndarray, alpha: np.ndarray, *, n_steps: int = 2) -> CollapsedCounts:
        """Counts that topics (k, d) with shares alpha/alpha0 imply, documents folded in."""
        H = fold_in(topics, alpha, self.X, n_steps=n_steps, n_threads=self.n_threads)
        documents = (H * self.X.sum(axis=1)[:, None]).astype(self.dtype)
        return CollapsedCounts(documents, self.word_counts(topics, alpha))

    def word_counts(self, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Word-topic counts (d, k) of a corpus of this size with these topics."""
        total = max(float(self.weights @ self.X.sum(axis=1)), 1.0)
        return (topics.T * (total * alpha / alpha.sum())).astype(self.dtype)

    def sweep(self, counts: CollapsedCounts, alpha: np.ndarray) -> CollapsedCounts:
        """One sweep; ``counts.documents`` is updated in place."""
        from thirdmoment.refinement import _compiled

        d = self.X.shape[1]
        words = np.ascontiguousarray(counts.words)
        scale = (1 / (words.sum(axis=0, dtype=np.float64) + d * float(self.eta))).astype(self.dtype)
        prior = alpha.astype(self.dtype)

        def work(block: tuple[int, int]) -> np.ndarray:
            out = np.zeros_like(words)
            _compiled.collapsed_rows(
                *block, *self.arrays, counts.documents, words, scale, prior, self.eta, out
            )
            return out

        total = np.zeros_like(words)
        for part in map_in_order(work, self.blocks, n_threads=self.n_threads):
            total += part
        return CollapsedCounts(counts.documents, total)


class TensorSweeper:
    """The same over documents that are tensors of one device, in single precision.

    Words of a part of the documents are added in single precision, and these sums in double.
    """

    def __init__(self, X: Any, weights: Array, *, eta: float, n_threads: int = 1) -> None:
        self.X, self.eta = X.astype("float32"), float(eta)
        self.weights = weights
        self.arrays = self.X.asarray(weights).contiguous()
        self.total = max(float((weights * X.sum(axis=1)).sum()), 1.0)

    def start(self, topics: Array, alpha: Array, *, n_steps: int = 2) -> CollapsedCounts:
        def some(a: int, b: int) -> Array:
            rows = self.X.part(a, b)
            H = fold_in(topics, alpha, rows, n_steps=n_steps)
            H *= rows.asarray(rows.sum(axis=1))[:, None]
            return H

        documents = made_by_halves(some, self.X.shape[0])
        return CollapsedCounts(documents, self.word_counts(topics, alpha))

    def word_counts(self, topics: Array, alpha: Array) -> Array:
        topics, alpha = self.X.asarray(topics), self.X.asarray(alpha)
        return (topics.T * (self.total * alpha / alpha.sum())).contiguous()

    def sweep(self, counts: CollapsedCounts, alpha: Array) -> CollapsedCounts:
        xp, words = array_namespace(counts.words), counts.words
        totals = xp.sum(words, axis=0, dtype=xp.float64) + words.shape[0] * self.eta
        given = words, self.X.asarray(1 / totals), self.X.asarray(alpha), self.eta
        step, blocks = self._step(words.shape[1])
        documents = counts.documents
        if documents.device != words.device:  # where there was no room for all
            there = partial(with_room, partial(like_one, words, documents))
            documents = if_room(there, lambda: documents)

        def some(a: int, b: int) -> Array:
            N = like_one(words, documents[a:b, :])
            found = step(self.X.part(a, b), self.arrays[a:b], N, *given)
            if (N.device, N.dtype) != (documents.device, documents.dtype):  # it is a copy
                documents[a:b, :] = N
            return found

        total = xp.zeros_like(words, dtype=xp.float64)
        for a, b in blocks:
            for found in by_halves(some, b, a):
                total += found
        return CollapsedCounts(documents, self.X.asarray(total))

    def _step(self, k: int) -> tuple[Callable[..., Array], list[tuple[int, int]]]:
        """How documents are swept, and which of them at a time."""
        if self.X.compiled is None:
            return plain_sweep, self.X.ranges(k)
        from thirdmoment.refinement import _triton

        if not in_fixed_order():
            return _triton.sweep, self.X.parts()

        def in_order(*given: Any) -> Array:
            out = _triton.sweep_words(*given)
            _triton.sweep_documents(*given)  # which the words were made of
            return out

        return in_order, [(0, self.X.shape[0])]


def plain_sweep(
    X: Any, weights: Array, N: Array, words: Array, scale: Array, alpha: Array, eta: float
) -> Array:
    """One sweep in plain array operations: new counts (d, k), N (n, k) is replaced."""
    xp, tiny = array_namespace(words), 1e-12
    row, column, value = entries(X, 0, X.shape[0])
    h = xp.take(N + alpha, row, axis=0)
    own_words = xp.take(words, column, axis=0)
    g = h * (own_words + eta) * scale
    own = g / (xp.sum(g, axis=1) + 1e-30)[:, None]
    left = xp.clip(own_words - own + eta, min=tiny)
    g = xp.clip(h - own, min=tiny) * left * scale
    g = g * (value / xp.sum(g, axis=1))[:, None]
    out = add_rows(g * xp.take(weights, row)[:, None], column, words.shape[0])
    N[:, :] = add_rows(g, row, X.shape[0])
    return out


class DocumentSums(NamedTuple):
    """What documents have of each topic, each (k,) in double precision on the host."""

    even: np.ndarray  # proportions, every document alike
    whole: np.ndarray  # words
    most: np.ndarray  # words of one document, at most


def document_sums(documents: Array, weights: Array) -> DocumentSums:
    """Sums over expected counts (n, k) of documents with their weights (n,)."""
    n, k = documents.shape
    found = DocumentSums(*np.zeros((3, k)))

    def some(a: int, b: int) -> DocumentSums:
        w, each = weights[a:b], like_one(weights, documents[a:b, :])
        xp = array_namespace(w)
        length = xp.sum(each, axis=1)
        used = (w > 0) & (length > 0)
        even = xp.where(used, w / xp.where(used, length, 1.0), 0.0)
        most = xp.max(xp.where(used[:, None], each, 0.0), axis=0)
        return DocumentSums(*map(to_numpy, (even @ each, w @ each, most)))

    for a in range(0, n, PART):
        for part in by_halves(some, min(a + PART, n), a):
            found = DocumentSums(
                found.even + part.even, found.whole + part.whole, np.maximum(found.most, part.most)
            )
    return found


def sweeper_of(
    X: Any, weights: Array, *, eta: float, n_threads: int = 1
) -> Sweeper | TensorSweeper:
    """Sweeps on the host, or where the documents are."""
    kind = TensorSweeper if is_tensors(X) else Sweeper
    return kind(X, weights, eta=eta, n_threads=n_threads)


def topics_from(words: Array, smoothing: float) -> Array:
    """Topics (k, d) from word-topic counts (d, k), no entry zero; in double precision."""
    xp = array_namespace(words)
    topics = xp.astype(words.T, xp.float64) + smoothing
    return topics / xp.sum(topics, axis=1, keepdims=True)


SHARE_STEPS: Choice[int] = 3  # folding-in steps for the share of a document
# Of the mean distribution, for words that the topic holds nearly all of.
LEAST_BACKGROUND: Choice[float] = 0.05


def two_part_step(
    X: sp.csr_array, weights: np.ndarray, topic: np.ndarray, share: float, mean: np.ndarray
) -> np.ndarray:
    """The topic (d,) after one step over the documents X (m, d), each with its weight (m,).

    ``share`` is that of the topic in the corpus, ``mean`` (d,) the word distribution of the corpus.
    """
    from thirdmoment.refinement import _compiled

    background = np.maximum(mean - share * topic, LEAST_BACKGROUND * mean)
    background = np.maximum(background / background.sum(), 1e-300)
    counts = np.zeros(len(topic))
    _compiled.two_part_rows(
        weights.astype(np.float64),
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data,
        topic / background,
        SHARE_STEPS,
        counts,
    )
    return counts / counts.sum() if counts.sum() > 0 else topic
