"""Components of views as a mixture that halves of the rows can judge by likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment.likelihood.gaussians import Block, Diagonal, with_floor
from thirdmoment.likelihood.mixture import Family, MixtureData, Parameters
from thirdmoment.models.units import BELIEVABLE
from thirdmoment.refinement.race import Refined


def view_part(
    X: Any,
    weights: np.ndarray,
    means: np.ndarray,
    covariances: list[np.ndarray],
    groups: list[np.ndarray],
) -> tuple[Callable[[np.ndarray, np.ndarray], tuple[Family, MixtureData]], Refined]:
    """Some rows of X with other weights as a mixture, and the components as its answer.

    Where one view has variances only, wide as it is, no other covariance is looked at.
    """
    plain = any(cov.ndim == 2 for cov in covariances)
    family: Any = Diagonal(BELIEVABLE) if plain else Block(BELIEVABLE, groups)

    def part(place: np.ndarray, some: np.ndarray) -> tuple[Family, MixtureData]:
        rows = X[place].toarray() if sp.issparse(X) else X[place]
        return family, MixtureData([family.rows(rows.astype(np.float64), some)])

    spreads = [at_least(cov, BELIEVABLE) for cov in covariances]
    if plain:
        variances = np.ones_like(means)
        for group, cov in zip(groups, spreads, strict=True):
            full = cov.ndim == 3
            variances[:, group] = np.diagonal(cov, axis1=1, axis2=2) if full else cov
        spreads = [variances]
    return part, as_refined(family.project((weights, means, *spreads)))


def as_refined(parameters: Parameters) -> Refined:
    """Parameters that no likelihood has refined."""
    return Refined(parameters)


def at_least(covariances: np.ndarray, floor: float) -> np.ndarray:
    """Variances (k, d), or covariances (k, d, d), with nothing below the floor."""
    if covariances.ndim == 2:
        return np.maximum(covariances, floor)
    return with_floor(covariances, floor)


def as_full(covariance: np.ndarray) -> np.ndarray:
    if covariance.ndim == 3:
        return covariance
    return covariance[:, :, None] * np.eye(covariance.shape[1])
