"""Euclidean projection onto the probability simplex (N-7)."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import Array, array_namespace


def project_to_simplex(v: Array) -> Array:
    """Project each row of ``v`` (k, d) on {p : p >= 0, sum p = 1}. Cost O(k d log d).

    With u the row in descending order, rho the last j with u_j > (Σ_{i<=j} u_i - 1)/j and
    tau = (Σ_{i<=rho} u_i - 1)/rho, the projection is max(v - tau, 0).
    """
    if isinstance(v, np.ndarray):
        return project_in_place(v.copy())
    xp = array_namespace(v)
    u = xp.sort(v, axis=1, descending=True)
    j = xp.arange(1, v.shape[1] + 1, dtype=v.dtype, device=getattr(v, "device", None))
    excess = (xp.cumulative_sum(u, axis=1) - 1) / j
    rho = xp.sum(xp.astype(u > excess, xp.int64), axis=1, keepdims=True)
    tau = xp.take_along_axis(excess, rho - 1, axis=1)
    p = xp.where(v > tau, v - tau, xp.zeros_like(v))
    return p / xp.sum(p, axis=1, keepdims=True)


def project_in_place(v: np.ndarray) -> np.ndarray:
    """The same, written over the rows of v."""
    for row in v:
        np.maximum(np.subtract(row, _threshold(row), out=row), 0, out=row)
        row /= row.sum()
    return v


def _threshold(row: np.ndarray) -> float:
    """tau of one row without sorting it (Michelot 1986): entries below the mean of the rest go.

    The threshold only grows, so an entry that was dropped stays below it. Most entries of a topic
    are noise around zero and go in the first rounds.
    """
    left = row.astype(np.float64)
    while True:
        tau = (left.sum() - 1) / len(left)
        above = left[left > tau]
        if len(above) == len(left) or not len(above):
            return float(tau)
        left = above
