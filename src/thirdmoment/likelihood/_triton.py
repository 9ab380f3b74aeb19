"""Kernels on a GPU: folding in documents, and the recursions of hidden Markov models.

Documents have a program each, with its proportions in registers: the same as ``fold_in_rows`` and
``log_likelihood_rows`` of _compiled.py, and as the plain forms of tensor_documents.py. Chains have
a program for a few blocks of sequences, which walks along them: the same as packed.py. Every sum
is taken in an order that the data alone fixes.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from thirdmoment._array._triton import FUSED, launched
from thirdmoment._constants import Work


@triton.jit
def _fold_in(ptr, ci, c, words, prior, H, steps, tol, K, KP: tl.constexpr):  # type: ignore[no-untyped-def]
    a = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, KP)
    m = j < K
    alpha = tl.load(prior + j, mask=m, other=0.0)
    h = tl.load(H + a * K + j, mask=m, other=0.0)
    first, last = tl.load(ptr + a), tl.load(ptr + a + 1)
    step = 0
    moved = tl.sum(h, 0) * 0.0 + (tol + 1.0)  # in the numbers of h
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


@launched
def fold_in(X: Any, words: Any, prior: Any, H: Any, n_steps: int, tol: float) -> Any:
    """H (n, k) after so many steps, in place; a document stops when it moves by ``tol`` or less."""
    k = words.shape[1]
    _fold_in[(X.shape[0],)](
        X.indptr, X.indices, X.data, words, prior, H, n_steps, tol, k,
        KP=triton.next_power_of_2(k), num_warps=1, **FUSED,
    )  # fmt: skip
    return H


@launched
def log_likelihood(X: Any, words: Any, H: Any) -> Any:
    """Σ_j x_j log(H C)_j of each document (n,)."""
    k, out = words.shape[1], H.new_empty(X.shape[0])
    _log_likelihood[(X.shape[0],)](
        X.indptr, X.indices, X.data, words, H, out, k,
        KP=triton.next_power_of_2(k), num_warps=1, **FUSED,
    )  # fmt: skip
    return out


@triton.jit
def _chain_forward(  # type: ignore[no-untyped-def]
    table, code, T, entry, begin, length, alpha, last, value, least, n_rows, K,
    CODED: tl.constexpr, UNITS: tl.constexpr, R: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    live = r < n_rows
    block = r // K if UNITS else r  # UNITS: each block begins in each of its states
    j = tl.arange(0, KP)
    inside = j < K
    both = live[:, None] & inside[None, :]
    first = tl.load(begin + block, mask=live, other=0)
    size = tl.load(length + block, mask=live, other=0)
    if UNITS:
        a = tl.where(both & (j[None, :] == (r % K)[:, None]), 1.0, 0.0).to(T.dtype.element_ty)
    else:
        a = tl.load(entry + r[:, None] * K + j[None, :], mask=both, other=0.0)
    square = inside[:, None] & inside[None, :]
    step = tl.load(T + j[:, None] * K + j[None, :], mask=square, other=0.0)
    logs = tl.sum(a, 1) * 0.0
    small = logs + 1.0
    for t in range(0, tl.max(size, 0)):
        here = live & (t < size)
        place = first + t
        row = tl.load(code + place, mask=here, other=0).to(tl.int64) if CODED else place
        seen = here[:, None] & inside[None, :]
        b = tl.load(table + row[:, None] * K + j[None, :], mask=seen, other=0.0)
        moved = tl.where(t > 0, tl.dot(a, step, input_precision="ieee"), a) * b
        norm = tl.sum(moved, 1)
        small = tl.where(here, tl.minimum(small, norm, propagate_nan=tl.PropagateNan.ALL), small)
        moved = moved / tl.where(norm > 0, norm, 1.0)[:, None]
        a = tl.where(here[:, None], moved, a)
        logs += tl.where(here, tl.log(tl.where(norm > 0, norm, 1.0)), 0.0)
        if not UNITS:
            tl.store(alpha + place[:, None] * K + j[None, :], a, mask=seen)
    tl.store(last + r[:, None] * K + j[None, :], a, mask=both)
    tl.store(value + r, logs, mask=live)
    tl.store(least + r, small, mask=live)


@triton.jit
def _chain_backward(  # type: ignore[no-untyped-def]
    table, code, T, leave, begin, length, alpha, before, pairs, least, n_rows, K,
    CODED: tl.constexpr, R: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    live = r < n_rows
    j = tl.arange(0, KP)
    inside = j < K
    both = live[:, None] & inside[None, :]
    first = tl.load(begin + r, mask=live, other=0)
    size = tl.load(length + r, mask=live, other=0)
    beta = tl.load(leave + r[:, None] * K + j[None, :], mask=both, other=0.0)
    square = inside[:, None] & inside[None, :]
    back = tl.load(T + j[None, :] * K + j[:, None], mask=square, other=0.0)  # of T
    total = tl.zeros([KP, KP], T.dtype.element_ty)
    after = beta * 0.0  # likelihoods of the next observation
    small = tl.sum(beta, 1) * 0.0 + 1.0
    for s in range(0, tl.max(size, 0)):
        here = live & (s < size)
        place = first + size - 1 - s
        seen = here[:, None] & inside[None, :]
        a = tl.load(alpha + place[:, None] * K + j[None, :], mask=seen, other=0.0)
        weighted = after * beta
        moved = tl.dot(weighted, back, input_precision="ieee")
        share = tl.sum(a * moved, 1)
        inner = here & (s > 0)
        scaled = weighted / tl.where(inner & (share > 0), share, 1.0)[:, None]
        scaled = tl.where(inner[:, None], scaled, 0.0)
        total += tl.dot(tl.trans(a), scaled, input_precision="ieee")
        norm = tl.sum(moved, 1)
        moved = moved / tl.where(norm > 0, norm, 1.0)[:, None]
        beta = tl.where(inner[:, None], moved, beta)
        small = tl.where(inner, tl.minimum(small, norm, propagate_nan=tl.PropagateNan.ALL), small)
        product = a * beta
        whole = tl.sum(product, 1)
        small = tl.where(here, tl.minimum(small, whole, propagate_nan=tl.PropagateNan.ALL), small)
        product = product / tl.where(whole > 0, whole, 1.0)[:, None]
        tl.store(alpha + place[:, None] * K + j[None, :], product, mask=seen)
        row = tl.load(code + place, mask=here, other=0).to(tl.int64) if CODED else place
        after = tl.load(table + row[:, None] * K + j[None, :], mask=seen, other=0.0)
    own = pairs + tl.program_id(0).to(tl.int64) * K * K
    tl.store(own + j[:, None] * K + j[None, :], total, mask=square)
    tl.store(before + r[:, None] * K + j[None, :], beta, mask=both)
    tl.store(least + r, small, mask=live)


# Blocks of sequences of one program.
SIDE_BY_SIDE: Work[int] = 16


@launched
def chain_forward(chain: Any, blocks: Any, entry: Any, *, units: bool = False) -> Any:
    """Forward recursions of all blocks from ``entry`` (B, k), or with ``units`` from each state.

    Returns α of all observations (n, k), those of the last ones, the logarithms of what was divided
    out, and the least of that.
    """
    table, code, T = chain
    k = T.shape[0]
    rows = blocks.size * (k if units else 1)
    alpha = table.new_empty((1 if units else blocks.n, k))
    last, value, least = table.new_empty((rows, k)), table.new_empty(rows), table.new_empty(rows)
    entry = last if units else entry.contiguous()
    grid = (triton.cdiv(rows, SIDE_BY_SIDE),)
    _chain_forward[grid](
        table, blocks.begin if code is None else code, T, entry, blocks.begin, blocks.length,
        alpha, last, value, least, rows, k, CODED=code is not None, UNITS=units,
        R=SIDE_BY_SIDE, KP=_width(k), num_warps=_warps(k), **FUSED,
    )  # fmt: skip
    return alpha, last, value, least


@launched
def chain_backward(chain: Any, blocks: Any, leave: Any, alpha: Any) -> Any:
    """Backward recursions; α becomes the posteriors in place.

    Returns β of the first observations (B, k), the transitions that V of packed.py gives before
    they are multiplied by T, and the least of what was divided by.
    """
    table, code, T = chain
    k = T.shape[0]
    grid = (triton.cdiv(blocks.size, SIDE_BY_SIDE),)
    before, least = table.new_empty((blocks.size, k)), table.new_empty(blocks.size)
    pairs = table.new_empty((*grid, k, k))
    _chain_backward[grid](
        table, blocks.begin if code is None else code, T, leave.contiguous(), blocks.begin,
        blocks.length, alpha, before, pairs, least, blocks.size, k, CODED=code is not None,
        R=SIDE_BY_SIDE, KP=_width(k), num_warps=_warps(k), **FUSED,
    )  # fmt: skip
    return before, pairs.sum(0), least


def _width(k: int) -> int:
    return max(16, triton.next_power_of_2(k))


def _warps(k: int) -> int:
    """Enough that the numbers of a program stay in registers (docs/decisions/gpu.md)."""
    return 2 if k <= 32 else 4 if k <= 64 else 8
