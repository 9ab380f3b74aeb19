"""Topics and Dirichlet parameters from the components of a whitened tensor (N-6, TF-10, TF-11)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.optimize

from thirdmoment._array import Array, array_namespace, to_numpy
from thirdmoment.linalg.simplex import project_in_place, project_to_simplex


class TopicEstimate(NamedTuple):
    """Topics in the order of their components, before and after projection."""

    topics: Array  # (k, d) rows on the simplex
    weights: np.ndarray  # (k,) share of each topic, sums to one
    raw_weights: np.ndarray  # (k,) the share that λ_i implies, before any constraint
    clipped_mass: np.ndarray  # (k,) mass of negative entries before projection
    scale: np.ndarray  # (k,) s_i of TF-10, one in the population
    spurious: int  # components whose raw mass was not positive

    def reordered(self, order: np.ndarray) -> TopicEstimate:
        """The components ``order``, or some of them, with all that belongs to each."""
        return self._replace(
            topics=self.topics[order],
            weights=self.weights[order],
            raw_weights=self.raw_weights[order],
            clipped_mass=self.clipped_mass[order],
            scale=self.scale[order],
        )


def recover_topics(values: Array, v: np.ndarray, mean: np.ndarray, alpha0: float) -> TopicEstimate:
    """Topics o_i = v_i/(1ᵀv_i) with v_i = B θ_i, projected on the simplex (TF-10, N-7).

    Parameters
    ----------
    values : (k,)
        λ_i > 0 of the whitened tensor.
    v : (k, d)
        B θ_i, with B the un-whitener; the topics are written over it.
    mean : (d,)
        Mean word distribution mu; the weights solve min ‖O z - mu‖ over z >= 0 (third form of
        TF-11).
    alpha0 : float
        Total concentration; zero for the single-topic model.
    """
    lam = to_numpy(values).astype(np.float64)
    mass, size = v.sum(axis=1), np.array([np.abs(row).sum() for row in v])
    sign = np.where(mass < 0, -1.0, 1.0)
    v *= (sign / np.maximum(np.maximum(np.abs(mass), 1e-12 * size), 1e-300))[:, None]
    clipped = np.array([-row[row < 0].sum() for row in v])
    topics = project_in_place(v)
    lam = np.maximum(lam, 1e-300)
    return TopicEstimate(
        topics,
        topic_shares(topics, mean),
        4 * (alpha0 + 1) / ((alpha0 + 2) ** 2 * lam**2),
        clipped,
        lam * (alpha0 + 2) / 2 * mass,
        int(np.sum(mass <= 0)),
    )


def recover_tensors(values: Array, v: Array, mean: Array, alpha0: float) -> TopicEstimate:
    """`recover_topics` on the device that holds v (k, d), where the topics stay."""
    xp = array_namespace(v)
    lam = np.maximum(to_numpy(values).astype(np.float64), 1e-300)
    mass, size = xp.sum(v, axis=1), xp.sum(xp.abs(v), axis=1)
    floor = xp.clip(1e-12 * size, min=1e-300)
    least = xp.where(xp.abs(mass) > floor, xp.abs(mass), floor)
    v = v * (xp.where(mass < 0, -1.0, 1.0) / least)[:, None]
    clipped = xp.sum(xp.where(v < 0, -v, 0.0), axis=1)
    topics = project_to_simplex(v)
    mass = to_numpy(mass)
    return TopicEstimate(
        topics,
        _shares_by_products(to_numpy(topics @ topics.T), to_numpy(topics @ mean)),
        4 * (alpha0 + 1) / ((alpha0 + 2) ** 2 * lam**2),
        to_numpy(clipped),
        lam * (alpha0 + 2) / 2 * mass,
        int(np.sum(mass <= 0)),
    )


def _shares_by_products(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`topic_shares` from OᵀO (k, k) and Oᵀmu (k,): min ‖Rz - R⁻ᵀOᵀmu‖ with RᵀR = OᵀO."""
    values, E = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    z, _ = scipy.optimize.nnls(root[:, None] * E.T, (E.T @ right) / root)
    return z / z.sum() if z.sum() > 0 else np.full(len(gram), 1 / len(gram))


def topic_shares(topics: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Shares z >= 0, Σz = 1, that explain the mean word distribution best: min ‖Oz - mu‖ (N-8)."""
    z, _ = scipy.optimize.nnls(topics.T, mean)
    return z / z.sum() if z.sum() > 0 else np.full(len(topics), 1 / len(topics))
