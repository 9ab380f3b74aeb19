"""Whitening of second moments, and Cholesky factors that survive rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thirdmoment._array import Array, array_namespace
from thirdmoment._constants import Floor
from thirdmoment.exceptions import RankDeficientMoment

# A pivot below this share of the largest diagonal entry is rounding.
ROUNDING: Floor[float] = 1e-14


class PivotedCholesky(NamedTuple):
    """K ≈ Z Zᵀ with exact columns at the pivots."""

    Z: np.ndarray  # (n, r)
    pivots: np.ndarray  # (r,) row numbers, in the order they were chosen
    left: float  # share of the (weighted) trace that is not reproduced


def pivoted_cholesky(
    column: Callable[[int], np.ndarray],
    diagonal: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    tol: float = 1e-4,
    most: int = 300,
) -> PivotedCholesky:
    """Columns of a positive semidefinite K (n, n) until ``tol`` of its trace is left.

    ``column(j)`` is K[:, j]. The next pivot is the row with the largest remaining diagonal entry,
    of equal ones the first. Cost n r² and r columns.
    """
    d = np.array(diagonal, dtype=np.float64)
    w = np.ones(len(d)) if weights is None else weights
    whole, floor = float(w @ d), ROUNDING * float(d.max(initial=0.0))
    Z = np.empty((len(d), min(most, len(d))))
    pivots: list[int] = []
    while len(pivots) < Z.shape[1] and float(w @ d) > tol * whole:
        j, r = int(np.argmax(d)), len(pivots)
        if not d[j] > floor:
            break
        Z[:, r] = (column(j) - Z[:, :r] @ Z[j, :r]) / np.sqrt(d[j])
        d = np.maximum(d - Z[:, r] ** 2, 0.0)
        d[j] = 0.0
        pivots.append(j)
    left = float(w @ d) / whole if whole > 0 else 0.0
    return PivotedCholesky(Z[:, : len(pivots)], np.array(pivots, dtype=int), left)


class Whitening(NamedTuple):
    """Coordinates in which the second moment is the identity."""

    W: Array  # (d, k)  WᵀM₂W = I
    B: Array  # (d, k)  un-whitener, WᵀB = I
    eigenvalues: Array  # (k,) descending


def whitening_from(
    values: Array, vectors: Array, *, scale: Array | None = None, rtol: float = 1e-10
) -> Whitening:
    """Whitening from the k leading eigenpairs of M₂, or of diag(scale) M₂ diag(scale).

    Raises `RankDeficientMoment` unless the smallest eigenvalue exceeds ``rtol`` times the largest:
    a negative or vanishing one is noise and must not be inverted.
    """
    xp = array_namespace(values, vectors)
    k = values.shape[0]
    rtol = max(rtol, 8 * float(xp.finfo(vectors.dtype).eps))  # what the products can resolve
    floor = rtol * max(float(values[0]), 0.0)
    if not bool(values[-1] > floor):  # the one deliberate device sync
        rank = int(xp.sum(xp.astype(values > floor, xp.int64)))
        raise RankDeficientMoment(rank=rank, k=k, smallest=float(values[-1]), floor=floor)
    root = xp.astype(xp.sqrt(values), vectors.dtype)
    W, B = vectors / root, vectors * root
    if scale is None:
        return Whitening(W, B, values)
    return Whitening(scale[:, None] * W, B / scale[:, None], values)


def unwhitener(W: Array, values: Array, scale: Array) -> Array:
    """B (d, k) of a scaled whitening from its W and eigenvalues: B = diag(scale)⁻² W diag(values).

    For large blocks, of which one less is then held meanwhile.
    """
    xp = array_namespace(W)
    B = W * xp.astype(values, W.dtype)
    B /= (scale * scale)[:, None]
    return B


def whiten(M2: Array, k: int, *, rtol: float = 1e-10) -> Whitening:
    """Whitening of an explicit symmetric matrix M2 (d, d). Cost O(d^3)."""
    xp = array_namespace(M2)
    values, vectors = xp.linalg.eigh((M2 + M2.T) / 2)
    order = xp.argsort(values, descending=True)[:k]
    return whitening_from(xp.take(values, order), xp.take(vectors, order, axis=1), rtol=rtol)
