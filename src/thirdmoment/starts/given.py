"""Parameters that a user gives as a start, checked before any long work."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.mixture import Parameters

# Name of a start by hand in the report.
GIVEN = "given by hand"

# Laws given by hand may miss a sum of one by this much.
ROUNDING = 1e-3


def given_array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite numbers of the shape that the model has."""
    try:
        array = np.array(value, dtype=np.float64)
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


def given_laws(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
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
        given_laws(f"{name}[{v}]", table, (k, int(size)))
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
