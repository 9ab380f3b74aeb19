"""One topic from a word, some documents or a direction, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import (
    blas_as_before,
    find_device,
    holds_tensors,
    map_in_order,
    single_threaded_blas,
    tensor_rows,
)
from thirdmoment._constants import Choice
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
from thirdmoment.models.topics.counts import from_corpus, read_counts, training_counts
from thirdmoment.models.topics.words import refuse_names, training_words
from thirdmoment.recovery.search import tell_rank
from thirdmoment.report import Finding
from thirdmoment.search.component import more_components, preparation_report
from thirdmoment.search.topic_answers import TopicAnswers
from thirdmoment.search.topic_component import TopicComponent
from thirdmoment.starts.topic_index import appended, prepare
from thirdmoment.starts.words import MomentOptions, moment_options

# Documents weigh L/(L + HALF_LENGTH), for triples of words from short documents are the noisiest,
# and words are scaled by mean^(-WORD_POWER) before whitening (docs/decisions/search.md).
HALF_LENGTH: Choice[float] = 1000.0

# Documents that are added change the directions of queries when they are so many times as many.
GROWN: Choice[float] = 1.2
WORD_POWER: Choice[float] = 0.5


class TopicSearch(TopicAnswers, MomentEstimator):
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
    device : str or None, default=None
        ``"cuda"`` prepares on a GPU, with PyTorch; counts that are tensors are taken where they
        are. Queries are answered on the host either way.
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

    _layout = 6
    _prepared: int
    _unit: float
    _divisor: float
    counter_: Any

    _reads_tensors = frozenset(("fit", "partial_fit"))

    def __init__(
        self,
        n_components: int = 20,
        *,
        concentration: str | float = "auto",
        weighting: str = "auto",
        random_state: Any = 0,
        device: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.concentration = concentration
        self.weighting = weighting
        self.random_state = random_state
        self.device = device
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
        refuse_names(y)
        return self._fit(X, feature_names, sample_weight)

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        feature_names: Any = None,
        sample_weight: Any = None,
    ) -> TopicSearch:
        """Add documents to the index; they can be found, and searched with, at once.

        The directions that queries look in are those of the last preparation. They are found anew
        from all documents when these have grown by a fifth.

        Parameters
        ----------
        X : array or sparse matrix of counts, or a corpus, with the columns of the first batch
        y : ignored
        feature_names : as in ``fit``, with the first batch
        sample_weight : (n_samples,), optional
            How often each document counts.

        Examples
        --------
        >>> import thirdmoment as tm
        >>> corpus = tm.datasets.make_lda_corpus(900, 60, 3)
        >>> search = tm.TopicSearch(3)
        >>> for start in range(0, 900, 300):
        ...     search = search.partial_fit(corpus.X[start : start + 300])
        >>> search.index_.X.shape
        (900, 60)
        """
        refuse_names(y)
        if not hasattr(self, "index_"):
            return self._fit(X, feature_names, sample_weight)
        X, _ = read_counts(self, tensor_rows(X).scipy() if holds_tensors(X) else X, reset=False)
        given = check_weights(sample_weight, X)
        weights = np.ones(X.shape[0]) if given is None else given
        used, old = weights > 0, self.index_
        rows, scaled = X[used] / self._unit, weights[used] / self._divisor
        grown = appended(old, sp.csr_array(rows), scaled, self._options(old.X.nnz + X.nnz))
        marks = np.concatenate([self._used, used])
        if grown.X.shape[0] < GROWN * self._prepared:
            self.index_, self._used = grown, marks
            return self
        names = None if not isinstance(self.words_[0], str) else self.words_
        counter = self.counter_
        whole = sp.csr_array(grown.X, dtype=np.float64) * self._unit
        self._fit(sp.csr_array(whole), names, grown.weights * self._divisor)
        self.counter_, self._used = counter, marks
        return self

    def _options(self, nnz: int) -> MomentOptions:
        options = moment_options(self.weighting, "auto", self._threads(), nnz)
        if self.weighting == "auto":
            options = options._replace(half_length=HALF_LENGTH, word_power=WORD_POWER)
        return options

    def _fit(self, X: Any, feature_names: Any, sample_weight: Any) -> TopicSearch:
        k = check_components(self.n_components)
        a0 = self._given_concentration()
        check_option("weighting", self.weighting, ("auto", "none"))
        check_jobs(self.n_jobs)
        device = None if self.device is None else find_device(self.device)
        if holds_tensors(X):
            rows = tensor_rows(X)
            device, X = rows.device if device is None else device, rows.scipy()
        X, feature_names, self.counter_ = from_corpus(X, feature_names)
        X, dtype = read_counts(self, X, reset=True)
        names = training_words(self, feature_names, X.shape[1])
        weights = check_weights(sample_weight, X)
        counts = training_counts(X, weights, k, dtype)
        options = self._options(counts.X.nnz)
        self._prepared = counts.X.shape[0]  # documents at the last preparation
        given = np.ones(X.shape[0]) if weights is None else weights
        self._unit = counts.unit
        self._divisor = float(given[given > 0][0] / counts.weights[0])  # as weights are scaled
        self._log("preparing %d documents for %d topics", counts.X.shape[0], k)
        data = counts.X, counts.weights
        self.index_, facts = prepare(*data, k, a0, self._rng(), options, device)
        tell_rank(self.index_.W.shape[1], k)
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
            ``parameters`` is the word distribution; ``top_words`` and ``documents`` show it;
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

    def _check_loaded(self) -> None:
        super()._check_loaded()
        self.index_.check()
        if len(self.words_) != self.n_features_in_ or len(self._used) < self.index_.X.shape[0]:
            raise InvalidInput("its words or documents are not those of its counts")
