"""Whitening of a symmetric second moment (N-5; Anandkumar et al. 2015, Algorithm 2, lines 1-2)."""

from __future__ import annotations

from typing import NamedTuple

from thirdmoment._array import Array, array_namespace
from thirdmoment.exceptions import RankDeficientMoment


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


def whiten(M2: Array, k: int, *, rtol: float = 1e-10) -> Whitening:
    """Whitening of an explicit symmetric matrix M2 (d, d). Cost O(d^3)."""
    xp = array_namespace(M2)
    values, vectors = xp.linalg.eigh((M2 + M2.T) / 2)
    order = xp.argsort(values, descending=True)[:k]
    return whitening_from(xp.take(values, order), xp.take(vectors, order, axis=1), rtol=rtol)
