"""Moments of rows with spherical noise: components around means, or along subspaces.

The data is centred and a constant coordinate one is appended to it: the components are then
y_i = (mu_i - m, 1), which are independent as soon as the means are affinely independent, so k - 1
signal directions and the constant carry k components. In the whitened coordinates
y_w = (Eᵀ(x - m)/√η, 1), E and η the k - 1 leading eigenpairs of cov - sigma² I,

    E[y_w⊗y_w⊗y_w] - S3(J_w ⊗ t_w) = Σ w_i y_wi⊗y_wi⊗y_wi,

with J_w = diag(1/η, 0) and t_w = E[sigma_h² y_w], orthogonally decomposable.

A = E[xxᵀ] - sigma² I = Σ w_i P_i with P_i = U_i U_iᵀ, and for side information S = QQᵀ

    B(S) = E[(xᵀSx) xxᵀ] - sigma² tr(AS) I - sigma² tr(S) A - sigma⁴ (tr(S) I + 2S)
           - 2 sigma² (AS + SA) = Σ w_i (tr(P_i S) P_i + 2 P_i S P_i).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import Array, array_namespace, in_double, like_one, to_numpy
from thirdmoment.exceptions import RankDeficientMoment
from thirdmoment.linalg import add_symmetric_cube, blocks_of, fill_symmetric, outer_sum
from thirdmoment.moments.views import PairSums, Sample


class SphericalWhitening(NamedTuple):
    """Signal directions of a spherical mixture and its noise."""

    mean: np.ndarray  # (d,)
    E: np.ndarray  # (d, k-1) leading eigenvectors of the covariance
    eta: np.ndarray  # (k-1,) their eigenvalues less sigma²
    sigma2: float  # Σ w_i sigma_i² (SR-9)
    spectrum: np.ndarray  # leading eigenvalues of the covariance less sigma², all d where known


def spherical_whitening(sums: PairSums, k: int) -> SphericalWhitening:
    """Noise variance as the mean of eigenvalues k..d, signal as what the first k-1 exceed it."""
    mean = sums.mean
    values, vectors = np.linalg.eigh(sums.pairs - np.outer(mean, mean))
    return leading_whitening(mean, values[::-1], vectors[:, ::-1], float(values.sum()), k)


def leading_whitening(
    mean: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    trace: float,
    k: int,
    *,
    rtol: float = 1e-10,
) -> SphericalWhitening:
    """The same from the leading eigenpairs of the covariance and its trace."""
    d = len(mean)
    sigma2 = (trace - float(values[: k - 1].sum())) / (d - k + 1) if k <= d else 0.0
    eta = values[: k - 1] - sigma2
    floor = rtol * max(float(values[0]), 0.0)
    if k > d or (k > 1 and not eta[-1] > floor):
        rank = int(np.sum(values - sigma2 > floor)) + 1 if k <= d else d
        smallest = float(eta[-1]) if k <= d else 0.0
        raise RankDeficientMoment(rank=rank, k=k, smallest=smallest, floor=floor)
    return SphericalWhitening(mean, vectors[:, : k - 1], eta, max(sigma2, 0.0), values - sigma2)


class SphericalNoise:
    """Third pass: Σ w ‖x - m‖² of the noise directions times y_w, for t_w = E[sigma_h² y_w]."""

    def __init__(self, white: SphericalWhitening) -> None:
        self.white = white
        self.W = white.E / np.sqrt(white.eta)
        self.total = 0.0
        self.noise = np.zeros(self.W.shape[1] + 1)  # Σ w ‖Nᵀ(x - m)‖² y_w

    def update(self, chunk: Sample) -> SphericalNoise:
        self._add(chunk)
        return self

    def _add(self, chunk: Sample) -> Array:
        """Add a chunk; returns its whitened rows y_w (m, k)."""
        X = in_double(chunk.rows.toarray())
        X = X - like_one(X, self.white.mean)
        w, xp = like_one(X, chunk.weights), array_namespace(X)
        y = whitened_rows(self.white, X)
        inside = (y[:, :-1] ** 2) @ like_one(X, self.white.eta)  # ‖Eᵀ(x - m)‖²
        outside = xp.sum(X * X, axis=1) - inside
        self.total += float(xp.sum(w))
        self.noise += to_numpy((w * outside) @ y)
        return y

    def merge(self, other: SphericalNoise) -> SphericalNoise:
        self.total += other.total
        self.noise += other.noise
        return self

    def variance(self, *, common: bool = False) -> np.ndarray:
        """t_w = E[sigma_h² y_w] (k,) (SR-10); with a common variance it is that times (0, 1)."""
        d, k = self.W.shape[0], self.W.shape[1] + 1
        if not common:
            return self.noise / self.total / (d - k + 1)
        t = np.zeros(k)
        t[-1] = self.white.sigma2
        return t


def whitened_rows(white: SphericalWhitening, centred: Array) -> Array:
    """y_w = (Eᵀ(x - m)/√η, 1) of centred rows (m, d)."""
    xp = array_namespace(centred)
    y = centred @ like_one(centred, white.E / np.sqrt(white.eta))
    return xp.concat([y, xp.ones_like(centred[:, :1])], axis=1)


def variance_form(white: SphericalWhitening) -> np.ndarray:
    """J_w = diag(1/η, 0) (k, k): what the noise of unit variance adds to E[y_w y_wᵀ]."""
    return np.diag(np.append(1 / white.eta, 0.0))


class SphericalTriples(SphericalNoise):
    """The same pass with Σ w y_w⊗y_w⊗y_w, for all components at once."""

    def __init__(self, white: SphericalWhitening) -> None:
        super().__init__(white)
        k = len(self.noise)
        self.cube = np.zeros((k, k, k))  # its entries with b, c >= a

    def update(self, chunk: Sample) -> SphericalTriples:
        y = self._add(chunk)
        w, cube = like_one(y, chunk.weights), like_one(y, np.zeros(self.cube.shape))
        for block in blocks_of(y):
            add_symmetric_cube(cube, w[block], y[block, :])
        self.cube += to_numpy(cube)
        return self

    def merge(self, other: SphericalTriples) -> SphericalTriples:  # type: ignore[override]
        super().merge(other)
        self.cube += other.cube
        return self

    def finish(self, *, common_variance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The whitened tensor (k,k,k) and t_w = E[sigma_h² y_w] (k,) (SR-10, SR-12)."""
        t = self.variance(common=common_variance)
        J = variance_form(self.white)
        return fill_symmetric(self.cube) / self.total - outer_sum(J, t), t


def directed_spherical(
    raw: np.ndarray, white: SphericalWhitening, t: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """M(v) = Σ s_i theta_i theta_iᵀ from raw = E[(y_w·c) y_w y_wᵀ], v = W c (SR-11, whitened)."""
    J = variance_form(white)
    mixed = np.outer(t, J @ c)
    return raw - mixed - mixed.T - float(t @ c) * J


class SubspaceWhitening(NamedTuple):
    """The p k leading directions of the second moment and the noise of the others."""

    E: np.ndarray  # (d, q) leading eigenvectors
    eta: np.ndarray  # (q,) their eigenvalues less sigma²
    sigma2: float  # mean of the remaining eigenvalues
    spectrum: np.ndarray  # (d,) all eigenvalues less sigma²

    @property
    def W(self) -> np.ndarray:
        """(d, q), WᵀAW = I."""
        return self.E / np.sqrt(self.eta)

    @property
    def unwhitener(self) -> np.ndarray:
        """W* (d, q)."""
        return self.E * np.sqrt(self.eta)


def subspace_whitening(sums: PairSums, q: int, *, rtol: float = 1e-10) -> SubspaceWhitening:
    """Noise as the mean of eigenvalues q+1..d of the second moment, signal what exceeds it."""
    values, vectors = np.linalg.eigh(sums.pairs)
    values, vectors = values[::-1], vectors[:, ::-1]
    sigma2 = max(float(np.mean(values[q:])), 0.0) if q < len(values) else 0.0
    eta = values[:q] - sigma2
    floor = rtol * max(float(values[0]), 0.0)
    if q > len(values) or not eta[-1] > floor:
        rank = int(np.sum(eta > floor))
        smallest = float(eta[-1]) if q <= len(values) else 0.0
        raise RankDeficientMoment(rank=rank, k=q, smallest=smallest, floor=floor)
    return SubspaceWhitening(vectors[:, :q], eta, sigma2, values - sigma2)


def directed_subspace(raw: np.ndarray, white: SubspaceWhitening, Q: np.ndarray) -> np.ndarray:
    """R = WᵀB(S)W from raw = E[‖Qᵀx‖² y yᵀ], y = Wᵀx and S = QQᵀ (SR-22, whitened).

    The term 2 Q_w Q_wᵀ is printed without its factor 2 in the paper.
    """
    W, s = white.W, white.sigma2
    G, Q_w, C = W.T @ W, W.T @ Q, white.unwhitener.T @ Q
    trace, inside = float(np.sum(Q**2)), float(np.sum(C**2))  # tr S and tr(AS)
    mixed = C @ Q_w.T
    R = raw - s * inside * G - s * trace * np.eye(len(G))
    return R - s**2 * (trace * G + 2 * Q_w @ Q_w.T) - 2 * s * (mixed + mixed.T)
