"""One topic a document: a mixture of multinomials by moments, refined by EM."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import as_rows
from thirdmoment.likelihood.categories import Categories, CodedRows
from thirdmoment.likelihood.documents import FLOOR, SMOOTHING, draw_documents
from thirdmoment.likelihood.mixture import (
    MixtureData,
    Parameters,
    Statistics,
    expectation,
)
from thirdmoment.models.base import all_or_nothing, check_integer
from thirdmoment.models.mixture import PosteriorMixin
from thirdmoment.models.topics.counts import Counts, Whole, mean_length, read_counts
from thirdmoment.models.topics.estimator import cut
from thirdmoment.models.topics.kept import Batch, Kept, KeptDocuments
from thirdmoment.models.topics.words import refuse_names
from thirdmoment.moments.words import Documents
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.halves import Examined, MixturePart, Pieces, examine
from thirdmoment.refinement.mixture import MixtureProblem
from thirdmoment.refinement.race import Refined, ended_on_all, race
from thirdmoment.refinement.topic_halves import LEAST_DOCUMENTS, halves_of
from thirdmoment.report import About
from thirdmoment.report.build import note_unfinished
from thirdmoment.streaming import corpus


class SingleTopicModel(PosteriorMixin, DensityMixin, KeptDocuments):
    """Mixture of multinomials: every document has one topic.

    The limit of latent Dirichlet allocation for a vanishing concentration; the moments need no
    Dirichlet correction. ``refine="none", weighting="none"`` is Algorithm A of Anandkumar, Hsu and
    Kakade (2012) through the chosen solver.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics k.
    solver, weighting, random_state, n_jobs, verbose
        As in `LatentDirichletAllocation`.
    refine : {"auto", "none", "em"}, default="auto"
        Accelerated EM from the moment start.
    max_refine_iter : int, default=100
        Largest number of EM steps.
    tol : float, default=0.02
        Stop when a cycle of EM gains less than this many units of total log-likelihood.

    Attributes
    ----------
    components_ : (n_components, n_features)
        Word distribution of each topic, heaviest topic first; rows sum to one.
    weights_ : (n_components,)
        Share of documents of each topic.
    topic_trust_ : (n_components,)
        Share of its documents that each topic keeps with half of the data; below 0.5 it is not
        stable.
    report_ : Report
        Whether to trust the fit, which topics to leave out and what to do.
    vocabulary_ : dict
        Column of each word.
    n_features_in_ : int
    converged_ : bool
        False where EM ended at its limit.
    n_iter_ : int
        EM steps made.

    References
    ----------
    Anandkumar, Hsu and Kakade (2012), A method of moments for mixture models and hidden Markov
    models, COLT.

    Examples
    --------
    >>> from thirdmoment import SingleTopicModel
    >>> from thirdmoment.datasets import make_single_topic_corpus
    >>> corpus = make_single_topic_corpus(1000, 200, 3)
    >>> model = SingleTopicModel(n_components=3).fit(corpus.X)
    >>> model.predict_proba(corpus.X[:2]).shape
    (2, 3)
    """

    _refinements = ("auto", "none", "em")
    _about = About("topic", "documents", "documents", LEAST_DOCUMENTS)

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        max_refine_iter: int = 100,
        tol: float = 0.02,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, feature_names: Any = None
    ) -> SingleTopicModel:
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
        self._forget_batches()
        return self._fit(X, sample_weight, feature_names)

    def _fit(self, X: Any, sample_weight: Any, feature_names: Any) -> SingleTopicModel:
        counts = self._read_any(X, sample_weight, feature_names)
        rng = self._rng()
        starts = self._starts(counts, cut(counts), rng, 0.0)
        family = Categories(np.array([counts.X.shape[1]]), SMOOTHING)
        rows = MixtureData([_coded(chunk) for chunk in corpus(counts.X, counts.weights)])
        running = [family.project((start.weights, start.topics)) for start in starts]
        if not self._refining:
            running[0] = starts[0].weights, starts[0].topics
        found = Refined(running[0])
        if self._refining:
            problem = MixtureProblem(family, rows, self.tol, self._threads())
            found = race(problem, running, max_steps=self.max_refine_iter)
        if self._refining and counts.whole is not None:
            found = self._finished(family, counts.whole, found)
        chosen, (weights, topics) = starts[found.chosen], found.parameters
        self._set_parameters(topics, weights, counts)
        self.converged_, self.n_iter_ = found.converged, found.steps
        self.report_ = self._report(
            chosen,
            counts,
            path=found.path,
            details={"steps": found.steps, "starts": found.contest.values},
            notes=note_unfinished(found.path, found.converged, rows.total, self.max_refine_iter),
            examined=self._examined(family, counts, found) if self._refining else None,
        )
        self.topic_trust_ = self.report_.trust
        return self

    def _finished(self, family: Categories, whole: Whole, found: Refined) -> Refined:
        """A race on a sample, ended by a few EM steps on all documents."""
        data = MixtureData(whole.corpus.stream.mapped(_coded), float(whole.corpus.shape[0]))
        problem = MixtureProblem(family, data, self.tol, self._threads())
        return ended_on_all(problem, found, self.max_refine_iter)

    def _step(self, state: dict[str, Any], kept: Kept | None, batch: Batch) -> None:
        """Expected counts of a batch are added to those of all before: stepwise EM."""
        family, parameters = self._as_mixture()
        if kept is not None:
            early = kept.before(batch)
            state["sums"], state["kept"] = self._expected(*early, family, parameters), None
        new = self._expected(batch.X, batch.weights, family, parameters)
        pairs = zip(state["sums"], new, strict=True)
        state["sums"] = tuple(batch.decay * a + b for a, b in pairs)
        self._take(family.maximise(state["sums"]))

    def _follow(self, state: dict[str, Any], batch: Batch) -> None:
        """The parameters stay until the kept documents are fitted again."""

    def _as_mixture(self) -> tuple[Categories, Parameters]:
        family = Categories(np.array([self.n_features_in_]), SMOOTHING)
        fitted = (self.weights_, self.components_)
        weights, topics = (np.asarray(array, dtype=np.float64) for array in fitted)
        return family, family.project((weights, topics))

    def _expected(
        self, X: sp.csr_array, weights: np.ndarray, family: Categories, parameters: Parameters
    ) -> Statistics:
        rows = MixtureData([_coded(chunk) for chunk in corpus(X, weights)])
        return expectation(family, rows, parameters, n_threads=self._threads())[0]

    def _take(self, parameters: Parameters) -> None:
        """Topics keep their places, so that names stay right."""
        weights, topics = parameters
        dtype = self.components_.dtype
        self.weights_, self.components_ = weights.astype(dtype), topics.astype(dtype)
        self.report_: Any = self.report_.outdated("later batches have changed the fit")
        self.topic_trust_ = self.report_.trust

    def _examined(self, family: Categories, counts: Counts, found: Refined) -> Examined | None:
        """What either half of the documents makes of the topics, heaviest first."""
        parameters = found.parameters
        k = len(parameters[0])
        halves = halves_of(counts.X, counts.weights, k)
        if k == 1 or halves is None:
            return None
        parts = []
        for half in halves:
            X, w = counts.X[half], counts.weights[half]
            data = MixtureData([CodedRows(as_rows(X), w)])
            part = MixturePart(family, data, 1.0, self._threads(), "by word counts alone")
            part.pieces = Pieces(w, X.sum(axis=1))
            parts.append(part)
        examined = examine(parts, parameters, unit="word", rival=found.contest.rival)
        return examined._replace(trust=examined.trust[canonical_order(parameters[0])])

    def _set_parameters(self, topics: np.ndarray, weights: np.ndarray, counts: Counts) -> None:
        order = canonical_order(weights)
        self.components_ = topics[order].astype(counts.dtype)
        self.weights_ = weights[order].astype(counts.dtype)
        self.mean_length_ = mean_length(counts)
        self.input_unit_ = counts.unit

    def _log_joint(self, X: Any) -> np.ndarray:
        X, _ = read_counts(self, X, reset=False)
        X = X if self.input_unit_ == 1 else X / self.input_unit_
        topics = np.maximum(np.asarray(self.components_, dtype=np.float64), FLOOR)
        topics = topics / topics.sum(axis=1, keepdims=True)
        weights = np.maximum(np.asarray(self.weights_, dtype=np.float64), 1e-300)
        with np.errstate(divide="ignore"):
            return as_rows(X).dot(np.log(topics).T) + np.log(weights)

    def _shares_of(self, X: Any) -> np.ndarray:
        return self.predict_proba(X)

    def _n_parameters(self) -> int:
        k, d = self.components_.shape
        return k * (d - 1) + k - 1

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, length: float | None = None
    ) -> tuple[sp.csr_array, np.ndarray]:
        """Draw documents and their topics; lengths are Poisson, as long as the training ones."""
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._sampling_rng(random_state)
        weights = np.asarray(self.weights_, dtype=np.float64)
        labels = rng.choice(len(weights), size=n, p=weights / weights.sum())
        length = self.mean_length_ if length is None else length
        return draw_documents(np.asarray(self.components_)[labels], length, rng), labels


def _coded(chunk: Documents) -> CodedRows:
    return CodedRows(chunk.rows, chunk.weights)
