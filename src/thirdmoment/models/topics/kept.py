"""``partial_fit`` of topic models: the first documents are kept and fitted together.

Up to the size of the sample of a stream all documents so far are kept, and fitted anew whenever
they have grown enough; beyond that each batch is seen once (docs/decisions/streams.md).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import all_or_nothing, check_weights
from thirdmoment.models.read import check_batch
from thirdmoment.models.topics import streamed
from thirdmoment.models.topics.counts import from_corpus, read_counts
from thirdmoment.models.topics.estimator import TopicEstimator
from thirdmoment.models.topics.words import training_words

# The kept documents are fitted anew when they are so many times as many as at the last fit.
GROWN: Choice[float] = 1.2


class Batch(NamedTuple):
    """Some documents, and what is left of all before them."""

    X: sp.csr_array
    weights: np.ndarray
    decay: float


class Kept(NamedTuple):
    """The first documents."""

    X: sp.csr_array
    weights: np.ndarray
    fitted: int  # how many there were at the last fit

    def before(self, batch: Batch) -> tuple[sp.csr_array, np.ndarray]:
        """Documents and weights without those of the last batch."""
        n = self.X.shape[0] - batch.X.shape[0]
        return self.X[:n], self.weights[:n]


class KeptDocuments(TopicEstimator):
    """Batches one after another; subclasses say what follows beyond the kept documents."""

    _unsaved = ("_batches",)  # documents do not belong into a saved model

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
        Batches should come in random order. The first
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
            drifts.

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
        check_batch(self, X)
        first = not hasattr(self, "_batches")
        counts, weights, words = self._read_batch(X, sample_weight, feature_names, first=first)
        state = {} if first else dict(self._batches)
        kept = state.get("kept")
        if first or kept is not None:
            kept = _grown(kept, counts, weights, decay)
        small = kept is not None and _small(kept.X)
        if not first and self.n_components != len(self.components_) and not small:
            raise InvalidInput(
                f"n_components={self.n_components}, but this stream was begun with "
                f"{len(self.components_)} topics. Call fit, or a new model, to begin again."
            )
        if kept is not None and (first or (small and kept.X.shape[0] >= GROWN * kept.fitted)):
            self._refit(kept, words)
            fitted = kept._replace(fitted=kept.X.shape[0])
            state = {"kept": fitted, "begun": float(kept.weights.sum())}
        elif not small:
            self._step(state, kept, Batch(counts, weights, decay))
        else:
            self._follow(state, Batch(counts, weights, decay))
            state["kept"] = kept
        self.n_seen_: int = counts.shape[0] + (0 if first else self.n_seen_)
        self._batches: dict[str, Any] = state
        return self

    def _check_batch(self) -> None:
        """Arguments that this model alone has."""

    def _read_batch(
        self, X: Any, sample_weight: Any, feature_names: Any, *, first: bool
    ) -> tuple[sp.csr_array, np.ndarray, Any]:
        self._check_shared(self._refinements)
        self._check_batch()
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

    @abstractmethod
    def _step(self, state: dict[str, Any], kept: Kept | None, batch: Batch) -> None:
        """One batch beyond the kept documents; ``kept`` is given for the last time, or None."""

    @abstractmethod
    def _follow(self, state: dict[str, Any], batch: Batch) -> None:
        """One batch of documents that are kept, between two fits."""


def _grown(kept: Kept | None, X: sp.csr_array, weights: np.ndarray, decay: float) -> Kept:
    if kept is None:
        return Kept(X, weights, 0)
    rows = sp.csr_array(sp.vstack([kept.X, X], format="csr"))
    return Kept(rows, np.concatenate([decay * kept.weights, weights]), kept.fitted)


def _small(X: sp.csr_array) -> bool:
    return X.shape[0] <= streamed.SAMPLED and X.nnz <= streamed.SAMPLED_COUNTS
