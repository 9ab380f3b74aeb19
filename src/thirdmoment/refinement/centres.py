"""Densities of views with three and more smooth columns: Gaussians around many centres.

A lattice would need too many nodes. Rows are counted at the nearest of up to 2,000 centres and the
density is the mixture of one Gaussian a centre, p(x) = Σ_g T_g κ(x, t_g), valid for T >= 0 with sum
one. One bandwidth a column serves all components.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from thirdmoment._array import DenseRows, as_rows
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.refinement.axis import silverman
from thirdmoment.refinement.lattice import ViewRows
from thirdmoment.refinement.spread import k_means_labels, spread_centres
from thirdmoment.sizes import LOOK

# Centres of a view, and kernel values held for all rows and views together.
MOST_CENTRES: Choice[int] = 2000
MOST_VALUES: Work[int] = 100_000_000


class Centres:
    """Tables of one view with many smooth columns; ``share`` is its part of the memory."""

    cell = 1.0
    smooth, tunable = True, False

    def __init__(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        k: int,
        rng: np.random.Generator,
        *,
        scale: np.ndarray | None = None,
        share: float = 1.0,
    ) -> None:
        n, self.d = X.shape
        distinct = np.unique(X, axis=0)
        most = min(MOST_CENTRES, max(int(share * MOST_VALUES) // n, 50), len(distinct))
        part = distinct
        if len(distinct) > most:
            part = distinct[np.sort(rng.choice(len(distinct), most, replace=False))]
        self.points = part
        self.size = len(part)
        self.centre = weights @ X / weights.sum()
        self.scale = _within(X - self.centre, weights, k, rng) if scale is None else scale
        self.peak = float(np.prod(1 / (np.sqrt(2 * np.pi) * self.scale)))

    def check(self, columns: int) -> None:
        """Raise where the parts do not belong together, as in a file that someone made up."""
        shapes = self.points.shape, self.centre.shape, self.scale.shape
        if shapes != ((self.size, columns), (columns,), (columns,)) or self.d != columns:
            raise InvalidInput("the centres of a view do not belong together")

    def rows(self, X: np.ndarray) -> ViewRows:
        """Kernel values at all centres, and the nearest centre."""
        A, B = (X - self.centre) / self.scale, (self.points - self.centre) / self.scale
        square = np.sum(A**2, axis=1)[:, None] - 2 * A @ B.T + np.sum(B**2, axis=1)
        K = np.exp(-0.5 * np.maximum(square, 0.0)).astype(np.float32)
        nearest = cKDTree(B).query(A)[1]
        one = sp.csr_array(
            (np.ones(len(X)), nearest, np.arange(len(X) + 1)), shape=(len(X), self.size)
        )
        return ViewRows(_Scaled(K, self.peak), as_rows(one))

    def bandwidths(self, counts: np.ndarray, effective: np.ndarray) -> np.ndarray:
        """The common bandwidths, for every component (k, d)."""
        return np.tile(self.scale, (len(counts), 1))

    def resolved(self, bandwidths: np.ndarray) -> np.ndarray:
        """The bandwidths as they are."""
        return bandwidths

    def table(self, counts: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
        """Weights (k, m, G) of the centres: negative counts set to zero, sum one (K-11)."""
        T = np.maximum(counts, 0.0)
        T = np.where(T.sum(axis=2, keepdims=True) > 0, T, 1.0)
        return T / T.sum(axis=2, keepdims=True)

    def places(self, table: np.ndarray) -> np.ndarray:
        """Means of the components (k, d)."""
        return table @ self.points

    def points_of(self, *, clipped: bool = False) -> np.ndarray:
        """The centres (G, d)."""
        return self.points

    def draw(self, table: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows (n, d) from weights (G,)."""
        node = rng.choice(self.size, n, p=table)
        return self.points[node] + self.scale * rng.standard_normal((n, self.d))


class _Scaled(DenseRows):
    """Kernel values in float32 without their constant, which may be out of its range."""

    def __init__(self, K: np.ndarray, peak: float) -> None:
        super().__init__(K)
        self.peak = peak

    def dot_t(self, A: np.ndarray) -> np.ndarray:
        return super().dot_t(A).astype(np.float64) * self.peak


def _within(X: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """K-15 bandwidths (d,) from the widths within k-means groups of centred columns."""
    n = weights.sum()
    unit = np.sqrt(weights @ X**2 / n)
    unit = np.where(unit > 0, unit, 1.0)
    part = slice(None) if len(X) <= LOOK else rng.choice(len(X), LOOK, replace=False)
    Z, w = X[part] / unit, weights[part]
    labels = k_means_labels(Z, w, spread_centres(Z, w, k, rng), rounds=20)
    member = np.eye(k)[labels] * w[:, None]
    means = member.T @ Z / np.maximum(member.sum(axis=0), 1e-300)[:, None]
    sd = np.sqrt(w @ (Z - means[labels]) ** 2 / w.sum())
    sd = np.maximum(sd, 1e-3) * unit
    return silverman(sd, np.zeros_like(sd), np.full(len(sd), n / k), len(sd))
