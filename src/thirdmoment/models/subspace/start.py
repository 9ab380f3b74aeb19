"""Starts of subspace clustering: groups of whitened rows, or flats through few rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import DenseRows
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.candidates import MomentFacts
from thirdmoment.moments.subspace import subspace_whitening
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.refinement.spread import covering_labels, draw_rows, weight_quantiles
from thirdmoment.refinement.subspaces import Flats, fit_flats, leading_directions
from thirdmoment.streaming import fold, row_ranges

# Rows whose whitened cosines are compared, and the power that sharpens these.
ANCHORS = 1_000
SHARPNESS = 8

# Flats through few rows that are tried where the moments are of no use, on so many rows.
DRAWN_FLATS = 300
DRAWN_ROWS = 1_000


class SubspaceData(NamedTuple):
    """Rows in units of their own size, with a constant column for affine subspaces."""

    X: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    affine: bool

    def homogeneous(self) -> np.ndarray:
        """Rows with a constant: an affine subspace is then a linear one of one more dimension."""
        if not self.affine:
            return self.X
        return np.concatenate([self.X, np.ones((len(self.X), 1))], axis=1)


def check_dimensions(k: int, p: int, d: int, *, affine: bool = False) -> None:
    """k independent subspaces of dimension p must fit into d columns."""
    kind, size, room = ("affine ", p + 1, d + 1) if affine else ("", p, d)
    if k * size > room:
        raise InvalidInput(
            f"n_components={k} independent {kind}subspaces of subspace_dim={p} need "
            f"{k * size - int(affine)} columns, but X has {d} (n_features = {d})."
        )


def grouped_flats(
    data: SubspaceData, k: int, p: int, rng: np.random.Generator, *, n_threads: int
) -> tuple[Flats, MomentFacts]:
    """Flats by the groups that whitened rows fall into, and what the second moment showed.

    Whitened rows of different independent subspaces are orthogonal (SR-24), so the cosines of some
    of them fall into groups. All rows go to the group whose span holds most of them.
    """
    Z, w = data.homogeneous(), data.weights
    size = p + int(data.affine)
    check_dimensions(k, p, data.X.shape[1], affine=data.affine)
    chunks = [Sample(DenseRows(Z[a:b]), w[a:b], a) for a, b in row_ranges(len(Z))]
    sums = fold(lambda: PairSums(Z.shape[1]), chunks, n_threads=n_threads)
    white = subspace_whitening(sums, k * size)
    anchors = weight_quantiles(Z, w, ANCHORS)
    groups = cosine_groups(Z[anchors] @ white.W, k, rng)
    spans = [leading_directions(Z[anchors[groups == j]], size) for j in range(k)]
    labels = np.argmax([((Z @ span) ** 2).sum(axis=1) for span in spans], axis=0)
    facts = MomentFacts(
        white.spectrum,
        float(np.linalg.norm(sums.noise, 2)),
        np.nan,
        np.bincount(groups, minlength=k) / len(groups),
        np.zeros(k),
        "cosines",
        1,
        {"noise_variance": white.sigma2, "anchors": len(anchors)},
    )
    return flats_from_labels(data, labels, k, p), facts


def cosine_groups(Y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Groups (m,) of whitened rows by spectral clustering of their sharpened cosines."""
    from sklearn.cluster import SpectralClustering

    if k == 1 or len(Y) <= k:
        return np.arange(len(Y)) % k
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    unit = Y / np.where(length > 0, length, 1.0)
    affinity = np.abs(unit @ unit.T) ** SHARPNESS + 1e-12
    found = SpectralClustering(
        k, affinity="precomputed", random_state=int(rng.integers(2**31)), n_init=3
    ).fit_predict((affinity + affinity.T) / 2)
    return np.asarray(found)


def drawn_labels(
    data: SubspaceData, k: int, p: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Some rows and their labels by flats through as few rows as determine them."""
    rows = weight_quantiles(data.X, data.weights, DRAWN_ROWS)
    X = data.X[rows]
    w = data.weights[rows] if len(rows) == len(data.X) else np.ones(len(rows))
    drawn = draw_rows(X, w, (DRAWN_FLATS, p + int(data.affine)), rng)
    residual = np.empty((DRAWN_FLATS, len(X)))
    for i, few in enumerate(drawn):
        centre = X[few[0]] if data.affine else np.zeros(X.shape[1])
        basis = np.linalg.qr((X[few] - centre).T[:, int(data.affine) :])[0]
        rest = X - centre
        rest = rest - (rest @ basis) @ basis.T
        residual[i] = np.einsum("ad,ad->a", rest, rest)
    return rows, covering_labels(residual, w, k)


def flats_from_labels(
    data: SubspaceData, labels: np.ndarray, k: int, p: int, rows: np.ndarray | None = None
) -> Flats:
    """Principal components of each label's rows; empty labels get those of all rows."""
    X = data.X if rows is None else data.X[rows]
    w = data.weights if rows is None else data.weights[rows]
    d = X.shape[1]
    whole = fit_flats(
        X, w, np.zeros(len(X), dtype=int), Flats(np.zeros((1, d)), np.eye(d)[None, :, :p]),
        affine=data.affine,
    )  # fmt: skip
    before = Flats(np.repeat(whole.centres, k, axis=0), np.repeat(whole.bases, k, axis=0))
    return fit_flats(X, w, labels, before, affine=data.affine)
