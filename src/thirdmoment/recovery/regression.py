"""Slopes, weights and intercepts of a mixed regression from its whitened tensor (SR-20)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.decomposition import Decomposition


class RegressionEstimate(NamedTuple):
    """Components in standardised x and centred y."""

    slopes: np.ndarray  # (k, r)
    intercepts: np.ndarray  # (k,)
    weights: np.ndarray  # (k,) positive, sum to one
    raw_weights: np.ndarray  # (k,) 1/λ²
    noise_variance: float


def recover_regressions(
    found: Decomposition,
    unwhitener: np.ndarray,
    second_x: np.ndarray,
    variance: float,
) -> RegressionEstimate:
    """b_i = λ_i W* θ_i, w_i = 1/λ_i² (N-6); intercepts from E[y² x] = 2 Σ w_i c_i b_i."""
    lam, theta = np.asarray(found.eigenvalues), np.asarray(found.vectors)
    raw = 1 / np.maximum(lam**2, 1e-300)
    lam = np.where(np.abs(lam) < 1, np.where(lam < 0, -1.0, 1.0), lam)  # no weight exceeds one
    slopes = (unwhitener @ (theta * lam)).T
    weights = 1 / lam**2
    weights = weights / weights.sum()
    solution = np.linalg.lstsq(2 * slopes.T, second_x, rcond=None)[0]
    intercepts = solution / weights
    explained = weights @ ((slopes**2).sum(axis=1) + intercepts**2)
    return RegressionEstimate(slopes, intercepts, weights, raw, float(variance - explained))
