"""Orthogonal decomposition of symmetric tensors: Jacobi rotations, simultaneous powers.

``jacobi`` (TF-14) diagonalises the slices jointly by plane rotations: the most accurate, O(k^4) a
sweep. ``simultaneous`` (TF-15) iterates V <- polar([T(I, V_i, V_i)]_i): O(k^4) in matrix products,
or matrix-free, for large k.

Σ κ_i θ_i⊗θ_i⊗θ_i⊗θ_i with values of either sign: the matrices Q[:, :, c, e] share the
eigenvectors θ, so Jacobi rotations diagonalise them jointly. Signs of θ are not determined.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thirdmoment._array import Array, array_namespace, random_normal, to_numpy
from thirdmoment.decomposition.result import (
    Decomposition,
    Status,
    power_map,
    tensor_residual,
    tensor_values,
    with_positive_values,
)
from thirdmoment.linalg import polar


def jacobi(
    T: Array, *, start: Array | None = None, tol: float = 1e-10, max_sweeps: int = 60
) -> Decomposition:
    """Joint diagonalisation of the slices T[:, :, c] by Jacobi rotations (TF-14).

    ``start`` is an orthogonal matrix near the solution; without it the identity is used, which for
    a whitened tensor in eigenvector coordinates is as good as any.
    """
    from thirdmoment.decomposition import _compiled

    xp = array_namespace(T)
    host = to_numpy(T).astype(np.float64)
    V = np.eye(host.shape[0]) if start is None else np.array(to_numpy(start), dtype=np.float64)
    slices = np.ascontiguousarray(np.einsum("ijc,ia,jb->abc", host, V, V, optimize=True))
    sweeps, sine = _compiled.jacobi_sweeps(slices, V, tol, max_sweeps)
    values, V = with_positive_values(tensor_values(host, V), V)
    status = Status.CONVERGED if sine <= tol else Status.MAX_ITERATIONS
    residual = tensor_residual(host, V)
    device = getattr(T, "device", None)
    return Decomposition(
        xp.asarray(values, dtype=T.dtype, device=device),
        xp.asarray(V, dtype=T.dtype, device=device),
        residual,
        sweeps,
        status,
    )


def simultaneous(
    T: Array,
    rng: np.random.Generator,
    *,
    apply: Callable[[Array], Array] | None = None,
    tol: float = 1e-9,
    max_iterations: int = 200,
) -> Decomposition:
    """Simultaneous power iteration from a random orthogonal start (TF-15).

    With ``apply`` given (V -> [T(I, V_i, V_i)]_i), ``T`` may be any (k, k) array of the right
    dtype and device: the tensor itself is never formed and the residual is NaN.
    """
    xp = array_namespace(T)
    k = T.shape[0]
    step = apply if apply is not None else lambda V: power_map(T, V)
    V = xp.linalg.qr(random_normal(rng, (k, k), like=T))[0]
    status, iteration = Status.MAX_ITERATIONS, 0
    for iteration in range(1, max_iterations + 1):
        previous, V = V, polar(step(V))
        turn = 1 - float(xp.min(xp.abs(xp.sum(previous * V, axis=0))))
        if turn <= max(tol, 8 * float(xp.finfo(T.dtype).eps)):
            status = Status.CONVERGED
            break
    values, V = with_positive_values(xp.sum(step(V) * V, axis=0), V)
    residual = tensor_residual(T, V) if apply is None else float("nan")
    return Decomposition(values, V, residual, iteration, status)


def jacobi_fourth(Q: np.ndarray, *, tol: float = 1e-10, max_sweeps: int = 60) -> Decomposition:
    """Joint diagonalisation of the slices of Q (k, k, k, k). Cost O(k^5) a sweep, memory k^4."""
    from thirdmoment.decomposition import _compiled

    k = Q.shape[0]
    V = np.eye(k)
    c, e = np.triu_indices(k)
    doubled = np.where(c == e, 1.0, math.sqrt(2.0))  # each slice with c < e stands for two
    slices = np.ascontiguousarray(Q[:, :, c, e] * doubled)
    sweeps, sine = _compiled.jacobi_sweeps(slices, V, tol, max_sweeps)
    values = np.einsum("abcd,ai,bi,ci,di->i", Q, V, V, V, V, optimize=True)
    total = float(np.sum(Q**2))
    share = 1 - float(np.sum(values**2)) / total if total else 0.0
    status = Status.CONVERGED if sine <= tol else Status.MAX_ITERATIONS
    return Decomposition(values, V, math.sqrt(max(share, 0.0)), sweeps, status)


def symmetrise_fourth(Q: np.ndarray) -> np.ndarray:
    """Average over the 24 axis permutations."""
    Q = (Q + Q.transpose(1, 0, 2, 3)) / 2
    Q = (Q + Q.transpose(2, 1, 0, 3) + Q.transpose(0, 2, 1, 3)) / 3
    return (Q + Q.transpose(3, 1, 2, 0) + Q.transpose(0, 3, 2, 1) + Q.transpose(0, 1, 3, 2)) / 4
