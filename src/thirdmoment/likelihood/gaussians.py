"""Families of Gaussian components for EM: log densities, statistics and M-steps.

The data handed to them is centred, so that sums of squares do not cancel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import scipy.linalg

from thirdmoment._array import Array, array_namespace, like_index, like_one, row_squares
from thirdmoment._constants import Floor, Wording
from thirdmoment.likelihood.mixture import Parameters, Statistics

LOG_2PI = math.log(2 * math.pi)

# A component must keep this many observations' worth of mass to be re-estimated.
LEAST_MASS: Floor[float] = 1e-8

# A variance within this factor of the floor is at the floor.
AT_FLOOR: Wording[float] = 1.5


class GaussianRows(NamedTuple):
    """Centred rows, or what a family makes of them; on any device."""

    X: Array  # (m, d)
    weights: Array  # (m,)


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


class Features:
    """Components whose log density is linear in features of a row, with a last feature of one.

    One matrix product gives all densities, and one all sums.
    """

    def rows(self, X: Array, weights: Array) -> GaussianRows:
        xp = array_namespace(X)
        parts = [X, self.squares(X), xp.ones_like(X[:, :1])]
        return GaussianRows(xp.concat(parts, axis=1), weights)

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> Array:
        return like_one(chunk.X, self.coefficients(parameters)) @ chunk.X.T

    def statistics(self, chunk: GaussianRows, posterior: Array) -> Statistics:
        return self.apart(posterior @ chunk.X)

    @abstractmethod
    def squares(self, X: Array) -> Array:
        """The features (m, q) that tell spreads."""

    @abstractmethod
    def coefficients(self, parameters: Parameters) -> np.ndarray:
        """What the features are multiplied by (k, d + q + 1)."""

    @abstractmethod
    def apart(self, sums: Array) -> Statistics:
        """Masses and sums of the features (k, d + q + 1) as ``maximise`` takes them."""


class Spherical(Features):
    """N(mu_j, sigma_j² I); parameters (weights, means (k, d), variances (k,))."""

    def __init__(self, floor: float, *, common: bool = False) -> None:
        self.floor, self.common = floor, common

    def squares(self, X: Array) -> Array:
        return row_squares(X)[:, None]

    def coefficients(self, parameters: Parameters) -> np.ndarray:
        _, means, variances = parameters
        d = means.shape[1]
        constant = (means**2).sum(axis=1) / variances + d * (LOG_2PI + np.log(variances))
        scaled = means / variances[:, None]
        return np.column_stack([scaled, -0.5 / variances, -0.5 * constant])

    def apart(self, sums: Array) -> Statistics:
        return sums[:, -1], sums[:, :-2], sums[:, -2]

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


class Diagonal(Features):
    """N(mu_j, diag(s_j)); parameters (weights, means (k, d), variances (k, d)).

    Columns not in ``varies`` are constant: a variance at the floor means nothing there.
    """

    def __init__(self, floor: float | np.ndarray, varies: np.ndarray | None = None) -> None:
        self.floor, self.varies = floor, varies

    def squares(self, X: Array) -> Array:
        return X * X

    def coefficients(self, parameters: Parameters) -> np.ndarray:
        _, means, variances = parameters
        precision = 1 / variances
        constant = (means**2 * precision + LOG_2PI + np.log(variances)).sum(axis=1)
        return np.column_stack([means * precision, -0.5 * precision, -0.5 * constant])

    def apart(self, sums: Array) -> Statistics:
        d = (sums.shape[1] - 1) // 2
        return sums[:, -1], sums[:, :d], sums[:, d:-1]

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

    def rows(self, X: Array, weights: Array) -> GaussianRows:
        return GaussianRows(X, weights)

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> Array:
        means, covariances = parameters[1], parameters[2:]
        xp = array_namespace(chunk.X)
        out = [0.0] * len(means)
        for group, cov in zip(self.groups, covariances, strict=True):
            x = self._columns(chunk, group)
            for j, factor in enumerate(cholesky_of_precisions(cov)):
                y = (x - like_one(x, means[j, group])) @ like_one(x, factor)
                half_log_det = float(np.log(np.diagonal(factor)).sum())
                out[j] = out[j] + (half_log_det - 0.5 * row_squares(y))
        return xp.stack(out) - 0.5 * chunk.X.shape[1] * LOG_2PI

    def statistics(self, chunk: GaussianRows, posterior: Array) -> Statistics:
        xp, seconds = array_namespace(posterior), []
        for group in self.groups:
            x = self._columns(chunk, group)
            each = [(x * posterior[j, :, None]).T @ x for j in range(posterior.shape[0])]
            seconds.append(xp.stack(each))
        return xp.sum(posterior, axis=1), posterior @ chunk.X, *seconds

    def _columns(self, chunk: GaussianRows, group: np.ndarray) -> Array:
        """Those of a group; a group may be all of them."""
        if len(group) == chunk.X.shape[1]:
            return chunk.X
        xp = array_namespace(chunk.X)
        return xp.take(chunk.X, like_index(chunk.X, group), axis=1)

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

    def rows(self, X: Array, weights: Array) -> GaussianRows:
        return GaussianRows(X, weights)

    def log_density(self, parameters: Parameters, chunk: GaussianRows) -> Array:
        _, means, covariance = parameters
        factor = cholesky_of_precisions(covariance)[0]
        y, centres = chunk.X @ like_one(chunk.X, factor), means @ factor
        out = like_one(y, centres) @ y.T
        out -= 0.5 * row_squares(y)
        constant = (centres**2).sum(axis=1) / 2 - np.log(np.diagonal(factor)).sum()
        out -= like_one(out, constant + 0.5 * len(factor) * LOG_2PI)[:, None]
        return out

    def statistics(self, chunk: GaussianRows, posterior: Array) -> Statistics:
        return array_namespace(posterior).sum(posterior, axis=1), posterior @ chunk.X

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
