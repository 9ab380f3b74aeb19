"""What a fitted Gaussian mixture can do: densities, samples, the hand-over to scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_integer
from thirdmoment.models.mixtures.base import MixtureEstimator
from thirdmoment.models.mixtures.gaussian_start import GaussianData
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.em import Parameters
from thirdmoment.refinement.gaussians import (
    Block,
    Diagonal,
    Spherical,
    Tied,
    cholesky_of_precisions,
)
from thirdmoment.refinement.mixture import log_joint


class FittedGaussian(MixtureEstimator):
    """Fitted attributes of a Gaussian mixture and everything that is read off them."""

    def _family(self, data: GaussianData, views: list[np.ndarray]) -> Any:
        floor = max(float(self.reg_covar), 1e-12 * float(np.mean(data.X**2)), 1e-100)
        if self.covariance_type == "spherical":
            return Spherical(floor, common=bool(self.common_variance))
        if self.covariance_type == "diag":
            return Diagonal(floor)
        if self.covariance_type == "tied":
            return Tied(floor, (data.X * data.weights[:, None]).T @ data.X)
        whole = [np.arange(data.X.shape[1])]
        return Block(floor, views if self.covariance_type == "block" else whole)

    def _set_parameters(self, parameters: Parameters, location: np.ndarray, dtype: Any) -> None:
        order = canonical_order(parameters[0])
        k = len(order)
        weights, means, *spreads = (
            array[order] if len(array) == k and not self._is_shared(array) else array
            for array in parameters
        )
        self.weights_ = weights.astype(dtype)
        self.means_ = (means + location).astype(dtype)
        spreads = [np.asarray(spread, dtype=dtype) for spread in spreads]
        if self.covariance_type == "block":
            self.covariances_: Any = spreads
            return
        self.covariances_ = spreads[0][0] if self.covariance_type == "tied" else spreads[0]
        self._set_precisions()

    def _is_shared(self, array: np.ndarray) -> bool:
        return self.covariance_type == "tied" and array.ndim == 3

    def _set_precisions(self) -> None:
        cov = np.asarray(self.covariances_, dtype=np.float64)
        if self.covariance_type in ("spherical", "diag"):
            factor: np.ndarray = 1 / np.sqrt(cov)
            precision = factor**2
        else:
            stack = cov[None] if self.covariance_type == "tied" else cov
            factor = cholesky_of_precisions(stack)
            precision = factor @ factor.transpose(0, 2, 1)
            if self.covariance_type == "tied":
                factor, precision = factor[0], precision[0]
        self.precisions_cholesky_ = factor.astype(self.means_.dtype)
        self.precisions_ = precision.astype(self.means_.dtype)

    def _fitted_parameters(self, location: np.ndarray) -> Parameters:
        """The fitted parameters as EM reads them, with means relative to ``location``."""
        means = np.asarray(self.means_, dtype=np.float64) - location
        if self.covariance_type == "block":
            spreads = [np.asarray(cov, dtype=np.float64) for cov in self.covariances_]
        else:
            cov = np.asarray(self.covariances_, dtype=np.float64)
            spreads = [cov[None] if self.covariance_type == "tied" else cov]
        return np.asarray(self.weights_, dtype=np.float64), means, *spreads

    def _fitted_family(self) -> Any:
        d = self.n_features_in_
        empty = GaussianData(np.zeros((1, d)), np.ones(1), np.zeros(d))
        return self._family(empty, self.view_groups_)

    def _log_joint(self, X: Any) -> np.ndarray:
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        location = np.asarray(self.means_, dtype=np.float64).mean(axis=0)
        family = self._fitted_family()
        parameters = self._fitted_parameters(location)
        chunk = family.rows(X.astype(np.float64) - location, np.ones(len(X)))
        return log_joint(family, parameters, chunk).T.astype(X.dtype, copy=False)

    def _n_parameters(self) -> int:
        k, d = self.means_.shape
        sizes = [len(group) for group in self.view_groups_]
        spread = {
            "spherical": 1 if self.common_variance else k,
            "diag": k * d,
            "full": k * d * (d + 1) // 2,
            "tied": d * (d + 1) // 2,
            "block": k * sum(size * (size + 1) // 2 for size in sizes),
        }[self.covariance_type]
        return int(k * d + spread + k - 1)

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their components, grouped by component as in scikit-learn."""
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._rng()
        weights = np.asarray(self.weights_, dtype=np.float64)
        counts = rng.multinomial(n, weights / weights.sum())
        labels = np.repeat(np.arange(len(counts)), counts)
        noise = rng.standard_normal((n, self.n_features_in_))
        drawn = self.means_[labels] + self._coloured(noise, labels)
        return drawn.astype(self.means_.dtype, copy=False), labels

    def _coloured(self, noise: np.ndarray, labels: np.ndarray) -> np.ndarray:
        cov = self.covariances_
        if self.covariance_type == "spherical":
            return noise * np.sqrt(cov)[labels, None]
        if self.covariance_type == "diag":
            return noise * np.sqrt(cov)[labels]
        if self.covariance_type == "tied":
            return noise @ np.linalg.cholesky(cov).T
        groups = self.view_groups_ if self.covariance_type == "block" else [slice(None)]
        blocks = cov if self.covariance_type == "block" else [cov]
        out = np.empty_like(noise)
        for columns, block in zip(groups, blocks, strict=True):
            factors = np.linalg.cholesky(np.asarray(block, dtype=np.float64))
            out[:, columns] = np.einsum("aij,aj->ai", factors[labels], noise[:, columns])
        return out

    def to_sklearn(self) -> Any:
        """The fitted mixture as scikit-learn's own ``GaussianMixture``."""
        from sklearn.mixture import GaussianMixture as Peer

        check_is_fitted(self)
        if self.covariance_type == "block":
            raise InvalidInput(
                "scikit-learn has no covariance_type='block'; its 'full' can hold the same "
                "matrices with zeros between the views."
            )
        peer = Peer(
            self.n_components, covariance_type=self.covariance_type, reg_covar=self.reg_covar
        )
        if hasattr(self, "feature_names_in_"):
            peer.feature_names_in_ = self.feature_names_in_
        names = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
        for name in (*names, "converged_", "n_iter_", "lower_bound_", "n_features_in_"):
            setattr(peer, name, getattr(self, name))
        return peer
