"""The units of columns: what they are measured in, and the smallest variance to believe in.

One rule for all models of real numbers. A column is measured in its standard deviation. Where that
is no more than rounding, the column is constant, and its own size is all there is to measure it by;
a column of zeros takes the size of the others. The smallest variance that a component may have in
a column is `BELIEVABLE` of that unit squared: a thousandth of the unit either way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import Array, array_namespace, in_double, like_one
from thirdmoment._constants import Floor, Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_positive

# Numbers beyond this, or below its inverse, have squares that floating point does not hold.
LARGEST: Limit[float] = 1e152

# Rows further away than so many units are as far as that: their squares can be added up.
FAR: Limit[float] = 1e140
# All components have that column alike: it must not drown the others.
FAR_FROM_CONSTANT: Floor[float] = 1e3

# Smallest variance of a component in a column, in units of the column squared.
BELIEVABLE: Floor[float] = 1e-6

# A given floor is no smaller than this part of the unit squared: below it is rounding.
LEAST_FLOOR: Floor[float] = 1e-12

# Deviations of so many roundings of the largest value are rounding.
ROUNDINGS: Floor[int] = 8


class Units(NamedTuple):
    """Location and unit of each column, and whether it varies at all."""

    location: np.ndarray  # (d,)
    scale: np.ndarray  # (d,) positive
    varies: np.ndarray  # (d,) bool
    rounding: float = 0.0  # relative deviations that are no more than this say nothing

    @classmethod
    def plain(cls, location: np.ndarray) -> Units:
        """Columns as they are, less a location."""
        return cls(location, np.ones(len(location)), np.ones(len(location), dtype=bool))

    def rows(self, X: Array) -> Array:
        """Rows (n, d) in float64, centred and in units."""
        with np.errstate(over="ignore"):
            Z = self.without_rounding(X)
            Z = (Z - like_one(Z, self.location)) / like_one(Z, self.scale)
        far = like_one(Z, np.where(self.varies, FAR, FAR_FROM_CONSTANT))
        return array_namespace(Z).clip(Z, -far, far)

    def without_rounding(self, X: Array) -> Array:
        """Rows in float64 whose constant columns are constant to the last bit."""
        X = in_double(X)
        if self.varies.all():
            return X
        xp, location = array_namespace(X), like_one(X, self.location)
        near = xp.abs(X - location) <= like_one(X, self.rounding * self.scale)
        constant = xp.asarray(~self.varies, device=getattr(X, "device", None))
        return xp.where(near & constant, location, X)

    def common(self, *, least: float = 0.0) -> Units:
        """The same with one unit for all columns: the root of their mean square, or ``least``."""
        used = self.scale[self.varies] if self.varies.any() else self.scale
        top = float(used.max())
        share = self.varies.mean() if self.varies.any() else 1.0
        unit = top * float(np.sqrt(np.mean((used / top) ** 2) * share))
        return self._replace(scale=np.full(len(self.scale), max(unit, least)))

    def log_volume(self) -> float:
        """What the log density of a row in units exceeds that of the row itself by."""
        return float(np.log(self.scale).sum())


def column_units(X: np.ndarray, weights: np.ndarray | None = None) -> Units:
    """Units of the columns of dense X (n, d), whose rounding is that of its dtype."""
    w = np.ones(len(X)) if weights is None else weights
    w = w / w.max()
    eps = float(np.finfo(X.dtype).eps) if X.dtype.kind == "f" else 0.0
    X = X.astype(np.float64, copy=False)
    size = np.abs(X).max(axis=0)
    check_sizes(size)
    location = (w @ X) / w.sum()
    location = location + (w @ (X - location)) / w.sum()  # what the first sum rounded
    deviation = np.sqrt((w @ (X - location) ** 2) / w.sum())
    return units_from(location, deviation, size, eps)


def units_from(location: np.ndarray, deviation: np.ndarray, size: np.ndarray, eps: float) -> Units:
    """Units from means, standard deviations and largest values (d,) of numbers rounded to eps."""
    rounding = ROUNDINGS * eps
    varies = deviation > rounding * size
    scale = np.where(varies, deviation, size)
    others = float(scale[scale > 0].mean()) if np.any(scale > 0) else 1.0
    return Units(location, np.where(scale > 0, scale, others), varies, rounding)


def units_and_floor(
    units: Units, reg_covar: float | str, *, diagonal: bool, compared: bool
) -> tuple[Units, Any]:
    """The units to work in, and the smallest variance in them.

    ``"auto"`` has each column in its own unit, or all in one where their sizes are ``compared``. A
    number is absolute: the floor of a ``diagonal`` family then differs from column to column, and
    for others all columns share a unit, so that it is the same in any direction.
    """
    if reg_covar == "auto":
        return (units.common() if compared else units), BELIEVABLE
    given = float(reg_covar)
    if diagonal and not compared:
        units = units._replace(scale=np.maximum(units.scale, given**0.5))
        return units, np.maximum(given / units.scale**2, LEAST_FLOOR)
    units = units.common(least=given**0.5)
    return units, max(given / float(units.scale[0]) ** 2, LEAST_FLOOR)


def check_largest(values: np.ndarray, *, name: str = "X") -> None:
    """Refuse numbers whose squares floating point does not hold."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST:
        raise InvalidInput(
            f"{name} has values as large as {largest:.3g}, and beyond {LARGEST:g} squares are too "
            "large for floating point. Give it in other units."
        )


def cast(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Results in the dtype of the input, where that holds them; else in float64.

    Covariances (k, d, d) must stay positive definite.
    """
    if np.dtype(dtype) != np.float32:
        return np.asarray(values, dtype=np.float64)
    limits, size = np.finfo(np.float32), np.abs(values)
    held = bool(np.all(size < limits.max) and np.all((size == 0) | (size > limits.tiny)))
    if held and values.ndim == 3 and values.shape[1] == values.shape[2]:
        unit = np.sqrt(np.diagonal(values, axis1=1, axis2=2))
        shape = values / (unit[:, :, None] * unit[:, None, :])
        held = bool(np.linalg.eigvalsh(shape).min() > 100 * values.shape[1] * limits.eps)
    return np.asarray(values, dtype=np.float32 if held else np.float64)


def check_sizes(size: np.ndarray, *, name: str = "Column {} of X", limit: float = LARGEST) -> None:
    """Refuse columns whose largest values (d,) are beyond a limit, or below its inverse."""
    size = size.astype(np.float64)
    wrong = (size > limit) | ((size > 0) & (size < 1 / limit))
    if np.any(wrong):
        column = int(np.argmax(wrong))
        raise InvalidInput(
            f"{name.format(column)} has values as large as {size[column]:.3g}, and can be used "
            f"between {1 / limit:g} and {limit:g}. Give it in other units."
        )


def check_floor(reg_covar: Any) -> None:
    """The argument ``reg_covar``."""
    if not (isinstance(reg_covar, str) and reg_covar == "auto"):
        check_positive("reg_covar", reg_covar, zero=True)
