"""Which array library, where, and its random numbers."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

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
    if hasattr(out, "index_add_"):  # torch; on a GPU the order of the sums is not fixed
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
    xp = array_namespace(template)
    return xp.asarray(values, dtype=template.dtype, device=_device(template))


def _device(like: Array) -> Any:
    return getattr(like, "device", None)


def row_signs(start: int, stop: int) -> np.ndarray:
    """Signs ±1 of rows start..stop-1: the halves of the split-half noise gauge (N-11).

    A hash of the row number alone, so that a row falls in the same half however the data is cut
    into chunks.
    """
    bits = scrambled(np.arange(start, stop, dtype=np.uint64)) & np.uint64(1)
    return 1.0 - 2.0 * bits.astype(np.float64)


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
