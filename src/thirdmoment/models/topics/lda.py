"""Latent Dirichlet allocation by moments, refined by collapsed sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from thirdmoment.exceptions import InvalidInput
from thirdmoment.metrics import perplexity
from thirdmoment.models.base import all_or_nothing, check_integer, check_option, check_positive
from thirdmoment.models.topics.concentration import concentration_note, settle_concentration
from thirdmoment.models.topics.counts import Counts, mean_length, read_counts
from thirdmoment.models.topics.describe import Candidate
from thirdmoment.models.topics.estimator import TopicEstimator, cut
from thirdmoment.models.topics.likelihood import draw_documents
from thirdmoment.models.topics.params import TopicParameters
from thirdmoment.models.topics.refine import RefinedTopics, TopicRefiner
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.fold_in import fold_in, word_log_likelihood

LARGEST_CONCENTRATION = 1e6


class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TopicEstimator):
    """Topic model with several topics a document, learned by moments.

    Unbiased pairs and triples of words are decomposed into topics (no restarts, no local optima),
    then a few collapsed sweeps make the topics efficient. ``refine="none", weighting="none"`` is
    the plain estimator of Anandkumar et al. (2015).

    Parameters
    ----------
    n_components : int, default=10
        Number of topics k.
    concentration : "auto" or float, default="auto"
        Total concentration alpha0 of the Dirichlet prior; small values mean few topics a document.
        ``"auto"`` estimates it (from the moments where they fit the model, otherwise by held-out
        likelihood) and needs at least three topics.
    solver : str, default="auto"
        ``"tensor"``, ``"power"``, ``"eig"``, ``"schur"``, ``"joint-schur"``, ``"joint"``, or
        ``"auto"``.
    refine : {"auto", "none", "collapsed"}, default="auto"
        Likelihood refinement from the moment start.
    weighting : {"auto", "none"}, default="auto"
        Weight documents by length and scale words for even sampling noise.
    max_refine_iter : int, default=18
        Largest number of sweeps.
    tol : float, default=1e-4
        Stop when the held-out log-likelihood per word gains less than this a sweep.
    random_state : int, RandomState or None, default=0
        Seed of the one generator a fit draws from, mainly for the eigensolver's starting block.
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
        Dirichlet parameters.
    weights_ : (n_components,)
        Share of each topic.
    report_ : Report
        Spectrum, noise, residual, refinement path and advice.
    n_features_in_ : int
    n_iter_ : int
        Sweeps made.

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

    def __init__(
        self,
        n_components: int = 10,
        *,
        concentration: str | float = "auto",
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        max_refine_iter: int = 18,
        tol: float = 1e-4,
        random_state: Any = 0,
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
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LatentDirichletAllocation:
        """Learn the topics of word counts X (n_samples, n_features).

        Parameters
        ----------
        X : array or sparse matrix of counts
        y : ignored
        sample_weight : (n_samples,), optional
            How often each document counts.
        """
        alpha0 = self._given_concentration()
        counts = self._read_training(X, sample_weight)
        rng = self._rng()
        no_path: tuple[float, ...] = ()
        if self.refine == "none":
            chosen = self._candidates(counts, cut(counts), rng, alpha0)[0]
            topics, alpha = chosen.topics, chosen.alpha0 * chosen.weights
            path, details, self.n_iter_ = no_path, {}, 0
        else:
            refiner = self._refiner(counts)
            chosen, refined = self._refined(refiner, counts, rng, alpha0)
            topics, path, self.n_iter_ = refined.topics, refined.path, refined.sweeps
            alpha = settle_concentration(refiner, refined, chosen, fixed=alpha0 is not None)
            details = {
                "sweeps": refined.sweeps,
                "returned": refined.chosen,
                "held_out": not refiner.guard.in_sample,
            }
        self._set_parameters(topics, alpha, counts)
        details |= {"alpha0": float(alpha.sum()), "moment_alpha0": chosen.alpha0}
        notes = concentration_note(
            self.n_components,
            self.concentration,
            chosen,
            held_out=bool(details.get("held_out", False)),
        )
        self.report_ = self._report(
            chosen, counts, path=path, details=details, extra_warnings=notes
        )
        return self

    def _refined(
        self,
        refiner: TopicRefiner,
        counts: Counts,
        rng: np.random.Generator,
        alpha0: float | None,
    ) -> tuple[Candidate, RefinedTopics]:
        """Start without the held-out documents, refine, and let them join at the end."""
        training = counts._replace(weights=refiner.seen)
        starts = self._candidates(training, cut(training), rng, alpha0)
        self._log("%d start(s): %s", len(starts), "; ".join(c.start for c in starts))
        refined = refiner.refine(
            [(c.topics, c.alpha0 * c.weights) for c in starts],
            max_sweeps=self.max_refine_iter,
            tol=self.tol,
        )
        chosen = starts[refined.which]
        if refined.chosen == "sweeps" or len(starts) > 1 or refiner.guard.in_sample:
            return chosen, refined  # the held-out documents joined the sweeps, or there are none
        chosen = self._candidates(counts, cut(counts), rng, alpha0)[0]
        alpha = chosen.alpha0 * chosen.weights
        return chosen, refined.with_start(refiner.smoothed(chosen.topics, alpha))

    def _given_concentration(self) -> float | None:
        if isinstance(self.concentration, str):
            check_option("concentration", self.concentration, ("auto",))
            return None if check_integer("n_components", self.n_components, 1) >= 3 else 1.0
        alpha0 = check_positive("concentration", self.concentration)
        if alpha0 > LARGEST_CONCENTRATION:
            raise InvalidInput(
                f"concentration={alpha0:.3g} is above {LARGEST_CONCENTRATION:.0g}: documents would "
                "not differ in their topics at all. Give a smaller value."
            )
        return alpha0

    def _refiner(self, counts: Counts) -> TopicRefiner:
        return TopicRefiner(
            counts.X,
            counts.weights,
            n_threads=self._threads(),
            progress=lambda sweep, score: self._log(
                "sweep %d: log-likelihood per word %.4f", sweep, score
            ),
        )

    def _set_parameters(self, topics: np.ndarray, alpha: np.ndarray, counts: Counts) -> None:
        order = canonical_order(alpha)
        found = TopicParameters(topics[order], alpha[order] / alpha.sum(), alpha[order])
        self.components_ = found.topics.astype(counts.dtype)
        self.weights_ = found.weights.astype(counts.dtype)
        self.concentration_ = found.concentration.astype(counts.dtype)
        self.mean_length_ = mean_length(counts)
        self.input_unit_ = counts.unit
        self._n_features_out = len(found.topics)

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions (n_samples, n_components) of documents; rows sum to one."""
        X, dtype = self._read(X)
        return self._proportions(X).astype(dtype)

    def _read(self, X: Any) -> tuple[sp.csr_array, np.dtype]:
        """Counts to score, in the units of the training documents."""
        check_is_fitted(self)
        X, dtype = read_counts(self, X, reset=False)
        return X if self.input_unit_ == 1 else X / self.input_unit_, dtype

    def _proportions(self, X: sp.csr_array) -> np.ndarray:
        return fold_in(
            self.components_, self.concentration_, X, tol=1e-5, n_threads=self._threads()
        )

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of the words of each document, its proportions folded in."""
        X, _ = self._read(X)
        return word_log_likelihood(
            self.components_, self._proportions(X), X, n_threads=self._threads()
        )

    def score(self, X: Any, y: Any = None) -> float:
        """Folded-in log-likelihood per word; higher is better."""
        each = self.score_samples(X)
        words = float(sp.csr_array(X).sum()) / self.input_unit_
        return float(each.sum()) / max(words, 1e-300)

    def perplexity(self, X: Any, *, random_state: int = 0) -> float:
        """Held-out perplexity by document completion; lower is better."""
        X, _ = self._read(X)
        return perplexity(
            self.components_, X, concentration=self.concentration_, random_state=random_state
        )

    def sample(
        self, n_samples: int = 1, *, length: float | None = None, random_state: Any = None
    ) -> tuple[sp.csr_array, np.ndarray]:
        """Draw documents from the model.

        Parameters
        ----------
        n_samples : int
        length : float, optional
            Mean of the Poisson lengths; the mean length of the training documents by default.
        random_state : int, optional
            Seed; that of the estimator by default.

        Returns
        -------
        X : (n_samples, n_features) sparse counts
        proportions : (n_samples, n_components)
        """
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._rng() if random_state is None else np.random.default_rng(random_state)
        alpha = np.maximum(np.asarray(self.concentration_, dtype=np.float64), 1e-10)
        H = rng.dirichlet(alpha, size=n)
        length = self.mean_length_ if length is None else length
        return draw_documents(H @ np.asarray(self.components_, dtype=np.float64), length, rng), H

    def to_sklearn(self) -> Any:
        """The same topics as a fitted `sklearn.decomposition.LatentDirichletAllocation`."""
        from scipy.special import digamma
        from sklearn.decomposition import LatentDirichletAllocation as Peer

        check_is_fitted(self)
        alpha0 = float(np.sum(self.concentration_))
        peer = Peer(self.n_components, doc_topic_prior=alpha0 / self.n_components)
        pseudo = np.asarray(self.components_, dtype=np.float64) * 1e5 + 1e-2
        peer.components_ = pseudo
        expected = digamma(pseudo) - digamma(pseudo.sum(axis=1, keepdims=True))
        peer.exp_dirichlet_component_ = np.exp(expected)
        peer.n_features_in_ = self.n_features_in_
        peer._n_components = self.n_components
        peer.doc_topic_prior_ = alpha0 / self.n_components
        peer.topic_word_prior_ = 1e-2
        peer.n_batch_iter_, peer.n_iter_ = 1, self.n_iter_
        peer.random_state_ = np.random.RandomState(0)
        if hasattr(self, "feature_names_in_"):
            peer.feature_names_in_ = self.feature_names_in_
        return peer
