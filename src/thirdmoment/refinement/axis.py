"""Nodes of one column, and the fast bandwidth rule (K-15).

Nodes stand on a lattice whose step follows the narrowest component there may be, but only near
data: values far away cost a few nodes each and do not make the rest coarse. Rows of small, lonely
groups may be left without nodes; they are then equally improbable in every component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import Array, array_namespace, in_long, like_index, to_numpy
from thirdmoment._constants import Choice, Limit, Work

# Nodes of a view with one smooth column, and of each column of a view with two.
MOST_NODES: Work[tuple[int, ...]] = (4096, 160)

# Steps of the lattice in the smallest bandwidth expected.
STEPS: Choice[tuple[int, ...]] = (8, 2)

# Kernels end after this many bandwidths.
REACH: Choice[float] = 4.5

# Rows without nodes, as a share: what is always allowed, and what is once the step has grown a lot.
LEFT_OUT: Choice[float] = 0.01
LEFT_OUT_COARSE: Choice[float] = 0.05
COARSE: Choice[float] = 4.0

# The interquartile range is at least this share of what the deciles of a Gaussian distribution say.
LEAST_RANGE: Choice[float] = 0.5

# Lattice numbers end here.
FARTHEST: Limit[float] = 2.0**60


class Axis(NamedTuple):
    """Lattice numbers of the nodes of one column; node i is at origin + numbers_i step."""

    numbers: np.ndarray  # (G,) ascending
    origin: float
    step: float
    low: float  # smallest and largest value seen
    high: float
    least: float  # bandwidths below this resolve nothing but ties

    @property
    def nodes(self) -> np.ndarray:
        return self.origin + self.numbers * self.step

    def locate(self, x: Array) -> tuple[Array, Array, Array]:
        """Node to the left (n,), share of the next one, and whether both exist."""
        xp, numbers = array_namespace(x), like_index(x, self.numbers)
        place = xp.clip((x - self.origin) / self.step, -FARTHEST, FARTHEST)
        cell = xp.floor(place)
        left = xp.clip(xp.searchsorted(numbers, in_long(cell)), 0, len(self.numbers) - 2)
        inside = (numbers[left] == cell) & (numbers[left + 1] == cell + 1)
        return left, place - cell, inside


class Values(NamedTuple):
    """Distinct values (G, c) of the columns that are compared by equality."""

    values: np.ndarray

    def locate(self, X: Array) -> tuple[Array, Array]:
        """Number of each row's value, and whether it is known."""
        if not isinstance(X, np.ndarray):
            number, known = self.locate(to_numpy(X))
            return like_index(X, number), like_index(X, known)
        both, inverse = np.unique(np.concatenate([self.values, X]), axis=0, return_inverse=True)
        inverse = inverse.ravel()
        number = np.full(len(both), -1)
        number[inverse[: len(self.values)]] = np.arange(len(self.values))
        found = number[inverse[len(self.values) :]]
        return np.maximum(found, 0), found >= 0


def smooth_axis(
    x: np.ndarray, weights: np.ndarray, k: int, *, two: bool, bandwidth: float | None = None
) -> Axis:
    """Nodes for a column x (n,) with up to k components of very different widths."""
    values, mass = distinct_values(x, weights)
    wide, narrow = _widths(values, mass, k) if bandwidth is None else (bandwidth, bandwidth)
    first = narrow / STEPS[two]
    most, step = MOST_NODES[two], first
    origin = float(values[np.searchsorted(np.cumsum(mass), mass.sum() / 2)])
    while True:
        reach = int(np.clip(np.ceil(REACH * wide / step), 4, most // 8))
        numbers, left_out = _near_data((values - origin) / step, mass, reach, most)
        if left_out <= (LEFT_OUT if step < COARSE * first else LEFT_OUT_COARSE):
            break
        step *= 1.25
    least = step
    if len(values) < 0.5 * len(x):  # ties: the values themselves are on a grid
        least = max(step, float(np.median(np.diff(values))))
    return Axis(numbers, origin, step, float(values[0]), float(values[-1]), least)


def _widths(x: np.ndarray, mass: np.ndarray, k: int) -> tuple[float, float]:
    """Bandwidth of all rows together, and the smallest one a component may ask for."""
    upto = np.cumsum(mass)
    n = upto[-1]
    total = silverman(*spread_of(x, mass[None]), np.array([n]), 1)[0]
    # a component of n/k rows has density 0.4/sd at its mode: the width of its densest rows tells sd
    rows = min(max(n / (10 * k), 25.0), n / 2)
    ends = np.interp(upto + rows, upto, x)
    widths = (ends - x)[upto <= n - rows]
    widths = widths[widths > 0]
    local = 0.4 * n / (k * rows) * float(np.quantile(widths, 0.02)) if len(widths) else np.inf
    narrow = min(total, 0.9 * local * (n / k) ** -0.2)
    apart = np.diff(x)
    return total, max(narrow, total * 1e-4, float(apart.min(initial=np.inf)) * 1e-2)


def _near_data(
    place: np.ndarray, mass: np.ndarray, reach: int, most: int
) -> tuple[np.ndarray, float]:
    """Lattice numbers within ``reach`` of occupied cells, and the share of rows left out.

    Where there are too many, separate groups are kept in the order of their rows per node.
    """
    cell = np.floor(np.clip(place, -FARTHEST, FARTHEST)).astype(np.int64)
    cells, inverse = np.unique(cell, return_inverse=True)
    rows = np.bincount(inverse.ravel(), weights=mass)
    gap = np.flatnonzero(np.diff(cells) > 2 * reach + 1)
    first, last = np.append(0, gap + 1), np.append(gap, len(cells) - 1)
    size = cells[last] - cells[first] + 2 * reach + 2
    share = np.add.reduceat(rows, first) / rows.sum()
    order = np.argsort(-share / size, kind="stable")
    kept = np.sort(order[np.cumsum(size[order]) <= most])
    if not len(kept):
        return np.arange(2), 1.0
    parts = [np.arange(cells[first[i]] - reach, cells[last[i]] + reach + 2) for i in kept]
    return np.unique(np.concatenate(parts)), 1 - float(share[kept].sum())


def distinct_values(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values in ascending order and their weights."""
    values, inverse = np.unique(x, return_inverse=True)
    return values, np.bincount(inverse.ravel(), weights=weights)


def spread_of(
    nodes: np.ndarray, counts: np.ndarray, *, tie: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation (k,) and interquartile range (k,) of counts (k, G) on ascending nodes.

    The range is no less than `LEAST_RANGE` of what that of the deciles says, so that a value which
    many rows share does not make it vanish; deciles no further apart than ``tie`` are equal.
    """
    share = np.maximum(counts, 0.0)
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    mean = share @ nodes
    sd = np.sqrt(np.maximum(np.sum(share * (nodes - mean[:, None]) ** 2, axis=1), 0.0))
    upto = np.cumsum(share, axis=1)
    levels = [0.1, 0.25, 0.75, 0.9]
    found = np.array([np.interp(levels, row, nodes) for row in upto - share / 2])
    at = np.array([np.searchsorted(row, levels).clip(max=len(nodes) - 1) for row in upto])
    low, first, third, high = found.T
    deciles = np.where(nodes[at[:, 3]] - nodes[at[:, 0]] <= tie, 0.0, high - low)
    quartiles = np.where(nodes[at[:, 2]] - nodes[at[:, 1]] <= tie, 0.0, third - first)
    return sd, np.maximum(quartiles, LEAST_RANGE * 1.34 / 2.56 * deciles)


def silverman(sd: np.ndarray, iqr: np.ndarray, effective: np.ndarray, d: int) -> np.ndarray:
    """The fast rule K-15: 0.9 min(sd, IQR/1.34) n^(-1/5), in d > 1 columns (4/((d+2)n))^(1/(d+4)).

    Where the range is zero, as in a column that is all but zero, the standard deviation alone
    counts.
    """
    width = np.where(iqr > 0, np.minimum(sd, iqr / 1.34), sd)
    if d == 1:
        return 0.9 * width * effective**-0.2
    return width * (4 / ((d + 2) * effective)) ** (1 / (d + 4))
