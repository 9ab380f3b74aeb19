"""Euclidean projection onto the probability simplex (N-7)."""

from __future__ import annotations

from thirdmoment._array import Array, array_namespace


def project_to_simplex(v: Array) -> Array:
    """Project each row of ``v`` (k, d) on {p : p >= 0, sum p = 1}. Cost O(k d log d).

    With u the row in descending order, rho the last j with u_j > (Σ_{i<=j} u_i - 1)/j and
    tau = (Σ_{i<=rho} u_i - 1)/rho, the projection is max(v - tau, 0).
    """
    xp = array_namespace(v)
    u = xp.sort(v, axis=1, descending=True)
    j = xp.arange(1, v.shape[1] + 1, dtype=v.dtype, device=getattr(v, "device", None))
    excess = (xp.cumulative_sum(u, axis=1) - 1) / j
    rho = xp.sum(xp.astype(u > excess, xp.int64), axis=1, keepdims=True)
    tau = xp.take_along_axis(excess, rho - 1, axis=1)
    p = xp.where(v > tau, v - tau, xp.zeros_like(v))
    return p / xp.sum(p, axis=1, keepdims=True)
