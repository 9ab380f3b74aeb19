"""Moments of several views of one row: pairs, triples, scores, and views of one distribution.

The views stand side by side as columns of one table X (n, D); a view is a set of columns. Two
monoids gather what every route needs:

1. `PairSums`: E[x xᵀ] of all columns. Its off-diagonal blocks are P_uv of *every* way to group the
   columns into views, so any number of partitions is compared without another pass. For many
   columns `CrossProduct` applies one P_uv to a thin block instead.
2. `CoreSums`: means, pairs and the triple tensor of three groups of columns in given bases; the
   only third-order object, q1×q2×q3 with q_v = d_v for small views and k for large ones.

`ScoreSums` reads conditional second moments of one view off linear scores of the others (MV-17).

The features of the views stand side by side, l blocks of r columns. With y_v the coordinates of
view v, s = Σ_v y_v and Q = Σ_v y_v y_vᵀ, the sum over ordered triples of different views is
s⊗s⊗s - S₃(Q_v⊗s summed over v) + 2 Σ_v y_v⊗y_v⊗y_v: symmetric, without walking through triples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import (
    Array,
    Rows,
    array_namespace,
    in_double,
    like_one,
    row_signs,
    to_numpy,
    total_of,
)
from thirdmoment.linalg import add_products, blocks_of, outer_sum, symmetrise


class Sample(NamedTuple):
    """A chunk of rows, with the number of its first row in the whole table."""

    rows: Rows  # (m, D)
    weights: np.ndarray  # (m,)
    offset: int = 0
    split: np.ndarray | None = None  # (m,) weight in one half less that in the other (N-11)

    def halves(self) -> np.ndarray:
        """Weight of each row in one half less that in the other; without `split` all in one."""
        if self.split is not None:
            return self.split
        last = self.offset + self.weights.shape[0]
        return self.weights * row_signs(self.offset, last, like=self.weights)


class PairSums:
    """Mean and second moment of all columns, and the difference of two halves (N-11)."""

    def __init__(self, n_features: int) -> None:
        self.total = 0.0
        self.tilt = 0.0  # Σ s w, s = ±1 the half of a row
        self.first = np.zeros(n_features)
        self.second: Array = np.zeros((n_features, n_features))
        self.split: Array = np.zeros((n_features, n_features))  # Σ s w x xᵀ

    def update(self, chunk: Sample) -> PairSums:
        rows, w, split = chunk.rows, chunk.weights, chunk.halves()
        self.total += total_of(w)
        self.tilt += total_of(split)
        self.first += to_numpy(rows.weighted_sum(w))
        self.second += to_numpy(rows.second(w))
        self.split += to_numpy(rows.second(split))
        return self

    def merge(self, other: PairSums) -> PairSums:
        self.total += other.total
        self.tilt += other.tilt
        self.first += other.first
        self.second += other.second
        self.split += other.split
        return self

    @property
    def mean(self) -> np.ndarray:
        """E[x] (D,)."""
        return self.first / self.total

    @property
    def pairs(self) -> np.ndarray:
        """E[x xᵀ] (D, D); its block of two views is P_uv."""
        return self.second / self.total

    @property
    def noise(self) -> np.ndarray:
        """(P_A - P_B)/2 of the two halves (D, D), an estimate of the error of `pairs`."""
        tilt = self.tilt / self.total
        return (self.split / self.total - tilt * self.pairs) / max(1 - tilt**2, 1e-12)


class LineSums:
    """What `PairSums` holds without its matrices: mean and trace, for many columns."""

    def __init__(self, n_features: int) -> None:
        self.total = self.tilt = self.square = 0.0
        self.first = np.zeros(n_features)

    def update(self, chunk: Sample) -> LineSums:
        X = in_double(chunk.rows.toarray())
        w, xp = like_one(X, chunk.weights), array_namespace(X)
        self.total += float(xp.sum(w))
        self.tilt += total_of(chunk.halves())
        self.first += to_numpy(w @ X)
        self.square += float(w @ xp.sum(X * X, axis=1))
        return self

    def merge(self, other: LineSums) -> LineSums:
        self.total += other.total
        self.tilt += other.tilt
        self.first += other.first
        self.square += other.square
        return self


class CrossProduct:
    """P_uv Q without P_uv: X_uᵀ (w ⊙ (X_v Q_v)) for a block Q (D, q) with rows on view v.

    With ``halves`` one half of the rows less the other.
    """

    def __init__(self, Q: np.ndarray, *, halves: bool = False) -> None:
        self.Q, self.halves = Q, halves
        self.total = 0.0
        self.product = np.zeros(Q.shape)

    def update(self, chunk: Sample) -> CrossProduct:
        self.total += total_of(chunk.weights)
        weights = chunk.halves() if self.halves else chunk.weights
        self.product += to_numpy(chunk.rows.gram(weights, self.Q))
        return self

    def merge(self, other: CrossProduct) -> CrossProduct:
        self.total += other.total
        self.product += other.product
        return self

    def finish(self) -> np.ndarray:
        """E[x xᵀ] Q (D, q); its rows of view u are P_uv Q."""
        return self.product / self.total


class Core(NamedTuple):
    """Moments of three views in q1, q2, q3 coordinates: all that the solvers see."""

    means: tuple[np.ndarray, np.ndarray, np.ndarray]  # E[z_v] (q_v,)
    pairs: dict[tuple[int, int], np.ndarray]  # S_uv (q_u, q_v) for u != v
    triple: np.ndarray  # G (q1, q2, q3) = E[z_1⊗z_2⊗z_3]

    def arranged(self, order: tuple[int, int, int]) -> Core:
        """The views ``order`` as left, right, target."""
        pairs = {
            (a, b): self.pairs[order[a], order[b]] for a in range(3) for b in range(3) if a != b
        }
        means = tuple(self.means[v] for v in order)
        return Core(means, pairs, np.transpose(self.triple, order))  # type: ignore[arg-type]

    def corrected(self, a0: float) -> Core:
        """Less what proportions from a Dirichlet law of sum a0 explain (K-14); nothing at 0."""
        m1, m2, m3 = self.means
        S = self.pairs
        common = np.einsum("ab,c->abc", S[0, 1], m3) + np.einsum("ac,b->abc", S[0, 2], m2)
        common += np.einsum("bc,a->abc", S[1, 2], m1)
        triple = self.triple - a0 / (a0 + 2) * common
        triple += 2 * a0**2 / ((a0 + 1) * (a0 + 2)) * np.einsum("a,b,c->abc", m1, m2, m3)
        pairs = {
            (u, v): P - a0 / (a0 + 1) * np.outer(self.means[u], self.means[v])
            for (u, v), P in S.items()
        }
        return Core(self.means, pairs, triple)

    def projected(self, bases: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Core:
        """The same moments of U_vᵀ z_v, U_v (q_v, r_v)."""
        means = tuple(U.T @ m for U, m in zip(bases, self.means, strict=True))
        pairs = {(u, v): bases[u].T @ S @ bases[v] for (u, v), S in self.pairs.items()}
        triple: np.ndarray = np.einsum("abc,ai,bj,cl->ijl", self.triple, *bases, optimize=True)
        return Core(means, pairs, triple)


class CoreSums:
    """Moments of three groups of columns in bases V_v (D, q_v), zero outside their group (MV-3).

    Cost n·nnz_row·Σq + n·q1·q2·q3; memory q1·q2·q3.
    """

    def __init__(self, bases: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        self.sizes = [V.shape[1] for V in bases]
        self.basis = np.concatenate(bases, axis=1)
        q = self.basis.shape[1]
        self.total = 0.0
        self.first, self.second = np.zeros(q), np.zeros((q, q))
        self.third = np.zeros(tuple(self.sizes))

    def update(self, chunk: Sample) -> CoreSums:
        Z = in_double(chunk.rows.dot(self.basis))
        w = like_one(Z, chunk.weights)
        self.total += float(array_namespace(w).sum(w))
        self.first += to_numpy(w @ Z)
        self.second += to_numpy((Z * w[:, None]).T @ Z)
        one, two = self.sizes[0], self.sizes[0] + self.sizes[1]
        third = like_one(Z, np.zeros(self.third.shape))
        for block in blocks_of(Z):
            z = Z[block, :]
            add_products(third, z[:, :one] * w[block, None], z[:, one:two], z[:, two:])
        self.third += to_numpy(third)
        return self

    def merge(self, other: CoreSums) -> CoreSums:
        self.total += other.total
        self.first += other.first
        self.second += other.second
        self.third += other.third
        return self

    def finish(self) -> Core:
        edges = np.concatenate([[0], np.cumsum(self.sizes)])
        place = [slice(edges[v], edges[v + 1]) for v in range(3)]
        second = self.second / self.total
        pairs = {(u, v): second[place[u], place[v]] for u in range(3) for v in range(3) if u != v}
        means = tuple(self.first[place[v]] / self.total for v in range(3))
        return Core(means, pairs, self.third / self.total)  # type: ignore[arg-type]


class ScoreSums:
    """Σ w r_j x xᵀ of one view with linear scores r = offset + Rᵀx of the other views (MV-18).

    With r_j of mean one on component j and zero elsewhere, E[r_j x xᵀ]/w_j is the second moment of
    the view in component j. ``diagonal`` keeps only the diagonals. Cost n·d_v²·k or n·d_v·k.
    """

    def __init__(self, columns: np.ndarray, scores: np.ndarray, *, diagonal: bool = False) -> None:
        self.columns, self.scores, self.diagonal = columns, scores, diagonal
        d, k = len(columns), scores.shape[1]
        self.total = 0.0
        self.score = np.zeros(k)
        self.first = np.zeros((k, d))
        self.second = np.zeros((k, d) if diagonal else (k, d, d))
        self.plain_first = np.zeros(d)  # the same without scores
        self.plain_second = np.zeros(d if diagonal else (d, d))

    def update(self, chunk: Sample) -> ScoreSums:
        x = in_double(chunk.rows.columns(self.columns))
        w = like_one(x, chunk.weights)
        r = in_double(chunk.rows.dot(self.scores)) * w[:, None]
        xp = array_namespace(x)
        self.total += float(xp.sum(w))
        self.score += to_numpy(xp.sum(r, axis=0))
        self.first += to_numpy(r.T @ x)
        self.plain_first += to_numpy(w @ x)
        if self.diagonal:
            self.second += to_numpy(r.T @ (x * x))
            self.plain_second += to_numpy(w @ (x * x))
        else:
            self.plain_second += to_numpy((x * w[:, None]).T @ x)
            for j in range(r.shape[1]):
                self.second[j] += to_numpy((x * r[:, j : j + 1]).T @ x)
        return self

    def merge(self, other: ScoreSums) -> ScoreSums:
        self.total += other.total
        self.score += other.score
        self.first += other.first
        self.second += other.second
        self.plain_first += other.plain_first
        self.plain_second += other.plain_second
        return self


class ExchangeableMoments(NamedTuple):
    """Mean (q,), second (q, q) and third (q, q, q) moment of different views."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray

    def corrected(self, a0: float) -> ExchangeableMoments:
        """Less what proportions from a Dirichlet law of sum a0 explain (K-14); nothing at 0."""
        m = self.first
        third = self.third - a0 / (a0 + 2) * outer_sum(self.second, m)
        third = third + 2 * a0**2 / ((a0 + 1) * (a0 + 2)) * np.einsum("a,b,c->abc", m, m, m)
        second = self.second - a0 / (a0 + 1) * np.outer(m, m)
        return ExchangeableMoments(m, second, third)


def mean_pairs(pairs: np.ndarray, views: int) -> np.ndarray:
    """Average (r, r) of the off-diagonal blocks of E[x xᵀ] (l r, l r), symmetric (K-6)."""
    r = len(pairs) // views
    blocks = pairs.reshape(views, r, views, r)
    off = blocks.sum(axis=(0, 2)) - np.einsum("vavb->ab", blocks)
    return (off + off.T) / (2 * views * (views - 1))


class ExchangeableSums:
    """Moments in the coordinates y = Wᵀz, W (r, q). Cost n·l·(r q + q³)."""

    def __init__(self, W: np.ndarray, views: int) -> None:
        self.W, self.views = W, views
        q = W.shape[1]
        self.total = 0.0
        self.first, self.second = np.zeros(q), np.zeros((q, q))
        self.third = np.zeros((q, q, q))

    def update(self, chunk: Sample) -> ExchangeableSums:
        Z = to_numpy(chunk.rows.toarray())
        r, q = self.W.shape
        Y = Z.reshape(len(Z) * self.views, r) @ self.W
        Y = Y.reshape(len(Z), self.views, q)
        self.total += total_of(chunk.weights)
        for block in blocks_of(Z):
            y, w = Y[block], chunk.weights[block]
            s = y.sum(axis=1)
            flat, weight = y.reshape(-1, q), np.repeat(w, self.views)
            partner = np.repeat(s, self.views, axis=0)
            self.first += w @ s
            self.second += (s * w[:, None]).T @ s - (flat * weight[:, None]).T @ flat
            for i in range(q):
                own = (flat * (weight * flat[:, i])[:, None]).T
                self.third[i] += (s * (w * s[:, i])[:, None]).T @ s
                # three places for the odd view, one of them here: symmetrised at the end
                self.third[i] += own @ (2 * flat - 3 * partner)
        return self

    def merge(self, other: ExchangeableSums) -> ExchangeableSums:
        self.total += other.total
        self.first += other.first
        self.second += other.second
        self.third += other.third
        return self

    def finish(self) -> ExchangeableMoments:
        pairs = self.views * (self.views - 1)
        third = symmetrise(self.third) / (self.total * pairs * (self.views - 2))
        second = (self.second + self.second.T) / (2 * self.total * pairs)
        return ExchangeableMoments(self.first / (self.total * self.views), second, third)
