"""Products of sparse rows with thin blocks on a GPU: one program a row, its sum in registers.

Xᵀ is never made: what a row adds to the columns it has is added where it belongs. On a GPU the
order of these additions changes from run to run, so results differ in their last digits. The plain
form beside it is in torch_rows.py.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


def width(q: int) -> int:
    """Lanes for q numbers."""
    return triton.next_power_of_2(q)


@triton.jit
def _dot(ptr, ci, c, Q, out, q, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < q
    total = tl.zeros([KP], out.dtype.element_ty)
    for p in range(tl.load(ptr + a), tl.load(ptr + a + 1)):
        w = tl.load(ci + p).to(tl.int64)
        total += tl.load(c + p) * tl.load(Q + w * q + j, mask=m, other=0.0)
    tl.store(out + a * q + j, total, mask=m)


@triton.jit
def _tdot(ptr, ci, c, weights, Y, out, q, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < q
    weight = tl.load(weights + a)
    if weight != 0:
        y = weight * tl.load(Y + a * q + j, mask=m, other=0.0)
        for p in range(tl.load(ptr + a), tl.load(ptr + a + 1)):
            w = tl.load(ci + p).to(tl.int64)
            tl.atomic_add(out + w * q + j, tl.load(c + p) * y, mask=m, sem="relaxed")


@triton.jit
def _gram(ptr, ci, c, weights, Q, out, q, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < q
    weight = tl.load(weights + a)
    if weight != 0:
        first, last = tl.load(ptr + a), tl.load(ptr + a + 1)
        y = tl.zeros([KP], out.dtype.element_ty)
        for p in range(first, last):
            w = tl.load(ci + p).to(tl.int64)
            y += tl.load(c + p) * tl.load(Q + w * q + j, mask=m, other=0.0)
        y = y * weight
        for p in range(first, last):
            w = tl.load(ci + p).to(tl.int64)
            tl.atomic_add(out + w * q + j, tl.load(c + p) * y, mask=m, sem="relaxed")


def dot(X: Any, Q: Any, out: Any) -> Any:
    """out = X Q."""
    q = Q.shape[1]
    _dot[(X.shape[0],)](X.indptr, X.indices, X.data, Q, out, q, KP=width(q), num_warps=1)
    return out


def tdot(X: Any, weights: Any, Y: Any, out: Any) -> Any:
    """out += Xᵀ (weights ⊙ Y)."""
    q = Y.shape[1]
    _tdot[(X.shape[0],)](X.indptr, X.indices, X.data, weights, Y, out, q, KP=width(q), num_warps=1)
    return out


def gram(X: Any, weights: Any, Q: Any, out: Any) -> Any:
    """out += Xᵀ (weights ⊙ (X Q))."""
    q = Q.shape[1]
    _gram[(X.shape[0],)](X.indptr, X.indices, X.data, weights, Q, out, q, KP=width(q), num_warps=1)
    return out
