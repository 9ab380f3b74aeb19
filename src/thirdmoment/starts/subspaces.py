"""Starts of subspace clustering, and what either half of the rows makes of the answer.

Rows of a cloud without structure lie near k subspaces too, and halves of them agree on which.
Gaussian rows with the same covariance show how near: k subspaces are there if the rows lie clearly
nearer than those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg

from thirdmoment._array import DenseRows
from thirdmoment._constants import Choice, Wording
from thirdmoment.exceptions import InvalidInput
from thirdmoment.moments.gaussian import subspace_whitening
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.refinement.halves import matched_overlap
from thirdmoment.refinement.spread import (
    DRAWS,
    copies_by_weight,
    covering_labels,
    draw_rows,
    k_means_labels,
    spread_centres,
)
from thirdmoment.refinement.subspaces import Flats, dimension, fit_flats, leading_directions
from thirdmoment.starts.start import MomentFacts
from thirdmoment.streaming import fold, row_ranges

# Rows whose whitened cosines are compared, and the power that sharpens these.
ANCHORS: Choice[int] = 1_000
SHARPNESS: Choice[int] = 8

# Runs of k-means on the spectral coordinates, of which the tightest counts.
GROUPINGS: Choice[int] = 3

# Flats through few rows that are tried where the moments are of no use, on so many rows.


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


def check_dimensions(dims: Sequence[int], d: int, *, affine: bool = False) -> None:
    """Independent subspaces of these dimensions must fit into d columns."""
    k = len(dims)
    kind, room = ("affine ", d + 1) if affine else ("", d)
    together = sum(dims) + k * int(affine)
    if together > room:
        each = dims[0] if len(set(dims)) == 1 else list(dims)
        raise InvalidInput(
            f"n_components={k} independent {kind}subspaces of subspace_dim={each} need "
            f"{together - int(affine)} columns, but X has {d} (n_features = {d})."
        )


def grouped_labels(
    data: SubspaceData,
    k: int,
    dims: Sequence[int] | None,
    rng: np.random.Generator,
    *,
    n_threads: int,
) -> tuple[np.ndarray, MomentFacts]:
    """Groups (n,) that whitened rows fall into, and what the second moment showed.

    Whitened rows of different independent subspaces are orthogonal (SR-24), so the cosines of some
    of them fall into groups. All rows go to the group whose span holds most of them. With None the
    dimensions of all subspaces together are those that the second moment shows.
    """
    Z, w = data.homogeneous(), data.weights
    chunks = [Sample(DenseRows(Z[a:b]), w[a:b], a) for a, b in row_ranges(len(Z))]
    sums = fold(lambda: PairSums(Z.shape[1]), chunks, n_threads=n_threads)
    if dims is None:
        values = np.maximum(np.linalg.eigvalsh(sums.pairs)[::-1], 0.0)
        together = max(dimension(values, float(w.sum())), k * (1 + int(data.affine)))
        sizes = [together // k] * k
    else:
        sizes = [p + int(data.affine) for p in dims]
        together = sum(sizes)
    white = subspace_whitening(sums, together)
    anchors = copies_by_weight(w, ANCHORS)
    groups = cosine_groups(Z[anchors] @ white.W, k, rng)
    if len(set(sizes)) == 1 and dims is not None:
        spans = [leading_directions(Z[anchors[groups == j]], sizes[j]) for j in range(k)]
        labels = np.argmax([((Z @ span) ** 2).sum(axis=1) for span in spans], axis=0)
    else:  # dimensions differ: the nearest anchor by cosine has no favourite
        labels = _nearest_group(Z @ white.W, anchors, groups)
    facts = MomentFacts(
        white.spectrum,
        float(np.linalg.norm(sums.noise, 2)),
        np.nan,
        np.bincount(groups, minlength=k) / len(groups),
        np.zeros(k),
        "cosines",
        {
            "passes": 1,
            "noise_variance": white.sigma2,
            "anchors": len(anchors),
            "dimensions": together,
        },
    )
    return labels, facts


def _nearest_group(Y: np.ndarray, anchors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Group of the anchor with the largest cosine to each whitened row."""
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    unit = Y / np.where(length > 0, length, 1.0)
    ends = unit[anchors].T
    nearest = [np.argmax(np.abs(unit[a:b] @ ends), axis=1) for a, b in row_ranges(len(unit))]
    return groups[np.concatenate(nearest)]


def cosine_groups(Y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Groups (m,) of whitened rows by spectral clustering of their sharpened cosines.

    Written out, for scikit-learn's runs on OpenMP and hangs in a process forked after a fit.
    """
    if k == 1 or len(Y) <= k:
        return np.arange(len(Y)) % k
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    unit = Y / np.where(length > 0, length, 1.0)
    affinity = np.abs(unit @ unit.T) ** SHARPNESS + 1e-12
    np.fill_diagonal(affinity, 0.0)  # or rows without neighbours would be groups
    root = 1 / np.sqrt(affinity.sum(axis=1))
    scaled = affinity * root[:, None] * root
    size = len(scaled)
    _, vectors = scipy.linalg.eigh(scaled, subset_by_index=[size - k, size - 1])
    places = vectors * root[:, None]
    runs = [_k_means(places, k, rng) for _ in range(GROUPINGS)]
    return min(runs, key=lambda run: run[1])[0]


def _k_means(X: np.ndarray, k: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Labels by k-means from spread-out rows, and what they leave."""
    ones = np.ones(len(X))
    labels = k_means_labels(X, ones, spread_centres(X, ones, k, rng, greedy=True), rounds=100)
    member = np.eye(k)[labels]
    means = member.T @ X / np.maximum(member.sum(axis=0), 1.0)[:, None]
    return labels, float(((X - means[labels]) ** 2).sum())


def drawn_labels(
    data: SubspaceData, k: int, p: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Some rows and their labels by flats through as few rows as determine them."""
    rows = copies_by_weight(data.weights, ANCHORS)
    X, w = data.X[rows], np.ones(len(rows))
    drawn = draw_rows(w, (DRAWS, p + int(data.affine)), rng)
    residual = np.empty((DRAWS, len(X)))
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
    w = data.weights if rows is None else np.ones(len(rows))  # drawn by weight
    d = X.shape[1]
    whole = fit_flats(
        X, w, np.zeros(len(X), dtype=int), Flats(np.zeros((1, d)), np.eye(d)[None, :, :p]),
        affine=data.affine,
    )  # fmt: skip
    before = Flats(np.repeat(whole.centres, k, axis=0), np.repeat(whole.bases, k, axis=0))
    return fit_flats(X, w, labels, before, affine=data.affine)


# Gaussian clouds to compare with, and the share of their squared distance from which on rows lie no
# nearer: clouds of 300 to 1,000 rows had 0.95 to 1.04, subspaces with little noise 0.04 to 0.7.
CLOUDS: Wording[int] = 3
NO_NEARER: Wording[float] = 0.9

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
