"""Kernels and their features (K-18 to K-20): the kernel algorithm is the multi-view one on them.

A feature map z has z(x)·z(x') ≈ κ(x, x'), so that the cross moments of features of different views
are the cross-covariance operators of the kernel embeddings. Three ways to get one:

- `pivoted_map`: landmarks by pivoted Cholesky, z(x) = L⁻¹ κ(points, x). The default.
- `fourier_map`: random Fourier features of a Gaussian or Laplace kernel.
- `gram_maps`, `exchangeable_gram_map`: the Gram matrices in full. Only the directions the moments
  can see are kept, z(x) = βᵀ κ(X, x), by the eigenproblems of Song et al. (2014), Algorithm 1 (one
  distribution for all views) and appendix 9 (different views), in the corrected form of K-2, K-3
  and MV-2.

Once the maps are fixed, moments of features stream and merge like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from thirdmoment.exceptions import InvalidInput, RankDeficientMoment, RankDeficientView
from thirdmoment.linalg.whiten import pivoted_cholesky
from thirdmoment.sizes import LOOK


class Kernel(Protocol):
    """A positive semidefinite function of two points."""

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """κ(x, y) of all rows of X (n, d) and Y (m, d), an (n, m) array."""

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """κ(x, x) of all rows."""


class Gaussian(NamedTuple):
    """Π_j exp(-(x_j - y_j)²/(2 s_j²)) / (√(2π) s_j): integrates to one in every dimension."""

    scale: np.ndarray  # (d,) bandwidths s

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self._peak() * np.exp(-0.5 * cdist(X / self.scale, Y / self.scale, "sqeuclidean"))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self._peak())

    def _peak(self) -> float:
        return float(np.prod(1 / (np.sqrt(2 * np.pi) * self.scale)))


class Laplace(NamedTuple):
    """Π_j exp(-|x_j - y_j|/s_j) / (2 s_j)."""

    scale: np.ndarray  # (d,)

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self._peak() * np.exp(-cdist(X / self.scale, Y / self.scale, "cityblock"))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self._peak())

    def _peak(self) -> float:
        return float(np.prod(1 / (2 * self.scale)))


class Linear(NamedTuple):
    """1 + Σ_j (x_j - c_j)(y_j - c_j)/s_j²: tells components apart by their means only."""

    centre: np.ndarray  # (d,)
    scale: np.ndarray  # (d,)

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return 1.0 + self._standard(X) @ self._standard(Y).T

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return 1.0 + np.sum(self._standard(X) ** 2, axis=1)

    def _standard(self, X: np.ndarray) -> np.ndarray:
        return (X - self.centre) / self.scale


class Delta(NamedTuple):
    """1 where all columns are equal, else 0: the categorical model (K-20)."""

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return np.all(X[:, None, :] == Y[None, :, :], axis=2).astype(np.float64)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


class Product(NamedTuple):
    """Kernels of single columns multiplied, for columns of mixed kinds (K-20)."""

    parts: tuple[Kernel, ...]

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        out = self.parts[0](X[:, :1], Y[:, :1])
        for j, part in enumerate(self.parts[1:], start=1):
            out = out * part(X[:, j : j + 1], Y[:, j : j + 1])
        return out

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        values = [part.diagonal(X[:, j : j + 1]) for j, part in enumerate(self.parts)]
        return np.prod(values, axis=0)


class Custom(NamedTuple):
    """A function of two blocks of rows given by the user."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        K = np.asarray(self.function(X, Y), dtype=np.float64)
        if K.shape != (len(X), len(Y)) or not np.all(np.isfinite(K)):
            raise InvalidInput(
                f"The kernel returned an array of shape {K.shape} for blocks of {len(X)} and "
                f"{len(Y)} rows; it must return finite values of shape ({len(X)}, {len(Y)})."
            )
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        d = np.array([self(row[None], row[None])[0, 0] for row in X])
        if np.any(d < 0):
            raise InvalidInput(
                f"The kernel of a row with itself is {d.min():.3g}, so it is not positive "
                "semidefinite and is no inner product of features."
            )
        return d


class FeatureMap(Protocol):
    """Features (n, r) of rows (n, d)."""

    def __call__(self, X: np.ndarray) -> np.ndarray: ...


class PivotedMap(NamedTuple):
    """z(x) = L⁻¹ κ(points, x), L the Cholesky factor of κ(points, points)."""

    kernel: Kernel
    points: np.ndarray  # (r, d)
    factor: np.ndarray  # (r, r) lower

    def __call__(self, X: np.ndarray) -> np.ndarray:
        K = self.kernel(self.points, X)
        return scipy.linalg.solve_triangular(self.factor, K, lower=True, check_finite=False).T


def pivoted_map(
    kernel: Kernel,
    X: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
    *,
    tol: float = 1e-4,
    most: int = 300,
) -> PivotedMap:
    """Landmarks until ``tol`` of the trace of the Gram matrix of X (n, d) is left (K-18)."""
    if len(X) > LOOK:
        part = rng.choice(len(X), LOOK, replace=False)
        X, weights = X[part], weights[part]
    found = pivoted_cholesky(
        lambda j: kernel(X, X[j : j + 1])[:, 0],
        kernel.diagonal(X),
        weights=weights,
        tol=tol,
        most=most,
    )
    return PivotedMap(kernel, X[found.pivots], np.tril(found.Z[found.pivots]))


class FourierMap(NamedTuple):
    """z(x) = √(c/h) [cos(xᵀω_j), sin(xᵀω_j)], j = 1..h, ω from the kernel's spectrum (K-19)."""

    frequencies: np.ndarray  # (d, h)
    peak: float  # κ(x, x)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        angle = X @ self.frequencies
        scale = np.sqrt(self.peak / self.frequencies.shape[1])
        return scale * np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def fourier_map(kernel: Kernel, rng: np.random.Generator, *, size: int = 200) -> FourierMap:
    """Random features of a Gaussian or Laplace kernel, whose spectra are normal and Cauchy."""
    if isinstance(kernel, Gaussian):
        draws = rng.standard_normal((len(kernel.scale), max(size // 2, 1)))
    elif isinstance(kernel, Laplace):
        draws = rng.standard_cauchy((len(kernel.scale), max(size // 2, 1)))
    else:
        raise InvalidInput(
            "Fourier features need a kernel of differences, 'rbf' or 'laplace'; use "
            "features='low-rank' for this one."
        )
    peak = float(kernel.diagonal(np.zeros((1, len(kernel.scale))))[0])
    return FourierMap(draws / kernel.scale[:, None], peak)


class GramMap(NamedTuple):
    """z(x) = βᵀ κ(points, x) with all training rows as points; Φβ is orthonormal (K-3)."""

    kernel: Kernel
    points: np.ndarray  # (n, d)
    beta: np.ndarray  # (n, q)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self.kernel(X, self.points) @ self.beta


def gram_maps(
    kernels: Sequence[Kernel], Xs: Sequence[np.ndarray], weights: np.ndarray, k: int
) -> list[GramMap]:
    """The k directions of each view that its moments with all others show, from Gram matrices.

    In the coordinates of K_v = RᵀR the leading left singular vectors of [C_vu]_{u != v} (MV-2) are
    the eigenvectors U of R P G P Rᵀ, P = diag(w/Σw) and G = Σ_{u != v} K_u; and U = Rβ with
    β = P G P Rᵀ U Σ⁻², without any pseudo-inverse. Cost O(n³) a view, memory `gram_bytes`.
    """
    p = weights / weights.sum()
    grams = [kernel(X, X) for kernel, X in zip(kernels, Xs, strict=True)]
    whole = sum(grams)
    maps = []
    for v, (kernel, X, K) in enumerate(zip(kernels, Xs, grams, strict=True)):
        R = _factor(K)
        across = (whole - K) * p[:, None] * p[None, :]
        values, U = np.linalg.eigh(R @ across @ R.T)
        values, U = values[::-1], U[:, ::-1][:, :k]
        floor = 1e-15 * max(float(values[0]), 0.0)  # squares: half the digits are lost
        if len(values) < k or not values[k - 1] > floor:
            seen = np.sqrt(np.maximum(values, 0.0))
            raise RankDeficientView(
                view=v, k=k, spectrum=tuple(seen.tolist()), floor=float(np.sqrt(floor))
            )
        maps.append(GramMap(kernel, X, across @ (R.T @ U) / values[:k]))
    return maps


def exchangeable_gram_map(
    kernel: Kernel, Xs: Sequence[np.ndarray], weights: np.ndarray, k: int
) -> GramMap:
    """The same for views of one law: signed eigenvectors of the mean of all pairs (K-2, K-6).

    With all views in one Φ (l n columns) C₂ = Φ J Φᵀ, J the mean over ordered pairs of views; U
    holds the k algebraically largest eigenvectors of R J Rᵀ and β = J Rᵀ U S⁻¹ (K-3).
    """
    views, n = len(Xs), len(weights)
    X = np.concatenate(Xs)
    R = _factor(kernel(X, X))
    p = np.tile(weights / weights.sum() / (views * (views - 1)), views)

    def pair(A: np.ndarray) -> np.ndarray:  # J A: each view meets the sum of the others
        parts = A.reshape(views, n, -1)
        return ((parts.sum(axis=0) - parts) * p.reshape(views, n, 1)).reshape(A.shape)

    S, U = np.linalg.eigh(R @ pair(R.T))
    S, U = S[::-1][:k], U[:, ::-1][:, :k]
    floor = 1e-10 * max(float(S[0]), 0.0)
    if len(S) < k or not S[-1] > floor:
        least = float(S[-1]) if len(S) >= k else 0.0
        raise RankDeficientMoment(rank=int((floor < S).sum()), k=k, smallest=least, floor=floor)
    return GramMap(kernel, X, pair(R.T @ U) / S)


def _factor(K: np.ndarray) -> np.ndarray:
    """R (r, n) with K = RᵀR, eigenvalues at rounding left out."""
    values, V = np.linalg.eigh((K + K.T) / 2)
    kept = values > len(K) * np.finfo(float).eps * max(float(values[-1]), 0.0)
    return (V[:, kept] * np.sqrt(values[kept])).T


def gram_bytes(n: int, views: int, *, exchangeable: bool) -> int:
    """Memory that the Gram matrices and their factors take."""
    return 8 * (6 * (views * n) ** 2 if exchangeable else (views + 4) * n * n)
