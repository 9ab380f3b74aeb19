"""Rows of data, dense or sparse, and the few products with thin blocks that moments need.

``as_rows`` is the one place that decides between compiled (SciPy CSR) and torch. Both offer

- ``dot(Q)``          X Q                     (m, q)
- ``tdot(w, Y)``      Xᵀ (w ⊙ Y)              (d, q)
- ``gram(w, Q)``      Xᵀ (w ⊙ (X Q))          (d, q)
- ``dot_t(A)``        A Xᵀ                    (k, m)
- ``left_dot(A)``     A X                     (k, d)
- ``lengths()``       X 1                     (m,)
- ``weighted_sum(w)`` Xᵀ w                    (d,)
- ``second(w)``       Xᵀ diag(w) X            (d, d)
- ``toarray()``       X                       (m, d)
- ``columns(index)``  X[:, index]             (m, q)

with ⊙ the scaling of rows. Cost 2·nnz·q flops a product.
"""

from __future__ import annotations

import itertools
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from thirdmoment._array.namespace import (
    Array,
    array_namespace,
    like_index,
    like_one,
)
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput


def check_sparse(X: Any) -> None:
    """Raise where a sparse matrix points outside itself; anything else passes.

    SciPy checks this when a matrix is made, but not when its arrays are changed afterwards or come
    from a file, and reading such a matrix reads or writes memory that is not its own.
    """
    if not sp.issparse(X):
        return
    if X.format in ("csr", "csc", "bsr"):
        own = X.indptr, X.indices, X.data
        try:
            X.check_format(full_check=True)
        except (ValueError, IndexError, TypeError) as error:
            raise _unsound(str(error)) from None
        X.indptr, X.indices, X.data = own  # SciPy copies what is part of a larger array
    elif X.format == "coo":
        for place, size in zip(X.coords, X.shape, strict=True):
            if len(place) and not (place.min() >= 0 and place.max() < size):
                raise _unsound(f"indices go from {place.min()} to {place.max()} of {size}")


def _unsound(reason: str) -> InvalidInput:
    return InvalidInput(
        f"X is not a sound sparse matrix ({reason}): its arrays were changed, or the file is "
        "broken. Build it anew from its entries."
    )


class Rows(Protocol):
    """A block of sparse rows, whatever library holds it."""

    shape: tuple[int, int]
    nnz: int

    def dot(self, Q: Array) -> Array: ...
    def tdot(self, weights: Array, Y: Array, out: Array | None = None) -> Array: ...
    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array: ...
    def dot_t(self, A: Array) -> Array: ...
    def left_dot(self, A: Array) -> Array: ...
    def lengths(self) -> Array: ...
    def weighted_sum(self, weights: Array) -> Array: ...
    def second(self, weights: Array) -> Array: ...
    def asarray(self, values: np.ndarray) -> Array: ...
    def astype(self, dtype: str) -> Rows: ...
    def toarray(self) -> Array: ...
    def columns(self, index: np.ndarray) -> Array: ...
    def scaled(self, scale: np.ndarray) -> Rows: ...


def as_rows(X: Any) -> Rows:
    """Wrap a SciPy CSR matrix, a dense array of counts, or a torch tensor."""
    if sp.issparse(X) or isinstance(X, np.ndarray):
        return CompiledRows(sp.csr_array(X))
    if type(X).__module__.startswith("torch"):
        from thirdmoment._array.torch_rows import TorchRows

        return TorchRows(X)
    raise TypeError(
        f"Rows of type {type(X).__name__} are not supported; "
        "give a SciPy sparse matrix, a NumPy array or a torch tensor."
    )


def holds_tensors(X: Any) -> bool:
    """Whether data came as tensors of torch, or as arrays or CSR of CuPy."""
    return type(X).__module__.split(".")[0] in ("torch", "cupy", "cupyx") or is_tensors(X)


def is_tensors(X: Any) -> bool:
    """Whether rows are tensors of a device, which everything about them follows."""
    return type(X).__name__ == "TorchRows"


# One block of rows for each so many stored counts, at most so many blocks: enough for eight
# threads, few enough that the results of a block (a thin block of d rows each) stay small.
BLOCK_NONZEROS: Work[int] = 50_000
MAX_BLOCKS: Work[int] = 8


def row_blocks(
    X: sp.csr_array, *, nonzeros: int = BLOCK_NONZEROS, most: int = MAX_BLOCKS
) -> list[tuple[int, int]]:
    """Row ranges [start, stop) of about equal work, fixed by the data alone."""
    n_blocks = int(np.clip(X.nnz // nonzeros, 1, min(most, max(X.shape[0], 1))))
    marks = np.searchsorted(X.indptr, np.linspace(0, X.nnz, n_blocks + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], marks, [X.shape[0]]])).tolist()
    return list(itertools.pairwise(edges))


def added(part: Array, out: Array | None) -> Array:
    """The part, or ``out`` with the part added to it."""
    if out is None:
        return part
    out += part
    return out


class CompiledRows:
    """SciPy CSR rows; products compiled, without the GIL, in the dtype of the values."""

    def __init__(self, X: sp.csr_array) -> None:
        self.shape: tuple[int, int] = X.shape
        self.nnz: int = X.nnz
        self.indptr = X.indptr.astype(np.int64, copy=False)
        self.indices = X.indices.astype(np.int32, copy=False)
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        self.data = X.data.astype(dtype, copy=False)
        self.dtype = self.data.dtype

    def dot(self, Q: Array) -> Array:
        from thirdmoment._array import _compiled

        self._check(self.shape[1], Q)
        out = np.empty((self.shape[0], Q.shape[1]), self.dtype)
        _compiled.csr_dot(self.indptr, self.indices, self.data, self.asarray(Q), out)
        return out

    def tdot(self, weights: Array, Y: Array, out: Array | None = None) -> Array:
        """Xᵀ (weights ⊙ Y), added to ``out`` where that is given."""
        from thirdmoment._array import _compiled

        self._check(self.shape[0], weights, Y)
        out = np.zeros((self.shape[1], Y.shape[1]), self.dtype) if out is None else out
        self._check(self.shape[1], out)
        args = self.asarray(weights), self.asarray(Y)
        _compiled.csr_tdot_add(self.indptr, self.indices, self.data, *args, out)
        return out

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        """Xᵀ (weights ⊙ (X Q)), added to ``out`` where that is given."""
        from thirdmoment._array import _compiled

        self._check(self.shape[0], weights)
        out = np.zeros((self.shape[1], Q.shape[1]), self.dtype) if out is None else out
        self._check(self.shape[1], Q, out)
        args = self.asarray(weights), self.asarray(Q)
        _compiled.csr_gram_add(self.indptr, self.indices, self.data, *args, out)
        return out

    def _check(self, length: int, *factors: Array) -> None:
        """Compiled loops trust the sizes that they are given."""
        for factor in factors:
            if len(factor) != length:
                raise ValueError(f"a product of rows {self.shape} with {len(factor)} numbers")

    def dot_t(self, A: Array) -> Array:
        return np.ascontiguousarray(self.dot(A.T).T)

    def left_dot(self, A: Array) -> Array:
        return self.tdot(np.ones(self.shape[0]), A.T).T

    def lengths(self) -> Array:
        return self.scipy().sum(axis=1, dtype=np.float64)

    def weighted_sum(self, weights: Array) -> Array:
        each = np.repeat(np.asarray(weights, np.float64), np.diff(self.indptr))
        return np.bincount(self.indices, weights=each * self.data, minlength=self.shape[1])

    def second(self, weights: Array) -> Array:
        X = self.scipy()
        return (X.T @ (X * np.asarray(weights)[:, None])).toarray()

    def asarray(self, values: Array) -> Array:
        return np.ascontiguousarray(values, dtype=self.dtype)

    def astype(self, dtype: str) -> CompiledRows:
        data = self.data.astype(dtype, copy=False)
        parts = (data, self.indices, self.indptr)  # the structure is shared
        return CompiledRows(sp.csr_array(parts, shape=self.shape, copy=False))

    def toarray(self) -> Array:
        return self.scipy().toarray()

    def columns(self, index: np.ndarray) -> Array:
        return self.scipy()[:, index].toarray()

    def scaled(self, scale: np.ndarray) -> CompiledRows:
        """Columns times ``scale`` (d,)."""
        data = self.data * scale[self.indices].astype(self.dtype, copy=False)
        parts = (data, self.indices, self.indptr)  # the structure is shared
        return CompiledRows(sp.csr_array(parts, shape=self.shape, copy=False))

    def scipy(self) -> sp.csr_array:
        """The rows as a SciPy array that shares their memory."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape, copy=False)


def regular_rows(columns: Array, values: Array, width: int) -> Rows:
    """Rows with ``values`` (m, l) in their ``columns`` (m, l), of so many columns in all."""
    m, each = columns.shape
    flat, shape = columns.reshape(-1), (int(m), width)
    if isinstance(flat, np.ndarray):
        ends = np.arange(0, m * each + 1, each)
        return CompiledRows(sp.csr_array((values.reshape(-1), flat, ends), shape=shape))
    from thirdmoment._array.torch_rows import TorchRows

    xp = array_namespace(flat)
    ends = xp.arange(0, m * each + 1, each, device=flat.device)
    rows = TorchRows.of(ends, xp.astype(flat, xp.int32), values.reshape(-1), shape)
    rows.each = int(each)
    return rows


class DenseRows:
    """Dense rows of any array library with the products of sparse ones."""

    def __init__(self, X: Array) -> None:
        if isinstance(X, np.ndarray):
            dtype = np.float32 if X.dtype == np.float32 else np.float64
            X = np.ascontiguousarray(X, dtype=dtype)
        self.X = X
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self.nnz = self.shape[0] * self.shape[1]
        self.dtype = self.X.dtype

    def dot(self, Q: Array) -> Array:
        return self.X @ self.asarray(Q)

    def tdot(self, weights: Array, Y: Array, out: Array | None = None) -> Array:
        return added(self.X.T @ (self.asarray(weights)[:, None] * self.asarray(Y)), out)

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        return self.tdot(weights, self.dot(Q), out)

    def dot_t(self, A: Array) -> Array:
        return self.asarray(A) @ self.X.T

    def left_dot(self, A: Array) -> Array:
        return self.asarray(A) @ self.X

    def lengths(self) -> Array:
        xp = array_namespace(self.X)
        return xp.sum(self.X, axis=1, dtype=xp.float64)

    def weighted_sum(self, weights: Array) -> Array:
        X = self._double()
        return X.T @ like_one(X, weights)

    def second(self, weights: Array) -> Array:
        X = self._double()
        return (X * like_one(X, weights)[:, None]).T @ X

    def _double(self) -> Array:
        xp = array_namespace(self.X)
        return xp.astype(self.X, xp.float64, copy=False)

    def asarray(self, values: Array) -> Array:
        return like_one(self.X, values)

    def astype(self, dtype: str) -> DenseRows:
        xp = array_namespace(self.X)
        return DenseRows(xp.astype(self.X, getattr(xp, dtype), copy=False))

    def toarray(self) -> Array:
        return self.X

    def columns(self, index: np.ndarray) -> Array:
        return array_namespace(self.X).take(self.X, like_index(self.X, index), axis=1)

    def scaled(self, scale: np.ndarray) -> DenseRows:
        return DenseRows(self.X * self.asarray(scale))


class ShiftedRows:
    """Sparse rows less a product of thin matrices, S - L R: centred one-hot codes, say.

    Everything costs what S, L (m, l) and the sparse R (l, d) hold; X itself is never formed.
    """

    def __init__(self, sparse: CompiledRows, left: np.ndarray, right: sp.csr_array) -> None:
        self.sparse, self.left, self.right = sparse, left, right
        self.shape = sparse.shape
        self.nnz = sparse.nnz + left.size + right.nnz
        self.dtype = sparse.dtype

    def dot(self, Q: Array) -> Array:
        return self.sparse.dot(Q) - self.left @ (self.right @ self.asarray(Q))

    def tdot(self, weights: Array, Y: Array, out: Array | None = None) -> Array:
        Y = self.asarray(weights)[:, None] * self.asarray(Y)
        return added(self.sparse.tdot(np.ones(len(Y)), Y) - self.right.T @ (self.left.T @ Y), out)

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        return self.tdot(weights, self.dot(Q), out)

    def dot_t(self, A: Array) -> Array:
        return np.ascontiguousarray(self.dot(A.T).T)

    def left_dot(self, A: Array) -> Array:
        return self.tdot(np.ones(self.shape[0]), A.T).T

    def lengths(self) -> Array:
        return self.sparse.lengths() - self.left @ self.right.sum(axis=1)

    def weighted_sum(self, weights: Array) -> Array:
        return self.sparse.weighted_sum(weights) - self.right.T @ (self.left.T @ weights)

    def second(self, weights: Array) -> Array:
        across = self.right.T @ self.sparse.tdot(weights, self.left).T
        own = self.left.T @ (np.asarray(weights)[:, None] * self.left)
        return self.sparse.second(weights) - across - across.T + self.right.T @ (own @ self.right)

    def asarray(self, values: Array) -> Array:
        return self.sparse.asarray(values)

    def astype(self, dtype: str) -> ShiftedRows:
        return ShiftedRows(
            self.sparse.astype(dtype), self.left.astype(dtype), self.right.astype(dtype)
        )

    def toarray(self) -> Array:
        return self.sparse.toarray() - self.left @ self.right.toarray()

    def columns(self, index: np.ndarray) -> Array:
        return self.sparse.columns(index) - self.left @ self.right[:, index].toarray()

    def scaled(self, scale: np.ndarray) -> Rows:
        right = sp.csr_array(self.right @ sp.diags_array(scale))
        return ShiftedRows(self.sparse.scaled(scale), self.left, right)
