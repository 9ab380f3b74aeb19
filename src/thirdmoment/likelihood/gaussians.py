"""Families of Gaussian components for EM: log densities, statistics and M-steps.

The data handed to them is centred, so that sums of squares do not cancel.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

from thirdmoment._constants import Floor, Wording
from thirdmoment.likelihood.mixture import Parameters, Statistics

LOG_2PI = math.log(2 * math.pi)

# A component must keep this many observations' worth of mass to be re-estimated.
LEAST_MASS: Floor[float] = 1e-8

# A variance within this factor of the floor is at the floor.
AT_FLOOR: Wording[float] = 1.5


class GaussianRows(NamedTuple):
    """Centred rows, with the squares that spherical and diagonal components read."""

    X: np.ndarray  # (m, d)
    weights: np.ndarray  # (m,)
    squares: np.ndarray  # (m,), (m, d) or empty


def shares(mass: np.ndarray) -> np.ndarray:
    """Masses as weights that sum to one."""
    mass = np.maximum(mass, 1e-300)
    return mass / mass.sum()


def valid_weights(weights: np.ndarray) -> np.ndarray:
    """Extrapolated weights made positive, with sum one."""
    weights = np.maximum(weights, 1e-12)
    return weights / weights.sum()


def some_columns(covariances: np.ndarray, used: np.ndarray | None) -> np.ndarray:
    """Variances (k, d) or covariances (k, d, d) of the columns in use, all where None."""
    if used is None:
        return covariances
    part = covariances[:, used]
    return part if covariances.ndim == 2 else part[:, :, used]


def at_floor(least: np.ndarray, floor: float) -> int:
    """Components whose smallest variances (k,) are at the floor."""
    return int(np.sum(least <= AT_FLOOR * floor))


class Spherical:
    """N(mu_j, sigma_j² I); parameters (weights, means (k, d), variances (k,))."""

    def __init__(self, floor: float, *, common: bool = False) -> None:
        self.floor, self.common = floor, common

    def rows(self, X: np.ndarray, weights: np.ndarray) -> GaussianRows:
        return GaussianRows(X, weights, np.einsum("ad,ad->a", X, X))

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> np.ndarray:
        _, means, variances = parameters
        d = means.shape[1]
        scaled = (means / variances[:, None]).astype(chunk.X.dtype)
        constant = (means**2).sum(axis=1) / variances + d * (LOG_2PI + np.log(variances))
        out = scaled @ chunk.X.T
        out -= (0.5 / variances).astype(out.dtype)[:, None] * chunk.squares
        out -= (0.5 * constant).astype(out.dtype)[:, None]
        return out

    def statistics(self, chunk: GaussianRows, posterior: np.ndarray) -> Statistics:
        return posterior.sum(axis=1), posterior @ chunk.X, posterior @ chunk.squares

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, first, second = statistics
        safe = np.maximum(mass, LEAST_MASS)
        means = first / safe[:, None]
        spread = second - safe * (means**2).sum(axis=1)
        d = means.shape[1]
        if self.common:
            variances = np.full(len(mass), spread.sum() / (d * safe.sum()))
        else:
            variances = spread / (d * safe)
        return shares(mass), means, np.maximum(variances, self.floor)

    def project(self, parameters: Parameters) -> Parameters:
        weights, means, variances = parameters
        weights = valid_weights(weights)
        if self.common:
            variances = np.full(len(weights), weights @ variances)
        return weights, means, np.maximum(variances, self.floor)

    def log_prior(self, parameters: Parameters) -> float:
        return 0.0

    def collapsed(self, parameters: Parameters) -> int:
        """Components whose variance is at the floor."""
        return at_floor(parameters[2], self.floor)


class Diagonal:
    """N(mu_j, diag(s_j)); parameters (weights, means (k, d), variances (k, d)).

    Columns not in ``varies`` are constant: a variance at the floor means nothing there.
    """

    def __init__(self, floor: float | np.ndarray, varies: np.ndarray | None = None) -> None:
        self.floor, self.varies = floor, varies

    def rows(self, X: np.ndarray, weights: np.ndarray) -> GaussianRows:
        return GaussianRows(X, weights, X * X)

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> np.ndarray:
        _, means, variances = parameters
        precision = 1 / variances
        constant = (means**2 * precision + LOG_2PI + np.log(variances)).sum(axis=1)
        out = (means * precision).astype(chunk.X.dtype) @ chunk.X.T
        out -= (0.5 * precision).astype(chunk.X.dtype) @ chunk.squares.T
        out -= (0.5 * constant).astype(out.dtype)[:, None]
        return out

    def statistics(self, chunk: GaussianRows, posterior: np.ndarray) -> Statistics:
        return posterior.sum(axis=1), posterior @ chunk.X, posterior @ chunk.squares

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, first, second = statistics
        safe = np.maximum(mass, LEAST_MASS)[:, None]
        means = first / safe
        variances = np.maximum(second / safe - means**2, self.floor)
        return shares(mass), means, variances

    def project(self, parameters: Parameters) -> Parameters:
        weights, means, variances = parameters
        return valid_weights(weights), means, np.maximum(variances, self.floor)

    def log_prior(self, parameters: Parameters) -> float:
        return 0.0

    def collapsed(self, parameters: Parameters) -> int:
        """Components with a variance at the floor."""
        over = some_columns(parameters[2] / self.floor, self.varies)
        return at_floor(over.min(axis=1, initial=np.inf), 1.0)


class Block:
    """N(mu_j, Sigma_j), Sigma_j block diagonal over groups of columns; one group is "full".

    Parameters (weights, means (k, d), covariances (k, d_v, d_v) of each group).
    """

    def __init__(
        self, floor: float, groups: list[np.ndarray], varies: np.ndarray | None = None
    ) -> None:
        self.floor, self.groups, self.varies = floor, groups, varies

    def rows(self, X: np.ndarray, weights: np.ndarray) -> GaussianRows:
        return GaussianRows(X, weights, np.empty(0))

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> np.ndarray:
        means, covariances = parameters[1], parameters[2:]
        out = np.zeros((len(means), len(chunk.weights)), chunk.X.dtype)
        for group, cov in zip(self.groups, covariances, strict=True):
            x = chunk.X if len(group) == chunk.X.shape[1] else chunk.X[:, group]
            for j, factor in enumerate(cholesky_of_precisions(cov)):
                y = (x - means[j, group].astype(x.dtype)) @ factor.astype(x.dtype)
                half_log_det = np.log(np.diagonal(factor)).sum()
                out[j] += half_log_det - 0.5 * np.einsum("ad,ad->a", y, y)
        return out - 0.5 * chunk.X.shape[1] * LOG_2PI

    def statistics(self, chunk: GaussianRows, posterior: np.ndarray) -> Statistics:
        seconds = []
        for group in self.groups:
            x = chunk.X if len(group) == chunk.X.shape[1] else chunk.X[:, group]
            seconds.append(np.stack([(x * row[:, None]).T @ x for row in posterior]))
        return posterior.sum(axis=1), posterior @ chunk.X, *seconds

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, first, *seconds = statistics
        safe = np.maximum(mass, LEAST_MASS)
        means = first / safe[:, None]
        covariances = []
        for group, second in zip(self.groups, seconds, strict=True):
            mu = means[:, group]
            cov = second / safe[:, None, None] - mu[:, :, None] * mu[:, None, :]
            covariances.append(with_floor(cov, self.floor))
        return shares(mass), means, *covariances

    def project(self, parameters: Parameters) -> Parameters:
        weights, means, *covariances = parameters
        fixed = (with_floor(cov, self.floor) for cov in covariances)
        return valid_weights(weights), means, *fixed

    def log_prior(self, parameters: Parameters) -> float:
        return 0.0

    def collapsed(self, parameters: Parameters) -> int:
        """Components with a direction whose variance is at the floor."""
        least = [np.full(len(parameters[0]), np.inf)]
        for group, cov in zip(self.groups, parameters[2:], strict=True):
            part = some_columns(cov, None if self.varies is None else self.varies[group])
            if part.shape[1]:
                least.append(np.linalg.eigvalsh(part)[:, 0])
        return at_floor(np.min(least, axis=0), self.floor)


class Tied:
    """N(mu_j, Sigma) with one Sigma; parameters (weights, means (k, d), covariance (1, d, d)).

    ``second`` is Σ w x xᵀ over all rows, which no E-step changes.
    """

    def __init__(self, floor: float, second: np.ndarray, varies: np.ndarray | None = None) -> None:
        self.floor, self.second, self.varies = floor, second, varies

    def rows(self, X: np.ndarray, weights: np.ndarray) -> GaussianRows:
        return GaussianRows(X, weights, np.empty(0))

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> np.ndarray:
        _, means, covariance = parameters
        factor = cholesky_of_precisions(covariance)[0]
        y, centres = chunk.X @ factor.astype(chunk.X.dtype), means @ factor
        out = centres.astype(y.dtype) @ y.T
        out -= 0.5 * np.einsum("ad,ad->a", y, y)
        constant = (centres**2).sum(axis=1) / 2 - np.log(np.diagonal(factor)).sum()
        out -= (constant + 0.5 * len(factor) * LOG_2PI).astype(out.dtype)[:, None]
        return out

    def statistics(self, chunk: GaussianRows, posterior: np.ndarray) -> Statistics:
        return posterior.sum(axis=1), posterior @ chunk.X

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, first = statistics
        means = first / np.maximum(mass, LEAST_MASS)[:, None]
        within = (self.second - (means * mass[:, None]).T @ means) / mass.sum()
        return shares(mass), means, with_floor(within[None], self.floor)

    def project(self, parameters: Parameters) -> Parameters:
        weights, means, covariance = parameters
        return valid_weights(weights), means, with_floor(covariance, self.floor)

    def log_prior(self, parameters: Parameters) -> float:
        return 0.0

    def collapsed(self, parameters: Parameters) -> int:
        """All components, where the common covariance has a direction at the floor."""
        part = some_columns(parameters[2], self.varies)
        if not part.shape[1]:
            return 0
        return len(parameters[0]) * at_floor(np.linalg.eigvalsh(part)[:, 0], self.floor)


def cholesky_of_precisions(covariances: np.ndarray) -> np.ndarray:
    """Upper triangular factors F with F Fᵀ = Sigma⁻¹, (k, d, d), as scikit-learn keeps them."""
    eye = np.eye(covariances.shape[1])
    lower = np.linalg.cholesky(covariances)
    return np.stack([scipy.linalg.solve_triangular(L, eye, lower=True).T for L in lower])


def with_floor(covariances: np.ndarray, floor: float) -> np.ndarray:
    """Symmetric (k, d, d) with eigenvalues of at least ``floor`` (N-9).

    Raising the small ones, instead of adding to all, is the M-step under that constraint, so that
    EM stays monotone.
    """
    covariances = (covariances + covariances.transpose(0, 2, 1)) / 2
    try:
        np.linalg.cholesky(covariances - floor * np.eye(covariances.shape[1]))
        return covariances
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        values = np.maximum(values, floor)
        return (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
