"""Transitions, start and stationary law of a hidden Markov chain from its emissions (MV-25, MV-26).

Columns of ``emissions`` (d, k), the papers' O, are the distributions (or feature means) of the
states. T is row-stochastic here, T[i, j] = Pr(next state j | state i), as hmmlearn and the
estimators have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize

from thirdmoment._constants import Choice
from thirdmoment.linalg import project_to_simplex

# With more states than this the joint distribution is not fitted under constraints but clipped.
MOST_CONSTRAINED: Choice[int] = 20


def transitions_from_pairs(emissions: np.ndarray, pairs: Any, weights: np.ndarray) -> np.ndarray:
    """T (k, k) from the joint law of neighbours (d, d), first observation along rows (MV-25 4b).

    ``pairs`` = O J Oᵀ with J[i, j] = Pr(state i, then j): non-negative least squares in the k²
    entries of J, after a change of basis that keeps the problem k²×k². ``weights`` (d,) multiply
    both axes (the square root of the inverse distribution makes the noise even).
    """
    k = emissions.shape[1]
    Q, R = np.linalg.qr(emissions * weights[:, None])
    small = (Q * weights[:, None]).T @ (pairs @ (Q * weights[:, None]))
    if k <= MOST_CONSTRAINED:
        J = scipy.optimize.nnls(np.kron(R, R), small.ravel())[0].reshape(k, k)
    else:
        half = np.linalg.lstsq(R, small, rcond=None)[0]
        J = np.maximum(np.linalg.lstsq(R, half.T, rcond=None)[0].T, 0.0)
    return stochastic_rows(J)


def transitions_from_blocks(now: np.ndarray, after: np.ndarray) -> np.ndarray:
    """T from laws of blocks: ``after`` (D, k) of the block one step later = ``now`` Tᵀ (MV-26)."""
    return stochastic_rows(np.stack([scipy.optimize.nnls(now, column)[0] for column in after.T]))


def state_probabilities(emissions: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """pi on the simplex with O pi = mean, by least squares (MV-25 5)."""
    found = scipy.optimize.nnls(emissions, mean)[0]
    total = found.sum()
    return found / total if total > 0 else np.full(emissions.shape[1], 1 / emissions.shape[1])


def stochastic_rows(J: np.ndarray) -> np.ndarray:
    """Rows scaled to sum to one; a row without mass becomes even."""
    J = np.maximum(J, 0.0)
    total = J.sum(axis=1, keepdims=True)
    return np.where(total > 0, J / np.where(total > 0, total, 1.0), 1 / J.shape[1])


def stationary_distribution(T: np.ndarray) -> np.ndarray:
    """p with p T = p and Σp = 1, least squares (MV-25 6); the one nearest to even if many."""
    k = len(T)
    A = np.concatenate([T.T - np.eye(k), np.ones((1, k))])
    even = np.full(k, 1 / k)
    b = np.concatenate([np.zeros(k), [1.0]]) - A @ even
    p = even + np.linalg.lstsq(A, b, rcond=1e-10)[0]
    return np.asarray(project_to_simplex(p[None])[0])


def second_eigenvalue(T: np.ndarray) -> float:
    """Modulus of the second eigenvalue: one for a chain that splits or is periodic."""
    values = np.sort(np.abs(np.linalg.eigvals(T)))
    return float(values[-2]) if len(values) > 1 else 0.0


def chain_of(states: np.ndarray, offsets: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Start (k,) and transitions (k, k) of known states, everything seen once more.

    ``offsets`` (S + 1,) are the places where sequences begin, and the end.
    """
    inside = np.ones(len(states), dtype=bool)
    inside[offsets[1:] - 1] = False
    t = np.flatnonzero(inside)
    J = np.bincount(states[t] * k + states[t + 1], minlength=k * k).reshape(k, k) + 1.0
    first = np.bincount(states[offsets[:-1]], minlength=k) + 1.0
    return first / first.sum(), stochastic_rows(J)
