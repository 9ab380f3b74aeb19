"""What a fitted Gaussian mixture can do: densities, samples, the hand-over to scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import Array, by_halves, joined, ones
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.gaussians import (
    Block,
    Diagonal,
    Spherical,
    Tied,
    cholesky_of_precisions,
)
from thirdmoment.likelihood.mixture import Parameters, log_joint
from thirdmoment.models.base import check_integer
from thirdmoment.models.mixture import MixtureEstimator
from thirdmoment.models.read import read_table
from thirdmoment.models.tables import rows_to_score
from thirdmoment.models.units import Units, cast
from thirdmoment.recovery.order import canonical_order
from thirdmoment.starts.gaussian import GaussianData


class FittedGaussian(MixtureEstimator):
    """Fitted attributes of a Gaussian mixture and everything that is read off them."""

    # what a fit learns of the columns; a model set by hand has none
    _units: Units | None = None
    _floor: Any = 1e-100

    def _family(self, data: GaussianData, views: list[np.ndarray]) -> Any:
        floor = self._floor
        varies = None if self._units is None or self._units.varies.all() else self._units.varies
        if self.covariance_type == "spherical":
            return Spherical(floor, common=bool(self.common_variance))
        if self.covariance_type == "diag":
            return Diagonal(floor, varies)
        if self.covariance_type == "tied":
            return Tied(floor, (data.X * data.weights[:, None]).T @ data.X, varies)
        whole = [np.arange(data.X.shape[1])]
        return Block(floor, views if self.covariance_type == "block" else whole, varies)

    def _own_units(self) -> Units:
        if self._units is not None:
            return self._units
        return Units.plain(np.asarray(self.means_, dtype=np.float64).mean(axis=0))

    def _squares(self, groups: list[np.ndarray] | None = None) -> list[Any]:
        """What the spreads in units are to be multiplied by."""
        scale = self._own_units().scale
        if self.covariance_type == "spherical":
            return [scale[0] ** 2]
        if self.covariance_type == "diag":
            return [scale**2]
        groups = self.view_groups_ if groups is None else groups
        return [scale[group][:, None] * scale[group] for group in groups]

    def _set_parameters(self, parameters: Parameters, dtype: Any) -> None:
        order = canonical_order(parameters[0])
        k = len(order)
        weights, means, *spreads = (
            array[order] if len(array) == k and not self._is_shared(array) else array
            for array in parameters
        )
        units = self._own_units()
        self.weights_ = weights.astype(dtype)
        self.means_ = cast(means * units.scale + units.location, dtype)
        spreads = [
            cast(spread * square, dtype)
            for spread, square in zip(spreads, self._squares(), strict=True)
        ]
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
        self.precisions_cholesky_ = cast(factor, self.means_.dtype)
        self.precisions_ = cast(precision, self.means_.dtype)

    def _fitted_parameters(self) -> Parameters:
        """The fitted parameters as EM reads them, in units of the columns."""
        units = self._own_units()
        means = (np.asarray(self.means_, dtype=np.float64) - units.location) / units.scale
        if self.covariance_type == "block":
            spreads = [np.asarray(cov, dtype=np.float64) for cov in self.covariances_]
        else:
            cov = np.asarray(self.covariances_, dtype=np.float64)
            spreads = [cov[None] if self.covariance_type == "tied" else cov]
        spreads = [a / square for a, square in zip(spreads, self._squares(), strict=True)]
        return np.asarray(self.weights_, dtype=np.float64), means, *spreads

    def _fitted_family(self) -> Any:
        d = self.n_features_in_
        empty = GaussianData(np.zeros((1, d)), np.ones(1), np.zeros(d))
        return self._family(empty, self.view_groups_)

    def _log_joint(self, X: Any) -> np.ndarray:
        X = rows_to_score(self, X)
        family, units = self._fitted_family(), self._own_units()
        parameters = self._fitted_parameters()

        def some(start: int, stop: int) -> Array:
            Z = units.rows(X[start:stop])
            chunk = family.rows(Z, ones(Z.shape[0], like=Z))
            return (log_joint(family, parameters, chunk) - units.log_volume()).T

        return joined(list(by_halves(some, len(X))))

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

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their components, grouped by component as in scikit-learn."""
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._sampling_rng(random_state)
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

    def plot(self, X: Any = None, *, columns: Any = None, ax: Any = None) -> Any:
        """Ellipses of the components in two columns, over the rows of X; returns the axes.

        Parameters
        ----------
        X : (n_samples, n_features), optional
            Rows to draw, in the colour of their component.
        columns : list of one or two columns, optional
            By number or name. Otherwise the two in which the components are farthest apart.
        ax : matplotlib axes, optional
        """
        from thirdmoment.report.plot_models import Clouds, plot_clouds

        check_is_fitted(self)
        if columns is None:
            columns = self._telling_columns()
        if np.ndim(columns) != 1 or len(columns) not in (1, 2):
            raise InvalidInput(f"columns={columns!r} must be a list of one or two columns.")
        own = [self._column(column) for column in columns]
        names = self._column_names()
        clouds = Clouds(
            np.asarray(self.weights_, dtype=np.float64),
            np.asarray(self.means_, dtype=np.float64)[:, own],
            self._full_covariances()[:, own][:, :, own],
            [names[c] for c in own],
        )
        if X is None:
            return plot_clouds(clouds, None, None, ax=ax)
        rows = read_table(self, X, reset=False)
        return plot_clouds(clouds, rows[:, own], self.predict(X), ax=ax)

    def _telling_columns(self) -> list[int]:
        """The two columns whose means vary most next to what varies within components."""
        means, w = np.asarray(self.means_, dtype=np.float64), np.asarray(self.weights_, float)
        between = w @ (means - w @ means / w.sum()) ** 2
        within = w @ np.diagonal(self._full_covariances(), axis1=1, axis2=2)
        order = np.argsort(-between / np.maximum(within, 1e-300), kind="stable")
        return sorted(order[:2].tolist())

    def _full_covariances(self) -> np.ndarray:
        """Covariances (k, d, d), whatever their type."""
        k, d = self.means_.shape
        full, kind = np.zeros((k, d, d)), self.covariance_type
        if kind in ("spherical", "diag"):
            spread = np.asarray(self.covariances_, dtype=np.float64).reshape(k, -1)
            full[:, np.arange(d), np.arange(d)] = spread
            return full
        groups = self.view_groups_ if kind == "block" else [np.arange(d)]
        blocks = self.covariances_ if kind == "block" else [self.covariances_]
        for columns, block in zip(groups, blocks, strict=True):
            full[:, columns[:, None], columns] = block
        return full

    def to_sklearn(self) -> Any:
        """The fitted mixture as scikit-learn's own ``GaussianMixture``."""
        from sklearn.mixture import GaussianMixture as Peer

        check_is_fitted(self)
        if self.covariance_type == "block":
            raise InvalidInput(
                "scikit-learn has no covariance_type='block'; its 'full' can hold the same "
                "matrices with zeros between the views."
            )
        floor = float(np.min(self._floor * self._own_units().scale ** 2))
        peer = Peer(self.n_components, covariance_type=self.covariance_type, reg_covar=floor)
        if hasattr(self, "feature_names_in_"):
            peer.feature_names_in_ = self.feature_names_in_
        names = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
        for name in (*names, "converged_", "n_iter_", "lower_bound_", "n_features_in_"):
            setattr(peer, name, getattr(self, name))
        return peer
