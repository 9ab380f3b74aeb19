"""torch tensors with the products of sparse rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array.devices import SUMMED, by_halves, has_kernels, if_room, in_fixed_order, sent
from thirdmoment._array.libraries import csr_parts, say_nothing
from thirdmoment._array.namespace import Array
from thirdmoment._array.ordered import Ordered, ordered, ordered_sums
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

        indptr, indices, data = csr_parts(X)
        data = data if data.dtype.is_floating_point else data.to(torch.float64)
        self._set(indptr.long(), indices, data, tuple(X.shape))

    @classmethod
    def of(cls, indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> TorchRows:
        """Rows from the arrays of CSR, tensors of one device."""
        rows = cls.__new__(cls)
        rows._set(indptr, indices, data, shape)
        return rows

    def _set(self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> None:
        import torch

        say_nothing()
        self._torch = torch
        self.indptr, self.indices, self.data = indptr, indices, data.contiguous()
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self.nnz = int(data.shape[0])
        self.device, self.dtype = data.device, data.dtype
        self.each: int | None = None  # stored values of every row, where these are alike
        self._columns: Any = None
        self._by_column: Any = None
        self._numbers: Any = None
        self._lengths: Any = None

    # products ------------------------------------------------------------------------------

    @property
    def compiled(self) -> Any:
        """Kernels for the device that holds the rows, None where there are none."""
        if not has_kernels(self):
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
        if in_fixed_order():
            return added(ordered_sums(weights[:, None] * Y, self.by_column), out)
        weights, Y, tdot = weights.contiguous(), Y.contiguous(), self.compiled.tdot
        return self._by_parts(lambda X, a, b, to: tdot(X, weights[a:b], Y[a:b], to), Y, out)

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        if self.compiled is None or in_fixed_order():
            return self.tdot(weights, self.dot(Q), out)
        weights, Q = self.asarray(weights).contiguous(), self.asarray(Q).contiguous()
        gram = self.compiled.gram
        return self._by_parts(lambda X, a, b, to: gram(X, weights[a:b], Q, to), Q, out)

    def _by_parts(
        self, add: Callable[[TorchRows, int, int, Array], Any], like: Array, out: Array | None
    ) -> Array:
        """Sums (d, q) that a kernel adds to its last argument, each part of the rows to zeros."""
        shape, parts = (self.shape[1], like.shape[1]), self.parts()
        out = like.new_zeros(shape) if out is None else out
        for a, b in parts:
            part = out if len(parts) == 1 else like.new_zeros(shape)
            add(self.part(a, b), a, b, part)
            out = out if part is out else out.add_(part)
        return out

    def dot_t(self, A: Array) -> Array:
        return self.dot(self.asarray(A).T).T

    def left_dot(self, A: Array) -> Array:
        if self.compiled is None:
            return self.tdot(self._torch.ones(self.shape[0]), self.asarray(A).T).T
        return ordered_sums(self.asarray(A).T, self.by_column).T

    @property
    def by_column(self) -> Ordered:
        """What is stored, column after column; kept if as much room is left as that takes."""
        if self._by_column is not None:
            return self._by_column
        found = ordered(self.indices, self.shape[1], self._row_numbers(), self.data)
        bytes_of = 8 + self.data.element_size()
        spare = partial(self.indices.new_empty, bytes_of * self.nnz, dtype=self._torch.uint8)
        if if_room(lambda: spare() is not None, lambda: False):
            self._by_column = found
        return found

    def lengths(self) -> Array:
        return self.sum(axis=1)

    def sum(self, axis: int) -> Array:
        """Sums of the rows (n,), in double precision."""
        assert axis == 1
        if self._lengths is None:
            self._lengths = self.astype("float64").dot(np.ones((self.shape[1], 1)))[:, 0]
        return self._lengths

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
        if kind == self.dtype:
            return self
        if self.compiled is None or kind != self._torch.float64:
            return self.with_data(self.data.to(kind))
        rows = self.with_data(self.data)
        rows.dtype, rows._lengths = kind, self._lengths
        rows._by_column = self.by_column if in_fixed_order() else self._by_column
        return rows

    def with_data(self, data: Any) -> TorchRows:
        """Other values in the same places."""
        return TorchRows.of(self.indptr, self.indices, data, self.shape)

    def toarray(self) -> Array:
        return self._csr().to_dense()

    def columns(self, index: np.ndarray) -> Array:
        return self.toarray()[:, self._torch.as_tensor(index, device=self.device)]

    def scaled(self, scale: np.ndarray) -> Any:
        return ScaledRows(self, self.asarray(scale))

    def __getitem__(self, rows: Any) -> TorchRows:
        """Some of the rows, given by a mask."""
        torch, keep = self._torch, self._torch.as_tensor(rows, device=self.device)

        sizes = self.indptr.diff()[keep]
        indptr = torch.zeros(len(sizes) + 1, dtype=torch.int64, device=self.device)
        indptr[1:] = sizes.cumsum(0)
        size, place = int(indptr[-1]), 0

        def some(start: int, stop: int) -> tuple[Any, Any]:
            part = self.part(start, stop)
            own = keep[start:stop].repeat_interleave(part.indptr.diff(), output_size=part.nnz)
            return part.indices[own], part.data[own]

        parts = self.indices.new_empty(0), self.data.new_empty(0)
        for a, b in self.ranges(1):
            for piece in by_halves(some, b, a):
                if len(piece[0]) == size:  # all of them
                    parts = piece
                    continue
                if not place:
                    parts = self.indices.new_empty(size), self.data.new_empty(size)
                for out, one in zip(parts, piece, strict=True):
                    out[place : place + len(one)] = one
                place += len(piece[0])
        found = TorchRows.of(indptr, *parts, (len(sizes), self.shape[1]))
        found._lengths = None if self._lengths is None else self._lengths[keep]
        return found

    def part(self, start: int, stop: int) -> TorchRows:
        """Rows start..stop-1, which share the memory of all."""
        if stop - start == self.shape[0]:
            return self
        first, last = self._torch.stack((self.indptr[start], self.indptr[stop])).tolist()
        indptr = self.indptr[start : stop + 1] - first
        parts = self.indices[first:last], self.data[first:last]
        found = TorchRows.of(indptr, *parts, (stop - start, self.shape[1]))
        found.dtype = self.dtype
        found._lengths = None if self._lengths is None else self._lengths[start:stop]
        return found

    def nonzero(self) -> TorchRows:
        """The rows without stored zeros."""
        kept = self.data != 0
        before = self._torch.zeros(self.nnz + 1, dtype=self._torch.int64, device=self.device)
        before[1:] = kept.cumsum(0)
        return TorchRows.of(before[self.indptr], self.indices[kept], self.data[kept], self.shape)

    def merged(self) -> TorchRows:
        """The same rows with no column twice; indices lie inside the matrix."""
        torch = self._torch
        rising = self.indices[1:] > self.indices[:-1]
        begins = self.indptr[(self.indptr > 0) & (self.indptr < self.nnz)]
        rising[begins - 1] = True
        if bool(rising.all()):
            return self
        d = self.shape[1]
        key, place = (self.numbers * d + self.indices).unique(return_inverse=True)
        data = torch.zeros(len(key), dtype=self.dtype, device=self.device)
        data.index_add_(0, place, self.data)
        edges = torch.arange(self.shape[0] + 1, device=self.device) * d
        parts = torch.searchsorted(key, edges), (key % d).to(self.indices.dtype), data
        return TorchRows.of(*parts, self.shape)

    @property
    def numbers(self) -> Any:
        """The row of each stored value (nnz,)."""
        if self._numbers is None:
            self._numbers = self._row_numbers()
        return self._numbers

    def _row_numbers(self) -> Any:
        each = self._torch.arange(self.shape[0], device=self.device)
        return each.repeat_interleave(self.indptr.diff(), output_size=self.nnz)

    def owners(self, places: Any) -> Any:
        """The row of each of some stored values, given by their places."""
        return self._torch.searchsorted(self.indptr, places, right=True) - 1

    def ranges(self, width: int) -> list[tuple[int, int]]:
        """Rows [start, stop) whose values times ``width`` can be held at once."""
        n_blocks = max(1, min(self.shape[0], -(-self.nnz * width // HELD)))
        if n_blocks == 1:
            return [(0, self.shape[0])]
        marks = self._torch.linspace(0, self.nnz, n_blocks + 1, device=self.device)[1:-1].long()
        cuts = self._torch.searchsorted(self.indptr, marks).tolist()
        edges = sorted({0, *cuts, self.shape[0]})
        return list(itertools.pairwise(edges))

    def parts(self) -> list[tuple[int, int]]:
        """Rows [start, stop) that kernels sum together."""
        n = self.shape[0]
        step = SUMMED if self.dtype == self._torch.float32 else max(n, 1)
        return [(a, min(a + step, n)) for a in range(0, n, step)]

    def joint_presence(self, words: np.ndarray) -> np.ndarray:
        """How many rows have each two words of each group (k, t): (k, t, t)."""
        torch = self._torch
        known, place = np.unique(words, return_inverse=True)
        column = torch.full((self.shape[1],), -1, dtype=torch.int32, device=self.device)
        column[torch.as_tensor(known, device=self.device)] = torch.arange(
            len(known), dtype=torch.int32, device=self.device
        )
        group = torch.as_tensor(place.reshape(-1), device=self.device)

        def some(start: int, stop: int) -> Any:
            rows = self.part(start, stop)
            found = column.index_select(0, rows.indices)
            kept = ((found >= 0) & (rows.data != 0)).nonzero()[:, 0]
            block = torch.zeros((stop - start, len(known)), device=self.device)
            block[rows.owners(kept), found[kept].long()] = 1.0
            each = block.index_select(1, group).reshape(-1, *words.shape).transpose(0, 1)
            return (each.transpose(1, 2) @ each).double()

        total = torch.zeros((*words.shape, words.shape[1]), dtype=torch.float64, device=self.device)
        n, step = self.shape[0], max(1, HELD // max(len(known), words.size))
        for a in range(0, n, step):
            for found in by_halves(some, min(a + step, n), a):
                total += found
        return total.cpu().numpy()

    def scipy(self) -> sp.csr_array:
        """The rows on the host."""
        parts = (part.cpu().numpy() for part in (self.data.double(), self.indices, self.indptr))
        return sp.csr_array(tuple(parts), shape=self.shape)

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


class ScaledRows:
    """Rows with scaled columns, for their product there and back: the block is scaled before and
    after, not every stored value.
    """

    def __init__(self, rows: TorchRows, scale: Array) -> None:
        self.rows, self.scale = rows, scale[:, None]

    def gram(self, weights: Array, Q: Array, out: Array | None = None) -> Array:
        found = self.rows.gram(weights, self.scale * self.rows.asarray(Q))
        found *= self.scale
        return added(found, out)


def tensor_rows(X: Any, device: Any = None) -> TorchRows:
    """Counts as single-precision tensors, where they are or on another device.

    ``X`` is a SciPy matrix in CSR, a tensor of torch of any layout, or an array or CSR of CuPy.
    """
    import torch

    if "complex" in str(X.dtype):
        raise InvalidInput(f"X holds {X.dtype} instead of counts.")
    if type(X).__module__.split(".")[0] == "cupy":
        X = torch.from_dlpack(X)
    if type(X).__module__.split(".")[0] == "cupyx":
        X = X.tocsr()  # its other layouts have the same attributes
    if isinstance(X, TorchRows):
        parts = X.indptr, X.indices, X.data
    elif isinstance(X, torch.Tensor):
        parts = csr_parts(X)
    elif sp.issparse(X):
        device = torch.device("cpu") if device is None else device
        kinds = torch.int64, torch.int32, torch.float32
        indptr, indices, data = (
            sent(part, device, kind)
            for part, kind in zip((X.indptr, X.indices, X.data), kinds, strict=True)
        )
        return TorchRows.of(indptr, indices, data, tuple(X.shape))
    else:
        parts = tuple(torch.as_tensor(part) for part in (X.indptr, X.indices, X.data))
    indptr, indices, data = (
        part.to(device=device if device is not None else part.device, dtype=kind)
        for part, kind in zip(parts, (torch.int64, torch.int32, torch.float32), strict=True)
    )
    return TorchRows.of(indptr, indices, data, tuple(X.shape))
