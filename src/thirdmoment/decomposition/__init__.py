"""Solvers for the decomposition step, one a file, one result type."""

from thirdmoment.decomposition.result import Decomposition, Status, tensor_residual
from thirdmoment.decomposition.select import SOLVERS, choose_solver, decompose

__all__ = [
    "SOLVERS",
    "Decomposition",
    "Status",
    "choose_solver",
    "decompose",
    "tensor_residual",
]
