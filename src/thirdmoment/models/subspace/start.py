"""Starts of subspace clustering: searches from groups of rows, or flats through few rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import DenseRows, row_signs
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.candidates import MomentFacts
from thirdmoment.moments.directed import DirectedGram, DirectedRows
from thirdmoment.moments.subspace import SubspaceWhitening, directed_subspace, subspace_whitening
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.recovery.search import subspace_search
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


def check_dimensions(k: int, p: int, d: int) -> None:
    """k independent subspaces of dimension p must fit into d columns."""
    if k * p > d:
        raise InvalidInput(
            f"n_components={k} subspaces of subspace_dim={p} need {k * p} dimensions, but X has "
            f"{d} columns (n_features = {d}). Lower one of the two."
        )


def searched_labels(
    data: SubspaceData, k: int, p: int, rng: np.random.Generator, *, n_threads: int
) -> tuple[np.ndarray, np.ndarray, MomentFacts]:
    """Labels of all rows by k searches, labels by the groups that seeded them, and the facts.

    Whitened rows of different independent subspaces are orthogonal, so the cosines of some of them
    fall into groups. The rows of each group are the labels of one search (SR-23, SR-24), which
    looks at all rows.
    """
    Z, w = data.homogeneous(), data.weights
    size = p + int(data.affine)
    check_dimensions(k, size, Z.shape[1])
    chunks = [Sample(DenseRows(Z[a:b]), w[a:b], a) for a, b in row_ranges(len(Z))]
    sums = fold(lambda: PairSums(Z.shape[1]), chunks, n_threads=n_threads)
    white = subspace_whitening(sums, k * size)
    Y = Z @ white.W
    anchors = weight_quantiles(Z, w, ANCHORS)
    groups = cosine_groups(Y[anchors], k, rng)
    bases = [
        _search(Y, w, white, Y[anchors[groups == j]].T, size, n_threads=n_threads) for j in range(k)
    ]
    own = [leading_directions(Z[anchors[groups == j]], size) for j in range(k)]
    facts = MomentFacts(
        white.spectrum,
        float(np.linalg.norm(sums.noise, 2)),
        np.nan,
        np.bincount(groups, minlength=k) / len(groups),
        np.zeros(k),
        "search",
        2,
        {"noise_variance": white.sigma2, "anchors": len(anchors)},
    )
    return nearest_linear(Z, bases), nearest_linear(Z, own), facts


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


def _search(
    Y: np.ndarray,
    weights: np.ndarray,
    white: SubspaceWhitening,
    c: np.ndarray,
    p: int,
    *,
    n_threads: int,
) -> np.ndarray:
    """Basis (d, p) of the subspace that holds most of the whitened labels c (q, j)."""
    if not c.size or not np.any(c):
        c = np.eye(len(white.eta))[:, :1]
    c = c / np.abs(c).max()
    score = np.einsum("aj,aj->a", Y @ c, Y @ c) * weights / weights.sum()
    blocks = (DirectedRows(Y[a:b], score[a:b], row_signs(a, b)) for a, b in row_ranges(len(Y)))
    raw = fold(DirectedGram, blocks, n_threads=n_threads).finish()
    R = directed_subspace(raw.whole, white, white.W @ c)
    return subspace_search(R, white.unwhitener, p, single=c.shape[1] == 1).basis


def nearest_linear(Z: np.ndarray, bases: list[np.ndarray]) -> np.ndarray:
    """The basis whose span holds most of each row."""
    return np.argmax([((Z @ basis) ** 2).sum(axis=1) for basis in bases], axis=0)


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
