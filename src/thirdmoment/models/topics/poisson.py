"""Poisson counts of topics with independent rates, from one count vector a document (TF-22)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import single_threaded_blas, to_numpy
from thirdmoment.decomposition import choose_solver, decompose
from thirdmoment.exceptions import MomentWarning, UnusableMoments, warn
from thirdmoment.likelihood.documents import fold_in
from thirdmoment.linalg import project_to_simplex, top_eigenpairs, whitening_from
from thirdmoment.linalg.eigen import operator_norm, random_start
from thirdmoment.metrics.alignment import align
from thirdmoment.models.base import all_or_nothing
from thirdmoment.models.topics.counts import Counts, read_counts
from thirdmoment.models.topics.estimator import TopicEstimator, cut
from thirdmoment.models.topics.words import refuse_names, shared_words, topic_labels
from thirdmoment.moments.words import (
    FACTOR_CORRECTIONS,
    PairsProduct,
    TripleSums,
    WordSums,
    adjusted_moments,
)
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.halves import Examined
from thirdmoment.refinement.topic_halves import halves_of, word_overlap
from thirdmoment.report import Finding, Judged, Report, moment_findings
from thirdmoment.starts.spread_topics import spread_topics
from thirdmoment.starts.start import MomentFacts, no_facts
from thirdmoment.streaming import AnyCorpus, corpus, fold


class PoissonEstimate(NamedTuple):
    """Topics and the distributions of their rates."""

    topics: np.ndarray  # (k, d)
    rates: np.ndarray  # (k,) E[h]
    deviations: np.ndarray  # (k,) sd(h)
    skewness: np.ndarray  # (k,)
    facts: MomentFacts | None  # None where no moments were used


class PoissonTopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TopicEstimator):
    """Counts that are Poisson with mean O h, the rates h of the topics independent.

    Unlike in latent Dirichlet allocation the length of a document carries information: topics add
    up instead of sharing a document. The factorial moments of one count vector a document identify
    the topics whenever their rates are skewed. There is no likelihood refinement: the distribution
    of the rates is left open.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics k.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
    refine : {"auto", "none"}, default="auto"
        ``"none"`` raises where the moments are unusable; ``"auto"`` then takes spread-out documents
        as topics, with a warning.
    random_state : int, RandomState instance or None, default=0
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    components_ : (n_components, n_features)
        Word distribution of each topic, the one with the highest rate first; rows sum to one.
    rates_ : (n_components,)
        Mean number of words of each topic in a document.
    rate_deviations_, rate_skewness_ : (n_components,)
        Standard deviation and skewness of the rates.
    weights_ : (n_components,)
        Rates as shares.
    topic_trust_ : (n_components,)
        Share of its ten top words that each topic keeps by the moments of half of the documents.
    report_ : Report
        Whether to trust the fit, which topics to leave out and what to do.

    References
    ----------
    Anandkumar, Foster, Hsu, Kakade and Liu (2015), A spectral algorithm for latent Dirichlet
    allocation, Algorithmica.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import PoissonTopicModel
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(30, 0.2), size=3)
    >>> X = rng.poisson(rng.gamma(0.5, 20, size=(3000, 3)) @ topics)
    >>> model = PoissonTopicModel(n_components=3).fit(X)
    >>> model.components_.shape, bool(abs(model.rates_.sum() - 30) < 3)
    ((3, 30), True)
    """

    _refinements = ("auto", "none")
    max_refine_iter = 0
    tol = 0.0
    weighting = "none"
    _mergeable = False

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: str = "auto",
        refine: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.refine = refine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, feature_names: Any = None
    ) -> PoissonTopicModel:
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
        """
        refuse_names(y)
        counts = self._read_any(X, sample_weight, feature_names)
        k, rng = self.n_components, self._rng()
        with single_threaded_blas():
            data = cut(counts)
            sums = self._word_sums(data)
            try:
                found = self._from_moments(data, sums, k, rng)
                start, notes = "moments", list[Finding]()
            except UnusableMoments as error:
                if self.refine == "none":
                    raise
                self._warn_unusable(str(error))
                start = f"spread-out documents ({error})"
                text = f"The topics are documents that differ, not learned from moments: {error}"
                action = "Ask for fewer topics, or use LatentDirichletAllocation."
                notes = [Finding("no moments", text, action, "grave")]
                found = self._from_documents(counts, sums.mean, k, rng)
            trust = self._trust(counts, found)
        order = canonical_order(found.rates)
        self.components_ = found.topics[order].astype(counts.dtype)
        self.rates_ = found.rates[order]
        self.rate_deviations_ = found.deviations[order]
        self.rate_skewness_ = found.skewness[order]
        total = self.rates_.sum()
        self.weights_ = self.rates_ / total if total > 0 else np.full(k, 1 / k)
        self.input_unit_ = counts.unit
        trust = trust[order]
        self.report_ = self._describe(found, start, notes, trust, counts.details())
        self.topic_trust_ = trust
        return self

    def _trust(self, counts: Counts, found: PoissonEstimate) -> np.ndarray:
        """Share (k,) of their top words that topics keep by the moments of either half."""
        k = self.n_components
        if k == 1:
            return np.ones(1)
        both = halves_of(counts.X, counts.weights, k)
        if self.refine == "none" or found.facts is None or both is None:
            return np.full(k, np.nan)
        parts = []
        for half in both:
            data = corpus(counts.X[half], counts.weights[half])
            try:
                one = self._from_moments(data, self._word_sums(data), k, self._own_rng())
            except UnusableMoments:
                return np.zeros(k)
            parts.append(one.topics[align(one.topics, found.topics)])
        return word_overlap(*parts)

    def _warn_unusable(self, reason: str) -> None:
        warn(
            f"The moments are not usable: {reason} Spread-out documents are taken as topics; see "
            "report_.",
            MomentWarning,
        )

    def _word_sums(self, data: AnyCorpus) -> WordSums:
        return fold(lambda: WordSums(data.shape[1], None), data, n_threads=self._threads())

    def _from_moments(
        self, data: AnyCorpus, sums: WordSums, k: int, rng: np.random.Generator
    ) -> PoissonEstimate:
        """Pairs and triples with the corrections of independent factors (b = 1, 1, 2)."""
        threads, b = self._threads(), FACTOR_CORRECTIONS

        def pairs(Q: np.ndarray) -> np.ndarray:
            return fold(lambda: PairsProduct(Q, None), data, n_threads=threads).pairs(sums, b.b2)

        def halves(Q: np.ndarray) -> np.ndarray:
            product = fold(
                lambda: PairsProduct(Q, None, tilt=sums.pair_tilt), data, n_threads=threads
            )
            return product.split_difference(sums, b.b2)

        d = data.shape[1]
        if k > d:
            raise UnusableMoments(f"n_components={k} topics need at least {k} words, X has {d}.")
        eigen = top_eigenpairs(pairs, random_start(rng, d, k, like=np.empty(0)), k, tol=1e-3)
        values, vectors = np.asarray(eigen.values), np.asarray(eigen.vectors)
        white = whitening_from(values[:k], vectors[:, :k])
        noise, gauge = operator_norm(
            halves, random_start(rng, d, 1, like=np.empty(0), oversampling=3)
        )
        triples = fold(lambda: TripleSums(white.W, None), data, n_threads=threads)
        _, T = adjusted_moments(triples.finish(sums), b)
        found = decompose(T, self.solver, rng)
        v = (np.asarray(white.B) @ np.asarray(found.vectors)).T
        mass = v.sum(axis=1)
        sign = np.where(mass < 0, -1.0, 1.0)
        raw = v / np.where(np.abs(mass) > 1e-12, mass, 1e-12)[:, None]
        topics = to_numpy(project_to_simplex(raw))
        return PoissonEstimate(
            topics,
            scipy.optimize.nnls(topics.T, sums.mean)[0],
            np.abs(mass),
            np.asarray(found.eigenvalues) * sign,
            MomentFacts(
                values,
                float(noise),
                found.residual,
                np.full(k, np.nan),
                -np.minimum(raw, 0.0).sum(axis=1),
                choose_solver(self.solver),
                {"passes": eigen.products + gauge + 2},
            ),
        )

    def _from_documents(
        self, counts: Counts, mean: np.ndarray, k: int, rng: np.random.Generator
    ) -> PoissonEstimate:
        topics = spread_topics(counts.X, counts.weights, k, rng)
        rates = scipy.optimize.nnls(topics.T, mean)[0]
        nothing = np.full(k, np.nan)
        return PoissonEstimate(topics, rates, nothing, nothing, None)

    def _describe(
        self,
        found: PoissonEstimate,
        start: str,
        notes: list[Finding],
        trust: np.ndarray,
        details: dict[str, Any],
    ) -> Report:
        k = self.n_components
        facts, used = found.facts or no_facts(k), found.facts is not None
        snr = facts.snr(k)
        if used and self.refine == "none":
            notes += moment_findings(k=k, snr=snr, residual=facts.residual, solver=self.solver)
        notes += shared_words(self.components_, self.words_) if k > 1 else []
        labels = topic_labels(self.components_, self.weights_, self.words_)
        judged = Judged(Examined(trust, ()), labels, self._about)
        notes += judged.findings(k, refining=used and self.refine != "none")
        return Report(
            n_components=k,
            spectrum=facts.spectrum,
            noise=facts.noise,
            snr=snr,
            residual=facts.residual,
            clipped_mass=facts.clipped_mass,
            raw_weights=facts.raw_weights,
            solver=facts.solver,
            start=start,
            passes=facts.details["passes"],
            findings=tuple(notes),
            **judged.fields(k),
            details=details,
        )

    def _shares_of(self, X: Any) -> np.ndarray:
        rates = self.transform(X)
        return rates / np.maximum(rates.sum(axis=1, keepdims=True), 1e-300)

    def transform(self, X: Any) -> np.ndarray:
        """Rates (n_samples, n_components) of the topics in each document, by Poisson likelihood."""
        check_is_fitted(self)
        X, dtype = read_counts(self, X, reset=False)
        X = X if self.input_unit_ == 1 else X / self.input_unit_
        length = np.asarray(X.sum(axis=1)).ravel()
        # the maximum puts the length of a document into its rates: only their shares are open
        shares = fold_in(
            self.components_, np.zeros(len(self.components_)), X, tol=1e-6,
            n_threads=self._threads(),
        )  # fmt: skip
        return (shares * length[:, None]).astype(dtype)
