"""Folding in documents on a GPU: one program a document, its proportions in registers.

The same as ``fold_in_rows`` and ``log_likelihood_rows`` of _compiled.py, and as the plain forms of
tensor_documents.py.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def _fold_in(ptr, ci, c, words, prior, H, steps, tol, K, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < K
    alpha = tl.load(prior + j, mask=m, other=0.0)
    h = tl.load(H + a * K + j, mask=m, other=0.0)
    first, last = tl.load(ptr + a), tl.load(ptr + a + 1)
    step = 0
    moved = tol + 1.0
    while (step < steps) & (moved > tol):
        total = tl.zeros([KP], H.dtype.element_ty)
        for p in range(first, last):
            w = tl.load(ci + p).to(tl.int64)
            row = tl.load(words + w * K + j, mask=m, other=0.0)
            total += row * (tl.load(c + p) / tl.sum(h * row, 0))
        new = total * h + alpha
        norm = tl.sum(new, 0)
        new = tl.where(norm > 0, new / norm, h)
        moved = tl.sum(tl.abs(new - h), 0)
        h = new
        step += 1
    tl.store(H + a * K + j, h, mask=m)


@triton.jit
def _log_likelihood(ptr, ci, c, words, H, out, K, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < K
    h = tl.load(H + a * K + j, mask=m, other=0.0)
    total = tl.sum(h, 0) * 0.0
    for p in range(tl.load(ptr + a), tl.load(ptr + a + 1)):
        w = tl.load(ci + p).to(tl.int64)
        row = tl.load(words + w * K + j, mask=m, other=0.0)
        total += tl.load(c + p) * tl.log(tl.sum(h * row, 0))
    tl.store(out + a, total)


def fold_in(X: Any, words: Any, prior: Any, H: Any, n_steps: int, tol: float) -> Any:
    """H (n, k) after so many steps, in place; a document stops when it moves by ``tol`` or less."""
    k = words.shape[1]
    _fold_in[(X.shape[0],)](
        X.indptr, X.indices, X.data, words, prior, H, n_steps, tol, k,
        KP=triton.next_power_of_2(k), num_warps=1,
    )  # fmt: skip
    return H


def log_likelihood(X: Any, words: Any, H: Any) -> Any:
    """Σ_j x_j log(H C)_j of each document (n,)."""
    k, out = words.shape[1], H.new_empty(X.shape[0])
    _log_likelihood[(X.shape[0],)](
        X.indptr, X.indices, X.data, words, H, out, k, KP=triton.next_power_of_2(k), num_warps=1
    )
    return out
