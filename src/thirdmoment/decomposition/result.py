"""What every solver returns."""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

from thirdmoment._array import Array, array_namespace


class Status(Enum):
    """How a solver ended."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "reached its largest number of iterations"
    COMPLEX = "no draw had a real spectrum; least complex draw used"


class Decomposition(NamedTuple):
    """Components of a symmetric tensor, or the common basis of a stack of operators.

    For a tensor, ``eigenvalues`` is (k,) with λ_i > 0 and ``vectors`` (k, k) has θ_i in its
    columns. For operators B_1..B_m, ``vectors`` is the common basis R and ``eigenvalues`` (m, k)
    the readouts [R⁻¹ B_c R]_jj.
    """

    eigenvalues: Array
    vectors: Array
    residual: float
    iterations: int
    status: Status
    gap: float = math.nan  # smallest distance of eigenvalues in the draw used (MV-9)
    draws: int = 0
    real_draws: int = 0


def tensor_values(T: Array, V: Array) -> Array:
    """λ_i = T(V_i, V_i, V_i) for the columns of V. Cost O(k^4)."""
    xp = array_namespace(T, V)
    return xp.sum(power_map(T, V) * V, axis=0)


def power_map(T: Array, V: Array) -> Array:
    """[T(I, V_i, V_i)]_i for the columns of V (k, q). Cost 2 k^3 q."""
    xp = array_namespace(T, V)
    k = T.shape[0]
    half = xp.reshape(xp.reshape(T, (k * k, k)) @ V, (k, k, V.shape[1]))
    return xp.sum(half * V[None, :, :], axis=1)


def with_positive_values(values: Array, V: Array) -> tuple[Array, Array]:
    """(λ, θ) and (-λ, -θ) are one component: return the one with λ >= 0 (N-5)."""
    xp = array_namespace(values, V)
    sign = xp.where(values < 0, -xp.ones_like(values), xp.ones_like(values))
    return values * sign, V * sign


def tensor_residual(T: Array, V: Array) -> float:
    """rho of TF-16: share of the tensor that an orthogonal V leaves off its diagonal."""
    xp = array_namespace(T, V)
    total = float(xp.sum(T * T))
    if total == 0:
        return 0.0
    diagonal = tensor_values(T, V)
    share = 1 - float(xp.sum(diagonal * diagonal)) / total
    return math.sqrt(share) if share > 0 else 0.0 if share <= 0 else math.nan


def off_diagonal_residual(operators: Array) -> float:
    """sqrt(Σ‖off(A_c)‖² / Σ‖A_c‖²) of a stack (m, k, k) (MV-11)."""
    xp = array_namespace(operators)
    total = float(xp.sum(operators * operators))
    diagonal = xp.linalg.diagonal(operators)
    return math.sqrt(max(0.0, 1 - float(xp.sum(diagonal * diagonal)) / total)) if total else 0.0
