"""Orthogonal decomposition of a symmetric tensor, all components at once.

``jacobi`` (TF-14) diagonalises the slices jointly by plane rotations: the most accurate, O(k^4) a
sweep. ``simultaneous`` (TF-15) iterates V <- polar([T(I, V_i, V_i)]_i): O(k^4) in matrix products,
or matrix-free, for large k.
"""

from __future__ import annotations

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
        U, _, Vh = xp.linalg.svd(step(V), full_matrices=False)
        previous, V = V, U @ Vh
        turn = 1 - float(xp.min(xp.abs(xp.sum(previous * V, axis=0))))
        if turn <= max(tol, 8 * float(xp.finfo(T.dtype).eps)):
            status = Status.CONVERGED
            break
    values, V = with_positive_values(xp.sum(step(V) * V, axis=0), V)
    residual = tensor_residual(T, V) if apply is None else float("nan")
    return Decomposition(values, V, residual, iteration, status)
