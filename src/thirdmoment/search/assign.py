"""Rows to components, by the likelihood of a mixture that starts at the hints.

Moments see spherical components only. Segments of photographs, and most groups in real tables, are
not: elliptical components started at the labelled rows themselves find them better
(docs/decisions/search.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.likelihood.gaussians import Block, Spherical
from thirdmoment.likelihood.mixture import MixtureData, Parameters, log_joint
from thirdmoment.refinement.mixture import mixture_em
from thirdmoment.starts.given_gaussian import Shape, around_means

# Rows that the refinement looks at, and its EM steps.
ASSIGN_ROWS = 40_000
ASSIGN_STEPS = 30

# Smallest variance, as a share of that of the column that varies least.
FLOOR = 1e-4


class Assigner(NamedTuple):
    """A mixture that says which component a row belongs to."""

    family: Spherical | Block
    parameters: Parameters

    def labels(self, X: np.ndarray) -> np.ndarray:
        """Most probable component (n,) of rows in the units of the start."""
        chunk = self.family.rows(X, np.ones(len(X)))
        return np.argmax(log_joint(self.family, self.parameters, chunk), axis=0)


def assigner(X: np.ndarray, weights: np.ndarray, means: np.ndarray, *, n_threads: int) -> Assigner:
    """Gaussian components of centred rows from ``means`` (k, d), spherical or full by BIC."""
    d, k, total = X.shape[1], len(means), float(weights.sum())
    spread = weights @ (X * X) / total
    varies = spread[spread > 1e-12 * spread.max()]
    floor = max(FLOOR * float(varies.min()), 1e-100) if len(varies) else 1e-100
    whole = [np.arange(d)]
    spreads: list[tuple[str, Spherical | Block, int]] = [("spherical", Spherical(floor), k)]
    full = k * d * (d + 1) // 2
    if full < total:  # more numbers than rows cannot pay
        spreads.append(("full", Block(floor, whole), full))
    best, highest = None, -np.inf
    for kind, family, numbers in spreads:
        data = MixtureData([family.rows(X, weights)])
        start = family.project(around_means(X, weights, means, Shape(kind, whole)))
        found = mixture_em(
            family, data, start, tol=0.02, max_steps=ASSIGN_STEPS, n_threads=n_threads
        )
        value = total * found.path[-1] - 0.5 * (k * d + k - 1 + numbers) * np.log(total)
        if best is None or value > highest:
            best, highest = Assigner(family, found.parameters), value
    assert best is not None
    return best
