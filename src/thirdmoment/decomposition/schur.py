"""Schur readout of observable operators, of one or of all at once."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from thirdmoment._array import Array, to_numpy
from thirdmoment.decomposition.eig import Draw, best_draw
from thirdmoment.decomposition.result import Decomposition, Status
from thirdmoment.exceptions import ComplexSpectrum


def schur(
    operators: Array,
    rng: np.random.Generator,
    *,
    n_draws: int = 20,
    max_draws: int = 200,
    allow_complex: bool = False,
) -> Decomposition:
    """Diagonals of Qᵀ B_c Q, with Q the orthogonal Schur basis of the best separated draw.

    ``vectors`` is Q. A draw with complex pairs leaves 2×2 blocks in which two components cannot be
    told apart, so such draws are refused (E_COMPLEX) unless ``allow_complex``.
    """
    B = to_numpy(operators)
    draw = best_draw(B, rng, n_draws=n_draws, max_draws=max_draws)
    if draw.real_draws == 0 and not allow_complex:
        raise ComplexSpectrum(
            f"None of {draw.draws} random combinations of the third moment has a real spectrum "
            f"(smallest imaginary part {draw.imaginary:.2g}), so the Schur form leaves blocks of "
            "two components that cannot be told apart. Lower n_components, give more samples, or "
            "use solver='tensor'."
        )
    return triangular_read_out(B, schur_basis(draw.operator), draw, iterations=draw.draws)


def schur_basis(operator: np.ndarray) -> np.ndarray:
    """Orthogonal Q with QᵀBQ upper triangular and its diagonal in descending order.

    The order matters on samples (section 3 of the Schur specification), so it is fixed: the basis
    is the QR factor of the eigenvectors sorted by eigenvalue. With complex pairs LAPACK's real
    Schur form is taken as it comes.
    """
    values, vectors = np.linalg.eig(operator)
    if np.any(np.imag(values) != 0):
        return scipy.linalg.schur(operator, output="real")[1]
    return np.linalg.qr(np.real(vectors)[:, np.argsort(-np.real(values))])[0]


def triangular_read_out(
    B: np.ndarray, Q: np.ndarray, draw: Draw, *, iterations: int
) -> Decomposition:
    """Readout (SC-4) and the triangular residual of SC-9."""
    A = Q.T @ B @ Q
    lower = np.tril(A, -1)
    residual = math.sqrt(float(np.sum(lower**2)) / max(float(np.sum(A**2)), 1e-300))
    status = Status.CONVERGED if draw.real_draws else Status.COMPLEX
    return Decomposition(
        np.diagonal(A, axis1=1, axis2=2).copy(),
        Q,
        residual,
        iterations,
        status,
        draw.gap,
        draw.draws,
        draw.real_draws,
    )


def joint_schur(
    operators: Array,
    rng: np.random.Generator,
    *,
    n_draws: int = 20,
    max_draws: int = 200,
    tol: float = 1e-10,
    max_sweeps: int = 50,
) -> Decomposition:
    """Minimise Σ_c ‖lower part of Qᵀ B_c Q‖² over orthogonal Q, started at the Schur basis.

    Cost O(m k^3) a sweep; linear convergence, tens of sweeps.
    """
    from thirdmoment.decomposition import _compiled

    B = to_numpy(operators).astype(np.float64)
    draw = best_draw(B, rng, n_draws=n_draws, max_draws=max_draws)
    Q = np.ascontiguousarray(schur_basis(draw.operator))
    A = np.ascontiguousarray(np.moveaxis(Q.T @ B @ Q, 0, 2))
    sweeps, sine = _compiled.schur_sweeps(A, Q, tol, max_sweeps)
    result = triangular_read_out(B, Q, draw, iterations=sweeps)
    if sine > tol and result.status is Status.CONVERGED:
        return result._replace(status=Status.MAX_ITERATIONS)
    return result
