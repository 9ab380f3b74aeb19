"""Starts that race with the moments where these are not clear: k-means, Gaussian components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment.likelihood.gaussians import Block, Diagonal
from thirdmoment.likelihood.mixture import (
    MixtureData,
    Parameters,
    from_posteriors,
    log_joint,
    posteriors,
)
from thirdmoment.refinement.mixture import MixtureProblem
from thirdmoment.refinement.race import race
from thirdmoment.refinement.spread import k_means_labels, spread_centres
from thirdmoment.starts.kernel import KernelRows
from thirdmoment.starts.propose import SPREAD_STARTS
from thirdmoment.starts.start import Settings

GAUSSIAN_STEPS = 100

# The race of Gaussian components looks at this many rows.
GAUSSIAN_ROWS = 20_000

# Variance floor of standardised columns.
VARIANCE_FLOOR = 1e-4


def other_shares(
    rows: KernelRows,
    shares: Sequence[np.ndarray],
    k: int,
    settings: Settings,
    *,
    count: int | None = None,
) -> list[tuple[str, np.ndarray]]:
    """Names and shares (n, k) of the components in the rows, from ``count`` groups by k-means.

    ``shares`` has the posteriors of the moment starts. Gaussian components race from these and
    from k-means: their shape is wrong, but has few parameters and leads out of false optima.
    """
    X, weights, rng = rows.X, rows.weights, settings.rng
    groups = [view.columns for view in rows.views]
    if k == 1:
        return [("all rows", np.ones((len(X), 1)))]
    used = np.concatenate(groups)
    centre = weights @ X / weights.sum()
    scale = np.sqrt(weights @ (X - centre) ** 2 / weights.sum())
    Z = ((X - centre) / np.where(scale > 0, scale, 1.0))[:, used]
    first = k_means_labels(Z, weights, spread_centres(Z, weights, k, rng), rounds=30)
    part = np.arange(len(Z))
    if len(Z) > GAUSSIAN_ROWS:
        part = np.sort(rng.choice(len(Z), GAUSSIAN_ROWS, replace=False))
    begin = [share[part] for share in shares] + [np.eye(k)[first[part]]]
    for _ in range((SPREAD_STARTS if count is None else count) - 1):
        centres = spread_centres(Z[part], weights[part], k, rng)
        begin.append(np.eye(k)[k_means_labels(Z[part], weights[part], centres, rounds=30)])
    family = _family(groups)
    data = MixtureData([family.rows(Z[part], weights[part])])
    starts = [from_posteriors(family, data, share) for share in begin]
    problem = MixtureProblem(family, data, 0.1, settings.n_threads)
    found = race(problem, starts, max_steps=GAUSSIAN_STEPS, max_swaps=8)
    gaussian = _shares(family, found.parameters, Z, weights)
    return [("k-means", np.eye(k)[first]), ("Gaussian components", gaussian)]


def _family(groups: Sequence[np.ndarray]) -> Diagonal | Block:
    """Gaussian components, dependent within views only."""
    if all(len(group) == 1 for group in groups):
        return Diagonal(VARIANCE_FLOOR)
    sizes = [len(group) for group in groups]
    return Block(VARIANCE_FLOOR, np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))


def _shares(
    family: Diagonal | Block, parameters: Parameters, Z: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    return posteriors(log_joint(family, parameters, family.rows(Z, weights)))[0].T
