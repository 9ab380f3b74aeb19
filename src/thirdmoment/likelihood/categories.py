"""Tables of integer codes, one-hot features, and the family of categorical distributions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import CompiledRows, DenseRows, Rows, ShiftedRows
from thirdmoment._constants import Choice, Floor, Work
from thirdmoment.likelihood.mixture import Parameters, Statistics
from thirdmoment.streaming import Streamed

# One-hot codes are kept dense up to this many numbers: one matrix product beats sparse ones there.
DENSE_SIZE: Work[int] = 300_000

# Below this share of observed cells a table is taken for a crowd: columns with the same categories.
SPARSE_SHARE: Choice[float] = 0.5


class CodeTable(NamedTuple):
    """Distinct rows of codes and how often each occurs."""

    codes: np.ndarray  # (m, l) int64, -1 missing
    counts: np.ndarray  # (m,)
    sizes: np.ndarray  # (l,) categories of each column
    whole: WholeCodes | None = None  # of what the rows are a sample, None where they are all

    @property
    def total(self) -> float:
        """Rows in all."""
        return float(self.counts.sum()) if self.whole is None else self.whole.total

    @property
    def share(self) -> float:
        """Share of cells that are not missing."""
        if self.whole is None:
            return observed_share(self.codes, self.counts)
        return float(np.mean(self.whole.observed / self.whole.total))


class WholeCodes(NamedTuple):
    """All rows of a source."""

    rows: Streamed  # chunks that are code tables
    total: float
    categories: np.ndarray  # (Σ d_v,) how often each category occurs
    observed: np.ndarray  # (l,) cells of each column that are not missing


def row_keys(codes: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, int] | None:
    """One integer for each row of codes, the step of each column in it, and how many there are.

    None where the integers would be too large.
    """
    radix = sizes.astype(object)
    cells = int(np.prod(radix))
    if cells >= 2**62:
        return None
    steps = np.concatenate([np.cumprod(radix[::-1])[-2::-1], [1]]).astype(np.int64)
    return codes @ steps, steps, cells


def distinct_rows(codes: np.ndarray, weights: np.ndarray, sizes: np.ndarray) -> CodeTable:
    """Equal rows merged, their weights added: EM and moments then cost the distinct rows only."""
    keyed = row_keys(codes + 1, sizes + 1)
    if keyed is None:
        return CodeTable(codes, weights, sizes)
    key, steps, cells = keyed
    if cells <= max(4 * len(codes), 100_000):
        counts = np.bincount(key, weights=weights, minlength=cells)
        keys = np.flatnonzero(np.bincount(key, minlength=cells))
        counts = counts[keys]
    else:
        keys, inverse = np.unique(key, return_inverse=True)
        counts = np.bincount(inverse, weights=weights)
    rows = (keys[:, None] // steps) % (sizes + 1) - 1
    return CodeTable(rows, counts, sizes)


def observed_share(codes: np.ndarray, weights: np.ndarray) -> float:
    """Share of cells that are not missing."""
    return float(weights @ (codes >= 0).mean(axis=1) / weights.sum())


def used_categories(table: CodeTable) -> np.ndarray:
    """Which categories of all columns side by side occur at all (Σ d_v,)."""
    if table.whole is not None:
        return table.whole.categories > 0
    starts = first_columns(table.sizes)
    used = np.zeros(int(table.sizes.sum()), dtype=bool)
    for start, column in zip(starts, table.codes.T, strict=True):
        used[start + np.unique(column[column >= 0])] = True
    return used


def one_hot(codes: np.ndarray, sizes: np.ndarray) -> Rows:
    """One-hot codes of all columns side by side (m, Σ d_v); missing cells are empty."""
    return _features(codes, sizes, np.ones(int(sizes.sum())))


def standardised(codes: np.ndarray, sizes: np.ndarray, scale: np.ndarray, mean: np.ndarray) -> Rows:
    """scale · (one-hot - mean) where observed, zero where missing, and a last column of ones."""
    return _features(codes, sizes, scale, scale * mean)


def seen_cells(codes: np.ndarray, sizes: np.ndarray) -> Rows:
    """One in all categories of an observed cell, zero in a missing one, a last column of ones."""
    D = int(sizes.sum())
    return _features(codes, sizes, np.zeros(D), -np.ones(D))


def _features(
    codes: np.ndarray, sizes: np.ndarray, scale: np.ndarray, shift: np.ndarray | None = None
) -> Rows:
    """scale · one-hot - shift where observed; with a shift also a last column of ones.

    Many numbers are never written out: cost follows the cells, not the categories.
    """
    m, D = len(codes), int(sizes.sum())
    starts, observed = first_columns(sizes), codes >= 0
    row, column = np.nonzero(observed)
    place = starts[column] + codes[row, column]
    constant = shift is not None
    if m * (D + 1) <= DENSE_SIZE:
        Z = np.zeros((m, D + constant))
        Z[:, D:] = 1.0
        Z[row, place] = scale[place]
        if shift is not None:
            Z[:, :D] -= np.repeat(observed, sizes, axis=1) * shift
        return DenseRows(Z)
    codes_only = sp.csr_array((scale[place], (row, place)), shape=(m, D))
    if shift is None:
        return CompiledRows(codes_only)
    sparse = sp.hstack([codes_only, np.ones((m, 1))], format="csr")
    right = sp.csr_array((shift, np.arange(D), np.append(starts, D)), shape=(len(sizes), D + 1))
    return ShiftedRows(CompiledRows(sparse), observed.astype(np.float64), right)


# Logarithms of smaller probabilities are taken here.
FLOOR: Floor[float] = 1e-300


def first_columns(sizes: np.ndarray) -> np.ndarray:
    """First one-hot column of each variable."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]])


class CodedRows(NamedTuple):
    """Distinct rows as one-hot codes of all columns side by side; missing cells are empty."""

    rows: Rows  # (m, Σ d_v)
    weights: np.ndarray  # (m,) how often each row occurs


class Categories:
    """Products of categorical distributions; parameters (weights, tables (k, Σ d_v)).

    ``starts`` has the first column of each variable in the tables. ``prior`` is a count added to
    every cell (or to each its own): no category is impossible that has one.
    """

    def __init__(self, sizes: np.ndarray, prior: float | np.ndarray) -> None:
        self.sizes = np.asarray(sizes)
        self.starts = first_columns(self.sizes)
        self.prior = np.broadcast_to(np.asarray(prior, dtype=float), (int(self.sizes.sum()),))

    def log_density(self, parameters: Parameters, chunk: CodedRows) -> np.ndarray:
        return chunk.rows.dot_t(np.log(np.maximum(parameters[1], FLOOR)))

    def statistics(self, chunk: CodedRows, posterior: np.ndarray) -> Statistics:
        return posterior.sum(axis=1), chunk.rows.left_dot(posterior)

    def maximise(self, statistics: Statistics) -> Parameters:
        mass, counts = statistics
        mass = np.maximum(mass, FLOOR)
        return mass / mass.sum(), self.normalised(counts + self.prior)

    def normalised(self, tables: np.ndarray) -> np.ndarray:
        """Rows scaled so that each variable's part sums to one; empty parts become even."""
        totals = np.add.reduceat(tables, self.starts, axis=1)
        empty = totals <= 0
        if empty.any():
            tables = tables + np.repeat(empty, self.sizes, axis=1)
            totals = np.add.reduceat(tables, self.starts, axis=1)
        return tables / np.repeat(totals, self.sizes, axis=1)

    def project(self, parameters: Parameters) -> Parameters:
        weights, tables = parameters
        weights = np.maximum(weights, 1e-12)
        return weights / weights.sum(), self.normalised(np.maximum(tables, 1e-12))

    def collapsed(self, parameters: Parameters) -> int:
        """Tables have no scale to collapse."""
        return 0

    def log_prior(self, parameters: Parameters) -> float:
        if not self.prior.any():
            return 0.0
        return float((np.log(np.maximum(parameters[1], FLOOR)) @ self.prior).sum())
