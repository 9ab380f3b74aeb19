"""Mixtures of linear regressions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Floor
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.mixture import MixtureData, Parameters, expectation, from_labels
from thirdmoment.likelihood.regressions import LinearRows, Regressions
from thirdmoment.models.base import all_or_nothing, check_weights
from thirdmoment.models.mixture import RefinedEstimator
from thirdmoment.models.read import check_batch, read_regression
from thirdmoment.models.regression_fitted import FittedRegressions
from thirdmoment.models.rows import counted_rows
from thirdmoment.models.stream import Stream
from thirdmoment.models.tables import Table, open_regression, stream_details
from thirdmoment.models.units import cast
from thirdmoment.moments.regression import Standardisation
from thirdmoment.recovery.order import canonical_order
from thirdmoment.report import About, Finding, Judged
from thirdmoment.report.build import note_unfinished
from thirdmoment.report.findings import unusable
from thirdmoment.report.labels import column_labels
from thirdmoment.sizes import RACE
from thirdmoment.starts.given import GIVEN, given_array, given_probabilities, needs
from thirdmoment.starts.propose import SPREAD_STARTS, propose
from thirdmoment.starts.regression import (
    RegressionData,
    WholeRegression,
    as_start,
    moment_start,
    other_start,
    standard_rows,
    standardised,
    why_not_moments,
)
from thirdmoment.starts.start import Start

# Smallest variance of the noise, as a share of that of y.
FLOOR: Floor[float] = 1e-7


class MixedLinearRegression(Stream, FittedRegressions, RegressorMixin, RefinedEstimator):
    """Several linear regressions in one cloud of points.

    Every row follows one of k linear regressions, and nobody knows which. The slopes come out of
    the moments of y and standardised x up to the third order in y, and a short accelerated EM from
    there makes them efficient. The moments need Gaussian x (of any mean and covariance) and at
    least k columns; where that fails the fit starts from other guesses and says so.

    Parameters
    ----------
    n_components : int, default=2
        Number of regressions k.
    common_variance : bool, default=False
        One noise variance for all regressions.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
        What decomposes the moments.
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    n_starts : int or "auto", default="auto"
        Starts without moments that race against them. ``"auto"``: none where the moments are
        clear, else twelve. More of them make the answer hang less on ``random_state``.
    weights_init, coef_init, intercept_init : array, default=None
        A start by hand, shaped as the fitted attributes, that joins the race: where another start
        ends with a higher likelihood, that one is taken. Only ``coef_init`` can be given alone;
        the lines then pass through the mean of the data.
    max_refine_iter : int, default=500
        Largest number of EM steps of the main run.
    tol : float, default=0.02
        Stop when a cycle of EM gains less than this many units of total log-likelihood.
    random_state : int, RandomState instance or None, default=0
        Draws of the other starts.
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    coef_ : (n_components, n_features)
        Slopes, heaviest component first.
    intercept_ : (n_components,)
    weights_ : (n_components,)
    noise_variance_ : (n_components,)
    converged_ : bool
    n_iter_ : int
        EM steps made.
    lower_bound_ : float
        Mean log-likelihood of a training row.
    report_ : Report

    References
    ----------
    Ray, Neeman, Sanghavi and Shakkottai (2018), The search problem in mixture models, JMLR 18.
    Sedghi, Janzamin and Anandkumar (2016), Provable tensor methods for learning mixtures of
    generalized linear models, AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import MixedLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 4))
    >>> slopes = np.array([[2.0, 0, 1, 0], [0, 1.5, -1, 1]])
    >>> y = (X * slopes[rng.integers(2, size=5000)]).sum(axis=1)
    >>> y += 0.3 * rng.standard_normal(5000)
    >>> model = MixedLinearRegression(2).fit(X, y)
    >>> model.predict_components(X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        common_variance: bool = False,
        solver: str = "auto",
        refine: str = "auto",
        n_starts: int | str = "auto",
        weights_init: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        max_refine_iter: int = 500,
        tol: float = 0.02,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.common_variance = common_variance
        self.solver = solver
        self.refine = refine
        self.n_starts = n_starts
        self.weights_init = weights_init
        self.coef_init = coef_init
        self.intercept_init = intercept_init
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixedLinearRegression:
        """Learn the regressions of y (n_samples,) on X (n_samples, n_features).

        Parameters
        ----------
        X : array, Dask array, or rows of `thirdmoment.source`
        y : array
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = self._check_arguments()
        table = open_regression(self, X, y, sample_weight, k)
        self._forget_stream()
        return self._fit_table(table, k)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixedLinearRegression:
        """Learn from one more batch of rows; see ``fit``.

        The first 10,000 rows are kept and fitted together, so batches up to there give what
        ``fit`` gives; later batches refine by stepwise EM (``report_`` then is "not checked").
        Batches should come in random order. The first call after ``fit`` starts anew.
        """
        k = self._check_arguments()
        check_batch(self, X)
        X, y = read_regression(self, X, y, reset=not hasattr(self, "_stream"))
        w = check_weights(sample_weight, X)
        rows = np.column_stack([X, y]).astype(np.float64)
        self._take_batch(rows, np.ones(len(rows)) if w is None else w, k)
        return self

    def _fit_rows(self, rows: np.ndarray, weights: np.ndarray, k: int) -> Any:
        X, y = rows[:, :-1], rows[:, -1]
        place, w = counted_rows(X, weights, k, y)
        return self._fit_table(Table(rows[place], w, np.dtype(np.float64)), k)

    def _batch_statistics(self, rows: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """Expected statistics of a batch in the units of the first fit, masses first."""
        Z, y = standard_rows(self._standard, rows)
        chunk = LinearRows(np.concatenate([Z, np.ones((len(y), 1))], axis=1), y, w)
        family = Regressions(FLOOR, common=bool(self.common_variance))
        data = MixtureData([chunk])
        return expectation(family, data, self._standardised, n_threads=1)[0]

    def _in_order(self, sums: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        order = canonical_order(sums[0])
        return tuple(array[order] for array in sums)

    def _take_statistics(self, sums: tuple[np.ndarray, ...]) -> None:
        family = Regressions(FLOOR, common=bool(self.common_variance))
        self._set_parameters(family.maximise(sums), self._standard, self.coef_.dtype)

    def _fit_table(self, table: Table, k: int) -> MixedLinearRegression:
        X, y, w, dtype = table.X[:, :-1], table.X[:, -1], table.weights, table.dtype
        whole = None
        if table.look is not None and table.stream is not None:
            seen = table.look
            deviation = np.sqrt(seen.variance)
            whole = WholeRegression(table.stream, table.total, seen.mean, deviation, seen.largest)
        with single_threaded_blas():
            data = standardised(X, y, w, n_threads=self._threads(), whole=whole)
            family = Regressions(FLOOR, common=bool(self.common_variance))
            candidates, reasons = self._candidates(family, X, data, k)
            refined, chosen = self._run(family, data, candidates)
            if whole is not None:
                refined = self._finished(family, whole.chunks(data.standard), refined)
            examined = self._examined(
                lambda *rows: (family, data.part(*rows).chunks()),
                data.weights,
                refined,
                simple="by a single regression",
            )
        unit = float(np.log(data.standard.y_scale))  # likelihoods in the units of y
        refined = refined.shifted(-unit)
        self._set_parameters(refined.parameters, data.standard, dtype)
        self.converged_, self.n_iter_ = refined.converged, refined.steps
        self.lower_bound_ = refined.path[-1]
        notes = [unusable(reason) for reason in reasons]
        collapsed = family.collapsed(refined.parameters)
        if collapsed:
            text = (
                f"{collapsed} of {k} regressions fit their rows without noise (their variance is "
                f"at its floor, {FLOOR:.0e} of that of y): they may pass through a few rows only, "
                "and the likelihood says little."
            )
            action = "Use fewer components, unless y has no noise."
            notes.append(Finding("collapsed", text, action, "care"))
        notes += note_unfinished(
            refined.path,
            refined.converged,
            data.total,
            self.max_refine_iter,
        )
        spread = np.asarray(X.std(axis=0))
        slopes = np.asarray(self.coef_, dtype=np.float64) * spread
        target = np.full(X.shape[1], float(y.std()))
        names = [f"slope of {name}" for name in self._column_names()]
        judged = Judged(
            examined,
            column_labels(slopes, self.weights_, target, names),
            About("regression"),
            "Use one linear regression.",
            self.weights_,
        )
        details = stream_details(table.stream)
        self.report_ = self._report(chosen, refined, judged, notes, candidates, details)
        return self

    def _candidates(
        self, family: Regressions, X: np.ndarray, data: RegressionData, k: int
    ) -> tuple[list[Start], list[str]]:
        """The moment start, and others where it is not clear; only the moments if refine is off."""
        rng, refining = self._rng(), self.refine != "none"
        given = self._given(data, k)
        if k == 1:
            whole = from_labels(family, data.chunks(), np.zeros(len(data.y), dtype=int), 1)
            return [Start(whole, "least squares")], []

        def moments() -> list[Start]:
            reason = why_not_moments(X, data, k)
            if reason is not None:
                raise UnusableMoments(reason)
            parameters, facts = moment_start(data, k, self._settings(rng))
            start = as_start(parameters) if refining else parameters
            return [Start(family.project(start), "moments", facts)]

        def others(count: int | None) -> list[Start]:
            found = []
            for number in range(SPREAD_STARTS if count is None else count):
                start, name = other_start(family, data, k, rng, by_chance=number % 2 == 1)
                found.append(Start(family.project(start), name))
            return found

        return propose(
            moments,
            others,
            rows=data.total,
            n_starts=self.n_starts,
            refining=refining,
            given=None if given is None else Start(family.project(given), GIVEN),
        )

    def _given(self, data: RegressionData, k: int) -> Parameters | None:
        """The regressions given by hand in standardised units, if any."""
        needs("weights_init", self.weights_init, "coef_init", self.coef_init)
        needs("intercept_init", self.intercept_init, "coef_init", self.coef_init)
        if self.coef_init is None:
            return None
        standard = data.standard
        slopes = given_array("coef_init", self.coef_init, (k, len(standard.mean)))
        constant = np.zeros(k)
        if self.intercept_init is not None:
            intercepts = given_array("intercept_init", self.intercept_init, (k,))
            constant = intercepts - standard.y_mean + slopes @ standard.mean
        own = np.linalg.lstsq(standard.root, slopes.T, rcond=None)[0].T
        beta = np.column_stack([own, constant]) / standard.y_scale
        labels = np.argmin((data.y - beta @ data.Z.T) ** 2, axis=0)
        rest = data.y - np.sum(data.Z * beta[labels], axis=1)
        weights = np.full(k, 1 / k)
        if self.weights_init is not None:
            weights = given_probabilities("weights_init", self.weights_init, (k,))
        noise = float(data.weights @ rest**2 / data.weights.sum())
        return weights, beta, np.full(k, max(noise, 0.02))

    def _run(self, family: Regressions, data: RegressionData, candidates: list[Start]) -> Any:
        """The race, for much data on a part of the rows, and the last EM on all of them."""
        few = len(data.y) <= RACE or len(candidates) == 1
        if few or self.refine == "none" or self.max_refine_iter == 0:
            return self._refined(family, data.chunks(), candidates)
        part = data.thinned(RACE)
        found, chosen = self._refined(family, part.chunks(), candidates)
        last, _ = self._refined(
            family, data.chunks(), [chosen._replace(parameters=found.parameters)]
        )
        return found.finished(last), chosen

    def _set_parameters(self, parameters: Any, standard: Standardisation, dtype: Any) -> None:
        order = canonical_order(parameters[0])
        weights, beta, variances = (array[order] for array in parameters)
        self._standard, self._standardised = standard, (weights, beta, variances)
        slopes = standard.slopes(beta[:, :-1])
        self.coef_ = cast(slopes, dtype)
        self.intercept_ = cast(standard.intercepts(beta[:, -1], slopes), dtype)
        self.weights_ = weights.astype(dtype)
        self.noise_variance_ = cast(variances * standard.y_scale**2, dtype)
