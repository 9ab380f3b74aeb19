"""The family of products of categorical laws for EM, with missing cells left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import Rows
from thirdmoment.likelihood.mixture import Parameters, Statistics

FLOOR = 1e-300


def first_columns(sizes: np.ndarray) -> np.ndarray:
    """First one-hot column of each variable."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]])


class CodedRows(NamedTuple):
    """Distinct rows as one-hot codes of all columns side by side; missing cells are empty."""

    rows: Rows  # (m, Σ d_v)
    weights: np.ndarray  # (m,) how often each row occurs


class Categories:
    """Products of categorical laws; parameters (weights, tables (k, Σ d_v)).

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
