"""Latent Dirichlet allocation by moments, refined by collapsed sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import (
    array_namespace,
    find_device,
    holds_tensors,
    tensor_rows,
    to_numpy,
)
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.documents import (
    completed,
    draw_documents,
    fold_in,
)
from thirdmoment.metrics import perplexity
from thirdmoment.models.base import (
    all_or_nothing,
    check_integer,
)
from thirdmoment.models.topics.batches import TopicBatches
from thirdmoment.models.topics.concentration import (
    Concentration,
    Found,
    concentration_note,
    given_concentration,
    settle_concentration,
    unrefined,
)
from thirdmoment.models.topics.counts import Counts, mean_length, read_counts
from thirdmoment.models.topics.estimator import TopicStart, cut
from thirdmoment.models.topics.peer import as_sklearn
from thirdmoment.models.topics.seeds import Seeds, read_seeds, seed_themes
from thirdmoment.models.topics.tensors import read_tensors, read_there
from thirdmoment.models.topics.words import refuse_names
from thirdmoment.refinement.streamed import finished
from thirdmoment.refinement.topics import RefinedTopics, TopicRefiner, held_out, many_of


class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TopicBatches):
    """Topic model with several topics a document, learned by moments.

    Unbiased pairs and triples of words are decomposed into topics, then a few collapsed sweeps
    make the topics efficient. Where documents follow the model there are no restarts and no local
    optima; on text a few ranks of the moments are compared, and another seed can change topics
    that are not clear. ``refine="none", weighting="none"`` is the plain estimator of Anandkumar
    et al. (2015).

    Parameters
    ----------
    n_components : int, default=10
        Number of topics k.
    concentration : "auto" or float, default="auto"
        Total concentration alpha0 of the Dirichlet prior; small values mean few topics a document.
        ``"auto"`` estimates it (from the moments, then from how documents spread between the
        topics found) and needs at least three topics.
    solver : str, default="auto"
        ``"tensor"``, ``"power"``, ``"eig"``, ``"schur"``, ``"joint-schur"``, ``"joint"``, or
        ``"auto"``.
    refine : {"auto", "none", "collapsed"}, default="auto"
        Likelihood refinement from the moment start.
    weighting : {"auto", "none"}, default="auto"
        Weight documents by length and scale words for even sampling noise.
    max_refine_iter : int, default=100
        Largest number of sweeps.
    tol : float, default=4e-4
        Stop when the held-out log-likelihood per word gains less than this a sweep.
    random_state : int, RandomState or None, default=0
        Seed of the one generator a fit draws from, mainly for the eigensolver's starting block.
    device : str or None, default=None
        ``"cuda"`` does the work on a GPU, with PyTorch; tensors are worked on where they are.
    n_jobs : int or None, default=None
        Threads; None uses every core. The result does not depend on it.
    verbose : int, default=0
        Log progress.

    Attributes
    ----------
    components_ : (n_components, n_features)
        Topics, heaviest first; rows sum to one.
    mean_length_ : float
        Mean number of words of a training document.
    input_unit_ : float
        What one word was in the input: 1 for counts, see `InputWarning` for real values.
    concentration_ : (n_components,)
        Dirichlet parameters of a document's topic proportions.
    weights_ : (n_components,)
        Share of each topic in the mean document, however long documents are.
    word_share_ : (n_components,)
        Share of each topic among all words; larger than in ``weights_`` for topics of long
        documents.
    topic_trust_ : (n_components,)
        Share of its ten top words that each topic is expected to keep with other documents of the
        same source; below 0.5 a topic is not stable. NaN where it was not checked
        (``refine="none"``, or fewer than ten documents a topic).
    report_ : Report
        Whether to trust the fit, which topics to leave out and what to do.
    vocabulary_ : dict
        Column of each word; column numbers stand for words where no names were given.
    n_features_in_ : int
    n_iter_ : int
        Sweeps made.
    converged_ : bool
        False where the sweeps ended at their limit while they still gained.

    References
    ----------
    Anandkumar, Foster, Hsu, Kakade and Liu (2015), A spectral algorithm for latent Dirichlet
    allocation, Algorithmica 72.

    Examples
    --------
    >>> from thirdmoment import LatentDirichletAllocation
    >>> from thirdmoment.datasets import make_lda_corpus
    >>> from thirdmoment.metrics import recovery_error
    >>> corpus = make_lda_corpus(2000, 300, 4)
    >>> lda = LatentDirichletAllocation(n_components=4).fit(corpus.X)
    >>> recovery_error(lda.components_, corpus.topics) < 0.1
    True
    >>> lda.transform(corpus.X[:2]).shape
    (2, 4)
    """

    _refinements = ("auto", "none", "collapsed")
    _layout = 5

    def __init__(
        self,
        n_components: int = 10,
        *,
        concentration: str | float = "auto",
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        max_refine_iter: int = 100,
        tol: float = 4e-4,
        random_state: Any = 0,
        device: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.concentration = concentration
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
        seeds: Any = None,
    ) -> LatentDirichletAllocation:
        """Learn the topics of word counts X (n_samples, n_features).

        Parameters
        ----------
        X : array or sparse matrix of counts, Dask array, or rows of `thirdmoment.source`
        y : ignored, as in scikit-learn
        sample_weight : (n_samples,), optional
            How often each document counts.
        feature_names : sequence of str or dict, optional
            Words in column order, or the column of each word (``vocabulary_`` of a vectorizer); by
            default the column names of X.
        seeds : dict of str to words, optional
            Topics to find, by name, with a few words of each: ``{"sport": ["game", "team"]}``. They
            come first, in this order, and keep their names; the other topics follow.
        """
        refuse_names(y)
        self._forget_batches()
        return self._fit(X, sample_weight, feature_names, seeds)

    def _fit(
        self, X: Any, sample_weight: Any, feature_names: Any, seeds: Any = None
    ) -> LatentDirichletAllocation:
        alpha0 = given_concentration(self.concentration, self.n_components)
        if self.device is None and not holds_tensors(X):
            counts = self._read_any(X, sample_weight, feature_names, sampled=seeds is not None)
        else:
            counts = read_there(self, X, sample_weight, feature_names, seeds)
        given = read_seeds(seeds, self.n_components, self.words_, counts)
        found = (self._plain if self.refine == "none" else self._likely)(counts, alpha0, given)
        self._set_parameters(found.topics, found.believed.alpha0, counts)
        self.report_ = self._report(
            found.start,
            counts,
            path=found.topics.climb.path,
            details=found.details(),
            notes=[
                *concentration_note(self.n_components, self.concentration),
                *found.notes(self.max_refine_iter),
                *given.notes(self.components_, self.words_),
            ],
            examined=found.examined,
        )
        self.topic_trust_ = self.report_.trust
        self._names = given.labels(self.components_)
        return self

    def _plain(self, counts: Counts, alpha0: float | None, seeds: Seeds) -> Found:
        """The moments alone."""
        rng = self._rng()
        starts = self._starts(counts, cut(counts), rng, alpha0)[:1]
        start = seeds.placed(starts, self._themes(seeds, counts, alpha0, rng), trusted=True)[0]
        source = self._source("moments" if start.trusted else "usual value")
        found = unrefined(start.topics, start.weights, len(seeds.names))
        return Found(start, found, Concentration(start.alpha0, source))

    def _themes(
        self, seeds: Seeds, counts: Counts, alpha0: float | None, rng: np.random.Generator
    ) -> np.ndarray | None:
        """The topics that seeds point at."""
        k, options = self.n_components, self._moment_options(cut(counts))
        return seed_themes(seeds, counts.X, counts.weights, k, alpha0, rng, options)

    def _source(self, found: str) -> str:
        """What a concentration rests on that is not estimated after refinement."""
        if self.concentration != "auto":
            return "given"
        return found if self.n_components >= 3 else "usual value"

    def _likely(self, counts: Counts, alpha0: float | None, seeds: Seeds) -> Found:
        """Start without the held-out documents, refine, settle the concentration."""
        rng, held = self._rng(), held_out(counts.X, counts.weights)
        where = array_namespace(counts.weights).where
        seen = counts._replace(weights=where(held, 0.0, counts.weights))
        starts = self._starts(seen, cut(seen), rng, alpha0)
        trusted, themes = starts[0].trusted, self._themes(seeds, seen, alpha0, rng)
        starts = seeds.placed(starts, themes, trusted=trusted)
        refiner = self._refiner(counts, held, trusted=trusted)
        refined = self._refined(refiner, starts)._replace(named=len(seeds.names))
        start, data = starts[refined.which], cut(counts)
        if counts.whole is not None:
            refined = finished(counts.whole.corpus, refined, start.alpha0, refiner)
        elif refined.chosen == "mean of both" and many_of(held):
            start = self._again(start, data, rng)  # from everything
            refined = refiner.with_start(refined, start.topics, start.weights)
        if alpha0 is None:
            found = settle_concentration(data, refiner, start, refined, rng)
        else:
            found = Found(start, refined, Concentration(alpha0, self._source("usual value")))
        return found._replace(examined=refiner.examine(found.topics, found.believed.alpha0))

    def _refined(self, refiner: TopicRefiner, starts: list[TopicStart]) -> RefinedTopics:
        """The best start, refined."""
        self._log("%d start(s): %s", len(starts), "; ".join(c.start for c in starts))
        return refiner.refine(
            [(c.topics, c.alpha0 * c.weights) for c in starts],
            max_sweeps=self.max_refine_iter,
            tol=self.tol,
        )

    def _refiner(self, counts: Counts, held: np.ndarray, *, trusted: bool) -> TopicRefiner:
        return TopicRefiner(
            counts.X,
            counts.weights,
            held,
            trusted=trusted,
            n_threads=self._threads(),
            progress=lambda sweep, score: self._log(
                "sweep %d: log-likelihood per word %.4f", sweep, score
            ),
        )

    def _set_parameters(self, found: RefinedTopics, alpha0: float, counts: Counts) -> None:
        order, dtype = found.order, counts.dtype
        topics = found.topics
        if not np.array_equal(order, np.arange(len(order))):  # a table of topics may be large
            topics = topics[order]
        xp = array_namespace(topics)
        kind = xp.float32 if dtype == np.float32 else xp.float64
        self.components_ = np.ascontiguousarray(to_numpy(xp.astype(topics, kind)), dtype=dtype)
        self.weights_ = found.shares.documents[order].astype(dtype)
        self.concentration_ = (alpha0 * found.shares.documents[order]).astype(dtype)
        self.word_share_ = found.shares.words[order].astype(dtype)
        self.mean_length_ = mean_length(counts)
        self.input_unit_ = counts.unit
        self.n_iter_ = found.climb.sweeps
        self.converged_ = found.climb.converged

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions (n_samples, n_components) of documents; rows sum to one.

        Of tensors they are a tensor on the same device.
        """
        rows, dtype = self._read(X)
        found = self._proportions(rows)
        return found if holds_tensors(X) else to_numpy(found).astype(dtype)

    def _read(self, X: Any) -> tuple[sp.csr_array, np.dtype]:
        """Counts to score, in the units of the training documents."""
        check_is_fitted(self)
        dtype = np.dtype(np.float32)
        if holds_tensors(X):
            device = None if self.device is None else find_device(self.device)
            return read_tensors(self, X, device, reset=False), dtype
        X, dtype = read_counts(self, X, reset=False)
        if self.device is not None:
            return tensor_rows(X / self.input_unit_, find_device(self.device)), dtype
        return X if self.input_unit_ == 1 else X / self.input_unit_, dtype

    def _proportions(self, X: sp.csr_array) -> np.ndarray:
        return fold_in(
            self.components_, self.concentration_, X, tol=1e-5, n_threads=self._threads()
        )

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each document by document completion.

        Half of a document's words, drawn by its content, shows its topic proportions; the score is
        the log-likelihood of the other half, so that no word is predicted from itself.
        """
        found = self._completion(self._read(X)[0])[0]
        return found if holds_tensors(X) else to_numpy(found)

    def score(self, X: Any, y: Any = None) -> float:
        """Log-likelihood per predicted word by document completion; higher is better.

        This is ``-log(perplexity(X))``, fit for choosing n_components by cross-validation.
        """
        each, words = self._completion(self._read(X)[0])
        if not words > 0:
            raise InvalidInput(
                "X has no words left to predict: its documents are empty, or every count fell in "
                "the half that shows the proportions. Score more or longer documents."
            )
        return float(each.sum()) / words

    def _completion(self, X: sp.csr_array, random_state: int = 0) -> tuple[np.ndarray, float]:
        """Scores (n,) of second halves given the first, and the number of words in them."""
        return completed(
            self.components_, self.concentration_, X, random_state, n_threads=self._threads()
        )

    def perplexity(self, X: Any, *, random_state: Any = 0) -> float:
        """Held-out perplexity by document completion; lower is better."""
        X, seed = self._read(X)[0], random_state
        return perplexity(self.components_, X, concentration=self.concentration_, random_state=seed)

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, length: float | None = None
    ) -> tuple[sp.csr_array, np.ndarray]:
        """Draw documents from the model.

        Parameters
        ----------
        n_samples : int
        random_state : int or RandomState, optional
            Seed; that of the estimator by default.
        length : float, optional
            Mean of the Poisson lengths; the mean length of the training documents by default.

        Returns
        -------
        X : (n_samples, n_features) sparse counts
        proportions : (n_samples, n_components)
        """
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._sampling_rng(random_state)
        alpha = np.maximum(np.asarray(self.concentration_, dtype=np.float64), 1e-10)
        H = rng.dirichlet(alpha, size=n)
        mean = H @ np.asarray(self.components_, dtype=np.float64)
        return draw_documents(mean, self.mean_length_ if length is None else length, rng), H

    def to_sklearn(self) -> Any:
        """The same topics as a fitted `sklearn.decomposition.LatentDirichletAllocation`."""
        check_is_fitted(self)
        return as_sklearn(self)
