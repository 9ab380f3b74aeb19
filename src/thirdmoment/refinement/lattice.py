"""Densities on a lattice: counted by linear binning, smoothed by Gaussians, read by interpolation.

The density of a view is p(x) = Σ_g T_g Π_j hat((x_j - t_gj)/δ_j), T >= 0 on the nodes t_g: it is
valid (non-negative, integral δ Σ T_g = 1) whatever T is, reading it costs 2 or 4 nodes a row, and
one table serves EM, densities, samples and pictures. Columns compared by equality (delta kernel)
form one axis of distinct values that is never smoothed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft

from thirdmoment._array import Array, Rows, array_namespace, in_long, like_index, regular_rows
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.refinement.axis import (
    MOST_NODES,
    REACH,
    Axis,
    Values,
    silverman,
    smooth_axis,
    spread_of,
)

# Nodes of a view that has exact and smooth columns.
MOST_MIXED: Work[int] = 400_000

# Rows' worth of the distribution of all components in the distributions of exact values, next to
# smooth columns, for each value there is.
SHRINK: Choice[float] = 1.0


class ViewRows(NamedTuple):
    """Rows of one view as a table reads them and as it counts them."""

    read: Rows  # (m, G): density is read @ T
    add: Rows  # (m, G): counts are posteriorᵀ @ add


class Lattice:
    """Tables of one view with at most two smooth columns and any number of exact ones.

    With ``shrink`` the distributions of exact values lean to those of all components, so that a
    value not yet seen in one is rare in it and not impossible.
    """

    peak = 1.0  # largest value that is read where a table is one

    def __init__(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        k: int,
        exact: np.ndarray,
        *,
        bandwidth: np.ndarray | None = None,
        shrink: bool = False,
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
        self.shrink = 0.0
        if shrink and self.values is not None:
            self.shrink = SHRINK * len(self.values.values)
        shape = [len(axis.numbers) for axis in self.axes]
        if self.values is not None:
            shape.insert(0, len(self.values.values))
        self.shape = tuple(shape)  # values first, then smooth columns
        self.size = int(np.prod(shape))
        self.cell = float(np.prod([axis.step for axis in self.axes]))
        if self.size > max(MOST_MIXED, MOST_NODES[1] ** 2) and self.d and self.values is not None:
            raise InvalidInput(
                f"A view of {shape[0]} distinct values and {self.d} smooth columns needs "
                f"{self.size:,} nodes ({MOST_MIXED:,} is the limit). Give the values a view of "
                "their own."
            )

    def check(self, columns: int) -> None:
        """Raise where the parts do not belong together, as in a file that someone made up."""
        shape = [len(axis.numbers) for axis in self.axes]
        if self.values is not None:
            shape.insert(0, len(self.values.values))
        sound = self.exact.dtype == bool and self.exact.shape == (columns,)
        sound &= len(self.axes) == int(np.sum(~self.exact))
        sound &= self.exact.any() == (self.values is not None)
        sound &= self.shape == tuple(shape) and self.size == int(np.prod(shape))
        for axis in self.axes:
            numbers = axis.numbers
            sound &= numbers.ndim == 1 and numbers.dtype.kind == "i" and len(numbers) > 1
            sound &= bool(np.all(np.diff(numbers) > 0)) and 0 < axis.step < np.inf
        if not sound:
            raise InvalidInput("the nodes of a view do not belong together")

    @property
    def smooth(self) -> bool:
        """Whether there is anything to smooth."""
        return self.d > 0

    @property
    def tunable(self) -> bool:
        """Whether bandwidths may be chosen component by component."""
        return self.smooth and self.fixed is None

    def rows(self, X: Array) -> ViewRows:
        """Interpolation weights of rows (n, d); rows far from all data have none."""
        xp, smooth = array_namespace(X), np.flatnonzero(~self.exact).tolist()
        share = xp.ones((X.shape[0], 1), dtype=xp.float64, device=getattr(X, "device", None))
        node, inside = in_long(xp.zeros_like(share)), share[:, 0] > 0
        if self.values is not None:
            own = np.flatnonzero(self.exact)
            number, inside = self.values.locate(xp.take(X, like_index(X, own), axis=1))
            node = number[:, None]
        for axis, j in zip(self.axes, smooth, strict=True):
            left, fraction, near = axis.locate(X[:, j])
            inside = inside & near
            node = node * len(axis.numbers) + left[:, None]
            node = xp.concat([node, node + 1], axis=1)
            share = xp.concat([share * (1 - fraction)[:, None], share * fraction[:, None]], axis=1)
        share = xp.where(inside[:, None], share, xp.zeros_like(share))
        rows = regular_rows(node, share, self.size)
        return ViewRows(rows, rows)

    def bandwidths(self, counts: np.ndarray, effective: np.ndarray) -> np.ndarray:
        """K-15 for each component and smooth column (k, d), from counts (k, G)."""
        if self.fixed is not None:
            return np.tile(self.fixed, (len(counts), 1))
        found = []
        for axis, j in zip(self.axes, np.flatnonzero(~self.exact), strict=True):
            nodes, sums = self.marginal(counts, int(j))
            width = silverman(*spread_of(nodes, sums, tie=2 * axis.step), effective, self.d)
            found.append(width)
        return np.stack(found, axis=1) if found else np.zeros((len(counts), 0))

    def resolved(self, bandwidths: np.ndarray) -> np.ndarray:
        """Bandwidths (k, d) no smaller than what nodes, or ties in the data, resolve."""
        given = self.fixed is not None
        least = [axis.step if given else axis.least for axis in self.axes]
        return np.maximum(bandwidths, np.array(least)) if least else bandwidths

    def table(self, counts: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
        """Densities (k, m, G) on the nodes from counts of the same shape, maybe negative (K-11).

        Counts are smoothed with each component's bandwidths, negative values set to zero, and the
        integral to one.
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
        if self.shrink:
            whole = T.sum(axis=0, keepdims=True)
            whole = whole / np.maximum(whole.sum(axis=2, keepdims=True), 1e-300)
            rows = np.maximum(counts.sum(axis=2, keepdims=True), 1.0)
            T = T * (rows / np.maximum(total, 1e-300)) + self.shrink * whole
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

    def points_of(self, *, clipped: bool = False) -> np.ndarray:
        """All nodes as rows (G, d); ``clipped`` to the range of the data."""
        place = np.unravel_index(np.arange(self.size), self.shape)
        out = np.empty((self.size, len(self.exact)))
        if self.values is not None:
            out[:, self.exact] = self.values.values[place[0]]
            place = place[1:]
        for axis, j, i in zip(self.axes, np.flatnonzero(~self.exact), place, strict=True):
            out[:, j] = np.clip(axis.nodes, axis.low, axis.high)[i] if clipped else axis.nodes[i]
        return out

    def draw(self, table: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows (n, d) from a table (G,): a node, and within its hat a triangular shift."""
        out = self.points_of()[rng.choice(self.size, n, p=table * self.cell)]
        for axis, j in zip(self.axes, np.flatnonzero(~self.exact), strict=True):
            out[:, j] += axis.step * (rng.random(n) + rng.random(n) - 1)
        return out


def _smooth_lines(axis: Axis, lines: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
    """Lines (k, m, G) convolved with Gaussians of bandwidths (k,), by Fourier transform.

    Separate groups of nodes are moved together, as far as no kernel reaches across; kernels so wide
    that this would take many times the nodes end earlier. Binning and reading blur by δ²/3, so the
    Gaussian is narrower by that.
    """
    gaps = np.diff(axis.numbers)
    most = max(8 * len(axis.numbers) // (1 + int(np.sum(gaps > 1))), 16)
    reach = min(int(np.ceil(REACH * float(bandwidths.max()) / axis.step)) + 1, most)
    place = np.concatenate([[0], np.cumsum(np.minimum(gaps, reach))])
    size = scipy.fft.next_fast_len(int(place[-1]) + reach + 1, real=True)
    inner = np.sqrt(np.maximum(bandwidths**2 - axis.step**2 / 3, (axis.step / 4) ** 2))
    t = np.minimum(np.arange(size), size - np.arange(size))
    kernel = np.exp(-0.5 * (t * axis.step / inner[:, None]) ** 2)
    kernel[:, t >= reach] = 0.0
    full = np.zeros((*lines.shape[:2], size))
    full[..., place] = lines
    transform = scipy.fft.rfft(full, axis=2) * scipy.fft.rfft(kernel, axis=1)[:, None, :]
    return scipy.fft.irfft(transform, n=size, axis=2)[..., place]
