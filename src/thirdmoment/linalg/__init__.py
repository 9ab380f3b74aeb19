"""Linear algebra shared by all models: eigenpairs, whitening, simplex, symmetric tensors."""

from thirdmoment.linalg.eigen import Eigenpairs, operator_norm, orthonormal, top_eigenpairs
from thirdmoment.linalg.polar import polar
from thirdmoment.linalg.simplex import project_to_simplex
from thirdmoment.linalg.tensors import (
    add_products,
    add_symmetric_cube,
    add_symmetric_products,
    blocks_of,
    contract,
    fill_pairs,
    fill_symmetric,
    outer_sum,
    sum_of_axes,
    symmetrise,
)
from thirdmoment.linalg.whiten import Whitening, whiten, whitening_from

__all__ = [
    "Eigenpairs",
    "Whitening",
    "add_products",
    "add_symmetric_cube",
    "add_symmetric_products",
    "blocks_of",
    "contract",
    "fill_pairs",
    "fill_symmetric",
    "operator_norm",
    "orthonormal",
    "outer_sum",
    "polar",
    "project_to_simplex",
    "sum_of_axes",
    "symmetrise",
    "top_eigenpairs",
    "whiten",
    "whitening_from",
]
