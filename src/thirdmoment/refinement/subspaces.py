"""Alternating assignment and principal components: rows to the nearest of k (affine) subspaces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import map_in_order
from thirdmoment.streaming import row_ranges


class Flats(NamedTuple):
    """k subspaces of dimension p; ``centres`` are zero where they pass through the origin."""

    centres: np.ndarray  # (k, d)
    bases: np.ndarray  # (k, d, p) orthonormal columns


class Alternated(NamedTuple):
    """Where the alternation ended."""

    flats: Flats
    labels: np.ndarray  # (n,)
    path: tuple[float, ...]  # mean square distance of a row, before each round and at the end
    converged: bool


def square_distances(X: np.ndarray, flats: Flats, *, n_threads: int = 1) -> np.ndarray:
    """Squared distance of each row to each flat (n, k)."""

    def one(part: tuple[int, int]) -> np.ndarray:
        columns = []
        for centre, basis in zip(*flats, strict=True):
            rest = X[part[0] : part[1]] - centre
            rest = rest - (rest @ basis) @ basis.T  # without cancellation for rows on the flat
            columns.append(np.einsum("ad,ad->a", rest, rest))
        return np.stack(columns, axis=1)

    return np.concatenate(list(map_in_order(one, row_ranges(len(X)), n_threads=n_threads)))


def fit_flats(
    X: np.ndarray, weights: np.ndarray, labels: np.ndarray, before: Flats, *, affine: bool
) -> Flats:
    """Principal components of the rows of each label; empty flats stay as they are."""
    centres, bases = before.centres.copy(), before.bases.copy()
    p = bases.shape[2]
    for j in range(len(centres)):
        own = labels == j
        if not own.any():
            continue
        rows, w = X[own], weights[own]
        centre = (w @ rows) / w.sum() if affine else np.zeros(X.shape[1])
        scaled = (rows - centre) * np.sqrt(w)[:, None]
        centres[j] = centre
        bases[j] = completed(leading_directions(scaled, p), before.bases[j])
    return Flats(centres, bases)


def leading_directions(rows: np.ndarray, p: int) -> np.ndarray:
    """The p leading right singular vectors of rows (m, d) as columns (d, p)."""
    m, d = rows.shape
    if m < d:
        return np.linalg.svd(rows, full_matrices=False)[2][:p].T
    return np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :p]


def completed(directions: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Orthonormal ``directions`` (d, q), filled up from ``others`` (d, p) to p columns."""
    p = others.shape[1]
    if directions.shape[1] == p:
        return directions
    return np.linalg.qr(np.concatenate([directions, others, np.eye(len(others))], axis=1))[0][:, :p]


def alternate(
    X: np.ndarray,
    weights: np.ndarray,
    start: Flats,
    *,
    affine: bool,
    tol: float,
    max_steps: int,
    n_threads: int = 1,
) -> Alternated:
    """Assign rows to the nearest flat and refit, until the mean square distance stands still.

    It never rises, for both halves of a round minimise it.
    """
    flats, path, converged = start, [], False
    total = float(weights.sum())
    for step in range(max_steps + 1):
        distance = square_distances(X, flats, n_threads=n_threads)
        labels = np.argmin(distance, axis=1)
        path.append(float(weights @ distance[np.arange(len(X)), labels]) / total)
        if step and path[-2] - path[-1] <= tol * path[-2]:
            converged = True
            break
        if step < max_steps:
            flats = fit_flats(X, weights, labels, flats, affine=affine)
    return Alternated(flats, labels, tuple(path), converged)
