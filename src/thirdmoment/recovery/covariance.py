"""Covariances of a view in each component from linear scores of the other views (MV-17 to MV-19).

Scores r = M⁺x of views with means M have mean one on their component and zero elsewhere, whatever
the laws are; so E[r_j f(x_v)]/w_j is the mean of any statistic f of *another* view in component j.
The printed form (Proposition D.2) reads the same off a fourth-order operator and is noisier; it is
kept as `printed_second_moments`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Scored(Protocol):
    """Sums of a view weighted by scores (see ``moments.views.ScoreSums``)."""

    total: float
    score: np.ndarray
    first: np.ndarray
    second: np.ndarray
    diagonal: bool


def linear_scores(means: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Coefficients (D, k) with coefficientsᵀ x = M⁺ x over the features ``rows`` only (MV-17)."""
    scores = np.zeros_like(means)
    scores[rows] = np.linalg.pinv(means[rows]).T
    return scores


def conditional_covariances(
    sums: Scored, weights: np.ndarray, unit: np.ndarray, *, floor: float = 1e-6
) -> np.ndarray:
    """Sigma_{v,j} (k, d, d), or variances (k, d), in the columns' own units (MV-18, N-9).

    Divided by the summed scores, which estimate w_j; where these are far from the weights (a
    component that the other views hardly show) by the weights themselves.
    """
    mass = sums.score / sums.total
    mass = np.where(mass > 0.2 * weights, mass, np.maximum(weights, 1e-6)) * sums.total
    first = sums.first / mass[:, None]
    if sums.diagonal:
        second = sums.second / mass[:, None] - first**2
        least = floor * max(float(np.abs(second).mean()), 1e-300)
        return np.maximum(second, least) * unit**2
    second = sums.second / mass[:, None, None] - first[:, :, None] * first[:, None, :]
    values, vectors = np.linalg.eigh((second + second.transpose(0, 2, 1)) / 2)
    values = np.maximum(values, floor * max(float(np.abs(values).mean()), 1e-300))
    fixed = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return fixed * unit[:, None] * unit[None, :]


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
