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

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import map_in_order, row_blocks
from thirdmoment._constants import Choice, Work
from thirdmoment.likelihood.documents import fold_in

# Sweeps run in float32 from this many stored counts on: half the memory traffic. Below it they run
# in float64, where a weight equals repetition to rounding.
SINGLE_PRECISION_FROM: Work[int] = 20_000


class CollapsedCounts(NamedTuple):
    """Expected counts after a sweep."""

    documents: np.ndarray  # (n, k)
    words: np.ndarray  # (d, k)


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


def topics_from(words: np.ndarray, smoothing: float) -> np.ndarray:
    """Topics (k, d) from word-topic counts (d, k), no entry zero."""
    topics = words.T.astype(np.float64) + smoothing
    return topics / topics.sum(axis=1, keepdims=True)


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
