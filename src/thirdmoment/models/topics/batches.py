"""Topics from batches that come one after another: nothing is seen twice.

The first documents are kept, up to the size of the sample of a stream, and fitted together whenever
they have grown enough. Beyond that no document is kept: moments of all documents are summed in a
basis that the kept ones have fixed (starts/word_stream.py), and the expected counts of each batch
under the topics of that moment are added to those of all before it. Where the moments are trusted
the topics are theirs, elsewhere those of the counts (docs/decisions/streams.md).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice
from thirdmoment.exceptions import InputWarning, InvalidInput, UnusableMoments, warn
from thirdmoment.likelihood.documents import SMOOTHING
from thirdmoment.metrics.alignment import align
from thirdmoment.models.base import all_or_nothing, check_weights
from thirdmoment.models.topics import streamed
from thirdmoment.models.topics.concentration import given_concentration
from thirdmoment.models.topics.counts import from_corpus, read_counts
from thirdmoment.models.topics.estimator import TopicEstimator
from thirdmoment.models.topics.words import training_words
from thirdmoment.refinement.collapsed import topics_from
from thirdmoment.refinement.streamed import SweptCounts
from thirdmoment.refinement.topics import TRUSTED, UNTRUSTED, proportions
from thirdmoment.starts.word_stream import CAPTURED, StreamMoments
from thirdmoment.starts.words import WordMoments, moment_options
from thirdmoment.streaming import corpus, documents

# The kept documents are fitted anew when they are so many times as many as at the last fit.
GROWN: Choice[float] = 1.2

# A batch counts (its share of all documents)^FORGETTING: topics of early batches were less exact.
FORGETTING: Choice[float] = 0.8


class Kept(NamedTuple):
    """The first documents."""

    X: sp.csr_array
    weights: np.ndarray
    fitted: int  # how many there were at the last fit


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


class TopicBatches(TopicEstimator):
    """``partial_fit`` of a topic model with documents of many topics."""

    _unsaved = ("_batches",)  # documents do not belong into a saved model
    concentration: str | float
    concentration_: np.ndarray
    word_share_: np.ndarray
    mean_length_: float

    @abstractmethod
    def _fit(self, X: Any, sample_weight: Any, feature_names: Any) -> Any:
        """Learn from all documents at once."""

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
        decay: float = 1.0,
    ) -> Any:
        """Learn from one more batch of documents; see ``fit``.

        The first 50,000 documents are kept and fitted together, anew whenever they have grown by a
        fifth; after that each batch is seen once and forgotten (``report_`` then is "not checked").
        Batches should come in random order: a warning says when one is unlike the first. The first
        call after ``fit``, or after loading, starts anew; all batches have the same columns.

        Parameters
        ----------
        X : array or sparse matrix of counts, or a corpus
        y : ignored
        sample_weight : (n_samples,), optional
        feature_names : sequence of str or dict, optional
            Words of the columns, with the first batch.
        decay : float, default=1.0
            What is left of all documents before at each call; below 1 topics follow a stream that
            drifts, and only likelihood is used after the kept documents.

        Examples
        --------
        >>> import thirdmoment as tm
        >>> corpus = tm.datasets.make_lda_corpus(2000, 100, 3)
        >>> model = tm.LatentDirichletAllocation(3)
        >>> for start in range(0, 2000, 500):
        ...     model = model.partial_fit(corpus.X[start : start + 500])
        >>> tm.metrics.recovery_error(model.components_, corpus.topics) < 0.1
        True
        """
        if not (isinstance(decay, int | float) and 0 < decay <= 1):
            raise InvalidInput(f"decay={decay!r} must lie above 0 and at most at 1.")
        first = not hasattr(self, "_batches")
        counts, weights, words = self._read_batch(X, sample_weight, feature_names, first=first)
        state = {} if first else dict(self._batches)
        kept = state.get("kept")
        if first or kept is not None:
            kept = _grown(kept, counts, weights, decay)
        if kept is None or not _small(kept.X):
            self._step(state, kept, counts, weights, decay)
        elif first or kept.X.shape[0] >= GROWN * kept.fitted:
            self._refit(kept, words)
            state = {"kept": kept._replace(fitted=kept.X.shape[0])}
        else:
            self._follow(state, counts, weights, decay)
            state["kept"] = kept
        self.n_seen_: int = counts.shape[0] + (0 if first else self.n_seen_)
        self._batches: dict[str, Any] = state
        return self

    def _read_batch(
        self, X: Any, sample_weight: Any, feature_names: Any, *, first: bool
    ) -> tuple[sp.csr_array, np.ndarray, Any]:
        self._check_shared(self._refinements)
        given_concentration(self.concentration, self.n_components)
        counts, names, counter = from_corpus(X, feature_names)
        counts, _ = read_counts(self, counts, reset=first)
        if first:
            self.counter_ = counter
            names = training_words(self, names, counts.shape[1])
        elif np.any(counts.data != np.rint(counts.data)):
            raise InvalidInput("A batch has real values where word counts are expected.")
        w = check_weights(sample_weight, counts)
        return counts, np.ones(counts.shape[0]) if w is None else w, names

    def _refit(self, kept: Kept, words: Any) -> None:
        """All kept documents once more, as ``fit`` does."""
        counter = self.counter_
        names = words if words is not None else getattr(self, "words_", None)
        names = None if names is not None and not isinstance(names[0], str) else names
        self._fit(kept.X, kept.weights, names)
        self.counter_ = counter

    def _step(
        self,
        state: dict[str, Any],
        kept: Kept | None,
        X: sp.csr_array,
        weights: np.ndarray,
        decay: float,
    ) -> None:
        """One batch beyond the kept documents."""
        rng = self._rng()
        if kept is not None:  # for the last time
            early = kept.X[: kept.X.shape[0] - X.shape[0]], kept.weights[: -X.shape[0]]
            threads = self._threads()
            options = moment_options(self.weighting, self.solver, threads, early[0].nnz)
            k = self.n_components
            state["moments"] = StreamMoments(corpus(*early), k, rng, options)
            state["kept"] = None
        moments, captured = state["moments"].with_batch(documents(X, weights))
        if captured < CAPTURED:
            warn(
                f"A batch is unlike the documents before it: of its words only {captured:.0%} lie "
                "in the directions of the first ones, next to those. Shuffle the documents before "
                "they are cut into batches, or start anew with fit.",
                InputWarning,
            )
        state["moments"] = moments if decay == 1 else state["moments"]
        found = self._estimate(moments, rng) if decay == 1 else None
        self._follow(state, X, weights, decay, found)

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
        self,
        state: dict[str, Any],
        X: sp.csr_array,
        weights: np.ndarray,
        decay: float,
        found: WordMoments | None = None,
    ) -> None:
        """Add the expected counts of a batch, and take the topics they give."""
        added = state.get("added") or self._begun(X)
        topics = self._believed(topics_from(added.words, SMOOTHING), found)
        total = added.words.sum(axis=0)
        priors = TRUSTED if found is not None else UNTRUSTED
        alpha = priors.share * np.asarray(self.concentration_, dtype=np.float64)
        new = SweptCounts(topics.T * total, alpha, priors.eta).update(documents(X, weights))
        state["added"] = added.joined(new, float(weights.sum()), decay)
        self._take(state["added"], found)

    def _begun(self, X: sp.csr_array) -> Added:
        """Counts that the fitted topics imply for the documents they came from."""
        n = float(self.n_seen_)
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


def _grown(kept: Kept | None, X: sp.csr_array, weights: np.ndarray, decay: float) -> Kept:
    if kept is None:
        return Kept(X, weights, 0)
    rows = sp.csr_array(sp.vstack([kept.X, X], format="csr"))
    return Kept(rows, np.concatenate([decay * kept.weights, weights]), kept.fitted)


def _small(X: sp.csr_array) -> bool:
    return X.shape[0] <= streamed.SAMPLED and X.nnz <= streamed.SAMPLED_COUNTS
