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
