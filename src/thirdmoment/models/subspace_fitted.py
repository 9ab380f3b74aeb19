"""What fitted subspaces can do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment.models.base import MomentEstimator
from thirdmoment.models.read import read_table
from thirdmoment.models.units import cast
from thirdmoment.refinement.subspaces import (
    Flats,
    Layers,
    log_densities,
    padded,
    square_distances,
)


class FittedSubspaces(MomentEstimator):
    """Everything that is read off ``bases_``, ``means_`` and ``variances_``."""

    bases_: Any
    means_: np.ndarray
    subspace_dims_: np.ndarray
    variances_: list[np.ndarray]
    noise_variance_: Any
    _shares: np.ndarray
    weights_: np.ndarray

    def _labels(self, X: np.ndarray) -> np.ndarray:
        if not isinstance(self.bases_, list):
            return np.argmin(self._distances(X), axis=1)
        layers = Layers(
            self._flats(),
            self.subspace_dims_,
            padded(self.variances_),
            self._shares,
            float(self.noise_variance_),
        )
        return np.argmax(log_densities(X, layers), axis=1)

    def _flats(self) -> Flats:
        """The subspaces side by side, those of fewer dimensions with columns of zeros."""
        bases = padded(self.bases_) if isinstance(self.bases_, list) else self.bases_
        return Flats(self.means_.astype(np.float64), np.asarray(bases, dtype=np.float64))

    def _distances(self, X: np.ndarray) -> np.ndarray:
        return square_distances(X, self._flats(), n_threads=self._threads())

    def transform(self, X: Any) -> np.ndarray:
        """Distance of each row to each subspace (n_samples, n_components)."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        return cast(np.sqrt(self._distances(X.astype(np.float64))), X.dtype)

    def predict(self, X: Any) -> np.ndarray:
        """Nearest subspace of each row; the most probable one where dimensions may differ."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        return self._labels(X.astype(np.float64))

    def score_samples(self, X: Any) -> np.ndarray:
        """Square distance of each row to its subspace, times minus one (n_samples,)."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False).astype(np.float64)
        return -self._distances(X)[np.arange(len(X)), self._labels(X)]

    def plot(self, *, ax: Any = None) -> Any:
        """The smallest angle between each two subspaces, in degrees; returns the axes.

        Near 90 subspaces are easy to tell apart; near 0 they share a direction.
        """
        from thirdmoment.report.plot_models import plot_angles

        check_is_fitted(self)
        return plot_angles(list(self.bases_), self.weights_, ax=ax)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of ``score_samples``: higher is better."""
        return float(np.mean(self.score_samples(X)))
