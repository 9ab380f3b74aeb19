"""Arrays of other libraries than NumPy at the door, and results in the library they came in."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

from thirdmoment._array.devices import brought
from thirdmoment._array.namespace import to_numpy


def is_array(X: Any) -> bool:
    """Whether X is a dense array of another library than NumPy: torch, CuPy and their like."""
    if isinstance(X, np.ndarray) or not array_api_compat.is_array_api_obj(X):
        return False
    return not array_api_compat.is_dask_array(X) and not _is_sparse(X)


def _is_sparse(X: Any) -> bool:
    return array_api_compat.is_torch_array(X) and str(X.layout) != "torch.strided"


def on_host(X: Any) -> Any:
    """Arrays and sparse matrices of other libraries as those of NumPy and SciPy."""
    if is_array(X):
        return to_numpy(brought(X))
    if array_api_compat.is_torch_array(X):
        X = X.detach().cpu()
        X = X if str(X.layout) == "torch.sparse_csr" else X.to_sparse_csr()
        parts = X.values().numpy(), X.col_indices().numpy(), X.crow_indices().numpy()
        return sp.csr_array(parts, shape=tuple(X.shape))
    return X.get() if type(X).__module__.split(".")[0] == "cupyx" else X


def is_foreign(X: Any) -> bool:
    """Whether results are wanted in another array library than NumPy."""
    kind = type(X).__module__.split(".")[0]
    ours = type(X).__name__ == "TorchRows"
    return ours or kind == "cupyx" or is_array(X) or bool(array_api_compat.is_torch_array(X))


def as_given(values: Any, X: Any) -> Any:
    """Results, alone or in tuples and lists, in the library and on the device of X."""
    if isinstance(values, tuple | list):
        parts = [as_given(one, X) for one in values]
        return values._make(parts) if hasattr(values, "_make") else type(values)(parts)
    X = X if array_api_compat.is_array_api_obj(X) else X.data  # what a sparse matrix stores
    xp = array_api_compat.array_namespace(X)
    if is_array(values):
        return values if type(values) is type(X) else xp.from_dlpack(values)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        return values
    return xp.asarray(values, device=array_api_compat.device(X))
