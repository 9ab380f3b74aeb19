"""The orthogonal matrix nearest to a square one."""

from __future__ import annotations

from thirdmoment._array import Array, array_namespace, on_gpu
from thirdmoment._constants import Work

# Newton-Schulz steps, enough for singular values that differ by a factor of 10^5.
STEPS: Work[int] = 40


def polar(M: Array) -> Array:
    """U Vᵀ of the singular value decomposition M = U S Vᵀ (k, k).

    On a GPU by matrix products alone, which take a tenth of the time there; where these do not get
    to an orthogonal matrix, because M is nearly singular, by the decomposition itself.
    """
    xp = array_namespace(M)
    if on_gpu(M):
        Q = M / xp.linalg.vector_norm(M)
        for _ in range(STEPS):
            Q = 1.5 * Q - 0.5 * Q @ (Q.T @ Q)
        k = M.shape[0]
        eye = xp.eye(k, dtype=M.dtype, device=M.device)
        if float(xp.max(xp.abs(Q.T @ Q - eye))) <= 8 * k * float(xp.finfo(M.dtype).eps):
            return Q
    U, _, Vh = xp.linalg.svd(M, full_matrices=False)
    return U @ Vh
