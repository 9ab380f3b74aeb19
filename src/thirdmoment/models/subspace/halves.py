"""What either half of the rows makes of fitted subspaces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from thirdmoment.models.subspace.start import SubspaceData
from thirdmoment.refinement.halves import Examined, Pieces, matched_overlap
from thirdmoment.refinement.layers import Layers, fit_layers, log_densities

Halves = list[tuple[np.ndarray, np.ndarray]]


def examine_subspaces(
    data: SubspaceData,
    labels: np.ndarray,
    halves: Halves,
    fit: Callable[[SubspaceData, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Examined:
    """Rows that each subspace keeps, and the likelihood of a row over that by a single subspace.

    ``fit`` goes on from the labels of some rows, and gives those of the same rows and of all. The
    single subspace has the dimensions of all together.
    """
    k = int(labels.max()) + 1
    shares, found = [], []
    for place, w in halves:
        part = SubspaceData(data.X[place], w, data.affine)
        own, every = fit(part, labels[place])
        shares.append(np.eye(k)[every] * data.weights[:, None])
        found.append((_layers(part, own, k, None), part))
    rise = []
    for (layers, part), (_, other) in (found, found[::-1]):
        dims = int(layers.dims.sum()) + (k - 1) * int(data.affine)
        one = _layers(part, np.zeros(len(part.X), dtype=int), 1, dims)
        scores = [logsumexp(log_densities(other.X, law), axis=1) for law in (layers, one)]
        rise.append(scores[0] - scores[1])
    weights = np.concatenate([w for _, w in halves[::-1]])
    pieces = Pieces(weights, np.ones(len(weights)))
    against = "by a single subspace"
    gain = pieces.mean_gain(np.concatenate(rise), against=against, unit="row")
    return Examined(matched_overlap(*shares), (gain,))


def _layers(data: SubspaceData, labels: np.ndarray, k: int, dims: int | None) -> Layers:
    """Densities of labelled rows; a dimension must leave room for noise."""
    most = min(data.X.shape[1], len(data.X)) - 1
    given = None if dims is None else [max(1, min(dims, most))] * k
    return fit_layers(data.X, data.weights, labels, k, given, affine=data.affine)
