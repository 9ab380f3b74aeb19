"""Leading eigenpairs of a symmetric operator that is given only as a product.

Block Lanczos with full reorthogonalisation: the basis collects every product made so far, so few
passes over the data are needed, and a final Rayleigh-Ritz step sorts *algebraically*. The operators
here are indefinite (the diagonal correction of Pairs), so a method that follows the largest
magnitude would mix in negative eigenvalues (TF-5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from thirdmoment._array import Array, array_namespace, on_gpu, random_normal, to_numpy
from thirdmoment._constants import Work

Operator = Callable[[Array], Array]

# Blocks that are held of a basis with more numbers than this; more are made, but fewer stay.
MOST_BLOCKS: Work[int] = 4
LARGE: Work[int] = 20_000_000


class Eigenpairs(NamedTuple):
    """Leading eigenpairs and how well they were found."""

    values: Array  # (k + extra,) descending algebraically
    vectors: Array  # (d, k + extra) orthonormal
    residual: float  # max over the first k of ‖A u - θ u‖ / θ_1
    products: int  # block products used
    converged: bool


def orthonormal(Y: Array) -> Array:
    """Orthonormal basis of the columns of Y (d, q).

    Whitening by the Gram matrix, twice, is matrix products and an order of magnitude faster than
    Householder reflections on tall blocks. It needs columns that are far from dependent; where
    they are not, reflections are used.
    """
    xp = array_namespace(Y)
    for _ in range(2):
        Q = _cholesky_step(Y) if on_gpu(Y) else _gram_step(Y)
        if Q is None:
            return xp.linalg.qr(Y)[0]
        Y = Q
    return Y


def _gram_step(Y: Array) -> Array | None:
    """Y (YᵀY)^(-1/2) up to a rotation; None where the columns of Y are nearly dependent."""
    xp = array_namespace(Y)
    gram = to_numpy(Y.T @ Y).astype(np.float64)
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    if not np.all(size > 0):
        return None
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    if values[0] < 100 * len(values) * float(xp.finfo(Y.dtype).eps) * values[-1]:
        return None
    root = vectors / np.sqrt(values)
    return Y @ _on_device_of(Y, root / size[:, None])


def _cholesky_step(Y: Array) -> Array | None:
    """Y R⁻¹ with RᵀR = YᵀY; None where the columns are nearly dependent."""
    gram = to_numpy(Y.T @ Y).astype(np.float64)  # small: the host is quicker
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    if not np.all(size > 0):
        return None
    try:
        L = np.linalg.cholesky(gram / np.outer(size, size))
        inverse = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True)
    except np.linalg.LinAlgError:  # not positive definite in floating point
        return None
    return Y @ _on_device_of(Y, inverse.T / size[:, None])


def top_eigenpairs(
    apply: Operator,
    start: Array,
    k: int,
    *,
    tol: float = 2e-2,
    max_products: int = 6,
) -> Eigenpairs:
    """The k algebraically largest eigenpairs of a symmetric operator, and those the block adds.

    Parameters
    ----------
    apply : callable
        Q (d, q) -> A Q (d, q).
    start : (d, q) array with q >= k
        Random block; columns beyond k are oversampling. See `random_start`.
    tol : float
        Stop when each of the first k residuals is below tol times its own eigenvalue. The
        operators are estimates themselves: a subspace sharper than their noise buys nothing.
        With 0 all products are made.
    max_products : int
        Largest number of block products; the residual reached is reported, never hidden.

    Notes
    -----
    Cost: one product a step plus O(d q^2 t) for t steps; memory d q (t + 2).
    """
    xp, q, device = array_namespace(start), start.shape[1], getattr(start, "device", None)
    block = orthonormal(start)
    del start  # as large as a block
    basis, stagnant = Basis([block]), False
    core, values, vectors = np.empty((0, 0)), np.empty(0), np.empty((0, 0))
    gaps = np.full(k, np.inf)
    for products in range(1, max_products + 1):
        image = apply(block)
        core = _grow_core(core, basis, image)
        complete = stagnant or basis.width == block.shape[0]  # nothing is left to add
        if tol > 0 or complete or products == max_products:  # else there is nothing to check
            values, vectors, gaps = _rayleigh_ritz(core, basis, image, k)
        converged = len(values) > 0 and bool(np.all(gaps[:k] <= tol * np.maximum(values[:k], 0.0)))
        if converged or complete or products == max_products:
            break
        block, stagnant = _next_block(basis, image)
        del image  # large, and made anew
        if len(basis.blocks) >= MOST_BLOCKS and block.shape[0] * basis.width > LARGE:
            values, vectors = _ritz(core)  # thick restart: the best q so far stand for all
            basis = Basis([basis.combined(_on_device_of(block, vectors[:, :q]))])
            core = np.diag(values[:q])
        basis.blocks.append(block)
    count = min(q, vectors.shape[1])
    top = _on_device_of(block, vectors[:, :count])
    return Eigenpairs(
        xp.asarray(values[:count], device=device),
        basis.combined(top),
        float(np.max(gaps[:k])) / max(float(values[0]), 1e-300),
        products,
        converged or complete,
    )


class Basis:
    """Orthonormal columns, in the blocks that they came in: nothing is copied when one is added."""

    def __init__(self, blocks: list[Array]) -> None:
        self.blocks = blocks

    @property
    def width(self) -> int:
        return sum(block.shape[1] for block in self.blocks)

    def coordinates(self, Y: Array) -> Array:
        """Bᵀ Y (w, q)."""
        return array_namespace(Y).concat([block.T @ Y for block in self.blocks], axis=0)

    def combined(self, C: Array) -> Array:
        """B C (d, q) of coefficients (w, q)."""
        total, place = None, 0
        for block in self.blocks:
            part = block @ C[place : place + block.shape[1], :]
            if total is None:
                total = part
            else:
                total += part  # blocks are large
            place += block.shape[1]
        return total


def random_start(
    rng: np.random.Generator, d: int, k: int, *, like: Array, oversampling: int | None = None
) -> Array:
    """Random (d, q) block for `top_eigenpairs`, q = k + max(10, k/8) or all d columns."""
    extra = max(10, k // 8) if oversampling is None else oversampling
    return random_normal(rng, (d, min(d, k + extra)), like=like)


def operator_norm(
    apply: Operator, start: Array, *, rtol: float = 0.1, max_products: int = 12
) -> tuple[float, int]:
    """Spectral norm ‖A‖₂ of a symmetric operator, to rtol from below, and the products used."""
    block = orthonormal(start)
    basis, norm = Basis([block]), 0.0
    core = np.empty((0, 0))
    for products in range(1, max_products + 1):
        image = apply(block)
        core = _grow_core(core, basis, image)
        previous, norm = norm, float(np.max(np.abs(np.linalg.eigvalsh((core + core.T) / 2))))
        if norm - previous <= rtol * norm or basis.width == block.shape[0]:
            break
        block, stagnant = _next_block(basis, image)
        if stagnant:
            break
        basis.blocks.append(block)
    return norm, products


def _grow_core(core: np.ndarray, basis: Basis, image: Array) -> np.ndarray:
    """basisᵀ A basis (float64, on the host) after a block was added, whose ``image`` is given."""
    edge = to_numpy(basis.coordinates(image)).astype(np.float64)
    old, new = core.shape[0], image.shape[1]
    grown = np.empty((old + new, old + new))
    grown[:old, :old] = core
    grown[:, old:] = edge
    grown[old:, :old] = edge[:old].T
    return grown


def _rayleigh_ritz(
    core: np.ndarray, basis: Basis, image: Array, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ritz values (descending), coefficient vectors, and residual norms of the first k.

    The operator is symmetric and each block was made of the image of the one before, so that only
    the image of the last one leaves the basis.
    """
    xp, new = array_namespace(image), image.shape[1]
    values, vectors = _ritz(core)
    outside = image - basis.combined(_on_device_of(image, core[:, -new:]))
    rest = outside @ _on_device_of(image, vectors[-new:, :k])
    return values, vectors, to_numpy(xp.linalg.vector_norm(rest, axis=0)).astype(np.float64)


def _ritz(core: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values, descending, and their coefficient vectors."""
    values, vectors = np.linalg.eigh((core + core.T) / 2)
    return values[::-1].copy(), vectors[:, ::-1].copy()


def _next_block(basis: Basis, image: Array) -> tuple[Array, bool]:
    """Orthonormalise the newest products against the basis; True if they add nothing new.

    The last block is narrower where fewer dimensions are left, so that the basis can be complete.
    """
    xp = array_namespace(image)
    left = image.shape[0] - basis.width
    size = float(xp.linalg.vector_norm(image))
    block = image[:, :left]
    block = block - basis.combined(basis.coordinates(block))
    eps = math.sqrt(float(xp.finfo(image.dtype).eps))
    stagnant = float(xp.linalg.vector_norm(block)) <= eps * 1e-2 * max(size, 1e-300)
    block = orthonormal(block)
    return orthonormal(block - basis.combined(basis.coordinates(block))), stagnant


def _on_device_of(template: Array, values: np.ndarray) -> Array:
    xp = array_namespace(template)
    return xp.astype(xp.asarray(values, device=getattr(template, "device", None)), template.dtype)
