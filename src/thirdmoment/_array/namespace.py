"""Array namespaces: kernels are written once against the array API standard."""

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
