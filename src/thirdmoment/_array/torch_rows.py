"""torch tensors with the products of sparse rows."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array.namespace import Array
from thirdmoment._array.rows import added
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput

# Stored counts times columns that a plain product holds at once.
HELD: Work[int] = 50_000_000


class TorchRows:
    """Sparse rows as three tensors on one device, with products in the dtype of the values.

    On a GPU with Triton the products are kernels of ours; elsewhere those of torch.
    """

    def __init__(self, X: Any) -> None:
        import torch

        X = X if X.layout == torch.sparse_csr else X.to_sparse_csr()
        X = X if X.dtype.is_floating_point else X.to(torch.float64)
        self._set(X.crow_indices().long(), X.col_indices(), X.values(), tuple(X.shape))

    @classmethod
    def of(cls, indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> TorchRows:
        """Rows from the arrays of CSR, tensors of one device."""
        rows = cls.__new__(cls)
        rows._set(indptr, indices, data, shape)
        return rows

    def _set(self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> None:
        import torch

        self._torch = torch
        self.indptr, self.indices, self.data = indptr, indices, data.contiguous()
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self.nnz = int(data.shape[0])
        self.device, self.dtype = data.device, data.dtype
        self._columns: Any = None
        self._numbers: Any = None

    # products ------------------------------------------------------------------------------

    @property
    def compiled(self) -> Any:
        """Kernels for the device that holds the rows, None where there are none."""
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # Triton's own, on any device
        if not (interpreted or self.device.type == "cuda"):
            return None
        if importlib.util.find_spec("triton") is None:
            return None
        from thirdmoment._array import _triton

        return _triton

    def dot(self, Q: Array) -> Array:
        Q = self.asarray(Q)
        if self.compiled is None:
            return self._csr() @ Q
        out = self._torch.empty((self.shape[0], Q.shape[1]), dtype=self.dtype, device=self.device)
        return self.compiled.dot(self, Q.contiguous(), out)

    def tdot(self, weights: Array, Y: Array, out: Array | None = None) -> Array:
        weights, Y = self.asarray(weights), self.asarray(Y)
        if self.compiled is None:
            return added(self._transposed() @ (weights[:, None] * Y), out)
        out = self._zeros(Y.shape[1]) if out is None else out
        return self.compiled.tdot(self, weights.contiguous(), Y.contiguous(), out)

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        if self.compiled is None:
            return self.tdot(weights, self.dot(Q), out)
        out = self._zeros(Q.shape[1]) if out is None else out
        weights, Q = self.asarray(weights), self.asarray(Q)
        return self.compiled.gram(self, weights.contiguous(), Q.contiguous(), out)

    def dot_t(self, A: Array) -> Array:
        return self.dot(self.asarray(A).T).T

    def left_dot(self, A: Array) -> Array:
        return self.tdot(self._torch.ones(self.shape[0]), self.asarray(A).T).T

    def lengths(self) -> Array:
        return self.sum(axis=1)

    def sum(self, axis: int) -> Array:
        """Sums of the rows (n,), in double precision."""
        assert axis == 1
        return self.astype("float64").dot(np.ones((self.shape[1], 1)))[:, 0]

    def weighted_sum(self, weights: Array) -> Array:
        """Xᵀ weights (d,), in double precision."""
        ones = self._torch.ones((self.shape[0], 1), dtype=self._torch.float64, device=self.device)
        return self.astype("float64").tdot(weights, ones)[:, 0]

    def keys(self, weights: np.ndarray) -> Array:
        """The bits of X weights (n,) in double precision, exact for whole counts."""
        found = self.astype("float64").dot(weights[:, None])[:, 0]
        return found.contiguous().view(self._torch.int64)

    def second(self, weights: Array) -> Array:
        X = self.toarray()
        return X.T @ (self.asarray(weights)[:, None] * X)

    # parts and forms -----------------------------------------------------------------------

    def asarray(self, values: Array) -> Array:
        if isinstance(values, np.ndarray) and not values.flags.writeable:
            values = values.copy()  # tensors may be written to
        return self._torch.as_tensor(values, dtype=self.dtype, device=self.device)

    def astype(self, dtype: str) -> TorchRows:
        """Rows with products in another dtype; kernels need no other values for more digits."""
        kind = getattr(self._torch, dtype)
        if self.compiled is None or kind != self._torch.float64:
            return self.with_data(self.data.to(kind))
        rows = self.with_data(self.data)
        rows.dtype = kind
        return rows

    def with_data(self, data: Any) -> TorchRows:
        """Other values in the same places."""
        return TorchRows.of(self.indptr, self.indices, data, self.shape)

    def toarray(self) -> Array:
        return self._csr().to_dense()

    def columns(self, index: np.ndarray) -> Array:
        return self.toarray()[:, self._torch.as_tensor(index, device=self.device)]

    def scaled(self, scale: np.ndarray) -> TorchRows:
        return self.with_data(self.data * self.asarray(scale)[self.indices.long()])

    def __getitem__(self, rows: Any) -> TorchRows:
        """Some of the rows, given by a mask."""
        keep = self._torch.as_tensor(rows, device=self.device)
        entries = keep[self.numbers]
        sizes = self.indptr.diff()[keep]
        indptr = self._torch.zeros(len(sizes) + 1, dtype=self._torch.int64, device=self.device)
        indptr[1:] = sizes.cumsum(0)
        shape = (len(sizes), self.shape[1])
        return TorchRows.of(indptr, self.indices[entries], self.data[entries], shape)

    def nonzero(self) -> TorchRows:
        """The rows without stored zeros."""
        kept = self.data != 0
        before = self._torch.zeros(self.nnz + 1, dtype=self._torch.int64, device=self.device)
        before[1:] = kept.cumsum(0)
        return TorchRows.of(before[self.indptr], self.indices[kept], self.data[kept], self.shape)

    @property
    def numbers(self) -> Any:
        """The row of each stored value (nnz,)."""
        if self._numbers is None:
            each = self._torch.arange(self.shape[0], device=self.device)
            self._numbers = each.repeat_interleave(self.indptr.diff(), output_size=self.nnz)
        return self._numbers

    def ranges(self, width: int) -> list[tuple[int, int]]:
        """Rows [start, stop) whose values times ``width`` can be held at once."""
        n_blocks = max(1, min(self.shape[0], -(-self.nnz * width // HELD)))
        marks = self._torch.linspace(0, self.nnz, n_blocks + 1, device=self.device)[1:-1].long()
        cuts = self._torch.searchsorted(self.indptr, marks).tolist()
        edges = sorted({0, *cuts, self.shape[0]})
        return list(itertools.pairwise(edges))

    def joint_presence(self, words: np.ndarray) -> np.ndarray:
        """How many rows have each two of some columns (w, w)."""
        torch, w = self._torch, len(words)
        place = torch.full((self.shape[1],), -1, device=self.device)
        place[torch.as_tensor(words, device=self.device)] = torch.arange(w, device=self.device)
        column = place[self.indices.long()]
        kept = (column >= 0) & (self.data != 0)
        row, column = self.numbers[kept], column[kept]
        total = torch.zeros((w, w), dtype=torch.float64, device=self.device)
        step = max(1, HELD // max(w, 1))
        for a in range(0, self.shape[0], step):
            own = (row >= a) & (row < a + step)
            block = torch.zeros((min(step, self.shape[0] - a), w), device=self.device)
            block[row[own] - a, column[own]] = 1.0
            total += (block.T @ block).double()
        return total.cpu().numpy()

    def scipy(self) -> sp.csr_array:
        """The rows on the host."""
        parts = (part.cpu().numpy() for part in (self.data.double(), self.indices, self.indptr))
        return sp.csr_array(tuple(parts), shape=self.shape)

    def _zeros(self, q: int) -> Any:
        return self._torch.zeros((self.shape[1], q), dtype=self.dtype, device=self.device)

    def _csr(self) -> Any:
        return self._torch.sparse_csr_tensor(
            self.indptr, self.indices.long(), self.data, self.shape, check_invariants=False
        )

    def _transposed(self) -> Any:
        if self._columns is None:
            found = self._csr().to_sparse_csc()
            self._columns = self._torch.sparse_csr_tensor(
                found.ccol_indices(), found.row_indices(), found.values(), self.shape[::-1],
                check_invariants=False,
            )  # fmt: skip
        return self._columns


def tensor_rows(X: Any, device: Any = None) -> TorchRows:
    """Counts as single-precision tensors, where they are or on another device.

    ``X`` is a SciPy matrix, a tensor of torch (dense or CSR) or a CSR matrix of CuPy.
    """
    import torch

    if isinstance(X, TorchRows):
        parts = X.indptr, X.indices, X.data
    elif isinstance(X, torch.Tensor):
        X = X if X.layout == torch.sparse_csr else X.to_sparse_csr()
        parts = X.crow_indices(), X.col_indices(), X.values()
    else:
        parts = tuple(torch.as_tensor(part) for part in (X.indptr, X.indices, X.data))
    kinds = torch.int64, torch.int32, torch.float32
    indptr, indices, data = (
        part.to(device=device if device is not None else part.device, dtype=kind)
        for part, kind in zip(parts, kinds, strict=True)
    )
    return TorchRows.of(indptr, indices, data, tuple(X.shape))


def find_device(name: Any) -> Any:
    """The device that is asked for; one sentence where there is none."""
    try:
        import torch
    except ImportError:
        raise InvalidInput(
            f"device={name!r} needs PyTorch: pip install 'thirdmoment[gpu]', in the build for your "
            "GPU."
        ) from None
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InvalidInput(
            f"device={name!r} is no device; give 'cuda', 'cuda:1' or 'cpu', or leave it out."
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidInput(
            f"device={name!r}: PyTorch {torch.__version__} finds no GPU here. Leave device out, or "
            "install PyTorch in the build for your GPU."
        )
    return device


@contextlib.contextmanager
def told_memory() -> Iterator[None]:
    """Says in one sentence that a GPU ran out of memory."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(
            "The GPU has too little memory for these documents: a fit of 100 topics takes about 55 "
            "bytes for each stored count. Leave device out, or fit fewer documents."
        ) from error
