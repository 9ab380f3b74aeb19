"""Covariances of a view in each component from linear scores of the other views (MV-17 to MV-19).

Scores r = M⁺x of views with means M have mean one on their component and zero elsewhere, whatever
the distributions are; so E[r_j f(x_v)]/w_j is the mean of any statistic f of *another* view in
component j. The printed form (Proposition D.2) reads the same off a fourth-order operator and is
noisier; it is kept as `printed_second_moments`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from thirdmoment._constants import Floor


class Scored(Protocol):
    """Sums of a view weighted by scores (see ``moments.views.ScoreSums``)."""

    total: float
    score: np.ndarray
    first: np.ndarray
    second: np.ndarray
    plain_first: np.ndarray
    plain_second: np.ndarray
    diagonal: bool


# Components keep at least this share of a view's variance to themselves, more with few rows.
LEAST_WITHIN: Floor[float] = 1e-4


def linear_scores(means: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Coefficients (D, k) with coefficientsᵀ x = M⁺ x over the features ``rows`` only (MV-17)."""
    scores = np.zeros_like(means)
    scores[rows] = np.linalg.pinv(means[rows]).T
    return scores


def conditional_covariances(
    sums: Scored, weights: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, int]:
    """Sigma_{v,j} (k, d, d), or variances (k, d), in the columns' own units (MV-18, N-9).

    Scores have mean w_j but can be negative, so an estimate may leave the feasible set. The pooled
    covariance, total less between components, is known far better, and w_j Sigma_j cannot exceed
    it: in its units eigenvalues are kept between their sampling error and 1/w_j. The second result
    counts those that had to be moved.
    """
    mass = sums.score / sums.total
    mass = np.where(mass > 0.2 * weights, mass, np.maximum(weights, 1e-6))
    means = sums.first / (mass * sums.total)[:, None]
    k, d = means.shape
    error = np.sqrt(d * k / (sums.total * mass))
    low, high = np.clip(error, 1e-6, 0.5)[:, None], (1 / np.clip(mass, 1e-3, 1.0))[:, None]
    least = float(np.clip(0.1 * error.mean(), LEAST_WITHIN, 0.1))
    centre = sums.plain_first / sums.total
    share, apart = mass / mass.sum(), means - centre
    if sums.diagonal:
        second = sums.second / (mass * sums.total)[:, None] - means**2
        total = np.maximum(sums.plain_second / sums.total - centre**2, 1e-300)
        pooled = np.clip(total - share @ apart**2, least * total, total)
        kept = np.clip(second / pooled, low, high)
        return kept * pooled * unit**2, int(np.sum(kept != second / pooled))
    second = sums.second / (mass * sums.total)[:, None, None]
    second = second - means[:, :, None] * means[:, None, :]
    total = sums.plain_second / sums.total - np.outer(centre, centre)
    rounding = 1e-12 * float(np.trace(sums.plain_second)) / sums.total
    total = total + 1e-9 * max(float(np.trace(total)), rounding, 1e-300) / d * np.eye(d)
    between = (apart * share[:, None]).T @ apart
    pooled, _ = _kept_within((total - between)[None], total, least, 1.0)
    fixed, moved = _kept_within(second, pooled[0], low, high)
    return fixed * unit[:, None] * unit[None, :], moved


def _kept_within(
    S: np.ndarray, reference: np.ndarray, low: np.ndarray | float, high: np.ndarray | float
) -> tuple[np.ndarray, int]:
    """Symmetric S (k, d, d) with eigenvalues clipped in the units of a positive ``reference``."""
    values, vectors = np.linalg.eigh((reference + reference.T) / 2)
    values = np.maximum(values, 1e-12 * max(float(values[-1]), 1e-300))
    root, inverse = vectors * np.sqrt(values), vectors / np.sqrt(values)
    ratio, turn = np.linalg.eigh(inverse.T @ ((S + S.transpose(0, 2, 1)) / 2) @ inverse)
    kept = np.clip(ratio, low, high)
    fixed = root @ ((turn * kept[:, None, :]) @ turn.transpose(0, 2, 1)) @ root.T
    return fixed, int(np.sum(kept != ratio))


def printed_second_moments(
    fourth: np.ndarray, pairs: np.ndarray, U1: np.ndarray, U2: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """E[x_3 x_3ᵀ | j] (k, d, d) as Proposition D.2 prints it (MV-19).

    ``fourth`` (d1, d2, d, d) is E[x_1⊗x_2⊗x_3⊗x_3], ``pairs`` P_12, U1 and U2 the subspaces of the
    outer views and R the common eigenvectors of the observable operators. For claims and tests.
    """
    inverse = np.linalg.inv(U1.T @ pairs @ U2)
    F = np.einsum("abij,ap,bq,qr->ijpr", fourth, U1, U2, inverse, optimize=True)
    A = np.linalg.solve(R, F @ R)
    return np.moveaxis(np.diagonal(A, axis1=2, axis2=3), 2, 0)
