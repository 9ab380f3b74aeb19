"""Collapsed sweeps on a GPU: one program a document, its topic counts in registers.

The same step as ``collapsed_rows`` of _compiled.py and ``plain_sweep`` of collapsed.py. New counts
of words are added where they belong, in an order that changes from run to run; or made word by
word before, each program adding up what a segment of documents has of one word.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from thirdmoment._array import sums_of_parts
from thirdmoment._array._triton import ADDED, FUSED, launched


@triton.jit
def _sweep(  # type: ignore[no-untyped-def]
    ptr, ci, c, weights, N, words, scale, alpha, out, eta, K, ADD: tl.constexpr, KP: tl.constexpr
):
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < K
    h = tl.load(N + a * K + j, mask=m, other=0.0) + tl.load(alpha + j, mask=m, other=0.0)
    factor = tl.load(scale + j, mask=m, other=0.0)
    weight = tl.load(weights + a)
    total = tl.zeros([KP], N.dtype.element_ty)
    for p in range(tl.load(ptr + a), tl.load(ptr + a + 1)):
        w = tl.load(ci + p).to(tl.int64)
        row = tl.load(words + w * K + j, mask=m, other=0.0)
        g = h * (row + eta) * factor
        own = g / (tl.sum(g, 0) + 1e-30)
        g = tl.maximum(h - own, 1e-12) * tl.maximum(row - own + eta, 1e-12) * factor
        g = tl.where(m, g, 0.0)
        g = g * (tl.load(c + p) / (tl.sum(g, 0) + 1e-30))
        total += g
        if ADD and weight > 0:
            tl.atomic_add(out + w * K + j, g * weight, mask=m, sem="relaxed")
    tl.store(N + a * K + j, total, mask=m)


@triton.jit
def _sweep_words(  # type: ignore[no-untyped-def]
    rows, values, begin, owner, weights, N, words, scale, alpha, out, eta, K,
    R: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < K
    prior = tl.load(alpha + j, mask=m, other=0.0)[None, :]
    factor = tl.load(scale + j, mask=m, other=0.0)[None, :]
    row = tl.load(words + tl.load(owner + s) * K + j, mask=m, other=0.0)[None, :]
    total = tl.zeros([R, KP], out.dtype.element_ty)
    last = tl.load(begin + s + 1)
    for p in range(tl.load(begin + s), last, R):
        at = p + tl.arange(0, R)
        ok = at < last
        a = tl.load(rows + at, mask=ok, other=0)
        both = ok[:, None] & m[None, :]
        h = tl.load(N + a[:, None] * K + j[None, :], mask=both, other=0.0) + prior
        g = h * (row + eta) * factor
        own = g / (tl.sum(g, 1) + 1e-30)[:, None]
        g = tl.maximum(h - own, 1e-12) * tl.maximum(row - own + eta, 1e-12) * factor
        g = tl.where(both, g, 0.0)
        value = tl.load(values + at, mask=ok, other=0.0) * tl.load(weights + a, mask=ok, other=0.0)
        total += g * (value / (tl.sum(g, 1) + 1e-30))[:, None]
    tl.store(out + s * K + j, tl.sum(total, 0), mask=m)


@launched
def sweep(X: Any, weights: Any, N: Any, words: Any, scale: Any, alpha: Any, eta: float) -> Any:
    """New word-topic counts (d, k); N (n, k) is replaced."""
    out = words.new_zeros(words.shape)
    _documents(X, weights, N, words, scale, alpha, out, eta, add=True)
    return out


@launched
def sweep_documents(
    X: Any, weights: Any, N: Any, words: Any, scale: Any, alpha: Any, eta: float
) -> None:
    """N (n, k) is replaced, and that is all."""
    _documents(X, weights, N, words, scale, alpha, words, eta, add=False)


def _documents(
    X: Any, weights: Any, N: Any, words: Any, scale: Any, alpha: Any, out: Any, eta: float, *,
    add: bool,
) -> None:  # fmt: skip
    k = words.shape[1]
    _sweep[(X.shape[0],)](
        X.indptr, X.indices, X.data, weights, N, words, scale, alpha, out, eta, k,
        ADD=add, KP=triton.next_power_of_2(k), num_warps=1, **FUSED,
    )  # fmt: skip


@launched
def sweep_words(
    X: Any, weights: Any, N: Any, words: Any, scale: Any, alpha: Any, eta: float
) -> Any:
    """New word-topic counts (d, k), every sum in an order that the data alone fixes."""
    k, order = words.shape[1], X.by_column
    size, lanes = order.owner.shape[0], triton.next_power_of_2(k)
    out = words.new_empty((size, k))
    _sweep_words[(size,)](
        order.rows, order.values, order.parts, order.owner, weights, N, words, scale, alpha, out,
        eta, k, R=max(1, ADDED // lanes), KP=lanes, num_warps=4, **FUSED,
    )  # fmt: skip
    return sums_of_parts(out, order)
