"""Arrays of other libraries than NumPy at the door, and results in the library they came in."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

from thirdmoment._array.devices import brought
from thirdmoment._array.namespace import on_gpu, to_numpy


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
        indptr, indices, data = (to_numpy(part) for part in csr_parts(X))
        return sp.csr_array((data, indices, indptr), shape=tuple(X.shape))
    return X.get() if type(X).__module__.split(".")[0] == "cupyx" else X


def csr_parts(X: Any) -> tuple[Any, Any, Any]:
    """Where rows begin, columns and values of a tensor of any layout, as CSR has them."""
    say_nothing()
    X = X.detach()
    if "_bs" in str(X.layout):  # blocks
        X = X.to_dense()
    X = X if str(X.layout) == "torch.sparse_csr" else X.to_sparse_csr()
    return X.crow_indices(), X.col_indices(), X.values()


@functools.cache
def say_nothing() -> None:
    """Let torch warn once, unheard, that its sparse tensors are young: nothing hangs on that."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1)
        torch.sparse_csr_tensor(*parts, (1, 1)).to_sparse_csc()


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
    xp, device = array_api_compat.array_namespace(X), array_api_compat.device(X)
    if is_array(values) and type(values) is type(X):
        return array_api_compat.to_device(values, device)
    if is_array(values):
        shared = on_gpu(values) and array_api_compat.is_cupy_array(X)
        return xp.from_dlpack(values) if shared else xp.asarray(to_numpy(values), device=device)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        return values
    return xp.asarray(values, device=device)
