"""Non-orthogonal joint diagonalisation of all observable operators (MV-11, SC-11)."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import Array, to_numpy
from thirdmoment.decomposition.eig import best_draw, read_out
from thirdmoment.decomposition.result import Decomposition, Status


def joint(
    operators: Array,
    rng: np.random.Generator,
    *,
    n_draws: int = 20,
    max_draws: int = 200,
    tol: float = 1e-12,
    max_iterations: int = 100,
) -> Decomposition:
    """Newton-like steps on R that shrink the off-diagonals of every R⁻¹ B_c R at once.

    The denominator of a step is the full distance of two components over all operators, not its
    shadow on one random direction. Starts at the eigenvectors of the best draw; where no draw is
    real, at the real and imaginary parts of the least complex one, and the status says so.
    Cost O(m k^3) an iteration, 3 to 20 iterations.
    """
    B = to_numpy(operators)
    draw = best_draw(B, rng, n_draws=n_draws, max_draws=max_draws)
    R = _real_basis(draw.operator)
    A = np.linalg.solve(R, B @ R)
    status = Status.MAX_ITERATIONS
    for iteration in range(1, max_iterations + 1):
        R, A, improved = _descend(B, R, A, _step(A))
        if improved <= tol:
            status = Status.CONVERGED
            break
    if draw.real_draws == 0:
        status = Status.COMPLEX
    return read_out(B, R, draw, iterations=iteration, status=status)


def _real_basis(operator: np.ndarray) -> np.ndarray:
    """Eigenvectors; a conjugate pair gives its real and imaginary part."""
    values, vectors = np.linalg.eig(operator)
    R = np.real(vectors).copy()
    R[:, np.imag(values) < 0] = np.imag(vectors[:, np.imag(values) < 0])
    return R / np.linalg.norm(R, axis=0)


def _step(A: np.ndarray) -> np.ndarray:
    """Z[a,b] = -Σ_c (l_ca - l_cb) A_c[a,b] / Σ_c (l_ca - l_cb)², zero diagonal."""
    diagonal = np.diagonal(A, axis1=1, axis2=2)
    difference = diagonal[:, :, None] - diagonal[:, None, :]
    separation = np.sum(difference**2, axis=0)
    floor = np.finfo(A.dtype).tiny + 1e-14 * separation.max()
    Z = -np.sum(difference * A, axis=0) / np.maximum(separation, floor)
    np.fill_diagonal(Z, 0.0)
    return Z


def _descend(
    B: np.ndarray, R: np.ndarray, A: np.ndarray, Z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """R (I + t Z) with t halved until Σ‖off(A_c)‖² falls; the relative fall is returned."""
    before = _off(A)
    t = 1.0
    for _ in range(30):
        trial = R @ (np.eye(len(R)) + t * Z)
        trial /= np.linalg.norm(trial, axis=0)
        if np.linalg.cond(trial) < 1e8:
            moved = np.linalg.solve(trial, B @ trial)
            after = _off(moved)
            if after < before:
                return trial, moved, (before - after) / max(float(np.sum(A**2)), 1e-300)
        t /= 2
    return R, A, 0.0


def _off(A: np.ndarray) -> float:
    diagonal = np.diagonal(A, axis1=1, axis2=2)
    return float(np.sum(A**2) - np.sum(diagonal**2))
