"""Alternating refinement of subspaces: equal dimensions by flats, different ones by layers.

By distance alone a subspace of more dimensions always wins rows of a smaller one. Here every
subspace is a Gaussian distribution, wide along its own directions and with one noise variance
across, so that dimensions are paid for (docs/decisions/search.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.optimize

from thirdmoment._array import map_in_order
from thirdmoment._constants import Floor
from thirdmoment.streaming import Chunk, Streamed, fold, row_ranges


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


class FlatSums:
    """Rows of a source by their nearest flat: masses, first and second moments, and distances."""

    def __init__(self, flats: Flats) -> None:
        k, d, _ = flats.bases.shape
        self.flats, self.distance = flats, 0.0
        self.mass, self.first = np.zeros(k), np.zeros((k, d))
        self.second = np.zeros((k, d, d))

    def update(self, chunk: Chunk) -> FlatSums:
        distance = square_distances(chunk.rows, self.flats)
        labels = np.argmin(distance, axis=1)
        self.distance += float(distance[np.arange(len(labels)), labels].sum())
        for j in range(len(self.mass)):
            rows = chunk.rows[labels == j]
            self.mass[j] += len(rows)
            self.first[j] += rows.sum(axis=0)
            self.second[j] += rows.T @ rows
        return self

    def merge(self, other: FlatSums) -> FlatSums:
        self.distance += other.distance
        self.mass += other.mass
        self.first += other.first
        self.second += other.second
        return self

    def fitted(self, *, affine: bool) -> Flats:
        """Principal components of the rows of each flat; empty ones stay as they are."""
        centres, bases = self.flats.centres.copy(), self.flats.bases.copy()
        for j in np.flatnonzero(self.mass > 0):
            centres[j] = self.first[j] / self.mass[j] if affine else 0.0
            spread = self.second[j] - self.mass[j] * np.outer(centres[j], centres[j])
            bases[j] = np.linalg.eigh(spread)[1][:, ::-1][:, : bases.shape[2]]
        return Flats(centres, bases)


def alternate_on_all(
    rows: Streamed, start: Flats, *, affine: bool, max_steps: int, n_threads: int
) -> tuple[Flats, np.ndarray, tuple[float, ...]]:
    """A few rounds over all rows of a source: flats, their masses, mean square distances."""
    flats, path = start, []
    for step in range(max_steps + 1):
        found = fold(partial(FlatSums, flats), rows, n_threads=n_threads)
        path.append(found.distance / float(found.mass.sum()))
        if step < max_steps:
            flats = found.fitted(affine=affine)
    return flats, found.mass, tuple(path)


# Smallest noise variance, as a share of the mean square of a row in one column.
LEAST_NOISE: Floor[float] = 1e-10


class Layers(NamedTuple):
    """Subspaces with the variances of their rows along them."""

    flats: Flats  # bases (k, d, p) with zero columns beyond the dimension of each
    dims: np.ndarray  # (k,)
    variances: np.ndarray  # (k, p) along the columns of the bases, zero beyond
    shares: np.ndarray  # (k,)
    noise: float  # variance in every other direction


class Layered(NamedTuple):
    """Where the alternation ended."""

    layers: Layers
    labels: np.ndarray  # (n,)
    path: tuple[float, ...]  # mean log-density of a row in its own subspace
    converged: bool


def log_densities(X: np.ndarray, layers: Layers) -> np.ndarray:
    """Logarithm of share times density (n, k), up to a constant."""
    d, out = X.shape[1], np.empty((len(X), len(layers.dims)))
    for j, p in enumerate(layers.dims):
        rest = X - layers.flats.centres[j]
        basis, variance = layers.flats.bases[j, :, :p], layers.variances[j, :p]
        along = rest @ basis
        rest = rest - along @ basis.T
        out[:, j] = np.einsum("ad,ad->a", rest, rest) / layers.noise
        out[:, j] += (along**2 / variance).sum(axis=1)
        out[:, j] += np.log(variance).sum() + (d - p) * np.log(layers.noise)
    return np.log(np.maximum(layers.shares, 1e-300)) - out / 2


def fit_layers(
    X: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    k: int,
    dims: Sequence[int] | None,
    *,
    affine: bool,
) -> Layers:
    """The most probable subspaces of labelled rows.

    ``dims`` go to the groups in which they leave least; with None each group has its own by BIC.
    """
    d = X.shape[1]
    mass = np.bincount(labels, weights=weights, minlength=k)
    centres, values, vectors = np.zeros((k, d)), np.zeros((k, d)), []
    for j in range(k):
        rows, w = X[labels == j], weights[labels == j]
        total = max(float(mass[j]), 1e-300)
        if affine and len(rows):
            centres[j] = w @ rows / total
        found, directions = _principal((rows - centres[j]) * np.sqrt(w / total)[:, None])
        values[j, : len(found)] = found
        vectors.append(directions)
    own = _own_dims(values, mass) if dims is None else _given_dims(values, mass, dims)
    middle = weights @ X / weights.sum() if affine else 0.0
    size = float(weights @ np.mean((X - middle) ** 2, axis=1)) / float(weights.sum())
    left = sum(mass[j] * values[j, p:].sum() for j, p in enumerate(own))
    noise = max(left / max(float(mass @ (d - own)), 1e-300), LEAST_NOISE * size, 1e-300)
    most = int(own.max())
    bases = np.zeros((k, d, most))
    for j, p in enumerate(own):
        bases[j, :, :p] = completed(vectors[j][:, :p], np.eye(d)[:, :p])
    variances = np.maximum(values[:, :most], noise) * (np.arange(most) < own[:, None])
    return Layers(Flats(centres, bases), own, variances, mass / mass.sum(), noise)


def _principal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances (r,) and directions (d, r) of scaled rows, the largest first."""
    if len(rows) < rows.shape[1]:
        _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
        return sizes**2, directions.T
    found, directions = np.linalg.eigh(rows.T @ rows)
    return np.maximum(found[::-1], 0.0), directions[:, ::-1]


def _given_dims(values: np.ndarray, mass: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """Dimension (k,) of each group, so that all together leave least."""
    upto = np.cumsum(values, axis=1)
    given = np.asarray(dims)
    left = mass[:, None] * (upto[:, -1:] - upto[:, given - 1])
    group, number = scipy.optimize.linear_sum_assignment(left)
    return given[number[np.argsort(group)]]


def _own_dims(values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return np.array([dimension(row, float(n)) for row, n in zip(values, mass, strict=True)])


def dimension(values: np.ndarray, n: float) -> int:
    """Dimension of n rows with these principal variances, by the BIC of probabilistic PCA."""
    d = len(values)
    most = max(min(d - 1, int(n / 2)), 1)
    floor = max(LEAST_NOISE * float(values.mean()), 1e-300)
    p = np.arange(1, most + 1)
    noise = (values.sum() - np.cumsum(values)[:most]) / np.maximum(d - p, 1)
    kept = np.cumsum(np.log(np.maximum(values, floor)))[:most]
    value = -0.5 * n * (kept + (d - p) * np.log(np.maximum(noise, floor)))
    value -= 0.5 * np.log(max(n, 2.0)) * (d * p - p * (p - 1) / 2)
    return int(p[np.argmax(value)])


def layered(
    X: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    k: int,
    dims: Sequence[int] | None,
    *,
    affine: bool,
    tol: float,
    max_steps: int,
) -> Layered:
    """Assign rows to the most probable subspace and refit, the best round on the way."""
    rows = np.arange(len(X))
    path: list[float] = []
    best: Layered | None = None
    for _ in range(max_steps + 1):
        layers = fit_layers(X, weights, labels, k, dims, affine=affine)
        density = log_densities(X, layers)
        labels = np.argmax(density, axis=1)
        path.append(float(weights @ density[rows, labels] / weights.sum()))
        gained = path[-1] - path[-2] if len(path) > 1 else np.inf
        if best is None or path[-1] > max(path[:-1], default=-np.inf):
            best = Layered(layers, labels, (), False)
        if gained <= tol:
            break
    assert best is not None
    return best._replace(path=tuple(path), converged=gained <= tol)


def padded(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays that differ in their last axis, stacked with zeros at the end."""
    most = max(part.shape[-1] for part in parts)
    return np.stack(
        [np.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, most - part.shape[-1])]) for part in parts]
    )
