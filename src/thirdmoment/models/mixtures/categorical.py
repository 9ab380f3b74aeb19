"""Mixtures of products of categorical laws: latent classes, Dawid-Skene, any coded table."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import on_host, single_threaded_blas
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import (
    SPARSE_SHARE,
    Categories,
    CodeTable,
    distinct_rows,
    used_categories,
)
from thirdmoment.likelihood.mixture import (
    MixtureData,
    Parameters,
    expectation,
    from_labels,
    log_joint,
)
from thirdmoment.models.base import (
    all_or_nothing,
    beside_a_prior,
    check_integer,
    check_positive,
    check_rows,
    check_weights,
)
from thirdmoment.models.codes import check_known, column_sizes, read_codes
from thirdmoment.models.mixture import MixtureEstimator
from thirdmoment.models.mixtures.code_source import read_code_source
from thirdmoment.models.stream import StreamingMixture
from thirdmoment.models.tables import place_for, stream_details
from thirdmoment.recovery.order import canonical_order
from thirdmoment.report import About, Judged
from thirdmoment.report.build import note_unfinished
from thirdmoment.report.findings import equal_rows, unusable
from thirdmoment.report.labels import category_labels
from thirdmoment.starts.categorical import (
    coded_chunks,
    coded_stream,
    moment_starts,
    other_starts,
)
from thirdmoment.starts.given import GIVEN, given_probabilities, given_tables, needs
from thirdmoment.starts.propose import propose
from thirdmoment.starts.start import Start
from thirdmoment.streaming import Source, Streamed
from thirdmoment.streaming.dask import DaskSource, is_dask

# Fewer distinct rows are worked on by the host, which is as fast.
FEW: Work[int] = 50_000


class CategoricalMixture(StreamingMixture, MixtureEstimator):
    """Latent classes of coded columns.

    Columns are integer codes, independent of each other given the class; codes that never occur,
    such as 0 where they start at 1, cost nothing. Three columns (or groups
    of columns) identify the classes by their joint moments; accelerated EM from there makes the
    estimate efficient. Missing cells (NaN) are left out. With columns that are annotators this is
    the Dawid-Skene model, with questionnaire items it is latent class analysis.

    Parameters
    ----------
    n_components : int, default=2
        Number of classes k.
    n_categories : int or sequence of int, default=None
        Categories of each column; by default the largest code plus one, and the same for all
        columns where most cells are missing (a crowd).
    prior_count : float or "auto", default="auto"
        Count added to every category of every class, so that none is impossible. ``"auto"`` is
        0.01, and 0.5 (Jeffreys' prior) where more than half of the cells are missing, as in crowd
        labels, and tables rest on few observations.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
        What decomposes the moments; ``"schur"`` with ``refine="none", weighting="none"`` is
        Algorithm 1 of Colombo and Vlassis, with its misprints mended.
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    weighting : {"auto", "none"}, default="auto"
        Scale categories to even noise and use all pairs of columns; ``"none"``: the papers' form.
    n_starts : int or "auto", default="auto"
        Starts without moments that race against them. ``"auto"``: none where the moments are
        clear, else twelve from spread-out rows. More of them make the answer hang less on
        ``random_state``.
    weights_init : (n_components,), default=None
    probabilities_init : list of (n_components, d_v), default=None
        A start by hand, shaped as ``weights_`` and ``probabilities_``, that joins the race: where
        another start ends with a higher likelihood, that one is taken. Weights are even if left
        out.
    max_refine_iter : int, default=300
        Largest number of EM steps of the main run.
    tol : float, default=0.001
        Stop when a cycle of EM gains less than this many units of total log-likelihood.
    random_state : int, RandomState instance or None, default=0
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
    device : str, default=None
        ``"cuda"`` runs EM on many distinct rows on a GPU, as for tensors that are on one.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : (n_components,)
        Heaviest class first.
    probabilities_ : list of (n_components, d_v)
        Distribution of each column in each class; rows sum to one.
    n_categories_ : (n_features,) integers
    prior_count_ : float
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Mean (penalised) log-likelihood of a training row.
    report_ : Report

    References
    ----------
    Anandkumar, Hsu and Kakade (2012), A method of moments for mixture models and hidden Markov
    models, COLT.
    Colombo and Vlassis (2016), Stable spectral learning based on Schur decomposition, UAI.

    Examples
    --------
    >>> from thirdmoment import CategoricalMixture
    >>> from thirdmoment.datasets import make_categorical_mixture
    >>> data = make_categorical_mixture(2000, 6, 3)
    >>> model = CategoricalMixture(n_components=3).fit(data.X)
    >>> [table.shape for table in model.probabilities_]
    [(3, 6), (3, 6), (3, 6)]
    """

    _reads_tensors = frozenset(("fit",))
    _device: Any = None  # that EM runs on during a fit, None for the host

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_categories: Any = None,
        prior_count: float | str = "auto",
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        n_starts: int | str = "auto",
        weights_init: Any = None,
        probabilities_init: Any = None,
        max_refine_iter: int = 300,
        tol: float = 0.001,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_categories = n_categories
        self.prior_count = prior_count
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.n_starts = n_starts
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CategoricalMixture:
        """Learn the classes of integer codes X (n_samples, n_columns), NaN where missing.

        Parameters
        ----------
        X : array or tensor of codes 0, 1, 2, ..., Dask array, or rows of `thirdmoment.source`
        y : ignored, as in scikit-learn
            Where classes are known, give their tables as ``probabilities_init``.
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = self._check_arguments()
        self._device = place_for(self, X)
        try:
            return self._fit(on_host(X), sample_weight, k)
        finally:
            del self._device

    def _fit(self, X: Any, sample_weight: Any, k: int) -> CategoricalMixture:
        X = DaskSource(X) if is_dask(X) else X
        if isinstance(X, Source):
            if sample_weight is not None:
                raise InvalidInput("Rows of a source count alike: leave sample_weight out.")
            table, stream = read_code_source(self, X)
            self._forget_stream()
            check_rows(int(table.total), k)
            return self._fit_table(table, k, stream)
        codes = read_codes(self, X, reset=True)
        self._forget_stream()
        return self._fit_rows(codes, check_weights(sample_weight, codes), k)

    def _check_arguments(self) -> int:
        if self.prior_count != "auto":
            check_positive("prior_count", self.prior_count, zero=True)
        return super()._check_arguments()

    def _fit_rows(self, codes: np.ndarray, weights: np.ndarray | None, k: int) -> Any:
        w = np.ones(len(codes)) if weights is None else weights
        keep = (w > 0) & np.any(codes >= 0, axis=1)
        codes, w = (codes, w) if keep.all() else (codes[keep], w[keep])
        check_rows(len(codes), k)
        w = beside_a_prior(w)
        return self._fit_table(
            distinct_rows(codes, w, column_sizes(codes, w, self.n_categories)), k
        )

    def _fit_table(self, table: CodeTable, k: int, stream: Streamed | None = None) -> Any:
        self.prior_count_ = self._prior_count(table)
        device = self._device if len(table.codes) >= FEW else None
        data = coded_chunks(table, device)
        used = used_categories(table)
        self._prior = np.where(used | (self.n_categories is not None), self.prior_count_, 0.0)
        family = Categories(table.sizes, self._prior)
        with single_threaded_blas():
            candidates, reasons = self._candidates(table, family, data, k)
            refined, chosen = self._refined(family, data, candidates)
            if table.whole is not None:
                everything = coded_stream(table.whole, self._device)
                refined = self._finished(family, everything, refined)
            examined = self._examined(
                partial(_part, table, family), table.counts, refined, simple="by a single class"
            )
        self.n_categories_ = table.sizes
        self._free_categories = table.sizes
        if self.n_categories is None:
            self._free_categories = np.add.reduceat(used.astype(int), family.starts)
        self._set_parameters(refined.parameters)
        self.converged_, self.n_iter_ = refined.converged, refined.steps
        self.lower_bound_ = refined.path[-1]
        notes = equal_rows(len(table.codes), k, "class")
        notes += [unusable(reason) for reason in reasons]
        notes += note_unfinished(refined.path, refined.converged, data.total, self.max_refine_iter)
        details = {"distinct_rows": len(table.codes), **stream_details(stream)}
        labels = category_labels(self.probabilities_, self.weights_, self._column_names())
        judged = Judged(examined, labels, About("class"), "Use fewer classes.", self.weights_)
        self.report_ = self._report(chosen, refined, judged, notes, candidates, details)
        return self

    def _prior_count(self, table: CodeTable) -> float:
        if self.prior_count != "auto":
            return float(self.prior_count)
        crowd = table.share < SPARSE_SHARE
        return 0.5 if crowd else 0.01

    def _candidates(
        self, table: CodeTable, family: Categories, data: MixtureData, k: int
    ) -> tuple[list[Start], list[str]]:
        """Moment starts; with refinement on also starts without moments."""
        rng = self._rng()
        given = self._given(family, k)
        if k == 1:  # nothing to tell apart
            whole = from_labels(family, data, np.zeros(len(table.codes), dtype=int), 1)
            return [Start(whole, "shares of all rows")], []
        return propose(
            lambda: moment_starts(table, family, k, self._settings(rng)),
            lambda count: other_starts(table, family, k, rng, count),
            rows=table.total,
            n_starts=self.n_starts,
            refining=self.refine != "none",
            given=given,
        )

    def _given(self, family: Categories, k: int) -> Start | None:
        """The start given by hand, if any."""
        needs("weights_init", self.weights_init, "probabilities_init", self.probabilities_init)
        if self.probabilities_init is None:
            return None
        tables = given_tables("probabilities_init", self.probabilities_init, k, family.sizes)
        weights = np.full(k, 1 / k)
        if self.weights_init is not None:
            weights = given_probabilities("weights_init", self.weights_init, (k,))
        return Start(family.project((weights, tables)), GIVEN)

    def _set_parameters(self, parameters: Parameters) -> None:
        weights, tables = parameters
        order = canonical_order(weights)
        self.weights_ = weights[order]
        cuts = np.cumsum(self.n_categories_)[:-1]
        self.probabilities_ = np.split(tables[order], cuts, axis=1)

    def _fitted(self) -> tuple[Categories, Parameters]:
        family = Categories(self.n_categories_, self._prior)
        return family, (self.weights_, np.concatenate(self.probabilities_, axis=1))

    def _log_joint(self, X: Any) -> np.ndarray:
        codes = read_codes(self, X, reset=False)
        check_known(codes, self.n_categories_)
        family, parameters = self._fitted()
        floor = 1e-12  # scoring smooths what the papers' estimators leave at zero
        parameters = parameters[0], np.maximum(parameters[1], floor)
        data = coded_chunks(CodeTable(codes, np.ones(len(codes)), self.n_categories_))
        return np.concatenate([log_joint(family, parameters, chunk).T for chunk in data.chunks])

    def _n_parameters(self) -> int:
        k = len(self.weights_)
        return int(k * np.sum(np.maximum(self._free_categories - 1, 0)) + k - 1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows of codes and their classes, grouped by class."""
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._sampling_rng(random_state)
        counts = rng.multinomial(n, self.weights_ / self.weights_.sum())
        labels = np.repeat(np.arange(len(counts)), counts)
        columns = []
        for law in self.probabilities_:
            edges = np.cumsum(law, axis=1)[labels]
            code = (rng.random(n)[:, None] > edges).sum(axis=1)
            columns.append(code.clip(max=law.shape[1] - 1))
        return np.stack(columns, axis=1), labels

    def plot(self, *, ax: Any = None) -> Any:
        """What each class answers to each column; returns the axes.

        Columns of two categories: a line a class. Otherwise a bar a class, its categories one above
        the other.
        """
        from thirdmoment.report.plot_models import plot_classes

        check_is_fitted(self)
        return plot_classes(self.probabilities_, self.weights_, self._column_names(), ax=ax)

    def _read_batch(self, X: Any, *, first: bool) -> np.ndarray:
        return read_codes(self, X, reset=first)

    def _batch_statistics(self, codes: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        check_known(codes, self.n_categories_)
        family, parameters = self._fitted()
        data = coded_chunks(distinct_rows(codes, w, self.n_categories_))
        return expectation(family, data, parameters, n_threads=1)[0]

    def _take_statistics(self, sums: tuple[np.ndarray, ...]) -> None:
        family, _ = self._fitted()
        self._set_parameters(family.maximise(sums))


def _part(
    table: CodeTable, family: Categories, place: np.ndarray, counts: np.ndarray
) -> tuple[Categories, MixtureData]:
    """Some of the rows."""
    return family, coded_chunks(CodeTable(table.codes[place], counts, table.sizes))
