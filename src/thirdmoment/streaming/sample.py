"""A sample of rows that does not hang on where a source is cut: those with the smallest keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


class SampledRows:
    """At most so many rows, dense or sparse, and at most so many numbers in them."""

    def __init__(self, most_rows: int, most_numbers: int) -> None:
        self.most_rows, self.most_numbers = most_rows, most_numbers
        self.parts: list[tuple[np.ndarray, Any]] = []
        self.n_rows = self.numbers = 0

    def add(self, keys: np.ndarray, rows: Any) -> None:
        """More rows (m, d) with their keys (m,) uint64."""
        self.parts.append((keys, rows))
        self.n_rows += rows.shape[0]
        self.numbers += _numbers(rows)
        if self.n_rows > 2 * self.most_rows or self.numbers > 2 * self.most_numbers:
            self._trim()

    def merge(self, other: SampledRows) -> None:
        """Those of another part of the data."""
        for keys, rows in other.parts:
            self.add(keys, rows)

    def _trim(self) -> None:
        if not self.parts:
            return
        keys = np.concatenate([part[0] for part in self.parts])
        rows = stacked([part[1] for part in self.parts])
        order = np.argsort(keys, kind="stable")
        size = (
            np.diff(rows.indptr)[order] if sp.issparse(rows) else np.full(len(order), _wide(rows))
        )
        enough = max(1, int(np.sum(np.cumsum(size) <= self.most_numbers)))
        kept = order[: min(self.most_rows, enough)]
        self.parts = [(keys[kept], rows[kept])]
        self.n_rows, self.numbers = len(kept), _numbers(self.parts[0][1])

    def rows(self) -> Any:
        """The sample (m, d), in the order of the keys."""
        self._trim()
        return self.parts[0][1]


def stacked(parts: list[Any]) -> Any:
    """Matrices one below the other, sparse if one of them is."""
    if not any(map(sp.issparse, parts)):
        return np.concatenate(parts)
    return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts], format="csr"))


def _wide(rows: np.ndarray) -> int:
    return max(1, rows.shape[1])


def _numbers(rows: Any) -> int:
    return int(rows.nnz) if sp.issparse(rows) else rows.shape[0] * _wide(rows)
