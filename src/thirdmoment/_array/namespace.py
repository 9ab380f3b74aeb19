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
        array = array.detach().cpu()
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

    Drawn by NumPy on the host, so that every backend sees the same numbers for the same seed.
    """
    xp = array_namespace(like)
    draws: Any = rng.standard_normal(shape)
    return xp.astype(xp.asarray(draws, device=_device(like)), like.dtype)


def _device(like: Array) -> Any:
    return getattr(like, "device", None)


def row_signs(start: int, stop: int) -> np.ndarray:
    """Signs ±1 of rows start..stop-1: the halves of the split-half noise gauge (N-11).

    A hash of the row number alone, so that a row falls in the same half however the data is cut
    into chunks.
    """
    bits = scrambled(np.arange(start, stop, dtype=np.uint64)) & np.uint64(1)
    return 1.0 - 2.0 * bits.astype(np.float64)


def scrambled(z: np.ndarray) -> np.ndarray:
    """Well-mixed 64 bits of each number (splitmix64); equal numbers stay equal."""
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
