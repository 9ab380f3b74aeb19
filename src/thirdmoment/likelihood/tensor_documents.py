"""Documents as tensors of one device: folding in, likelihood, halves of their words.

Single precision, for that is what a GPU is made for; documents.py has the double precision of the
host. Where there are no kernels for the device the plain forms here do the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.special import bdtr

from thirdmoment._array import (
    Array,
    add_rows,
    array_namespace,
    by_halves,
    joined,
    like_one,
    row_keys,
    scrambled,
    shifted,
    to_numpy,
)
from thirdmoment._constants import Floor, Work

# Topics are clipped here before any likelihood is taken: no word is impossible.
FLOOR: Floor[float] = 1e-8

# Counts above this are halved by their normal limit.
LARGE_COUNT: Work[int] = 1000

# Numbers for each stored count that halving it takes.
HALVING: Work[int] = 10


def word_major(topics: Array, X: Any) -> Array:
    """Topics as (d, k) beside X, clipped and normalised: a word's row is contiguous."""
    C = X.asarray(topics)
    C = array_namespace(C).clip(C, min=FLOOR)
    return (C / C.sum(axis=1)[:, None]).T.contiguous()


def _kernels(X: Any) -> Any:
    if X.compiled is None:
        return None
    from thirdmoment.likelihood import _triton

    return _triton


def fold_in(topics: Array, alpha: Array, X: Any, *, n_steps: int, tol: float) -> Array:
    """Proportions H (n, k) of documents under topics (k, d); rows sum to one."""
    words, prior, kernels = word_major(topics, X), X.asarray(alpha), _kernels(X)
    xp, k = array_namespace(words), words.shape[1]
    H = xp.full((X.shape[0], k), 1 / k, dtype=words.dtype, device=words.device)
    if kernels is not None:
        return kernels.fold_in(X, words, prior, H, n_steps, tol)
    for a, b in X.ranges(k):
        H[a:b, :] = plain_fold_in(*entries(X, a, b), words, prior, H[a:b, :], n_steps, tol)
    return H


def entries(X: Any, a: int, b: int) -> tuple[Array, Array, Array]:
    """Row (from zero), column and value of what is stored in rows a..b-1."""
    lo, hi = int(X.indptr[a]), int(X.indptr[b])
    return X.numbers[lo:hi] - a, X.indices[lo:hi], X.data[lo:hi]


def plain_fold_in(
    row: Array,
    column: Array,
    value: Array,
    words: Array,
    prior: Array,
    H: Array,
    n_steps: int,
    tol: float,
) -> Array:
    """H (m, k) after so many steps H <- H ⊙ (R Cᵀ) + prior, each document until it stands."""
    xp = array_namespace(H)
    own, moving = xp.take(words, column, axis=0), xp.ones_like(H[:, 0]) > 0
    for _ in range(n_steps):
        mix = xp.sum(xp.take(H, row, axis=0) * own, axis=1)
        new = add_rows(own * (value / mix)[:, None], row, H.shape[0]) * H + prior
        norm = xp.sum(new, axis=1)
        new = xp.where((norm > 0)[:, None], new / xp.where(norm > 0, norm, 1.0)[:, None], H)
        moved = xp.sum(xp.abs(new - H), axis=1)
        H = xp.where(moving[:, None], new, H)
        moving = moving & (moved > tol)
        if not bool(xp.any(moving)):
            break
    return H


def word_log_likelihood(topics: Array, H: Array, X: Any) -> Array:
    """Σ_j x_j log(H C)_j of each document (n,)."""
    words, kernels = word_major(topics, X), _kernels(X)
    if kernels is not None:
        return kernels.log_likelihood(X, words, H)
    xp = array_namespace(H)
    out = xp.zeros_like(H[:, 0])
    for a, b in X.ranges(words.shape[1]):
        row, column, value = entries(X, a, b)
        mix = xp.sum(xp.take(H[a:b, :], row, axis=0) * xp.take(words, column, axis=0), axis=1)
        out[a:b] = add_rows((value * xp.log(mix))[:, None], row, b - a)[:, 0]
    return out


def split_counts(X: Any, seed: int) -> tuple[Any, Any]:
    """Each count split by Binomial(c, 1/2), the same way as on the host."""
    xp = array_namespace(X.data)

    def some(a: int, b: int) -> Array:
        rows = X.part(a, b)
        keys = scrambled(row_keys(rows) + (seed % 2**63))
        each = xp.take(keys, rows.numbers) ^ scrambled(xp.astype(rows.indices, xp.int64))
        uniform = xp.astype(shifted(scrambled(each), 11), xp.float64) * 2.0**-53
        return _half_of(xp.round(rows.data), uniform)

    halved = [part for a, b in X.ranges(HALVING) for part in by_halves(some, b, a)]
    first = joined(halved)
    second = xp.round(X.data) - first
    return X.with_data(first).nonzero(), X.with_data(second).nonzero()


def _half_of(counts: Array, uniform: Array) -> Array:
    """Draws of Binomial(c, 1/2) from uniform numbers; of its normal limit for large counts."""
    xp = array_namespace(counts)
    normal = xp.astype(like_one(uniform, _normal(uniform)), counts.dtype)
    part = xp.round(counts / 2 + xp.sqrt(counts) / 2 * normal)
    part = xp.clip(part, min=0.0)
    part = xp.where(part < counts, part, counts)
    order = xp.argsort(counts)
    ordered = xp.take(counts, order)
    begins = [0, *(to_numpy(xp.nonzero(ordered[1:] != ordered[:-1])[0]) + 1).tolist()]
    for a, b in itertools.pairwise([*begins, len(counts)]):
        c = int(ordered[a]) if b > a else LARGE_COUNT + 1
        if c <= LARGE_COUNT:
            own = order[a:b]
            edges = like_one(uniform, bdtr(np.arange(c), c, 0.5))
            drawn = xp.searchsorted(edges, xp.take(uniform, own), side="right")
            part[own] = xp.astype(drawn, part.dtype)
    return part


def _normal(uniform: Array) -> Array:
    """Standard normal quantiles."""
    if hasattr(uniform, "erfinv"):
        return 2**0.5 * (2 * uniform - 1).erfinv()
    from scipy.special import ndtri

    return ndtri(to_numpy(uniform))
