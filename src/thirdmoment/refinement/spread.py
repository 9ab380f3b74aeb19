"""A start without moments: spread-out rows as centres, then a few k-means rounds.

Rows far from the centres at hand are drawn as in k-means++. Models put their distinct rows in an
order of their own before they come here (``models/rows.py``), so positions may decide: a row of
weight two and a row given twice lead to the same centres, however the rows were ordered.
"""

from __future__ import annotations

import numpy as np

from thirdmoment._constants import Choice

# Shapes through few rows that are drawn to start from: lines, flats.
DRAWS: Choice[int] = 300


def spread_centres(
    X: np.ndarray,
    weights: np.ndarray,
    k: int,
    rng: np.random.Generator,
    *,
    greedy: bool = False,
) -> np.ndarray:
    """k rows of X (n, d) far from each other.

    With ``greedy`` each is the best of a few draws: the one that leaves the rows nearest.
    """
    found: list[np.ndarray] = []
    distance = _square_distance(X, (weights @ X) / weights.sum())
    tries = 2 + int(np.log(k)) if greedy else 1
    while len(found) < k:
        best, least = distance, np.inf
        for _ in range(tries):
            pick = _draw(distance, weights, float(rng.random()))
            near = _square_distance(X, X[pick])
            near = near if not found else np.minimum(distance, near)
            left = float(weights @ near)
            if left < least:
                row, best, least = X[pick], near, left
        found.append(row)
        distance = best
    return np.stack(found)


def _square_distance(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return np.einsum("ad,ad->a", X - centre, X - centre)


def _draw(distance: np.ndarray, weights: np.ndarray, level: float) -> int:
    mass = np.cumsum(weights * distance)
    return min(int(np.searchsorted(mass, level * mass[-1])), len(mass) - 1)


def k_means_labels(
    X: np.ndarray, weights: np.ndarray, centres: np.ndarray, *, rounds: int = 10
) -> np.ndarray:
    """Labels (n,) after a few rounds of weighted k-means; empty centres stay where they are."""
    labels = np.full(len(X), -1)
    for _ in range(rounds):
        half = 0.5 * np.einsum("kd,kd->k", centres, centres)
        nearest = np.argmax(X @ centres.T - half, axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        member = np.zeros((len(X), len(centres)))
        member[np.arange(len(X)), labels] = weights
        mass = member.sum(axis=0)
        moved = (member.T @ X) / np.maximum(mass, 1e-300)[:, None]
        centres = np.where(mass[:, None] > 0, moved, centres)
    return labels


def classes_of(
    X: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator, *, most: int
) -> np.ndarray:
    """Labels (n,) of all rows by k-means from spread-out rows, on about ``most`` of them."""
    part = slice(None, None, max(1, len(X) // most))
    rows, w = X[part], weights[part]
    labels = k_means_labels(rows, w, spread_centres(rows, w, k, rng), rounds=30)
    member = np.eye(k)[labels] * w[:, None]
    centres = member.T @ rows / np.maximum(member.sum(axis=0), 1e-300)[:, None]
    return np.argmax(X @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)


def weight_quantiles(weights: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` row numbers, spread evenly over all by weight."""
    if len(weights) <= most:
        return np.arange(len(weights))
    return _at(np.cumsum(weights), (np.arange(most) + 0.5) / most)


def copies_by_weight(weights: np.ndarray, most: int) -> np.ndarray:
    """About as many row numbers as the weights add up to, at most ``most``, each by its weight."""
    mass = np.cumsum(weights)
    size = min(most, max(round(float(mass[-1])), 1))
    return _at(mass, (np.arange(size) + 0.5) / size)


def draw_rows(weights: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Row numbers drawn by weight, with replacement."""
    return _at(np.cumsum(weights), rng.random(shape))


def _at(mass: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Rows at which the cumulated weights reach these shares of the whole."""
    return np.minimum(np.searchsorted(mass, level * mass[-1]), len(mass) - 1)


def covering_labels(residual: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """Labels of rows by k of many shapes, chosen one by one so that rows lie close to one of them.

    ``residual`` (shapes, n) has squared distances; their logarithm counts, so that a shape close to
    some of the rows is worth more than one not too far from all.
    """
    small = 1e-3 * float(np.average(np.median(residual, axis=0), weights=weights)) + 1e-300
    cost = np.log(residual + small)
    nearest, chosen = np.full(cost.shape[1], np.inf), []
    for _ in range(k):
        gain = np.minimum(cost, nearest) @ weights
        chosen.append(int(np.argmin(gain)))
        nearest = np.minimum(nearest, cost[chosen[-1]])
    return np.argmin(cost[chosen], axis=0)
