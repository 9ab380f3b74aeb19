"""Moments of mixed linear regressions in standardised x (SR-19 to SR-21).

For x ~ N(0, I) and y = <x, b_i> + c_i + noise with probability w_i, Stein's identity gives

    m = E[y x] = Σ w_i b_i,   A = ½ E[y² (xxᵀ - I)] = Σ w_i b_i b_iᵀ,
    (1/6)(E[y³ x⊗x⊗x] - S3(I ⊗ E[y³ x])) = Σ w_i b_i⊗b_i⊗b_i,

whatever the intercepts c_i and the distribution of the noise. x of any mean and covariance is
standardised first (`root_of_inverse`), y is centred, and never residualised: b_i - m are linearly
dependent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.linalg import add_symmetric_cube, fill_symmetric, outer_sum


class Standardisation(NamedTuple):
    """x~ = (x - mean) root has unit covariance, y~ = (y - y_mean)/y_scale unit variance.

    Of collinear columns only their span is kept.
    """

    mean: np.ndarray  # (d,)
    root: np.ndarray  # (d, r), r <= d
    y_mean: float
    y_scale: float

    @property
    def rank(self) -> int:
        return self.root.shape[1]

    def slopes(self, standard: np.ndarray) -> np.ndarray:
        """Coefficients (k, d) of x from those (k, r) of x~ (SR-21)."""
        return self.y_scale * standard @ self.root.T

    def intercepts(self, standard: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Intercepts (k,) from those of y~ on x~ and the slopes of x."""
        return self.y_scale * standard + self.y_mean - slopes @ self.mean


def root_of_inverse(covariance: np.ndarray, size: np.ndarray, *, rtol: float = 1e-10) -> np.ndarray:
    """root (d, r) with rootᵀ covariance root = I, on the span of the columns.

    ``size`` (d,) is the largest entry of each column: what varies within rounding is constant.
    """
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    varies = ~constant_columns(scale, size)
    unit = scale[varies]
    values, vectors = np.linalg.eigh(covariance[np.ix_(varies, varies)] / np.outer(unit, unit))
    kept = values > rtol * max(float(values[-1]), 0.0) if len(values) else values > 0
    root = np.zeros((len(scale), int(kept.sum())))
    root[varies] = vectors[:, kept] / np.sqrt(values[kept]) / unit[:, None]
    return root


def constant_columns(scale: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Columns whose standard deviation ``scale`` is rounding of entries up to ``size``."""
    return scale <= 1e-10 * size


class RegressionRows(NamedTuple):
    """A chunk of standardised rows."""

    X: np.ndarray  # (m, r)
    y: np.ndarray  # (m,) centred
    weights: np.ndarray  # (m,)
    signs: np.ndarray  # (m,) ±1, the half of a row


class RegressionSums:
    """E[y x], E[y²], E[y² x], E[y² xxᵀ] and E[y³ x], with the halves of the fourth."""

    def __init__(self, r: int) -> None:
        self.total = 0.0
        self.square = 0.0
        self.vectors = np.zeros((3, r))  # Σ w y x, Σ w y² x, Σ w y³ x
        self.second = np.zeros((r, r))  # Σ w y² xxᵀ
        self.split = np.zeros((r, r))

    def update(self, chunk: RegressionRows) -> RegressionSums:
        w, y, X = chunk.weights, chunk.y, chunk.X
        self.total += float(w.sum())
        self.square += float(w @ y**2)
        self.vectors += np.stack([w * y, w * y**2, w * y**3]) @ X
        weighted = X * (w * y**2)[:, None]
        self.second += weighted.T @ X
        self.split += (weighted * chunk.signs[:, None]).T @ X
        return self

    def merge(self, other: RegressionSums) -> RegressionSums:
        self.total += other.total
        self.square += other.square
        self.vectors += other.vectors
        self.second += other.second
        self.split += other.split
        return self

    @property
    def first(self) -> np.ndarray:
        """m = E[y x] (r,)."""
        return self.vectors[0] / self.total

    @property
    def second_x(self) -> np.ndarray:
        """E[y² x] = 2 Σ w_i c_i b_i (r,)."""
        return self.vectors[1] / self.total

    @property
    def third_x(self) -> np.ndarray:
        """M31 = E[y³ x] (r,)."""
        return self.vectors[2] / self.total

    @property
    def variance(self) -> float:
        """E[y²]."""
        return self.square / self.total

    @property
    def pairs(self) -> np.ndarray:
        """A = ½ (E[y² xxᵀ] - E[y²] I) (r, r); E[y²] itself, not an eigenvalue (SR-19)."""
        return (self.second / self.total - self.variance * np.eye(len(self.second))) / 2

    @property
    def noise(self) -> np.ndarray:
        """Half the difference of A over two halves of the rows (r, r)."""
        return self.split / self.total / 2


class RegressionTriples:
    """Σ w y³ z⊗z⊗z of whitened rows z = Wᵀx (k, k, k)."""

    def __init__(self, W: np.ndarray, *, block: int = 4096) -> None:
        k = W.shape[1]
        self.W, self.block, self.total = W, block, 0.0
        self.cube = np.zeros((k, k, k))  # its entries with b, c >= a

    def update(self, chunk: RegressionRows) -> RegressionTriples:
        z, weight = chunk.X @ self.W, chunk.weights * chunk.y**3
        self.total += float(chunk.weights.sum())
        for s in range(0, len(z), self.block):
            add_symmetric_cube(self.cube, weight[s : s + self.block], z[s : s + self.block])
        return self

    def merge(self, other: RegressionTriples) -> RegressionTriples:
        self.total += other.total
        self.cube += other.cube
        return self

    def finish(self, sums: RegressionSums) -> np.ndarray:
        """T = (1/6)(E[y³ z⊗z⊗z] - S3(WᵀW ⊗ E[y³ z])) (SR-20: WᵀW, for z is not isotropic)."""
        g = self.W.T @ sums.third_x
        return (fill_symmetric(self.cube) / self.total - outer_sum(self.W.T @ self.W, g)) / 6


def directed_regression(
    raw: np.ndarray, W: np.ndarray, third_x: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """M(v) from raw = E[y³ (z·c) z zᵀ], v = W c (SR-21, whitened)."""
    G, g = W.T @ W, W.T @ third_x
    mixed = np.outer(g, G @ c)
    return (raw - mixed - mixed.T - float(g @ c) * G) / 6
