"""Euclidean projection onto the probability simplex (N-7)."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import Array, array_namespace


def project_to_simplex(v: Array) -> Array:
    """Project each row of ``v`` (k, d) on {p : p >= 0, sum p = 1}.

    The projection is max(v - tau, 0), where the entries above tau have the sum 1 + tau each. It is
    found without a sort (Michelot 1986): entries below the mean of the rest, less 1, go. Tau only
    grows, so an entry that was dropped stays below it. Most entries of a topic are noise around
    zero and go in the first rounds.
    """
    if isinstance(v, np.ndarray):
        return project_in_place(v.copy())
    xp, above = array_namespace(v), v == v
    count = _counted(above)
    while True:
        total = xp.sum(xp.where(above, v, 0.0), axis=1, keepdims=True)
        tau = (total - 1) / xp.astype(count, v.dtype)
        kept = above & (v > tau)
        left = _counted(kept)
        if bool(xp.all((left == count) | (left == 0))):  # none by rounding alone
            break
        above, count = xp.where(left > 0, kept, above), xp.where(left > 0, left, count)
    p = xp.where(v > tau, v - tau, 0.0)
    return p / xp.sum(p, axis=1, keepdims=True)


def _counted(mask: Array) -> Array:
    """How many entries of each row (k, 1)."""
    xp = array_namespace(mask)
    return xp.sum(xp.astype(mask, xp.int64), axis=1, keepdims=True)


def project_in_place(v: np.ndarray) -> np.ndarray:
    """The same, written over the rows of v."""
    for row in v:
        np.maximum(np.subtract(row, _threshold(row), out=row), 0, out=row)
        row /= row.sum()
    return v


def _threshold(row: np.ndarray) -> float:
    """tau of one row."""
    left = row.astype(np.float64)
    while True:
        tau = (left.sum() - 1) / len(left)
        above = left[left > tau]
        if len(above) == len(left) or not len(above):
            return float(tau)
        left = above
