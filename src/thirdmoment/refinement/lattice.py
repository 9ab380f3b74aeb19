"""Densities on a lattice: counted by linear binning, smoothed by Gaussians, read by interpolation.

The density of a view is p(x) = Σ_g T_g Π_j hat((x_j - t_gj)/δ_j), T >= 0 on the nodes t_g: it is
valid (non-negative, integral δ Σ T_g = 1) whatever T is, reading it costs 2 or 4 nodes a row, and
one table serves EM, densities, samples and pictures. Nodes exist only near data, so that values far
away cost little. Columns compared by equality (delta kernel) form one axis of distinct values that
is never smoothed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft
import scipy.sparse as sp

from thirdmoment._array import Rows, as_rows

# Nodes of a view with one smooth column, and of each column of a view with two.
MOST_NODES = (4096, 160)

# Steps of the lattice in the smallest bandwidth expected.
STEPS = (8, 2)

# Kernels end after this many bandwidths.
REACH = 4.5

# Rows of small, far-away groups of nodes that may be left without nodes, as a share.
LEFT_OUT = 0.01


class ViewRows(NamedTuple):
    """Rows of one view as a table reads them and as it counts them."""

    read: Rows  # (m, G): density is read @ T
    add: Rows  # (m, G): counts are posteriorᵀ @ add


class Axis(NamedTuple):
    """Lattice numbers of the nodes of one column; node i is at origin + numbers_i step."""

    numbers: np.ndarray  # (G,) ascending
    origin: float
    step: float

    @property
    def nodes(self) -> np.ndarray:
        return self.origin + self.numbers * self.step

    def locate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Node to the left (n,), share of the next one, and whether both exist."""
        place = np.clip((x - self.origin) / self.step, -(2.0**60), 2.0**60)
        cell = np.floor(place)
        left = np.searchsorted(self.numbers, cell.astype(np.int64)).clip(0, len(self.numbers) - 2)
        inside = (self.numbers[left] == cell) & (self.numbers[left + 1] == cell + 1)
        return left, place - cell, inside


class Values(NamedTuple):
    """Distinct values (G, c) of the columns that are compared by equality."""

    values: np.ndarray

    def locate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of each row's value, and whether it is known."""
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
    wide, narrow = _widths(x, weights, k) if bandwidth is None else (bandwidth, bandwidth)
    most, step = MOST_NODES[two], narrow / STEPS[two]
    while True:
        reach = int(np.clip(np.ceil(REACH * wide / step), 8, most // 8))
        index = _near_data(x, weights, step, reach, most)
        if len(index) <= most:
            return Axis(index, float(x.min()), step)
        step *= 1.25


def _widths(x: np.ndarray, weights: np.ndarray, k: int) -> tuple[float, float]:
    """Bandwidth of all rows together, and the smallest one a component may ask for."""
    x, weights = distinct_values(x, weights)
    mass = np.cumsum(weights)
    n = mass[-1]
    total = silverman(*spread_of(x, weights[None]), np.array([n]), 1)[0]
    # a component of n/k rows has density 0.4/sd at its mode: the width of its densest rows tells sd
    rows = min(max(n / (10 * k), 25.0), n / 2)
    ends = np.interp(mass + rows, mass, x)
    widths = (ends - x)[mass <= n - rows]
    widths = widths[widths > 0]
    local = 0.4 * n / (k * rows) * float(np.quantile(widths, 0.02)) if len(widths) else np.inf
    narrow = min(total, 0.9 * local * (n / k) ** -0.2)
    apart = np.diff(x)
    return total, max(narrow, total * 1e-4, float(apart[apart > 0].min(initial=np.inf)) * 1e-2)


def _near_data(
    x: np.ndarray, weights: np.ndarray, step: float, reach: int, most: int
) -> np.ndarray:
    """Lattice numbers within ``reach`` of an occupied cell.

    Where there are too many, the lightest separate groups go first, up to a small share of rows.
    """
    cell = np.floor((x - x.min()) / step).astype(np.int64)
    cells, inverse = np.unique(cell, return_inverse=True)
    mass = np.bincount(inverse.ravel(), weights=weights)
    gap = np.diff(cells) > 2 * reach + 1
    island = np.concatenate([[0], np.cumsum(gap)])
    first = np.concatenate([[0], np.flatnonzero(gap) + 1])
    last = np.concatenate([np.flatnonzero(gap), [len(cells) - 1]])
    size = cells[last] - cells[first] + 2 * reach + 2
    if size.sum() > most and len(size) > 1:
        share = np.bincount(island, weights=mass) / weights.sum()
        order = np.argsort(share, kind="stable")
        droppable = np.cumsum(share[order]) <= LEFT_OUT
        needed = size.sum() - np.cumsum(size[order]) + size[order] > most
        kept = np.setdiff1d(np.arange(len(size)), order[droppable & needed])
        first, last, size = first[kept], last[kept], size[kept]
    if size.sum() > 4 * most:  # the caller widens the step
        return np.arange(4 * most)
    parts = [
        np.arange(cells[a] - reach, cells[b] + reach + 2) for a, b in zip(first, last, strict=True)
    ]
    return np.unique(np.concatenate(parts))


def distinct_values(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values in ascending order and their weights."""
    values, inverse = np.unique(x, return_inverse=True)
    return values, np.bincount(inverse.ravel(), weights=weights)


def spread_of(nodes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation (k,) and interquartile range (k,) of counts (k, G) on ascending nodes."""
    share = np.maximum(counts, 0.0)
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    mean = share @ nodes
    sd = np.sqrt(np.maximum(np.sum(share * (nodes - mean[:, None]) ** 2, axis=1), 0.0))
    mass = np.cumsum(share, axis=1) - share / 2
    quarters = np.array([np.interp([0.25, 0.75], row, nodes) for row in mass])
    return sd, quarters[:, 1] - quarters[:, 0]


def silverman(sd: np.ndarray, iqr: np.ndarray, effective: np.ndarray, d: int) -> np.ndarray:
    """The fast rule K-15: 0.9 min(sd, IQR/1.34) n^(-1/5), in d > 1 columns (4/((d+2)n))^(1/(d+4)).

    With most values equal the quartiles coincide and the standard deviation alone counts.
    """
    width = np.where(iqr > 0, np.minimum(sd, iqr / 1.34), sd)
    if d == 1:
        return 0.9 * width * effective**-0.2
    return width * (4 / ((d + 2) * effective)) ** (1 / (d + 4))


class Lattice:
    """Tables of one view with at most two smooth columns and any number of exact ones."""

    def __init__(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        k: int,
        exact: np.ndarray,
        *,
        bandwidth: np.ndarray | None = None,
    ) -> None:
        self.exact = np.asarray(exact, dtype=bool)
        smooth = np.flatnonzero(~self.exact)
        self.d = len(smooth)
        self.fixed = bandwidth  # (d,) of the smooth columns, given by the user
        given = [None] * self.d if bandwidth is None else [float(width) for width in bandwidth]
        self.axes = [
            smooth_axis(X[:, j], weights, k, two=self.d > 1, bandwidth=width)
            for j, width in zip(smooth, given, strict=True)
        ]
        self.values = Values(np.unique(X[:, self.exact], axis=0)) if self.exact.any() else None
        shape = [len(axis.numbers) for axis in self.axes]
        if self.values is not None:
            shape.insert(0, len(self.values.values))
        self.shape = tuple(shape)  # values first, then smooth columns
        self.size = int(np.prod(shape))
        self.cell = float(np.prod([axis.step for axis in self.axes]))

    @property
    def smooth(self) -> bool:
        """Whether there is anything to smooth."""
        return self.d > 0

    @property
    def tunable(self) -> bool:
        """Whether bandwidths may be chosen component by component."""
        return self.smooth and self.fixed is None

    def rows(self, X: np.ndarray) -> ViewRows:
        """Interpolation weights of rows (n, d); rows far from all data have none."""
        n = len(X)
        node, share = np.zeros((n, 1), dtype=np.int64), np.ones((n, 1))
        inside = np.ones(n, dtype=bool)
        if self.values is not None:
            number, inside = self.values.locate(X[:, self.exact])
            node = number[:, None]
        for axis, j in zip(self.axes, np.flatnonzero(~self.exact), strict=True):
            left, fraction, near = axis.locate(X[:, j])
            inside = inside & near
            node = np.concatenate([node, node], axis=1) * len(axis.numbers)
            half = node.shape[1] // 2
            node[:, :half] += left[:, None]
            node[:, half:] += left[:, None] + 1
            share = np.concatenate(
                [share * (1 - fraction)[:, None], share * fraction[:, None]], axis=1
            )
        share = np.where(inside[:, None], share, 0.0)
        indptr = np.arange(0, node.size + 1, node.shape[1])
        rows = sp.csr_array((share.ravel(), node.ravel(), indptr), shape=(n, self.size))
        compiled = as_rows(rows)
        return ViewRows(compiled, compiled)

    def bandwidths(self, counts: np.ndarray, effective: np.ndarray) -> np.ndarray:
        """K-15 for each component and smooth column (k, d), from counts (k, G)."""
        if self.fixed is not None:
            return np.tile(self.fixed, (len(counts), 1))
        found = []
        for axis, j in zip(self.axes, np.flatnonzero(~self.exact), strict=True):
            width = silverman(*spread_of(*self.marginal(counts, int(j))), effective, self.d)
            found.append(np.maximum(width, axis.step))
        return np.stack(found, axis=1) if found else np.zeros((len(counts), 0))

    def table(self, counts: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
        """Densities (k, m, G) on the nodes from counts of the same shape, maybe negative (K-11).

        Counts are smoothed with each component's bandwidths, negative values set to zero, and the
        integral to one (``clip_density`` of the specification).
        """
        k, m = counts.shape[:2]
        T = counts.reshape(k, m, *self.shape)
        for i, axis in enumerate(self.axes):
            a = i + 2 + int(self.values is not None)
            T = np.moveaxis(T, a, -1)
            smoothed = _smooth_lines(axis, T.reshape(k, -1, T.shape[-1]), bandwidths[:, i])
            T = np.moveaxis(smoothed.reshape(T.shape), -1, a)
        T = np.maximum(T.reshape(k, m, self.size), 0.0)
        total = T.sum(axis=2, keepdims=True)
        T = np.where(total > 0, T, 1.0)  # nothing there: flat
        return T / (T.sum(axis=2, keepdims=True) * self.cell)

    def marginal(self, table: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes (g,) of smooth column j of the view, and the sums (k, g) of a table over others."""
        a = int(np.sum(~self.exact[:j]))
        kept = a + 1 + int(self.values is not None)
        grid = table.reshape(len(table), *self.shape)
        others = tuple(i for i in range(1, grid.ndim) if i != kept)
        return self.axes[a].nodes, grid.sum(axis=others)

    def places(self, table: np.ndarray) -> np.ndarray:
        """Where the components are (k, q): means of smooth columns, shares of exact values."""
        found = []
        if self.values is not None:
            share = table.reshape(len(table), self.shape[0], -1).sum(axis=2)
            found.append(share / share.sum(axis=1, keepdims=True))
        for j in np.flatnonzero(~self.exact):
            nodes, sums = self.marginal(table, int(j))
            found.append((sums @ nodes / sums.sum(axis=1))[:, None])
        return np.concatenate(found, axis=1)

    def points_of(self) -> np.ndarray:
        """All nodes as rows (G, d)."""
        place = np.unravel_index(np.arange(self.size), self.shape)
        out = np.empty((self.size, len(self.exact)))
        if self.values is not None:
            out[:, self.exact] = self.values.values[place[0]]
            place = place[1:]
        for axis, j, i in zip(self.axes, np.flatnonzero(~self.exact), place, strict=True):
            out[:, j] = axis.nodes[i]
        return out

    def draw(self, table: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows (n, d) from a table (G,): a node, and within its hat a triangular shift."""
        out = self.points_of()[rng.choice(self.size, n, p=table * self.cell)]
        for axis, j in zip(self.axes, np.flatnonzero(~self.exact), strict=True):
            out[:, j] += axis.step * (rng.random(n) + rng.random(n) - 1)
        return out


def _smooth_lines(axis: Axis, lines: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
    """Lines (k, m, G) convolved with Gaussians of bandwidths (k,), by Fourier transform.

    Separate groups of nodes are moved together, as far as no kernel reaches across. Binning and
    reading blur by δ²/3, so the Gaussian is narrower by that.
    """
    reach = int(np.ceil(REACH * float(bandwidths.max()) / axis.step)) + 1
    place = np.concatenate([[0], np.cumsum(np.minimum(np.diff(axis.numbers), reach))])
    size = scipy.fft.next_fast_len(int(place[-1]) + reach + 1, real=True)
    inner = np.sqrt(np.maximum(bandwidths**2 - axis.step**2 / 3, (axis.step / 4) ** 2))
    t = np.minimum(np.arange(size), size - np.arange(size)) * axis.step
    kernel = np.exp(-0.5 * (t / inner[:, None]) ** 2)
    kernel[t > REACH * bandwidths[:, None]] = 0.0  # as far as groups are kept apart
    full = np.zeros((*lines.shape[:2], size))
    full[..., place] = lines
    transform = scipy.fft.rfft(full, axis=2) * scipy.fft.rfft(kernel, axis=1)[:, None, :]
    return scipy.fft.irfft(transform, n=size, axis=2)[..., place]
