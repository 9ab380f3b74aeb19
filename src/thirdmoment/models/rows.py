"""Rows of numbers at the door: each distinct row once, in an order of its own, with its weight.

A row of weight two and a row given twice are the same from here on, and so are all orders of the
rows. Weights are scaled so that they add up to the number of rows that the table is worth: a
constant weight changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import content_keys
from thirdmoment._constants import Choice, Limit
from thirdmoment.models.base import check_rows
from thirdmoment.models.units import check_sizes, column_units
from thirdmoment.sizes import LOOK

# A column with fewer values than this share of the distinct rows is discrete.
DISCRETE: Choice[float] = 0.5

# Values that are rounded lie on a lattice of fewer steps than this.
MOST_STEPS: Choice[int] = 100_000

# Copies of a row are counted exactly up to here.
MOST_COPIES: Limit[int] = 2**53


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
    if sp.issparse(X):
        check_sizes(np.asarray(abs(X).max(axis=0).todense()).ravel())
        keys = content_keys(sp.csr_array(X))
        order = np.argsort(keys, kind="stable")
        new = np.append(True, np.diff(keys[order]) != 0)
        discrete = True  # what is sparse is counted
    else:
        table = X
        if y is not None:
            check_sizes(np.abs(y).max(keepdims=True), name="y")
            table = np.column_stack([X, y])
        order, new = _sorted(table, w)
        discrete = _is_discrete(table[order[new]])
    merged = np.add.reduceat(w[order], np.flatnonzero(new))
    largest = 1.0 if weights is None else float(weights.max())
    return CountedRows(used[order[new]], worth(merged, w, largest, discrete=discrete))


def _sorted(table: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of the rows by their content, and where a row differs from the one before it.

    The order does not hang on the units or the order of the columns, but for rounding; rows that
    it cannot tell apart are put in the order of their entries.
    """
    Z = column_units(table, w).rows(table)
    keys = (Z * (1 + np.sqrt(2) * Z)).sum(axis=1)
    order = np.argsort(keys, kind="stable")
    tied = np.append(False, np.diff(keys[order]) == 0)
    tied[:-1] |= tied[1:]
    if tied.any():
        part = order[tied]
        order[tied] = part[np.lexsort((*table[part].T, keys[part]))]
    new = np.ones(len(order), dtype=bool)
    after = np.flatnonzero(tied[1:]) + 1
    new[after] = np.any(table[order[after]] != table[order[after - 1]], axis=1)
    return order, new


def _is_discrete(rows: np.ndarray) -> bool:
    """Whether every column has few values among distinct rows, or rounded ones: equal rows then are
    no copies.
    """
    part = rows[:: max(1, len(rows) // LOOK)]
    return all(_is_coarse(np.unique(column), len(part)) for column in part.T)


def _is_coarse(values: np.ndarray, n: int) -> bool:
    """Whether sorted values are few, or all whole steps apart."""
    if len(values) < DISCRETE * n:
        return True
    apart = np.diff(values)
    with np.errstate(over="ignore"):  # of any sizes
        steps = apart / apart.min() if len(apart) else apart
    return bool(np.sum(steps) < MOST_STEPS and np.all(np.abs(steps - np.rint(steps)) < 1e-6))


def worth(merged: np.ndarray, single: np.ndarray, largest: float, *, discrete: bool) -> np.ndarray:
    """Weights of distinct rows that add up to the number of rows that the table is worth.

    ``merged`` has those of the distinct rows and ``single`` of the rows as given, both over
    ``largest``. Of a continuous table a copy says nothing new: it is worth (Σw)²/Σw² rows. Equal
    rows of a discrete one are observations of their own; there whole numbers are counts, in units
    of their greatest common divisor.
    """
    if not discrete:
        ratio = merged / merged.min()
        counts = np.rint(ratio)  # copies and weights to the last bit the same
        ratio = np.where(np.abs(ratio - counts) <= 1e-9 * counts, counts, ratio)
        return ratio * (ratio.sum() / (ratio @ ratio))
    for scale in (1.0, largest):
        counts = np.rint(merged * scale) if scale < MOST_COPIES else np.zeros_like(merged)
        whole = (counts >= 1) & (counts < MOST_COPIES)
        if np.all(whole & (np.abs(merged * scale - counts) <= 1e-9 * counts)):
            return counts / np.gcd.reduce(counts.astype(np.int64))
    return merged * (single.sum() / (single @ single))
