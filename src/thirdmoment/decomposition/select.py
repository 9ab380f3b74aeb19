"""Which solver: names, the measured default, and tensors for operator solvers."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import Array, array_namespace
from thirdmoment._constants import Work
from thirdmoment.decomposition.eig import eig
from thirdmoment.decomposition.joint import joint
from thirdmoment.decomposition.power import power
from thirdmoment.decomposition.result import (
    Decomposition,
    tensor_values,
    with_positive_values,
)
from thirdmoment.decomposition.schur import joint_schur, schur
from thirdmoment.decomposition.tensor import jacobi, simultaneous
from thirdmoment.exceptions import InvalidInput

SOLVERS = ("auto", "tensor", "power", "eig", "schur", "joint-schur", "joint")

# Where simultaneous power iterations overtake Jacobi rotations (docs/decisions/solvers.md).
JACOBI_LIMIT: Work[int] = 60

OPERATOR_SOLVERS = {"eig": eig, "schur": schur, "joint-schur": joint_schur, "joint": joint}


def choose_solver(solver: str) -> str:
    """Resolve ``"auto"`` for a symmetric tensor; raise for an unknown name."""
    if solver not in SOLVERS:
        names = ", ".join(repr(name) for name in SOLVERS)
        raise InvalidInput(f"solver={solver!r} is unknown. Choose one of {names}.")
    return "tensor" if solver == "auto" else solver


def decompose(T: Array, solver: str, rng: np.random.Generator) -> Decomposition:
    """Components (λ_i, θ_i) of a symmetric whitened tensor T (k, k, k) by the named solver."""
    name = choose_solver(solver)
    if name == "tensor":
        return jacobi(T) if T.shape[0] <= JACOBI_LIMIT else simultaneous(T, rng)
    if name == "power":
        return power(T, rng)
    xp = array_namespace(T)
    found = OPERATOR_SOLVERS[name](xp.permute_dims(T, (2, 0, 1)), rng)
    return _components_from_read_out(T, found)


def _components_from_read_out(T: Array, found: Decomposition) -> Decomposition:
    """The readout of component i over the slices of T is λ_i θ_i (Algorithm B, step 4)."""
    xp = array_namespace(T)
    V = xp.asarray(found.eigenvalues, dtype=T.dtype, device=getattr(T, "device", None))
    norm = xp.linalg.vector_norm(V, axis=0)
    V = V / xp.where(norm > 0, norm, xp.ones_like(norm))
    values, V = with_positive_values(tensor_values(T, V), V)
    return found._replace(eigenvalues=values, vectors=V)
