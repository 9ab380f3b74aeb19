"""Rows of a mixed regression, standardised once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import DenseRows, row_signs
from thirdmoment.exceptions import InputWarning, warn
from thirdmoment.likelihood.mixture import MixtureData
from thirdmoment.likelihood.regressions import LinearRows
from thirdmoment.moments.regression import RegressionRows, Standardisation, root_of_inverse
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.refinement.spread import weight_quantiles
from thirdmoment.streaming import fold, row_ranges


class RegressionData(NamedTuple):
    """Standardised rows with a constant, targets of unit variance and weights."""

    Z: np.ndarray  # (n, r + 1), the last column is one
    y: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)
    standard: Standardisation

    def chunks(self) -> MixtureData:
        """Rows for EM."""
        return MixtureData(
            [
                LinearRows(self.Z[a:b], self.y[a:b], self.weights[a:b])
                for a, b in row_ranges(len(self.y))
            ]
        )

    def samples(self) -> list[RegressionRows]:
        """Rows for the moments."""
        return [
            RegressionRows(self.Z[a:b, :-1], self.y[a:b], self.weights[a:b], row_signs(a, b))
            for a, b in row_ranges(len(self.y))
        ]

    def part(self, place: np.ndarray, weights: np.ndarray) -> RegressionData:
        """Some of the rows, with other weights."""
        return self._replace(Z=self.Z[place], y=self.y[place], weights=weights)

    def thinned(self, most: int) -> RegressionData:
        """At most so many rows, spread over all by weight."""
        if len(self.y) <= most:
            return self
        rows = weight_quantiles(self.weights, most)
        return RegressionData(self.Z[rows], self.y[rows], np.ones(len(rows)), self.standard)


def standardised(X: np.ndarray, y: np.ndarray, w: np.ndarray, *, n_threads: int) -> RegressionData:
    """Rows of positive weight, standardised; redundant columns are left out with a warning."""
    mean, location = (w @ X) / w.sum(), float(w @ y / w.sum())
    centred, target = X - mean, y - location
    scale = float(np.sqrt(w @ (target / max(np.abs(target).max(), 1e-300)) ** 2 / w.sum()))
    scale = scale * float(np.abs(target).max())
    if scale <= 1e-12 * float(np.abs(y).max()):  # rounding of a constant
        target, scale = np.zeros_like(y), 1.0
    chunks = [Sample(DenseRows(centred[a:b]), w[a:b], a) for a, b in row_ranges(len(X))]
    sums = fold(lambda: PairSums(X.shape[1]), chunks, n_threads=n_threads)
    root = root_of_inverse(sums.pairs, np.abs(X).max(axis=0))
    if root.shape[1] < X.shape[1]:
        warn(
            f"The {X.shape[1]} columns of X span {root.shape[1]} dimensions only: some are "
            "constant or combinations of others. Of all coefficients that fit equally, small ones "
            "are returned; drop the redundant columns to have them unique.",
            InputWarning,
        )
    Z = np.concatenate([centred @ root, np.ones((len(X), 1))], axis=1)
    return RegressionData(Z, target / scale, w, Standardisation(mean, root, location, scale))
