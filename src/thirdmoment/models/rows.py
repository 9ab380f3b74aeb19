"""Rows of numbers at the door: each distinct row once, in an order of its own, with its weight.

A row of weight two and a row given twice are the same from here on, and so are all orders of the
rows. Weights are counted in their own unit: where all of them (equal rows added up) are multiples
of one number, that number is one row, so that a constant weight changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import as_rows, row_keys
from thirdmoment.models.base import check_rows
from thirdmoment.models.units import check_sizes, column_units

# Weights that differ from multiples of their unit by less than this part are multiples.
ROUNDING = 1e-9
MOST_COPIES = 2**53


class CountedRows(NamedTuple):
    """Distinct rows that count."""

    place: np.ndarray  # (m,) where each stands in the table that was given
    weights: np.ndarray  # (m,)


def counted_rows(X: Any, weights: np.ndarray | None, k: int, y: Any = None) -> CountedRows:
    """Distinct rows of positive weight of X (n, d), dense or sparse, with ``y`` as one more column.

    At least k rows must count, and their numbers must be of a size to compute with.
    """
    w = np.ones(X.shape[0]) if weights is None else weights / weights.max()
    used = np.flatnonzero(w > 0)
    check_rows(len(used), k)
    if len(used) < X.shape[0]:
        X, w, y = X[used], w[used], None if y is None else y[used]
    keys, table = _keys(X, w, y)
    order = np.argsort(keys, kind="stable")
    new = np.ones(len(order), dtype=bool)
    new[1:] = keys[order][1:] != keys[order][:-1]
    if table is not None and not new.all():  # different rows may share a key
        after = np.flatnonzero(~new)
        same = np.all(table[order[after]] == table[order[after - 1]], axis=1)
        new[after[~same]] = True
    merged = np.add.reduceat(w[order], np.flatnonzero(new))
    largest = 1.0 if weights is None else float(weights.max())
    return CountedRows(used[order[new]], in_units(merged, largest))


def _keys(X: Any, w: np.ndarray, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """A number for each row by its content, and the rows themselves where they are dense.

    That of dense rows does not hang on the units or the order of the columns, but for rounding.
    """
    if sp.issparse(X):
        check_sizes(np.asarray(abs(X).max(axis=0).todense()).ravel())
        return row_keys(as_rows(X)), None
    table = X
    if y is not None:
        check_sizes(np.abs(y).max(keepdims=True), name="y")
        table = np.column_stack([X, y])
    Z = column_units(table, w).rows(table)
    return (Z * (1 + np.sqrt(2) * Z)).sum(axis=1), table


def in_units(weights: np.ndarray, largest: float = 1.0) -> np.ndarray:
    """Weights in multiples of the unit that they share; where there is none, with a mean of one.

    They were divided by ``largest``. The unit is the greatest common divisor of whole numbers, and
    of others the smallest of them.
    """
    for unit in (largest, 1 / weights.min()):
        whole = np.rint(weights * unit) if unit < 1e15 else np.zeros_like(weights)
        exact = np.abs(weights * unit - whole) <= ROUNDING * whole
        if np.all(exact & (whole >= 1) & (whole < MOST_COPIES)):
            return whole / np.gcd.reduce(whole.astype(np.int64))
    return weights / float(weights.mean())
