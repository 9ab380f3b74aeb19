"""One regression of a mixture, from labelled rows or a direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import blas_as_before, single_threaded_blas
from thirdmoment._constants import Choice, Floor
from thirdmoment.exceptions import InvalidInput, MomentWarning, UnusableMoments, warn
from thirdmoment.linalg import whiten
from thirdmoment.linalg.whiten import Whitening
from thirdmoment.models.base import (
    all_or_nothing,
    check_components,
    check_jobs,
    check_weights,
)
from thirdmoment.models.read import read_regression
from thirdmoment.models.rows import counted_rows
from thirdmoment.moments.regression import RegressionSums, directed_regression
from thirdmoment.recovery.search import usable_rank, whitened_search
from thirdmoment.report import Finding, Report
from thirdmoment.search.component import (
    Component,
    more_components,
    preparation_report,
    search_report,
)
from thirdmoment.search.rows import RowSearch, TrainingRows, one_hint
from thirdmoment.starts.regression import standardised, why_not_moments
from thirdmoment.streaming import fold

# Weight of the prior that draws the slope of few labels to zero, in rows.
RIDGE: Choice[float] = 1.0

# Smallest square of a slope in standardised x and y that is more than rounding.
LEAST_SQUARE: Floor[float] = 1e-10
NOTHING = (
    "The rows show no regression: their second moment has no positive eigenvalue. There may be "
    "none, or too few rows; there is nothing to search for."
)


class RegressionSearch(RowSearch):
    """Find the one linear regression of a mixture that labelled rows or a direction point at.

    ``fit`` standardises x, gathers the moments of (x, y) and whitens the rows once; a query is a
    weighted second moment in k dimensions and one small eigenproblem. x must be Gaussian, of any
    mean and covariance. Sixth-order moments are noisy: expect tens of thousands of rows.

    Parameters
    ----------
    n_components : int, default=2
        Number of regressions k, at most the number of columns.
    random_state : ignored, present for consistency
    n_jobs : int or None, default=None
        Threads; None uses every core.
    verbose : int, default=0

    Attributes
    ----------
    report_ : Report
        Spectrum and noise of the second moment.
    n_features_in_ : int

    See Also
    --------
    MixedLinearRegression : all regressions at once, refined by likelihood.

    References
    ----------
    Ray, Neeman, Sanghavi and Shakkottai (2018), The search problem in mixture models, JMLR 18.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import RegressionSearch
    >>> rng = np.random.default_rng(0)
    >>> X, labels = rng.standard_normal((50_000, 4)), rng.integers(2, size=50_000)
    >>> slopes = np.array([[2.0, 0, 1, 0], [0, 1.5, -1, 1]])
    >>> y = (X * slopes[labels]).sum(axis=1) + 0.3 * rng.standard_normal(50_000)
    >>> search = RegressionSearch(2).fit(X, y)
    >>> first = labels == 0
    >>> found = search.search(X[first][:20], y[first][:20])
    >>> found.informative, bool(abs(found.parameters - slopes[0]).max() < 0.2)
    (True, True)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RegressionSearch:
        """Prepare the rows (X, y) for queries.

        Parameters
        ----------
        X : (n_samples, n_features) array
        y : (n_samples,) array
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = check_components(self.n_components)
        check_jobs(self.n_jobs)
        X, y = read_regression(self, X, y)
        place, w = counted_rows(X, check_weights(sample_weight, X), k, y)
        X, y = X[place].astype(np.float64), y[place].astype(np.float64)
        with single_threaded_blas():
            data = standardised(X, y, w, n_threads=self._threads())
            rank = data.Z.shape[1] - 1
            reason = why_not_moments(X, data, k)
            instead = "MixedLinearRegression fits all regressions by likelihood instead."
            if reason is not None and k > rank:
                raise UnusableMoments(f"{reason} {instead}")
            if reason is not None:
                text = f"{reason} What is found may be far off. {instead}"
                warn(text, MomentWarning)
            sums = fold(lambda: RegressionSums(rank), data.samples(), n_threads=self._threads())
            spectrum = np.linalg.eigvalsh(sums.pairs)[::-1]
            self._white: Whitening | None = None
            if spectrum[0] > LEAST_SQUARE:
                k = usable_rank(spectrum, k)
                self._white = whiten(sums.pairs, k)
                self._rows = TrainingRows(X, w).whitened(data.Z[:, :-1] @ self._white.W)
            else:
                warn(NOTHING, MomentWarning)
        self._sums, self._y, self._standard = sums, data.y, data.standard
        self.report_: Report = preparation_report(
            spectrum,
            float(np.linalg.norm(sums.noise, 2)),
            k,
            passes=3,
            notes=() if reason is None else (Finding("moments", reason, instead, "care"),),
        )
        doubts = () if reason is None else (reason,)
        self._doubts = (*doubts, *more_components(spectrum, self.report_.noise, k))
        return self

    def search(self, X: Any = None, y: Any = None, *, direction: Any = None) -> Component:
        """The regression that the hint points at.

        Parameters
        ----------
        X : (n_labels, n_features) array, optional
            Rows that belong to the regression, with their ``y``; more than n_features of them
            point clearly.
        y : (n_labels,) array, optional
        direction : (n_features,) array, optional
            A guess of the slopes up to scale; the regression with the largest inner product (in
            standardised x) is found.

        Returns
        -------
        Component
            ``parameters`` are the slopes; ``report.details["intercept"]`` the intercept.
        """
        check_is_fitted(self)
        white, standard = self._white, self._standard
        if white is None:
            raise UnusableMoments(NOTHING)
        if one_hint(X=X, direction=direction) == "direction":
            if y is not None:
                raise InvalidInput("y comes with the labelled rows X, not with a direction.")
            slope = np.linalg.pinv(standard.root) @ self._direction(direction)
            return self._found(white, white.B.T @ slope, labels=None)
        if y is None:
            raise InvalidInput("Labelled rows X need their y: a regression shows in both.")
        X, y = read_regression(self, X, y, reset=False)
        Z = (X.astype(np.float64) - standard.mean) @ standard.root
        target = (np.asarray(y, dtype=np.float64) - standard.y_mean) / standard.y_scale
        hint = white.W.T @ _ridge_slope(Z, target)  # v = WWᵀb (SR-24)
        if not np.any(hint):
            raise InvalidInput("The labelled rows have no slope, so they point at no regression.")
        return self._found(white, hint, labels=(Z, target))

    @blas_as_before
    def _found(
        self,
        white: Whitening,
        hint: np.ndarray,
        labels: tuple[np.ndarray, np.ndarray] | None,
    ) -> Component:
        rows, sums = self._rows, self._sums
        with single_threaded_blas():
            raw = rows.gram(self._y**3 * (rows.Y @ hint), n_threads=self._threads())
        M = directed_regression(raw.whole, white.W, sums.third_x, hint)
        found = whitened_search(M, white.W.T @ sums.first, white.B, hint)
        a = float(np.sqrt(found.weight))
        constant = float(found.direction @ (white.W.T @ sums.second_x)) / (2 * max(a, 1e-300))
        slope = self._standard.slopes(found.component[None])[0]
        intercept = float(self._standard.intercepts(np.array(constant), slope))
        score = np.nan
        if labels is not None:  # log of the ratio of mean squares, without and with the slope
            Z, target = labels
            left = target - Z @ found.component - constant
            score = float(np.log((np.mean(target**2) + 1e-300) / (np.mean(left**2) + 1e-300)) / 2)
        report = search_report(
            found,
            M,
            raw.difference / 6,
            hint,
            label_score=score,
            details={"intercept": intercept},
            extra=self._doubts,
        )
        return Component(
            found.weight, slope, found.margin, report.alignment, not report.warnings, report
        )


def _ridge_slope(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares slope (r,) with intercept, drawn to zero where labels are few."""
    Z, y = Z - Z.mean(axis=0) * (len(Z) > 1), y - y.mean() * (len(y) > 1)
    return np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ y)
