"""What a mixture with a likelihood can do, all from log Pr(row, component)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from thirdmoment.models.units import cast


def shares_of(joint: np.ndarray) -> np.ndarray:
    """Posteriors (n, k) from log Pr(row, component): they sum to one however far the rows are."""
    joint = joint - joint.max(axis=1, keepdims=True)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=1, keepdims=True)
    return joint


def like(X: Any, values: np.ndarray) -> np.ndarray:
    """Results in float32 where the rows came so and it holds them."""
    return cast(values, np.float32) if getattr(X, "dtype", None) == np.float32 else values


class PosteriorMixin:
    """Posteriors and scores; subclasses give ``_log_joint`` (n, k) and ``_n_parameters``."""

    @abstractmethod
    def _log_joint(self, X: Any) -> np.ndarray:
        """log Pr(row, component) (n, k)."""

    @abstractmethod
    def _n_parameters(self) -> int:
        """Free parameters of the fitted model."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Posterior (n_samples, n_components) of each row's component."""
        check_is_fitted(self)
        return like(X, shares_of(self._log_joint(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Most probable component of each row."""
        check_is_fitted(self)
        return np.argmax(self._log_joint(X), axis=1)

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> np.ndarray:
        """Fit, then the most probable component of each training row."""
        return self.fit(X, y, **kwargs).predict(X)  # type: ignore[attr-defined]

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row (n_samples,)."""
        check_is_fitted(self)
        return like(X, logsumexp(self._log_joint(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a row."""
        return float(np.mean(self.score_samples(X)))

    def log_likelihood(self, X: Any) -> float:
        """Total log-likelihood of the rows."""
        return float(np.sum(self.score_samples(X)))

    def aic(self, X: Any) -> float:
        """Akaike's criterion on X; lower is better."""
        return -2 * self.log_likelihood(X) + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; lower is better."""
        values = self.score_samples(X)
        return -2 * float(values.sum()) + self._n_parameters() * float(np.log(len(values)))
