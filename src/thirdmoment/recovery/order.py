"""The canonical order of components, and proportions from a linear system.

With topics O (k, d) any A (d, k) with O A = I turns the distributions of one and two words of a
document into moments of its proportions h: Aᵀmu = E h and AᵀP2 A = E hhᵀ. For a Dirichlet
distribution of mean m and total alpha0

    E hhᵀ = (alpha0 mmᵀ + diag(m)) / (alpha0 + 1),

so that the trace alone gives alpha0.
"""

from __future__ import annotations

import numpy as np

from thirdmoment._array import Array, array_namespace, like_one, to_numpy
from thirdmoment._constants import Work


def canonical_order(weights: np.ndarray) -> np.ndarray:
    """Permutation that sorts components by descending weight; ties keep their order."""
    return np.argsort(-np.asarray(weights), kind="stable")


# Totals outside are not told apart from these: one topic a document, all documents alike.
LEAST, MOST = 1e-3, 1e3


def proportion_map(topics: Array) -> Array:
    """A (d, k) with topics @ A = I: least squares weighted by the frequency of words."""
    xp = array_namespace(topics)
    mean = xp.mean(topics, axis=0)
    scaled = topics / xp.where(mean > 0, mean, 1.0)
    inverse = np.linalg.pinv(to_numpy(scaled @ topics.T), rcond=1e-10, hermitian=True)
    return (like_one(topics, inverse) @ scaled).T


def total_concentration(mean: np.ndarray, second: np.ndarray) -> float:
    """alpha0 from E h (k,) and E hhᵀ (k, k)."""
    square = float(mean @ mean)
    even = 1 - square  # what the trace has in excess of ‖m‖² where documents have one topic each
    excess = float(np.trace(second)) - square
    if not excess > even / (MOST + 1):
        return MOST
    return max(even / excess - 1, LEAST)


# Values that are compared by the largest of them alone before any is looked at.
SIZE: Work[int] = 32


def leading(values: np.ndarray, n: int) -> np.ndarray:
    """Places of the n largest of some values, largest first, of equal ones the first."""
    return leading_columns(np.asarray(values)[None], n)[0]


def leading_columns(table: Array, n: int) -> np.ndarray:
    """Columns (k, n) of the n largest entries of each row, of equal ones the first.

    What a stable sort would give, without sorting or copying the table.
    """
    n = min(n, table.shape[1])
    if not isinstance(table, np.ndarray):
        xp = array_namespace(table)
        return to_numpy(xp.argsort(table, axis=1, descending=True, stable=True)[:, :n])
    out = np.empty((len(table), n), dtype=np.int64)
    for row, own in zip(table, out, strict=True):
        near = _not_below(row, n)
        own[:] = near[np.argsort(-row[near], kind="stable")][:n]
    return out


def _not_below(row: np.ndarray, n: int) -> np.ndarray:
    """Places of the n largest of some values (d,), and of few others, in their order.

    The n-th of the largest values of parts is a bound that n values reach.
    """
    parts = len(row) // SIZE
    if 0 < n < parts:
        tops = row[: parts * SIZE].reshape(SIZE, parts).max(axis=0)
        near = np.flatnonzero(row >= np.partition(tops, parts - n)[parts - n])
    else:
        near = np.arange(len(row))
    if not 0 < n < len(near):
        return near
    values = row[near]
    return near[values >= np.partition(values, len(near) - n)[len(near) - n]]
