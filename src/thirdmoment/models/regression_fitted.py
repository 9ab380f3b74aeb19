"""What fitted regressions can do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from thirdmoment.models.mixture import shares_of
from thirdmoment.models.read import read_regression, read_table
from thirdmoment.models.units import FAR


class FittedRegressions:
    """Everything that is read off ``coef_``, ``intercept_``, ``weights_``, ``noise_variance_``."""

    coef_: np.ndarray
    intercept_: np.ndarray
    weights_: np.ndarray
    noise_variance_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.regressor_tags.poor_score = True  # score is a log-likelihood
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Expected y of each row (n_samples,), over the components by their weights."""
        return self.predict_components(X) @ self.weights_

    def predict_components(self, X: Any) -> np.ndarray:
        """What each regression predicts (n_samples, n_components)."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        return X @ self.coef_.T + self.intercept_

    def posterior(self, X: Any, y: Any) -> np.ndarray:
        """Posterior (n_samples, n_components) of each row's regression, given its y.

        Not ``predict_proba``, which scikit-learn's contract forbids to regressors.
        """
        return shares_of(self._log_joint(X, y))

    def assign(self, X: Any, y: Any) -> np.ndarray:
        """Most probable regression of each row, given its y."""
        return np.argmax(self._log_joint(X, y), axis=1)

    def score_samples(self, X: Any, y: Any) -> np.ndarray:
        """Log-likelihood of y given x for each row (n_samples,)."""
        return logsumexp(self._log_joint(X, y), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood of y given x; higher is better.

        Not the coefficient of determination, which cannot tell mixtures apart: `predict` averages
        over regressions.
        """
        return float(np.average(self.score_samples(X, y), weights=sample_weight))

    def aic(self, X: Any, y: Any) -> float:
        """Akaike's criterion; lower is better."""
        return -2 * float(self.score_samples(X, y).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any, y: Any) -> float:
        """Bayesian information criterion; lower is better."""
        values = self.score_samples(X, y)
        return -2 * float(values.sum()) + self._n_parameters() * float(np.log(len(values)))

    def sample(self, X: Any, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw y for the rows of X; returns y and the components that made them."""
        means = self.predict_components(X)
        rng = self._sampling_rng(random_state)  # type: ignore[attr-defined]
        p = np.asarray(self.weights_, dtype=np.float64)
        labels = rng.choice(len(p), size=len(means), p=p / p.sum())
        noise = np.sqrt(self.noise_variance_)[labels] * rng.standard_normal(len(means))
        return means[np.arange(len(means)), labels] + noise, labels

    def plot(self, X: Any, y: Any, *, column: Any = 0, ax: Any = None) -> Any:
        """Each regression's line in one column, over the rows; returns the axes.

        Rows have the colour of their most probable regression. With more than one column, y is
        drawn without what that regression says of all other columns.

        Parameters
        ----------
        X : (n_samples, n_features)
        y : (n_samples,)
        column : int or str, default=0
        ax : matplotlib axes, optional
        """
        from thirdmoment.report.plot_models import Line, plot_lines

        labels = self.assign(X, y)
        rows, target = read_regression(self, X, y, reset=False)
        c: int = self._column(column)  # type: ignore[attr-defined]
        name = self._column_names()[c]  # type: ignore[attr-defined]
        others = self.coef_.astype(np.float64, copy=True)
        others[:, c] = 0
        left = target - np.einsum("ij,ij->i", rows, others[labels])
        line = Line(rows[:, c].astype(np.float64), left, labels, self.coef_[:, c], self.intercept_)
        what = "y" if rows.shape[1] == 1 else "y without the other columns"
        return plot_lines(line, self.weights_, (name, what), ax=ax)

    def _log_joint(self, X: Any, y: Any) -> np.ndarray:
        """log Pr(y, component | x) (n, k)."""
        check_is_fitted(self)
        X, y = read_regression(self, X, y, reset=False)
        variances = np.asarray(self.noise_variance_, dtype=np.float64)
        with np.errstate(all="ignore"):  # far is far
            rest = y[:, None] - X.astype(np.float64) @ self.coef_.T - self.intercept_
            rest = np.nan_to_num(rest / np.sqrt(variances), nan=FAR, posinf=FAR, neginf=-FAR)
        square = np.clip(rest, -FAR, FAR) ** 2
        log_weights = np.log(np.maximum(np.asarray(self.weights_, dtype=np.float64), 1e-300))
        return log_weights - square / 2 - 0.5 * np.log(2 * np.pi * variances)

    def _n_parameters(self) -> int:
        k, d = self.coef_.shape
        variances = 1 if self.common_variance else k  # type: ignore[attr-defined]
        return k * (d + 1) + variances + k - 1
