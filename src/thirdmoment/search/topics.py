"""One topic from a word, some documents or a direction, in milliseconds."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import blas_as_before, map_in_order, single_threaded_blas
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import (
    MomentEstimator,
    all_or_nothing,
    check_components,
    check_jobs,
    check_option,
    check_positive,
    check_weights,
)
from thirdmoment.models.topics.counts import read_counts, training_counts
from thirdmoment.models.topics.words import refuse_names, training_words
from thirdmoment.recovery.search import FoundComponent, whitened_search
from thirdmoment.refinement.two_parts import two_part_step
from thirdmoment.report import Finding
from thirdmoment.search.component import more_components, preparation_report
from thirdmoment.search.documents import labelled_documents, mean_frequency
from thirdmoment.search.themes import TEXT_LIMITS, Theme, read_theme, theme_doubts
from thirdmoment.search.topic_component import (
    TopicComponent,
    topic_component,
    word_details,
    word_law,
)
from thirdmoment.search.topic_index import SearchMatrix, prepare
from thirdmoment.search.vocabulary import (
    check_frequency,
    check_strength,
    word_columns,
)
from thirdmoment.starts.words import moment_options

# Documents weigh L/(L + HALF_LENGTH), for triples of words from short documents are the noisiest,
# and words are scaled by mean^(-WORD_POWER) before whitening (docs/decisions/search.md).
HALF_LENGTH = 1000.0
WORD_POWER = 0.5

# Weights of a topic that a likelihood step believes in.
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 0.5


class TopicSearch(MomentEstimator):
    """Find the one topic that a word, a few documents or a direction points at.

    ``fit`` gathers the second moment of words and whitens the documents once; a query then reads
    the documents that contain its words and solves one small eigenproblem, which takes
    milliseconds. No other topic is computed. Every answer says whether the hint was informative.

    Parameters
    ----------
    n_components : int, default=20
        Number of topics k that the corpus is thought to have. More topics make the answers more
        specific and noisier.
    concentration : "auto" or float, default="auto"
        Total concentration alpha0 of the Dirichlet prior: 0 for documents of one topic each,
        larger values for documents that mix many. ``"auto"`` takes that of the third moment where
        the topics explain it up to sampling noise, as `LatentDirichletAllocation` does, and 1
        elsewhere, also with fewer than 3 or more than 60 topics.
    weighting : {"auto", "none"}, default="auto"
        Weight documents by length, scale words for even sampling noise, and sharpen the topic of
        words by a likelihood step where the model does not hold; ``"none"`` is the plain
        estimator.
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

    _layout = 2

    def __init__(
        self,
        n_components: int = 20,
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
        feature_names: Any = None,
        sample_weight: Any = None,
    ) -> TopicSearch:
        """Prepare a corpus of word counts X (n_samples, n_features) for queries.

        Parameters
        ----------
        X : array or sparse matrix of counts
        y : ignored, as in scikit-learn
        feature_names : sequence of str or dict, optional
            Words in column order, or the column of each word (``vocabulary_`` of a vectorizer); by
            default the column names of X, else column numbers.
        sample_weight : (n_samples,), optional
            How often each document counts.
        """
        k = check_components(self.n_components)
        a0 = self._given_concentration()
        check_option("weighting", self.weighting, ("auto", "none"))
        check_jobs(self.n_jobs)
        refuse_names(y)
        X, dtype = read_counts(self, X, reset=True)
        names = training_words(self, feature_names, X.shape[1])
        weights = check_weights(sample_weight, X)
        counts = training_counts(self, X, weights, k, dtype)
        options = moment_options(self.weighting, "auto", self._threads(), counts.X.nnz)
        if self.weighting == "auto":
            options = options._replace(half_length=HALF_LENGTH, word_power=WORD_POWER)
        self._log("preparing %d documents for %d topics", counts.X.shape[0], k)
        self.index_, facts = prepare(counts.X, counts.weights, k, a0, self._rng(), options)
        self._used = np.ones(X.shape[0], bool) if weights is None else weights > 0
        self.vocabulary_ = {name: j for j, name in enumerate(names)}
        self.words_ = list(names)
        self.n_components_ = self.index_.W.shape[1]
        self.concentration_ = self.index_.a0
        self.report_ = preparation_report(
            facts.spectrum,
            facts.noise,
            self.n_components_,
            passes=facts.passes,
            notes=self._notes(counts.too_short),
        )
        self._doubts = more_components(facts.spectrum, facts.noise, self.n_components_)
        return self

    def _given_concentration(self) -> float | None:
        if isinstance(self.concentration, str):
            check_option("concentration", self.concentration, ("auto",))
            return None
        return check_positive("concentration", self.concentration, zero=True)

    def _notes(self, too_short: int) -> list[Finding]:
        """What the preparation has to say."""
        found, inside = [], float(self.index_.m_w @ self.index_.m_w)
        if too_short:
            text = f"{too_short} documents have fewer than three words, not to be searched."
            found.append(Finding("short documents", text))
        if inside < 0.9:
            text = (
                f"concentration={self.concentration_:g} is too large for so few topics: only "
                f"{inside:.0%} of the mean document lies in the {self.n_components_} leading "
                "directions, and weights will be too small."
            )
            found.append(Finding("concentration", text, "Lower it, or raise n_components.", "care"))
        return found

    @blas_as_before
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
        documents : matrix of counts with the columns of ``fit``, or row numbers, optional
            Documents that are mostly about the topic, from elsewhere or rows of the corpus.
        vector : (n_features,) array, optional
            Any direction v; the topic mu with the largest <mu, v> is found.

        Returns
        -------
        TopicComponent
            ``parameters`` is the word law; ``top_words`` and ``documents`` show it;
            ``informative`` and ``report`` say how far to trust it.
        """
        check_is_fitted(self)
        by_words = words is not None or negative is not None
        given = [by_words, documents is not None, vector is not None]
        if weights is not None and not by_words:
            raise InvalidInput("weights= are those of words; documents and vectors have none.")
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

    @blas_as_before
    def search_many(self, hints: Iterable[Any]) -> list[TopicComponent]:
        """Topics of many hints, side by side on ``n_jobs`` threads.

        Parameters
        ----------
        hints : iterable
            Each a word, a list of words, or a dict with the arguments of ``search``.
        """
        check_is_fitted(self)
        if isinstance(hints, str):
            raise InvalidInput(
                f"hints is one word, {hints!r}; give a list of hints, or use search."
            )
        hints = list(hints)

        def one(hint: Any) -> TopicComponent:
            return self.search(**hint) if isinstance(hint, Mapping) else self.search(hint)

        return list(map_in_order(one, hints, n_threads=self._threads()))

    def save(self, path: str | Path) -> None:
        """Write the prepared corpus to one file, from which `load` maps it into memory."""
        check_is_fitted(self)
        path = Path(path)
        # never into a file that may be mapped, never half written
        written = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            joblib.dump(self, written)
            os.replace(written, path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | Path) -> TopicSearch:
        """A search saved by `save`; arrays stay on disk and are read as queries need them.

        Like any pickle, a file must come from someone you trust.
        """
        try:
            found = joblib.load(path, mmap_mode="r")
            if isinstance(found, cls):
                found.index_.check()
        except (FileNotFoundError, InvalidInput):
            raise
        except Exception as error:
            raise InvalidInput(f"{path} is no file written by {cls.__name__}.save.") from error
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
            first, *others = (index.word(column) for column in columns)
            query = first.combined(others, lift)
        found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
        law = word_law(found)
        near = self._near(plus, minus) if self._text else None
        sharp = self._sharpened(law[0], found, near)
        details, extra = word_details(self.words_, index, plus, minus, found.direction, sharp)
        shown = law[0][plus] / index.mean[plus]
        with np.errstate(divide="ignore"):
            score = float(np.log(np.average(shown, weights=strength)))
        facts: dict[str, Any] = {"label_score": score, "details": details, "extra": extra}
        if self._text:
            under = self._under(query)
            laws = [self._sharpened(word_law(one)[0], one, near) for one in under]
            self._add_theme(facts, read_theme(sharp, index, plus, laws))
            facts["limits"] = TEXT_LIMITS
        return self._answer(query, found, (sharp, law[1]), **facts)

    @property
    def _text(self) -> bool:
        """Whether the words of answers are read: the model is not borne out by the moments."""
        return not self.index_.trusted and self.weighting != "none"

    def _under(self, query: SearchMatrix) -> list[FoundComponent]:
        """What the query finds under half and twice the concentration."""
        a0 = self.index_.a0
        return [self.index_.under(other, query) for other in ((a0 / 2, 2 * a0) if a0 else (0.5,))]

    def _add_theme(self, facts: dict[str, Any], theme: Theme) -> None:
        """The verdict of the words themselves, beside what else is known."""
        told = theme._asdict()
        del told["rank"]  # that of each word is among the details
        facts["details"] = {**facts.get("details", {}), **told}
        facts["extra"] = [*facts.get("extra", ()), *theme_doubts(theme)]

    def _near(self, plus: list[int], minus: list[int]) -> tuple[sp.csr_array, np.ndarray]:
        """Documents that hold a word of the hint and no negative one, and their weights."""
        rows = self.index_.documents_with(plus, minus)
        return self.index_.X[rows], self.index_.weights[rows]

    def _sharpened(
        self, law: np.ndarray, found: FoundComponent, near: tuple[sp.csr_array, np.ndarray] | None
    ) -> np.ndarray:
        """The word law after a likelihood step on the documents near the hint, if given."""
        if near is None:
            return law
        share = float(np.clip(np.nan_to_num(found.weight), LEAST_WEIGHT, MOST_WEIGHT))
        return two_part_step(*near, law, share, self.index_.mean)

    def _from_documents(self, documents: Any) -> TopicComponent:
        """Two directions, whitened (SR-24) and by lift; the one that stands out more is taken.

        Whitening is exact and amplifies the noise of few labels; lift, as for words, is robust.
        """
        X = labelled_documents(self, documents)
        frequency, details = mean_frequency(X)
        index = self.index_
        hint = index.W.T.astype(np.float64) @ frequency  # Wᵀx̄
        seen = index.mean > 0
        lift = np.where(seen, frequency / np.where(seen, index.mean, 1.0), 0.0)
        answers = []
        for v in (index.W.astype(np.float64) @ hint, lift):
            if not np.any(v):
                continue
            query = index.direction(v / np.abs(v).max())
            found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
            law = word_law(found)
            ratio = np.log((0.9 * law[0] + 0.1 * index.mean + 1e-12) / (index.mean + 1e-12))
            facts: dict[str, Any] = {"label_score": float(frequency @ ratio), "details": details}
            self._read(facts, query, law[0])
            answers.append(self._answer(query, found, law, hint=hint, **facts))
        return max(answers, key=lambda answer: answer.report.gap_snr)

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
        law, facts = word_law(found), dict[str, Any]()
        self._read(facts, query, law[0])
        return self._answer(query, found, law, **facts)

    def _read(self, facts: dict[str, Any], query: SearchMatrix, law: np.ndarray) -> None:
        """Read the words of an answer that has no words as its hint."""
        if self._text:
            others = [word_law(one)[0] for one in self._under(query)]
            self._add_theme(facts, read_theme(law, self.index_, [], others))

    def _answer(
        self,
        query: SearchMatrix,
        found: FoundComponent,
        law: tuple[np.ndarray, float],
        **facts: Any,
    ) -> TopicComponent:
        doubts = () if "limits" in facts else self._doubts
        facts["extra"] = (*doubts, *facts.get("extra", ()))
        return topic_component(query, found, law, self.index_, self.words_, self._used, **facts)
