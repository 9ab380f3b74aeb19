"""Topics from batches that come one after another: nothing is seen twice.

Beyond the documents that are kept (kept.py) moments of all documents are summed in a
basis that the kept ones have fixed (starts/word_stream.py), and the expected counts of each batch
under the topics of that moment are added to those of all before it. Where the moments are trusted
the topics are theirs, elsewhere those of the counts (docs/decisions/streams.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment._constants import Choice
from thirdmoment.exceptions import InputWarning, UnusableMoments, warn
from thirdmoment.likelihood.documents import SMOOTHING
from thirdmoment.metrics.alignment import align
from thirdmoment.models.topics.concentration import given_concentration
from thirdmoment.models.topics.kept import Batch, Kept, KeptDocuments
from thirdmoment.refinement.collapsed import topics_from
from thirdmoment.refinement.streamed import SweptCounts
from thirdmoment.refinement.topics import TRUSTED, UNTRUSTED, proportions
from thirdmoment.starts.word_stream import CAPTURED, StreamMoments
from thirdmoment.starts.words import WordMoments, moment_options
from thirdmoment.streaming import corpus, documents

# A batch counts (its share of all documents)^FORGETTING: topics of early batches were less exact.
FORGETTING: Choice[float] = 0.8


class Added(NamedTuple):
    """Expected counts of all documents so far, under the topics of their time."""

    words: np.ndarray  # (d, k)
    shares: np.ndarray  # (k,) of documents
    n: float

    def joined(self, new: SweptCounts, n: float, decay: float) -> Added:
        """The same with a batch of n documents."""
        before = decay * self.n
        total = before + n
        rate = (n / total) ** FORGETTING
        old, own = (1 - rate) * total / self.n, rate * total / n
        shares = old * self.shares + own * new.shares
        return Added(old * self.words + own * new.words, shares, total)


class TopicBatches(KeptDocuments):
    """``partial_fit`` of a topic model with documents of many topics."""

    _reads_tensors = frozenset(
        ("fit", "fit_transform", "transform", "score_samples", "score", "perplexity")
    )

    concentration: str | float
    concentration_: np.ndarray
    word_share_: np.ndarray
    mean_length_: float

    def _check_batch(self) -> None:
        given_concentration(self.concentration, self.n_components)

    def _step(self, state: dict[str, Any], kept: Kept | None, batch: Batch) -> None:
        """One batch beyond the kept documents."""
        rng, decay = self._rng(), batch.decay
        if kept is not None:  # for the last time
            early = kept.before(batch)
            threads = self._threads()
            options = moment_options(self.weighting, self.solver, threads, early[0].nnz)
            k = self.n_components
            state["moments"] = StreamMoments(corpus(*early), k, rng, options)
            state["kept"] = None
        moments, captured = state["moments"].with_batch(documents(batch.X, batch.weights))
        if captured < CAPTURED:
            warn(
                f"A batch is unlike the documents before it: of its words only {captured:.0%} lie "
                "in the directions of the first ones, next to those. Shuffle the documents before "
                "they are cut into batches, or start anew with fit.",
                InputWarning,
            )
        state["moments"] = moments if decay == 1 else state["moments"]
        found = self._estimate(moments, rng) if decay == 1 else None
        self._follow(state, batch, found)

    def _estimate(self, moments: StreamMoments, rng: np.random.Generator) -> WordMoments | None:
        try:
            found = moments.estimate(
                given_concentration(self.concentration, self.n_components),
                rng,
            )
        except UnusableMoments:
            return None
        return found if found.trusted else None

    def _follow(
        self, state: dict[str, Any], batch: Batch, found: WordMoments | None = None
    ) -> None:
        """Add the expected counts of a batch, and take the topics they give."""
        added = state.get("added") or self._begun(state["begun"])
        topics = self._believed(topics_from(added.words, SMOOTHING), found)
        total = added.words.sum(axis=0)
        priors = TRUSTED if found is not None else UNTRUSTED
        alpha = priors.share * np.asarray(self.concentration_, dtype=np.float64)
        new = SweptCounts(topics.T * total, alpha, priors.eta).update(
            documents(batch.X, batch.weights)
        )
        state["added"] = added.joined(new, float(batch.weights.sum()), batch.decay)
        self._take(state["added"], found)

    def _begun(self, n: float) -> Added:
        """Counts that the fitted topics imply for the documents, of weight n, they came from."""
        words = self.components_.T * (n * self.mean_length_ * self.word_share_)
        return Added(np.asarray(words, dtype=np.float64), n * np.asarray(self.weights_), n)

    def _believed(self, topics: np.ndarray, found: WordMoments | None) -> np.ndarray:
        """Topics of the counts, or those of trusted moments, in the order of the counts."""
        if found is None:
            return topics
        own = found.estimate.topics
        return own[align(own, topics)]

    def _take(self, added: Added, found: WordMoments | None) -> None:
        """Name the results; topics keep their places, so that names stay right."""
        dtype = self.components_.dtype
        self.components_ = self._believed(topics_from(added.words, SMOOTHING), found).astype(dtype)
        shares = proportions(added.shares)
        alpha0 = float(np.sum(self.concentration_)) if found is None else found.alpha0
        self.weights_ = shares.astype(dtype)
        self.concentration_ = (alpha0 * shares).astype(dtype)
        self.word_share_ = proportions(added.words.sum(axis=0)).astype(dtype)
        self.report_: Any = self.report_.outdated("later batches have changed the fit")
        self.topic_trust_ = self.report_.trust
