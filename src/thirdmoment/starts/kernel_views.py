"""A view of a kernel mixture: its columns, their kernels and bandwidths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment.moments.features import Custom, Delta, Gaussian, Kernel, Laplace, Linear, Product
from thirdmoment.refinement.axis import distinct_values, silverman, spread_of

# The spectral bandwidth is this multiple of the fast rule on all rows (K-15).
SPECTRAL = 2.0


class View(NamedTuple):
    """One view: its columns, the kernel of its moments and how its density is made."""

    columns: np.ndarray  # columns of the density
    names: tuple[Any, ...]  # kernel of each column, or one callable; empty where nothing varies
    exact: np.ndarray  # (d_v,) columns whose values are compared by equality
    bandwidth: np.ndarray | None  # (smooth columns,) of the density, given by the user
    seen: np.ndarray  # columns that the kernel sees
    spectral: np.ndarray | None = None  # (smooth columns,) of the moments, unless by rule

    @property
    def varies(self) -> bool:
        return bool(self.names)


def fast_rule(x: np.ndarray, weights: np.ndarray, d: int) -> float:
    """K-15 of all rows together for one of d columns."""
    values, mass = distinct_values(x, weights)
    return float(silverman(*spread_of(values, mass[None]), np.array([weights.sum()]), d)[0])


def spectral_kernel(view: View, X: np.ndarray, weights: np.ndarray) -> Kernel:
    """Kernel of the moments on the columns X (n, d_v) of a view, with the bandwidths of K-15."""
    if callable(view.names[0]):
        return Custom(view.names[0])
    d = X.shape[1]
    scale = SPECTRAL * np.array([fast_rule(column, weights, d) for column in X.T])
    if view.spectral is not None:
        scale[~view.exact] = view.spectral
    if set(view.names) == {"rbf"}:
        return Gaussian(scale)
    if set(view.names) == {"laplace"}:
        return Laplace(scale)
    if set(view.names) == {"delta"}:
        return Delta()
    mean = weights @ X / weights.sum()
    unit = np.sqrt(weights @ (X - mean) ** 2 / weights.sum())
    if set(view.names) == {"linear"}:
        return Linear(mean, unit)
    parts: list[Kernel] = []
    for j, name in enumerate(view.names):
        one = scale[j : j + 1]
        simple: dict[str, Kernel] = {
            "rbf": Gaussian(one),
            "laplace": Laplace(one),
            "delta": Delta(),
            "linear": Linear(mean[j : j + 1], unit[j : j + 1]),
        }
        parts.append(simple[name])
    return Product(tuple(parts))
