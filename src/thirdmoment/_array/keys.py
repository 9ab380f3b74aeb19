"""Rows told apart by their content: keys, and the halves that keys put them in."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array.namespace import Array, array_namespace, scrambled, to_numpy
from thirdmoment._array.rows import Rows, is_tensors


def content_signs(rows: Rows) -> Array:
    """Signs ±1 (m,) of rows by their content: the halves of the split-half noise gauge (N-11).

    Equal rows are numbered, so that each is in either half by a toss of its own; in another order
    the halves hold the same rows.
    """
    keys = row_keys(rows)
    if is_tensors(rows):
        xp = array_namespace(keys)
        order = xp.argsort(keys, stable=True)
        ordered = keys[order]
        first = xp.searchsorted(ordered, ordered)
        copy = xp.empty_like(keys)
        copy[order] = xp.arange(len(keys), device=keys.device) - first
        return key_signs(keys + copy)
    order = np.argsort(keys, kind="stable")
    first = np.searchsorted(keys[order], keys[order])  # place of the first row with the same key
    copy = np.empty(len(keys), dtype=np.uint64)
    copy[order] = np.arange(len(keys)) - first
    return key_signs(keys + copy)


def key_signs(keys: Array) -> Array:
    """Signs ±1 (m,) of keys (m,)."""
    if not isinstance(keys, np.ndarray):
        xp = array_namespace(keys)
        return 1.0 - 2.0 * xp.astype(scrambled(keys) & 1, xp.float64)
    return 1.0 - 2.0 * (scrambled(keys) & np.uint64(1)).astype(np.float64)


def content_keys(X: sp.csr_array) -> np.ndarray:
    """A number (n,) uint64 for each row of a SciPy matrix: equal for equal rows, and for no others.

    (But for one chance in 2^64.) Entries are hashed with their columns and added up.
    """
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data.astype(np.float64) + 0.0  # no negative zero
    entries = scrambled(scrambled(values.view(np.uint64)) ^ X.indices.astype(np.uint64))
    entries[values == 0] = 0
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    filled = np.diff(X.indptr) > 0
    if filled.any():
        keys[filled] = np.add.reduceat(entries, X.indptr[:-1][filled])
    return keys


def row_keys(rows: Any) -> Array:
    """A number (m,) of 64 bits for each row, made of its content alone; equal rows have equal keys.

    What is drawn for a row from its key does not change when rows are added, dropped, permuted or
    cut into other chunks. The key is a random projection, exact for whole counts.
    """
    weights = (scrambled(np.arange(rows.shape[1], dtype=np.uint64)) >> np.uint64(33)).astype(float)
    if is_tensors(rows):
        return scrambled(rows.keys(weights))
    content = to_numpy(rows.dot(weights[:, None]))[:, 0].astype(np.float64)
    return scrambled(np.ascontiguousarray(content).view(np.uint64))
