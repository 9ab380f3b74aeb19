"""Family of linear regressions with Gaussian noise for EM.

Rows are standardised with a constant appended, so that the normal equations are well conditioned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._constants import Floor
from thirdmoment.likelihood.gaussians import AT_FLOOR, LEAST_MASS, LOG_2PI, shares, valid_weights
from thirdmoment.likelihood.mixture import Parameters, Statistics

# Weight of a standard normal prior on the slopes, in rows: it decides only what the data does not.
RIDGE: Floor[float] = 1e-8


class LinearRows(NamedTuple):
    """Standardised rows with a constant column, and their targets."""

    Z: np.ndarray  # (m, q), the last column is one
    y: np.ndarray  # (m,)
    weights: np.ndarray  # (m,)


class Regressions:
    """y ~ N(<z, beta_j>, sigma_j²); parameters (weights, beta (k, q), variances (k,))."""

    def __init__(self, floor: float, *, common: bool = False) -> None:
        self.floor, self.common = floor, common

    def log_density(self, parameters: Parameters, chunk: LinearRows) -> np.ndarray:
        _, beta, variances = parameters
        out = beta @ chunk.Z.T
        out -= chunk.y
        np.square(out, out=out)
        out *= (-0.5 / variances)[:, None]
        out -= 0.5 * (LOG_2PI + np.log(variances))[:, None]
        return out

    def statistics(self, chunk: LinearRows, posterior: np.ndarray) -> Statistics:
        Z, y = chunk.Z, chunk.y
        weighted = posterior * y
        cross = np.stack([(Z * share[:, None]).T @ Z for share in posterior])
        return posterior.sum(axis=1), weighted @ Z, cross, weighted @ y

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, zy, zz, yy = statistics
        q = zz.shape[1]
        safe = np.maximum(mass, LEAST_MASS)
        ridge = RIDGE * np.maximum(safe, 1.0)[:, None, None] * np.eye(q)
        beta = np.linalg.solve(zz + ridge, zy[:, :, None])[:, :, 0]
        fitted = np.einsum("kp,kpq,kq->k", beta, zz, beta)
        spread = np.maximum(yy - 2 * np.einsum("kq,kq->k", beta, zy) + fitted, 0.0)
        if self.common:
            variances = np.full(len(mass), spread.sum() / safe.sum())
        else:
            variances = spread / safe
        return shares(mass), beta, np.maximum(variances, self.floor)

    def project(self, parameters: Parameters) -> Parameters:
        weights, beta, variances = parameters
        return valid_weights(weights), beta, np.maximum(variances, self.floor)

    def log_prior(self, parameters: Parameters) -> float:
        return 0.0

    def collapsed(self, parameters: Parameters) -> int:
        return int(np.sum(parameters[2] < AT_FLOOR * self.floor))
