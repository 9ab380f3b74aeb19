"""Parameters that a user gives as a start, checked before any long work."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import on_host
from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.mixture import Parameters

# Name of a start by hand in the report.
GIVEN = "given by hand"

# Distributions given by hand may miss a sum of one by this much.
ROUNDING: Limit[float] = 1e-3


def given_array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite numbers of the shape that the model has."""
    try:
        array = np.array(on_host(value), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be an array of numbers of shape {shape}.") from None
    if array.shape != shape:
        raise InvalidInput(
            f"{name} has shape {array.shape}, but these data and n_components need {shape}."
        )
    if not np.all(np.isfinite(array)):
        raise InvalidInput(f"{name} has NaN or infinite entries.")
    return array


def given_positive(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Positive numbers, such as variances."""
    array = given_array(name, value, shape)
    if not np.all(array > 0):
        raise InvalidInput(f"{name} has entries that are not positive ({array.min():.3g}).")
    return array


def given_matrices(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Symmetric positive definite matrices along the last two axes."""
    array = given_array(name, value, shape)
    turned = np.swapaxes(array, -1, -2)
    if not np.allclose(array, turned) or np.linalg.eigvalsh(array).min() <= 0:
        raise InvalidInput(f"{name} must hold symmetric, positive definite matrices.")
    return array


def given_probabilities(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Probabilities that sum to one along the last axis."""
    array = given_array(name, value, shape)
    total = array.sum(axis=-1, keepdims=True)
    if np.any(array < 0) or np.any(np.abs(total - 1) > ROUNDING):
        raise InvalidInput(
            f"{name} must have non-negative entries that sum to one"
            f"{' in each row' if array.ndim > 1 else ''}."
        )
    return array / total


def _is_table(value: Any) -> bool:
    try:
        return np.ndim(np.asarray(value, dtype=np.float64)) == 2
    except (TypeError, ValueError):
        return False


def given_tables(name: str, value: Any, k: int, sizes: np.ndarray) -> np.ndarray:
    """Laws of several columns side by side (k, Σ d_v), given as a list of one (k, d_v) each."""
    if len(sizes) == 1 and _is_table(value):
        value = [value]
    if not isinstance(value, list | tuple | np.ndarray) or len(value) != len(sizes):
        raise InvalidInput(f"{name} must be a list of {len(sizes)} tables, one for each column.")
    for v, (table, size) in enumerate(zip(value, sizes, strict=True)):
        if _is_table(table) and np.shape(table)[1] > size:
            raise InvalidInput(
                f"{name}[{v}] has {np.shape(table)[1]} codes, but these data have {size}. Say how "
                "many there are (n_categories or n_features)."
            )
    parts = [
        given_probabilities(f"{name}[{v}]", table, (k, int(size)))
        for v, (table, size) in enumerate(zip(value, sizes, strict=True))
    ]
    return np.concatenate(parts, axis=1)


def finite_start(parameters: Parameters, names: str) -> Parameters:
    """Parameters of a start by hand, which must be numbers that EM can work with."""
    if not all(np.all(np.isfinite(array)) for array in parameters):
        raise InvalidInput(f"{names} are too large or too small for floating point.")
    return parameters


def needs(name: str, value: Any, other: str, given: Any) -> None:
    """An argument that says nothing without another one."""
    if value is not None and given is None:
        raise InvalidInput(f"{name} needs {other} as well: it says nothing without it.")


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
