"""What either half of the rows makes of fitted subspaces, and whether there are any.

Rows of a cloud without structure lie near k subspaces too, and halves of them agree on which.
Gaussian rows with the same covariance show how near: k subspaces are there if the rows lie clearly
nearer than those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thirdmoment.refinement.halves import matched_overlap
from thirdmoment.starts.subspaces import SubspaceData

# Gaussian clouds to compare with, and the share of their squared distance from which on rows lie no
# nearer: clouds of 300 to 1,000 rows had 0.95 to 1.04, subspaces with little noise 0.04 to 0.7.
CLOUDS = 3
NO_NEARER = 0.9

# Goes on from the labels of some rows: the distance (n, k) of any rows to the subspaces.
Fit = Callable[[SubspaceData, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def trust_of_subspaces(
    data: SubspaceData,
    labels: np.ndarray,
    halves: list[tuple[np.ndarray, np.ndarray]],
    fit: Fit,
) -> np.ndarray:
    """Share (k,) of its rows that each subspace keeps when either half is fitted by itself."""
    shares = []
    for place, w in halves:
        distance = fit(SubspaceData(data.X[place], w, data.affine), labels[place])(data.X)
        nearest = np.eye(distance.shape[1])[np.argmin(distance, axis=1)]
        shares.append(nearest * data.weights[:, None])
    return matched_overlap(*shares)


def nearness(data: SubspaceData, labels: np.ndarray, fit: Fit, rng: np.random.Generator) -> float:
    """Squared distance of the rows to their subspaces over that of Gaussian rows to theirs."""
    here = fit(data, labels)
    own = _mean_distance(data, here(data.X))
    middle = data.weights @ data.X / data.weights.sum() if data.affine else 0.0
    root = np.sqrt(data.weights / data.weights.sum())[:, None]
    _, sizes, axes = np.linalg.svd((data.X - middle) * root, full_matrices=False)
    found = []
    for _ in range(CLOUDS):
        rows = rng.standard_normal((len(data.X), len(sizes))) * sizes @ axes + middle
        cloud = data._replace(X=rows)
        found.append(_mean_distance(cloud, fit(cloud, np.argmin(here(rows), axis=1))(rows)))
    return own / max(float(np.mean(found)), 1e-300)


def _mean_distance(data: SubspaceData, distance: np.ndarray) -> float:
    return float(data.weights @ distance.min(axis=1)) / float(data.weights.sum())
