"""torch tensors with the products of sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment._array.namespace import Array
from thirdmoment._array.rows import added


class TorchRows:
    """torch CSR rows and their transpose, on whatever device holds them."""

    def __init__(self, X: Any) -> None:
        import torch

        self._torch = torch
        X = X if X.layout == torch.sparse_csr else X.to_sparse_csr()
        X = X if X.dtype.is_floating_point else X.to(torch.float64)
        columns = X.to_sparse_csc()
        self.X = X
        self.XT = torch.sparse_csr_tensor(
            columns.ccol_indices(),
            columns.row_indices(),
            columns.values(),
            X.shape[::-1],
            check_invariants=False,
        )
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self.nnz = int(X.values().shape[0])

    def dot(self, Q: Array) -> Array:
        return self.X @ self.asarray(Q)

    def tdot(self, weights: Array, Y: Array, out: Array | None = None) -> Array:
        return added(self.XT @ (self.asarray(weights)[:, None] * self.asarray(Y)), out)

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        return self.tdot(weights, self.dot(Q), out)

    def dot_t(self, A: Array) -> Array:
        return self.dot(self.asarray(A).T).T

    def left_dot(self, A: Array) -> Array:
        return (self.XT @ self.asarray(A).T).T

    def lengths(self) -> Array:
        return self.dot(np.ones((self.shape[1], 1)))[:, 0]

    def weighted_sum(self, weights: Array) -> Array:
        return self.tdot(weights, np.ones((self.shape[0], 1)))[:, 0]

    def second(self, weights: Array) -> Array:
        X = self.X.to_dense()
        return X.T @ (self.asarray(weights)[:, None] * X)

    def asarray(self, values: Array) -> Array:
        return self._torch.as_tensor(values, dtype=self.X.dtype, device=self.X.device)

    def astype(self, dtype: str) -> TorchRows:
        return TorchRows(self.X.to(getattr(self._torch, dtype)))

    def toarray(self) -> Array:
        return self.X.to_dense()

    def columns(self, index: np.ndarray) -> Array:
        return self.toarray()[:, self._torch.as_tensor(index, device=self.X.device)]

    def scaled(self, scale: np.ndarray) -> TorchRows:
        X = self.X.to_sparse_coo().coalesce()
        values = X.values() * self.asarray(scale)[X.indices()[1]]
        return TorchRows(self._torch.sparse_coo_tensor(X.indices(), values, X.shape))
