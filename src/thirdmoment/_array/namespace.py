"""Which array library, where, and its random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np

from thirdmoment._array.devices import in_fixed_order

# NumPy, torch, CuPy or array-api-strict. The standard has no common base class to name here.
Array = Any


def array_namespace(*arrays: Array) -> Any:
    """Namespace of the arrays, as the array API standard has it.

    Sparse matrices never come here: their few products live in `thirdmoment._array.rows`.
    """
    return array_api_compat.array_namespace(*arrays)


def to_numpy(array: Array) -> np.ndarray:
    """Copy of a dense array on the host."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        array = array.detach().contiguous().cpu()
        array = array.float() if str(array.dtype) == "torch.bfloat16" else array  # NumPy has none
    elif not hasattr(array, "__array__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def add_rows(values: Array, index: np.ndarray, size: int) -> Array:
    """Rows of ``values`` (n, q) added up by their ``index`` (n,), a result of ``size`` rows."""
    if isinstance(values, np.ndarray):
        columns = [np.bincount(index, weights=column, minlength=size) for column in values.T]
        return np.stack(columns, axis=1).astype(values.dtype, copy=False)
    xp = array_namespace(values)
    device = getattr(values, "device", None)
    out = xp.zeros((size, values.shape[1]), dtype=values.dtype, device=device)
    where = xp.asarray(index, device=device)
    if hasattr(out, "index_add_"):  # torch; on a GPU in a fixed order where it was told so
        return out.index_add_(0, where, values)
    for i in range(values.shape[0]):
        out[where[i], :] += values[i, :]
    return out


def random_normal(rng: np.random.Generator, shape: tuple[int, ...], *, like: Array) -> Array:
    """Standard normal draws with the dtype and on the device of ``like``.

    Drawn by NumPy on the host, so that every backend sees the same numbers for the same seed; on a
    GPU by the GPU, for there the host would take longer than all else.
    """
    if on_gpu(like):
        draw = like.new_empty(0).new_empty  # of torch, where like is
        return _drawn_there(draw(shape), int(rng.integers(2**62)))
    xp = array_namespace(like)
    draws: Any = rng.standard_normal(shape)
    return xp.astype(xp.asarray(draws, device=_device(like)), like.dtype)


def on_gpu(array: Array) -> bool:
    """Whether few large products cost less than many small ones, and copies to the host much."""
    return getattr(getattr(array, "device", None), "type", "cpu") == "cuda"


def _drawn_there(out: Array, seed: int) -> Array:
    import torch

    return out.normal_(generator=torch.Generator(out.device).manual_seed(seed))


def like_one(template: Array, values: Array) -> Array:
    """Values with the dtype and on the device of ``template``."""
    if isinstance(template, np.ndarray) and isinstance(values, np.ndarray):
        return values.astype(template.dtype, copy=False)
    xp = array_namespace(template)
    return xp.asarray(values, dtype=template.dtype, device=_device(template))


def in_double(values: Array) -> Array:
    """The same in double precision, where they are."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64, copy=False)
    xp = array_namespace(values)
    return xp.astype(values, xp.float64, copy=False)


def in_single(values: Array) -> Array:
    """The same in single precision, where they are."""
    xp = array_namespace(values)
    return xp.astype(values, xp.float32, copy=False)


def in_long(index: Array) -> Array:
    """Whole numbers of 64 bits, where they are."""
    xp = array_namespace(index)
    return xp.astype(index, xp.int64, copy=False)


def like_index(template: Array, index: np.ndarray) -> Array:
    """Whole numbers as an index on the device of ``template``."""
    return array_namespace(template).asarray(index, device=_device(template))


def row_squares(Y: Array) -> Array:
    """Sums of squares (n,) of the rows of Y (n, d)."""
    if isinstance(Y, np.ndarray):
        return np.einsum("ij,ij->i", Y, Y)  # without an array of the squares
    return array_namespace(Y).sum(Y * Y, axis=1)


def total_of(values: Array) -> float:
    """Sum of all entries, a number of the host."""
    if isinstance(values, np.ndarray):
        return float(values.sum())
    return float(array_namespace(values).sum(values))


def _device(like: Array) -> Any:
    return getattr(like, "device", None)


def ones(n: int, *, like: Array) -> Array:
    """n ones in double precision, where ``like`` is."""
    if isinstance(like, np.ndarray):
        return np.ones(n)
    xp = array_namespace(like)
    return xp.ones(n, dtype=xp.float64, device=_device(like))


def joined(parts: Sequence[Array]) -> Array:
    """Arrays one after the other."""
    return parts[0] if len(parts) == 1 else array_namespace(*parts).concat(parts)


def tallied(keys: Array, weights: Array | None, size: int) -> Array:
    """Sums of the weights (n,) of equal keys (n,), a result of ``size``; None counts them."""
    xp = array_namespace(keys)
    fixed = weights is not None and on_gpu(keys) and in_fixed_order()  # torch refuses it then
    if hasattr(xp, "bincount") and not fixed:  # the standard has no such function
        return xp.bincount(keys, weights, size)
    each = ones(keys.shape[0], like=keys) if weights is None else weights
    return add_rows(each[:, None], keys, size)[:, 0]


def posterior_of(joint: Array) -> tuple[Array, Array]:
    """Shares that sum to one over the first axis of exp(joint) (k, m), and the logarithms of what
    they summed to (m,). The joint may be written over.
    """
    if isinstance(joint, np.ndarray):
        top = joint.max(axis=0)
        joint -= top
        np.exp(joint, out=joint)
        total = joint.sum(axis=0)
        joint /= total
        np.log(total, out=total)
        total += top
        return joint, total
    if hasattr(joint, "logsumexp"):  # torch: few kernels, no new memory
        total = joint.logsumexp(0)
        return joint.sub_(total).exp_(), total
    xp = array_namespace(joint)
    top = xp.max(joint, axis=0)
    shares = xp.exp(joint - top)
    total = xp.sum(shares, axis=0)
    return shares / total, xp.log(total) + top


def row_signs(start: int, stop: int, *, like: Array | None = None) -> Array:
    """Signs ±1 of rows start..stop-1: the halves of the split-half noise gauge (N-11).

    A hash of the row number alone, so that a row falls in the same half however the data is cut
    into chunks.
    """
    if like is None or isinstance(like, np.ndarray):
        bits = scrambled(np.arange(start, stop, dtype=np.uint64)) & np.uint64(1)
        return 1.0 - 2.0 * bits.astype(np.float64)
    xp = array_namespace(like)
    numbers = xp.arange(start, stop, dtype=xp.int64, device=_device(like))
    return 1.0 - 2.0 * xp.astype(scrambled(numbers) & 1, xp.float64)


def first_rows(start: int, stop: int, count: int, *, like: Array) -> tuple[Array, np.ndarray]:
    """Places of at most ``count`` of the rows start..stop-1, those with the smallest hashes of
    their numbers, and these hashes (uint64) in rising order.
    """
    if isinstance(like, np.ndarray):
        keys = scrambled(np.arange(start, stop, dtype=np.uint64))
        few = np.argsort(keys, kind="stable")[:count]
        return few, keys[few]
    xp = array_namespace(like)
    keys = scrambled(xp.arange(start, stop, dtype=xp.int64, device=_device(like)))
    order = xp.argsort(keys ^ _signed(1 << 63))  # as unsigned numbers
    few = order[: min(count, stop - start)]
    return few, to_numpy(xp.take(keys, few, axis=0)).view(np.uint64)


def scrambled(z: Array) -> Array:
    """Well-mixed 64 bits of each number (splitmix64); equal numbers stay equal.

    Of uint64, or of the same bits as int64 tensors, which have no unsigned form.
    """
    if not _of_numpy(z):
        z = z + _signed(0x9E3779B97F4A7C15)
        z = (z ^ shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
        z = (z ^ shifted(z, 27)) * _signed(0x94D049BB133111EB)
        return z ^ shifted(z, 31)
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def shifted(z: Array, bits: int) -> Array:
    """The bits of 64-bit numbers moved to the right, zeros coming in."""
    if _of_numpy(z):
        return z >> np.uint64(bits)
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _of_numpy(z: Any) -> bool:
    return isinstance(z, np.ndarray | np.generic)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
