"""Orthogonal decomposition of a symmetric tensor of order four (TF-21).

Σ κ_i θ_i⊗θ_i⊗θ_i⊗θ_i with values of either sign: the matrices Q[:, :, c, e] share the
eigenvectors θ, so Jacobi rotations diagonalise them jointly. Signs of θ are not determined.
"""

from __future__ import annotations

import math

import numpy as np

from thirdmoment.decomposition.result import Decomposition, Status


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
