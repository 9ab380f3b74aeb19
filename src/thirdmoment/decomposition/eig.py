"""Eigenvectors of one random combination of observable operators (MV-8, MV-9, TF-17).

Anandkumar, Hsu and Kakade 2012, Algorithms A and B. On samples a single draw has a complex
spectrum more often than not, so draws are repeated and the largest real gap is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import Array, to_numpy
from thirdmoment.decomposition.result import Decomposition, Status, off_diagonal_residual
from thirdmoment.exceptions import ComplexSpectrum


class Draw(NamedTuple):
    """One combination B(θ) = Σ_c θ_c B_c and its spectrum's separation."""

    theta: np.ndarray  # (m,) unit vector
    operator: np.ndarray  # (k, k)
    gap: float  # min |λ_i - λ_j|, -inf for a complex spectrum
    imaginary: float  # largest |imag|
    draws: int
    real_draws: int


def eig(
    operators: Array,
    rng: np.random.Generator,
    *,
    n_draws: int = 20,
    max_draws: int = 200,
) -> Decomposition:
    """Common eigenvectors of B_1..B_m (m, k, k), read off one well separated combination."""
    B = to_numpy(operators)
    draw = best_draw(B, rng, n_draws=n_draws, max_draws=max_draws)
    if not np.isfinite(draw.gap):
        raise ComplexSpectrum(
            f"None of {draw.draws} random combinations of the third moment has a real spectrum "
            f"(smallest imaginary part {draw.imaginary:.2g}): there is too little data for "
            f"n_components={B.shape[1]}. Lower n_components, give more samples, or use "
            "solver='tensor'."
        )
    R = np.real(np.linalg.eig(draw.operator)[1])
    return read_out(B, R, draw, iterations=draw.draws, status=Status.CONVERGED)


def best_draw(B: np.ndarray, rng: np.random.Generator, *, n_draws: int, max_draws: int) -> Draw:
    """Draw θ on the unit sphere; keep the largest gap among real spectra (MV-9)."""
    m, k, _ = B.shape
    best, real, count = None, 0, 0
    while count < n_draws or (real == 0 and count < max_draws):
        theta = rng.standard_normal((m,))
        theta = theta / np.linalg.norm(theta)
        operator = np.tensordot(theta, B, axes=1)
        spectrum = np.linalg.eigvals(operator)
        imaginary = float(np.max(np.abs(np.imag(spectrum))))
        is_real = imaginary == 0.0
        gap = float(np.min(np.diff(np.sort(np.real(spectrum))))) if is_real and k > 1 else np.inf
        gap = gap if is_real else -np.inf
        real, count = real + is_real, count + 1
        if best is None or (gap, -imaginary) > (best.gap, -best.imaginary):
            best = Draw(theta, operator, gap, imaginary, 0, 0)
    assert best is not None
    return best._replace(draws=count, real_draws=real, gap=best.gap if k > 1 else 0.0)


def read_out(
    B: np.ndarray, R: np.ndarray, draw: Draw, *, iterations: int, status: Status
) -> Decomposition:
    """Diagonals of R⁻¹ B_c R: the target means of Algorithm B, step 3."""
    A = np.linalg.solve(R, B @ R)
    return Decomposition(
        np.diagonal(A, axis1=1, axis2=2).copy(),
        R,
        off_diagonal_residual(A),
        iterations,
        status,
        draw.gap,
        draw.draws,
        draw.real_draws,
    )
