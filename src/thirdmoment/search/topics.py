"""One topic from a word, some documents or a direction, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import map_in_order, single_threaded_blas
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import (
    MomentEstimator,
    all_or_nothing,
    check_integer,
    check_jobs,
    check_option,
    check_positive,
    check_weights,
)
from thirdmoment.models.topics.counts import read_counts, training_counts
from thirdmoment.models.topics.start import moment_options
from thirdmoment.recovery.search import FoundComponent, alignment, whitened_search
from thirdmoment.search.component import preparation_report
from thirdmoment.search.topic_component import TopicComponent, topic_component, word_law
from thirdmoment.search.topic_index import SearchMatrix, prepare
from thirdmoment.search.vocabulary import (
    check_frequency,
    check_strength,
    refuse_texts,
    word_columns,
)

# Documents weigh L/(L + HALF_LENGTH), for triples of words from short documents are the noisiest,
# and words are scaled by mean^(-WORD_POWER) before whitening (docs/decisions/search.md).
HALF_LENGTH = 1000.0
WORD_POWER = 0.5


class TopicSearch(MomentEstimator):
    """Find the one topic that a word, a few documents or a direction points at.

    ``fit`` gathers the second moment of words and whitens the documents once; a query then reads
    the documents that contain its words and solves one small eigenproblem, which takes
    milliseconds. No other topic is computed. Every answer says whether the hint was informative.

    Parameters
    ----------
    n_components : int, default=50
        Number of topics k that the corpus is thought to have. More topics make the answers more
        specific and noisier.
    concentration : "auto" or float, default="auto"
        Total concentration alpha0 of the Dirichlet prior: 0 for documents of one topic each,
        larger values for documents that mix many. ``"auto"`` takes the largest value up to 5 that
        the corpus allows, which serves text best; give the value where it is known.
    weighting : {"auto", "none"}, default="auto"
        Weight documents by length and scale words for even sampling noise; ``"none"`` is the
        plain estimator.
    random_state : int, RandomState or None, default=0
        Starting block of the eigensolver.
    n_jobs : int or None, default=None
        Threads of ``fit`` and ``search_many``; None uses every core.
    verbose : int, default=0

    Attributes
    ----------
    vocabulary_ : dict
        Column of each word.
    index_ : TopicIndex
        What queries read.
    concentration_ : float
        Total concentration that is assumed.
    n_components_ : int
        Topics that the second moment shows, at most ``n_components``.
    report_ : Report
        Spectrum and noise of the second moment.
    n_features_in_ : int

    References
    ----------
    Ray, Neeman, Sanghavi and Shakkottai (2018), The search problem in mixture models, JMLR 18.

    Examples
    --------
    >>> from thirdmoment import TopicSearch
    >>> from thirdmoment.datasets import make_lda_corpus
    >>> corpus = make_lda_corpus(2000, 300, 4)
    >>> words = [f"word{j}" for j in range(300)]
    >>> search = TopicSearch(4, concentration=1.0).fit(corpus.X, feature_names=words)
    >>> word = words[corpus.topics[2].argmax()]
    >>> topic = search.search(word)
    >>> abs(topic.parameters - corpus.topics[2]).sum() < 0.2
    np.True_
    >>> len(topic.top_words(5)), topic.documents(3).shape
    (5, (3,))
    """

    def __init__(
        self,
        n_components: int = 50,
        *,
        concentration: str | float = "auto",
        weighting: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.concentration = concentration
        self.weighting = weighting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        sample_weight: Any = None,
    ) -> TopicSearch:
        """Prepare a corpus of word counts X (n_samples, n_features) for queries.

        Parameters
        ----------
        X : array or sparse matrix of counts
        y : ignored
        feature_names : sequence of str, optional
            Words in column order; by default the column names of X, else column numbers.
        sample_weight : (n_samples,), optional
            How often each document counts.
        """
        k = check_integer("n_components", self.n_components, 1)
        a0 = self._given_concentration()
        check_option("weighting", self.weighting, ("auto", "none"))
        check_jobs(self.n_jobs)
        refuse_texts(X)
        X, dtype = read_counts(self, X, reset=True)
        names = self._names(feature_names)
        counts = training_counts(self, X, check_weights(sample_weight, X), k, dtype)
        options = moment_options(self.weighting, "auto", self._threads(), counts.X.nnz)
        if self.weighting == "auto":
            options = options._replace(half_length=HALF_LENGTH, word_power=WORD_POWER)
        self._log("preparing %d documents for %d topics", counts.X.shape[0], k)
        self.index_, facts = prepare(counts.X, counts.weights, k, a0, self._rng(), options)
        self.vocabulary_ = {name: j for j, name in enumerate(names)}
        self.words_ = list(names)
        self.input_unit_ = counts.unit
        self.n_components_ = self.index_.W.shape[1]
        self.concentration_ = self.index_.a0
        self.report_ = preparation_report(
            facts.spectrum,
            facts.noise,
            self.n_components_,
            passes=facts.passes,
            notes=self._notes(counts.too_short),
        )
        return self

    def _given_concentration(self) -> float | None:
        if isinstance(self.concentration, str):
            check_option("concentration", self.concentration, ("auto",))
            return None
        return check_positive("concentration", self.concentration, zero=True)

    def _notes(self, too_short: int) -> list[str]:
        """What the preparation has to say."""
        found, inside = [], float(self.index_.m_w @ self.index_.m_w)
        if too_short:
            found.append(f"{too_short} documents have fewer than three words, not to be searched.")
        if inside < 0.9:
            found.append(
                f"Only {inside:.0%} of the mean word law lies in the {self.n_components_} leading "
                f"directions: concentration={self.concentration_:g} is too large for so few "
                "topics, and weights will be too small. Lower it, or raise n_components."
            )
        return found

    def _names(self, feature_names: Sequence[str] | None) -> list[Any]:
        names: Any = feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        names = [name if isinstance(name, int) else str(name) for name in names]
        if len(names) != self.n_features_in_:
            raise InvalidInput(
                f"feature_names has {len(names)} names, but X has {self.n_features_in_} columns."
            )
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise InvalidInput(f"feature_names has {twice!r} twice; every word needs one column.")
        return names

    def search(
        self,
        words: Any = None,
        *,
        weights: Sequence[float] | None = None,
        negative: Any = None,
        documents: Any = None,
        vector: Any = None,
    ) -> TopicComponent:
        """The topic that a hint points at.

        Give words, documents or a vector.

        Parameters
        ----------
        words : str, int, or list of them
            Words the topic is about; several count by their lift, so that rare ones are heard.
        weights : sequence of float, optional
            Weight of each word.
        negative : str or list of str, optional
            Words the topic is not about.
        documents : matrix of counts with the columns of ``fit``, optional
            Documents that are mostly about the topic; they need not be part of the corpus.
        vector : (n_features,) array, optional
            Any direction v; the topic mu with the largest <mu, v> is found.

        Returns
        -------
        TopicComponent
            ``parameters`` is the word law; ``top_words`` and ``documents`` show it;
            ``informative`` and ``report`` say how far to trust it.
        """
        check_is_fitted(self)
        given = (
            words is not None or negative is not None,
            documents is not None,
            vector is not None,
        )
        if sum(given) != 1:
            raise InvalidInput(
                "Give exactly one kind of hint: words (with negative words if you like), "
                f"documents= or vector=; {sum(given)} were given."
            )
        with single_threaded_blas():
            if documents is not None:
                return self._from_documents(documents)
            if vector is not None:
                return self._from_vector(vector)
            return self._from_words(words, weights, negative)

    def search_many(self, hints: Iterable[Any]) -> list[TopicComponent]:
        """Topics of many hints, side by side on ``n_jobs`` threads.

        Parameters
        ----------
        hints : iterable
            Each a word, a list of words, or a dict with the arguments of ``search``.
        """
        check_is_fitted(self)
        hints = list(hints)

        def one(hint: Any) -> TopicComponent:
            return self.search(**hint) if isinstance(hint, Mapping) else self.search(hint)

        return list(map_in_order(one, hints, n_threads=self._threads()))

    def save(self, path: str | Path) -> None:
        """Write the prepared corpus to one file, from which `load` maps it into memory."""
        check_is_fitted(self)
        joblib.dump(self, path)

    @classmethod
    def load(cls, path: str | Path) -> TopicSearch:
        """A search saved by `save`; arrays stay on disk and are read as queries need them.

        Like any pickle, a file must come from someone you trust.
        """
        found = joblib.load(path, mmap_mode="r")
        if not isinstance(found, cls):
            raise InvalidInput(f"{path} holds a {type(found).__name__}, not a {cls.__name__}.")
        return found

    def _from_words(self, words: Any, weights: Any, negative: Any) -> TopicComponent:
        plus, minus = (
            word_columns(hint, self.vocabulary_, self.words_) for hint in (words, negative)
        )
        shared = sorted({self.words_[j] for j in set(plus) & set(minus)}, key=str)
        if shared:
            raise InvalidInput(
                f"The hints contradict each other: {shared[0]!r} is given as a word of the topic "
                "and as a negative one."
            )
        if not plus:
            raise InvalidInput("No word is given; negative words alone point at no topic.")
        strength = check_strength(weights, len(plus))
        for column in (*plus, *minus):
            check_frequency(self.words_[column], self.index_.usable_documents(column))
        index = self.index_
        columns = [*plus, *minus]
        if len(columns) == 1:
            query = index.word(columns[0])
        else:  # weights by lift: plain sums are ruled by the most frequent word (section 7)
            signed = np.concatenate([strength, -np.full(len(minus), strength.mean())])
            lift = signed / index.mean[columns]
            parts = [index.word(column) for column in columns]
            query = SearchMatrix(
                *(
                    np.einsum("i,i...->...", lift, np.stack([part[slot] for part in parts]))
                    for slot in range(3)
                )
            )
        found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
        law = word_law(found)
        lifts = law[0][columns] / index.mean[columns]
        details, extra = self._word_details(plus, minus, found.direction, law[0], lifts)
        with np.errstate(divide="ignore"):
            score = float(np.log(np.average(lifts[: len(plus)], weights=strength)))
        return self._answer(query, found, law, label_score=score, details=details, extra=extra)

    def _word_details(
        self,
        plus: list[int],
        minus: list[int],
        direction: np.ndarray,
        law: np.ndarray,
        lifts: np.ndarray,
    ) -> tuple[dict[str, Any], list[str]]:
        """Rank and documents of each word, and hints that do not agree with the others."""
        index = self.index_
        names = [self.words_[j] for j in plus]
        ranks = [int(np.sum(law > law[j])) + 1 for j in plus]
        sizes = [index.documents_of(j) for j in plus]
        own = [alignment(direction, index.unwhitener[j].astype(np.float64)) for j in plus]
        details = {
            "rank": dict(zip(names, ranks, strict=True)),
            "documents": {n: s.stop - s.start for n, s in zip(names, sizes, strict=True)},
            "word_alignment": dict(zip(names, own, strict=True)),
        }
        extra = []
        off = [name for name, lift in zip(names, lifts, strict=False) if not lift > 1]
        if off and len(plus) > 1:
            extra.append(
                f"The words do not agree: {', '.join(map(repr, off))} is no more frequent in this "
                "topic than in the corpus."
            )
        kept = [self.words_[j] for j, lift in zip(minus, lifts[len(plus) :], strict=True)
                if lift > 1]  # fmt: skip
        if kept:
            extra.append(
                f"The topic still holds the negative word {kept[0]!r}: the hints contradict each "
                "other."
            )
        return details, extra

    def _from_documents(self, documents: Any) -> TopicComponent:
        X, _ = read_counts(self, documents, reset=False)
        X = X / self.input_unit_ if self.input_unit_ != 1 else X
        lengths = np.asarray(X.sum(axis=1)).ravel()
        used = lengths > 0
        if not used.any():
            raise InvalidInput(
                f"None of the {X.shape[0]} documents holds a word of the vocabulary, so they "
                "point at no topic."
            )
        index = self.index_
        frequency = np.asarray((X[used] / lengths[used][:, None]).sum(axis=0)).ravel()
        frequency /= frequency.sum()
        hint = index.W.T.astype(np.float64) @ frequency  # Wᵀx̄
        query = index.direction(index.W.astype(np.float64) @ hint)  # v = WWᵀx̄ (SR-24)
        found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
        law = word_law(found)
        ratio = np.log((0.9 * law[0] + 0.1 * index.mean + 1e-12) / (index.mean + 1e-12))
        details = {"labels": int(used.sum()), "empty_labels": int((~used).sum())}
        score = float(frequency @ ratio)
        return self._answer(query, found, law, label_score=score, details=details, hint=hint)

    def _from_vector(self, vector: Any) -> TopicComponent:
        v = np.asarray(vector, dtype=np.float64)
        if v.shape != (self.n_features_in_,):
            raise InvalidInput(
                f"vector has shape {v.shape}; a direction has {self.n_features_in_} entries, one "
                "a word."
            )
        if not np.isfinite(v).all() or not np.any(v):
            raise InvalidInput("vector is zero or not finite, so it points at no topic.")
        query = self.index_.direction(v / np.abs(v).max())
        found = whitened_search(query.M, self.index_.m_w, self.index_.unwhitener, query.v_w)
        return self._answer(query, found, word_law(found))

    def _answer(
        self,
        query: SearchMatrix,
        found: FoundComponent,
        law: tuple[np.ndarray, float],
        **facts: Any,
    ) -> TopicComponent:
        return topic_component(query, found, law, self.index_, self.words_, **facts)
