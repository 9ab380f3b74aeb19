"""Collapsed sweeps on a GPU: one program a document, its topic counts in registers.

The same step as ``collapsed_rows`` of _compiled.py and ``plain_sweep`` of collapsed.py. New counts
are added where they belong, in an order that changes from run to run.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from thirdmoment._array._triton import FUSED, launched


@triton.jit
def _sweep(ptr, ci, c, weights, N, words, scale, alpha, out, eta, K, KP: tl.constexpr):  # type: ignore[no-untyped-def]
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
        if weight > 0:
            tl.atomic_add(out + w * K + j, g * weight, mask=m, sem="relaxed")
    tl.store(N + a * K + j, total, mask=m)


@launched
def sweep(X: Any, weights: Any, N: Any, words: Any, scale: Any, alpha: Any, eta: float) -> Any:
    """New word-topic counts (d, k); N (n, k) is replaced."""
    k = words.shape[1]
    out = words.new_zeros(words.shape)
    _sweep[(X.shape[0],)](
        X.indptr, X.indices, X.data, weights, N, words, scale, alpha, out, eta, k,
        KP=triton.next_power_of_2(k), num_warps=1, **FUSED,
    )  # fmt: skip
    return out
