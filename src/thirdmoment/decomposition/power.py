"""Robust power method with deflation (TF-13; Anandkumar et al. 2015, Algorithm 2)."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import Array, array_namespace, random_normal
from thirdmoment.decomposition.result import (
    Decomposition,
    Status,
    power_map,
    tensor_values,
    with_positive_values,
)


def power(
    T: Array,
    rng: np.random.Generator,
    *,
    n_starts: int = 10,
    n_steps: int = 30,
    tol: float = 1e-10,
) -> Decomposition:
    """Components one by one: power iterations from several starts, the best deflated.

    Cost k·n_starts·n_steps·2k³. Deflation errors add up over the components, which is what the
    joint solvers avoid; this one is the papers' reference.
    """
    xp = array_namespace(T)
    k = T.shape[0]
    rest, columns, iterations, converged = T, [], 0, True
    for _ in range(k):
        block, steps, _ = _iterate(rest, random_normal(rng, (k, n_starts), like=T), n_steps, tol)
        best = int(xp.argmax(tensor_values(rest, block)))
        theta, more, done = _iterate(rest, block[:, best : best + 1], n_steps, tol)
        value = tensor_values(rest, theta)[0]
        theta = theta[:, 0]
        rest = rest - value * theta[:, None, None] * theta[None, :, None] * theta[None, None, :]
        columns.append(theta)
        iterations += steps + more
        converged &= done
    V = xp.stack(columns, axis=1)
    values, V = with_positive_values(tensor_values(T, V), V)
    total = float(xp.linalg.vector_norm(T))
    residual = float(xp.linalg.vector_norm(rest)) / total if total else 0.0
    status = Status.CONVERGED if converged else Status.MAX_ITERATIONS
    return Decomposition(values, V, residual, iterations, status)


def _iterate(T: Array, V: Array, n_steps: int, tol: float) -> tuple[Array, int, bool]:
    """theta <- T(I, theta, theta)/‖·‖ on the columns of V until they stop turning."""
    xp = array_namespace(T)
    V = V / xp.linalg.vector_norm(V, axis=0)
    for step in range(1, n_steps + 1):
        W = power_map(T, V)
        norm = xp.linalg.vector_norm(W, axis=0)
        W = W / xp.where(norm > 0, norm, xp.ones_like(norm))
        turn = float(xp.max(xp.linalg.vector_norm(W - V, axis=0)))
        V = W
        if turn < tol:
            return V, step, True
    return V, n_steps, False
