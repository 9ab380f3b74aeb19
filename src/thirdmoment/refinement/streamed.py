"""The last sweeps over documents that are read in chunks.

Topics are refined on a sample first. Then every document is folded in under these topics, and one
collapsed update of its words adds to the counts of all: nothing is kept of a document between two
passes. A few passes bring the topics from the precision of the sample to that of all documents.
Documents that are held out of the sample, and all others with such keys, take no part; what they
say decides how many passes are good (docs/decisions/streams.md).
"""

from __future__ import annotations

import functools

import numpy as np

from thirdmoment._array import (
    Array,
    array_namespace,
    is_tensors,
    like_one,
    row_keys,
    to_numpy,
)
from thirdmoment._constants import Choice
from thirdmoment.likelihood.documents import SMOOTHING
from thirdmoment.moments.words import Documents
from thirdmoment.refinement.collapsed import (
    CollapsedCounts,
    document_sums,
    sweeper_of,
    topics_from,
)
from thirdmoment.refinement.topics import RefinedTopics, TopicRefiner, held_keys, proportions
from thirdmoment.streaming import StreamedCorpus, fold

# Passes after the sample, and steps that fold a document in.
PASSES: Choice[int] = 5
STEPS: Choice[int] = 10


class SweptCounts:
    """Expected word-topic counts (d, k) of documents, and their shares, under given topics."""

    def __init__(
        self, words: Array, alpha: np.ndarray, eta: float, *, guarded: bool = False
    ) -> None:
        self.given, self.alpha, self.eta, self.guarded = words, alpha, eta, guarded
        self.topics = topics_from(words, SMOOTHING)
        self.words = array_namespace(words).zeros_like(words)
        self.shares = np.zeros(len(alpha))  # every document alike
        self.largest = np.zeros(len(alpha))  # words that one document has of a topic, at most

    def update(self, chunk: Documents) -> SweptCounts:
        rows, weights = chunk.rows, chunk.weights
        xp = array_namespace(weights)
        if self.guarded:
            weights = xp.where(held_keys(row_keys(rows)), 0.0, weights)
        X = rows if is_tensors(rows) else rows.scipy()  # type: ignore[attr-defined]
        sweeper = sweeper_of(X, weights, eta=self.eta)
        begun = sweeper.start(self.topics, self.alpha, n_steps=STEPS)
        given = like_one(begun.words, self.given)
        swept = sweeper.sweep(CollapsedCounts(begun.documents, given), self.alpha)
        self.words += swept.words
        found = document_sums(swept.documents, weights)
        self.shares += found.even
        self.largest = np.maximum(self.largest, found.most)
        return self

    def merge(self, other: SweptCounts) -> SweptCounts:
        self.words += other.words
        self.shares += other.shares
        self.largest = np.maximum(self.largest, other.largest)
        return self


def finished(
    data: StreamedCorpus, refined: RefinedTopics, alpha0: float, refiner: TopicRefiner
) -> RefinedTopics:
    """The swept topics after more passes over all documents, as long as these pay."""
    if refined.chosen == "start":
        return refined
    eta, shares = refiner.priors.eta, refined.shares
    total, best = float(data.n_words), refined
    words = refined.guarded.T * like_one(refined.guarded, total * shares.words)
    judged = refiner.priors.share * alpha0 * shares.documents
    score = refiner.guard.score(refined.guarded, judged)
    for _ in range(PASSES):
        alpha = refiner.priors.share * alpha0 * shares.documents
        new = functools.partial(SweptCounts, words, alpha, eta, guarded=True)
        found = fold(new, data, n_threads=refiner.n_threads)
        words, each = found.words, to_numpy(found.words.sum(axis=0))
        shares = shares._replace(
            documents=proportions(found.shares),
            words=proportions(each),
            largest=found.largest / np.maximum(each, 1e-300),
        )
        topics, before = topics_from(words, SMOOTHING), score
        score = refiner.guard.score(topics, judged)
        if score <= before:
            break
        best = refined._replace(swept=topics, shares=shares)
    return best
