"""Incomplete Cholesky factorisation with pivots (K-18): a Gram matrix from few of its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# A pivot below this share of the largest diagonal entry is rounding.
ROUNDING = 1e-14


class PivotedCholesky(NamedTuple):
    """K ≈ Z Zᵀ with exact columns at the pivots."""

    Z: np.ndarray  # (n, r)
    pivots: np.ndarray  # (r,) row numbers, in the order they were chosen
    left: float  # share of the (weighted) trace that is not reproduced


def pivoted_cholesky(
    column: Callable[[int], np.ndarray],
    diagonal: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    tol: float = 1e-4,
    most: int = 300,
) -> PivotedCholesky:
    """Columns of a positive semidefinite K (n, n) until ``tol`` of its trace is left.

    ``column(j)`` is K[:, j]. The next pivot is the row with the largest remaining diagonal entry,
    of equal ones the first. Cost n r² and r columns.
    """
    d = np.array(diagonal, dtype=np.float64)
    w = np.ones(len(d)) if weights is None else weights
    whole, floor = float(w @ d), ROUNDING * float(d.max(initial=0.0))
    Z = np.empty((len(d), min(most, len(d))))
    pivots: list[int] = []
    while len(pivots) < Z.shape[1] and float(w @ d) > tol * whole:
        j, r = int(np.argmax(d)), len(pivots)
        if not d[j] > floor:
            break
        Z[:, r] = (column(j) - Z[:, :r] @ Z[j, :r]) / np.sqrt(d[j])
        d = np.maximum(d - Z[:, r] ** 2, 0.0)
        d[j] = 0.0
        pivots.append(j)
    left = float(w @ d) / whole if whole > 0 else 0.0
    return PivotedCholesky(Z[:, : len(pivots)], np.array(pivots, dtype=int), left)
