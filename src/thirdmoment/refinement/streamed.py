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

from thirdmoment._array import as_rows, row_keys
from thirdmoment._constants import Choice
from thirdmoment.likelihood.documents import SMOOTHING
from thirdmoment.moments.words import Documents
from thirdmoment.refinement.collapsed import CollapsedCounts, Sweeper, topics_from
from thirdmoment.refinement.topics import RefinedTopics, TopicRefiner, held_keys, proportions
from thirdmoment.streaming import StreamedCorpus, fold

# Passes after the sample, and steps that fold a document in.
PASSES: Choice[int] = 5
STEPS: Choice[int] = 10


class SweptCounts:
    """Expected word-topic counts (d, k) of documents, and their shares, under given topics."""

    def __init__(
        self, words: np.ndarray, alpha: np.ndarray, eta: float, *, guarded: bool = False
    ) -> None:
        self.given, self.alpha, self.eta, self.guarded = words, alpha, eta, guarded
        self.topics = topics_from(words, SMOOTHING)
        self.words = np.zeros(words.shape)
        self.shares = np.zeros(len(alpha))  # every document alike
        self.largest = np.zeros(len(alpha))  # words that one document has of a topic, at most

    def update(self, chunk: Documents) -> SweptCounts:
        X, weights = chunk.rows.scipy(), chunk.weights  # type: ignore[attr-defined]
        if self.guarded:
            weights = np.where(held_keys(row_keys(as_rows(X))), 0.0, weights)
        sweeper = Sweeper(X, weights, eta=self.eta, n_threads=1)
        begun = sweeper.start(self.topics, self.alpha, n_steps=STEPS)
        given = self.given.astype(sweeper.dtype)
        swept = sweeper.sweep(CollapsedCounts(begun.documents, given), self.alpha)
        self.words += swept.words
        each = swept.documents.astype(np.float64) * (weights > 0)[:, None]
        length = each.sum(axis=1)
        self.shares += (1 / np.maximum(length, 1e-300) * (length > 0)) @ each
        self.largest = np.maximum(self.largest, each.max(axis=0, initial=0.0))
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
    words = refined.guarded.T * (total * shares.words)
    judged = refiner.priors.share * alpha0 * shares.documents
    score = refiner.guard.score(refined.guarded, judged)
    for _ in range(PASSES):
        alpha = refiner.priors.share * alpha0 * shares.documents
        new = functools.partial(SweptCounts, words, alpha, eta, guarded=True)
        found = fold(new, data, n_threads=refiner.n_threads)
        words = found.words
        shares = shares._replace(
            documents=proportions(found.shares),
            words=proportions(words.sum(axis=0)),
            largest=found.largest / np.maximum(words.sum(axis=0), 1e-300),
        )
        topics, before = topics_from(words, SMOOTHING), score
        score = refiner.guard.score(topics, judged)
        if score <= before:
            break
        best = refined._replace(swept=topics, shares=shares)
    return best
