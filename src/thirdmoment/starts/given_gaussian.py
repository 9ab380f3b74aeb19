"""Gaussian components given by hand, as a start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.starts.given import given_matrices, given_positive


class Shape(NamedTuple):
    """What the covariances of a Gaussian family look like."""

    kind: str  # "spherical", "diag", "tied", "block" or "full"
    groups: list[np.ndarray]  # columns of the blocks


def around_means(X: np.ndarray, weights: np.ndarray, means: np.ndarray, shape: Shape) -> Parameters:
    """Parameters with these means (k, d): the shares of the nearest rows, one spread for all."""
    scale = np.sqrt(weights @ (X * X) / weights.sum())
    scale = np.where(scale > 0, scale, 1.0)
    centres = means / scale
    with np.errstate(over="ignore", invalid="ignore"):  # the caller asks whether it is finite
        labels = np.argmax(X / scale @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)
        spreads = _pooled(X - means[labels], weights, len(means), shape)
    mass = np.bincount(labels, weights=weights, minlength=len(means)) + 1.0
    return mass / mass.sum(), means, *spreads


def _pooled(rest: np.ndarray, weights: np.ndarray, k: int, shape: Shape) -> list[np.ndarray]:
    """One spread for all components from the deviations (n, d) of rows from their means."""
    total, (kind, groups) = weights.sum(), shape
    if kind in ("spherical", "diag"):
        variances = weights @ rest**2 / total
        return [np.full(k, variances.mean()) if kind == "spherical" else np.tile(variances, (k, 1))]
    cov = (rest * weights[:, None]).T @ rest / total
    if kind == "tied":
        return [cov[None]]
    return [np.tile(cov[np.ix_(view, view)], (k, 1, 1)) for view in groups]


def inverted(name: str, value: Any, k: int, d: int, shape: Shape) -> list[np.ndarray]:
    """Covariances of the family from precisions given as scikit-learn shapes them."""
    kind, groups = shape
    if kind in ("spherical", "diag"):
        return [1 / given_positive(name, value, (k,) if kind == "spherical" else (k, d))]
    if kind == "block":
        if not isinstance(value, list | tuple) or len(value) != len(groups):
            raise InvalidInput(f"{name} must be a list of {len(groups)} arrays, one for each view.")
        return [
            np.linalg.inv(given_matrices(f"{name}[{v}]", part, (k, len(view), len(view))))
            for v, (part, view) in enumerate(zip(value, groups, strict=True))
        ]
    size = (d, d) if kind == "tied" else (k, d, d)
    found = np.linalg.inv(given_matrices(name, value, size))
    return [found[None] if kind == "tied" else found]
