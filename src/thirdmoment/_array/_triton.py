"""Products of sparse rows with thin blocks on a GPU: one program a row, its sum in registers.

Xᵀ is never made: what a row adds to the columns it has is added where it belongs. On a GPU the
order of these additions changes from run to run, so results differ in their last digits. The plain
form beside it is in torch_rows.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from thirdmoment._array.devices import current
from thirdmoment._constants import Work

# Numbers that a program works on at once: few columns leave room for several stored values.
TILE: Work[int] = 128
ADDED: Work[int] = 1024  # where they are only added

# Products and sums in one instruction, as ever: Triton 3.9 warns where nobody says whether.
FUSED = {"enable_fp_fusion": True}


def sizes(q: int) -> dict[str, int]:
    """Lanes for q columns, and stored values that are taken at once."""
    lanes = triton.next_power_of_2(q)
    return {"KP": lanes, "PB": max(1, TILE // lanes), "num_warps": 1, **FUSED}


@triton.jit
def _dot(ptr, ci, c, Q, out, q, KP: tl.constexpr, PB: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j, r = tl.arange(0, KP), tl.arange(0, PB)
    m = j < q
    total = tl.zeros([PB, KP], out.dtype.element_ty)
    last = tl.load(ptr + a + 1)
    for p in range(tl.load(ptr + a), last, PB):
        own = p + r
        ok = own < last
        w = tl.load(ci + own, mask=ok, other=0).to(tl.int64)
        v = tl.load(c + own, mask=ok, other=0.0)
        both = ok[:, None] & m[None, :]
        total += v[:, None] * tl.load(Q + w[:, None] * q + j[None, :], mask=both, other=0.0)
    tl.store(out + a * q + j, tl.sum(total, 0), mask=m)


@triton.jit
def _dot_alike(ci, c, Q, out, n, each, q, R: tl.constexpr, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    j = tl.arange(0, KP)
    ok, m = a < n, j < q
    both = ok[:, None] & m[None, :]
    total = tl.zeros([R, KP], out.dtype.element_ty)
    for p in range(0, each):
        w = tl.load(ci + a * each + p, mask=ok, other=0).to(tl.int64)
        v = tl.load(c + a * each + p, mask=ok, other=0.0)
        total += v[:, None] * tl.load(Q + w[:, None] * q + j[None, :], mask=both, other=0.0)
    tl.store(out + a[:, None] * q + j[None, :], total, mask=both)


@triton.jit
def _tdot(ptr, ci, c, weights, Y, out, q, KP: tl.constexpr, PB: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j, r = tl.arange(0, KP), tl.arange(0, PB)
    m = j < q
    weight = tl.load(weights + a)
    if weight != 0:
        y = weight * tl.load(Y + a * q + j, mask=m, other=0.0)
        last = tl.load(ptr + a + 1)
        for p in range(tl.load(ptr + a), last, PB):
            own = p + r
            ok = own < last
            w = tl.load(ci + own, mask=ok, other=0).to(tl.int64)
            v = tl.load(c + own, mask=ok, other=0.0)
            both = ok[:, None] & m[None, :]
            place = out + w[:, None] * q + j[None, :]
            tl.atomic_add(place, v[:, None] * y[None, :], mask=both, sem="relaxed")


@triton.jit
def _gram(ptr, ci, c, weights, Q, out, q, KP: tl.constexpr, PB: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j, r = tl.arange(0, KP), tl.arange(0, PB)
    m = j < q
    weight = tl.load(weights + a)
    if weight != 0:
        first, last = tl.load(ptr + a), tl.load(ptr + a + 1)
        total = tl.zeros([PB, KP], out.dtype.element_ty)
        for p in range(first, last, PB):
            own = p + r
            ok = own < last
            w = tl.load(ci + own, mask=ok, other=0).to(tl.int64)
            v = tl.load(c + own, mask=ok, other=0.0)
            both = ok[:, None] & m[None, :]
            total += v[:, None] * tl.load(Q + w[:, None] * q + j[None, :], mask=both, other=0.0)
        y = tl.sum(total, 0) * weight
        for p in range(first, last, PB):
            own = p + r
            ok = own < last
            w = tl.load(ci + own, mask=ok, other=0).to(tl.int64)
            v = tl.load(c + own, mask=ok, other=0.0)
            both = ok[:, None] & m[None, :]
            place = out + w[:, None] * q + j[None, :]
            tl.atomic_add(place, v[:, None] * y[None, :], mask=both, sem="relaxed")


@triton.jit
def _sums(Y, rows, values, ptr, out, q, SCALED: tl.constexpr, R: tl.constexpr, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    own = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < q
    total = tl.zeros([R, KP], out.dtype.element_ty)
    first, last = tl.load(ptr + own), tl.load(ptr + own + 1)
    for p in range(first, last, R):
        at = p + tl.arange(0, R)
        ok = at < last
        row = tl.load(rows + at, mask=ok, other=0).to(tl.int64)
        y = tl.load(Y + row[:, None] * q + j[None, :], mask=ok[:, None] & m[None, :], other=0.0)
        if SCALED:
            y *= tl.load(values + at, mask=ok, other=0.0)[:, None]
        total += y
    tl.store(out + own * q + j, tl.sum(total, 0), mask=m)


def launched(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs kernels, on the device of its first argument.

    Kernels start on the device that is current in a thread, which need not be that of the data.
    """

    @functools.wraps(call)
    def there(first: Any, *args: Any, **kwargs: Any) -> Any:
        with current(first[0] if isinstance(first, tuple) else first):
            return call(first, *args, **kwargs)

    return there


@launched
def dot(X: Any, Q: Any, out: Any) -> Any:
    """out = X Q."""
    q = Q.shape[1]
    if X.each is not None:  # few stored values in each row: several rows a program
        lanes = triton.next_power_of_2(q)
        R = max(1, ADDED // lanes)
        _dot_alike[(triton.cdiv(X.shape[0], R),)](
            X.indices, X.data, Q, out, X.shape[0], X.each, q, R=R, KP=lanes, num_warps=4, **FUSED
        )
        return out
    _dot[(X.shape[0],)](X.indptr, X.indices, X.data, Q, out, q, **sizes(q))
    return out


@launched
def tdot(X: Any, weights: Any, Y: Any, out: Any) -> Any:
    """out += Xᵀ (weights ⊙ Y)."""
    q = Y.shape[1]
    _tdot[(X.shape[0],)](X.indptr, X.indices, X.data, weights, Y, out, q, **sizes(q))
    return out


@launched
def gram(X: Any, weights: Any, Q: Any, out: Any) -> Any:
    """out += Xᵀ (weights ⊙ (X Q))."""
    q = Q.shape[1]
    _gram[(X.shape[0],)](X.indptr, X.indices, X.data, weights, Q, out, q, **sizes(q))
    return out


@launched
def sums(Y: Any, rows: Any, values: Any, ptr: Any) -> Any:
    """Σ values[p] Y[rows[p]] over p from ptr[i] to ptr[i + 1], for each i, in this order."""
    q, size = Y.shape[1], ptr.shape[0] - 1
    out = Y.new_empty((size, q))
    lanes = triton.next_power_of_2(q)
    _sums[(size,)](
        Y, rows, rows if values is None else values, ptr, out, q,
        SCALED=values is not None, R=max(1, ADDED // lanes), KP=lanes, num_warps=4, **FUSED,
    )  # fmt: skip
    return out
