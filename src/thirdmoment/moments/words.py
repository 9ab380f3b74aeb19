"""Unbiased moments of words from count vectors (TF-1 to TF-8), never as a d×d or d³ object.

A document with counts c and length L gives all its ordered pairs and triples of *distinct*
positions, F2(c) = c⊗c - diag(c) and F3(c), divided by their number; documents are averaged with
weights that depend on the length only, which leaves the moments unbiased (TF-2).

Three passes, three monoids (``update`` a chunk, ``merge`` another one):

1. `WordSums`: mean word distribution, the diagonals of the corrections, the number of documents.
2. `PairsProduct`: Pairs applied to a thin block Q; repeated by the eigensolver.
3. `TripleSums`: Triples already contracted with a thin W; or `TriplesProduct`, matrix-free.

The Dirichlet corrections (N-4) come last, from the finished sums (`adjusted_moments`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import (
    Array,
    Rows,
    array_namespace,
    is_tensors,
    like_one,
    to_numpy,
)
from thirdmoment.linalg import (
    add_symmetric_cube,
    add_symmetric_products,
    blocks_of,
    contract,
    fill_pairs,
    fill_symmetric,
    outer_sum,
    sum_of_axes,
)


class Corrections(NamedTuple):
    """Coefficients b2, b1, b3 of N-4: one moment family for all exchangeable models."""

    b2: float
    b1: float
    b3: float


def dirichlet_corrections(alpha0: float) -> Corrections:
    """LDA with total concentration alpha0; alpha0 = 0 is the single-topic model (TF-9)."""
    return Corrections(
        alpha0 / (alpha0 + 1),
        alpha0 / (alpha0 + 2),
        2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)),
    )


# Independent factors: central moments of the second and third order (TF-18, TF-22).
FACTOR_CORRECTIONS = Corrections(1.0, 1.0, 2.0)


class Documents(NamedTuple):
    """A chunk of documents, each in one of two halves of the corpus.

    All is on the host, or all on the device of the rows.
    """

    rows: Rows
    lengths: Array  # (m,)
    weights: Array  # (m,) sample weights
    signs: Array  # (m,) ±1, the half of each document


class DocumentWeights(NamedTuple):
    """omega divided by the number of ordered tuples of distinct positions, each (m,)."""

    single: Array  # omega / L
    pair: Array  # omega / (L (L-1)), zero for L < 2
    triple: Array  # omega / (L (L-1)(L-2)), zero for L < 3


def document_weights(chunk: Documents, half_length: float | None) -> DocumentWeights:
    """Weights of documents by length: omega = sample_weight · L/(L + half_length).

    The variance of a document's own contribution is a constant (its topics are one draw) plus a
    part that falls like 1/L (its words), so longer documents count more, up to a limit.
    half_length = 0 is the plain estimator of the paper, every document alike. None leaves the
    factorial moments undivided, for Poisson counts whose length carries the signal (TF-22).
    """
    L = chunk.lengths
    if half_length is None:
        return DocumentWeights(chunk.weights, chunk.weights, chunk.weights)
    xp = array_namespace(L)
    omega = chunk.weights * (L / (L + half_length) if half_length else xp.ones_like(L))
    single = xp.where(L > 0, omega / xp.where(L > 0, L, 1.0), 0.0)
    pair = xp.where(L >= 2, single / xp.where(L >= 2, L - 1, 1.0), 0.0)
    triple = xp.where(L >= 3, pair / xp.where(L >= 3, L - 2, 1.0), 0.0)
    return DocumentWeights(single, pair, triple)


class WordSums:
    """First pass: unnormalised sums over the documents of either half, on the host."""

    def __init__(self, n_features: int, half_length: float | None = 0.0) -> None:
        self.half_length = half_length
        self.parts = np.zeros((2, 3, n_features))  # Σ w1 c, Σ w2 c, Σ w3 c
        self.part_totals = np.zeros((2, 3))  # Σ omega over L >= 1, 2, 3
        self.plain = np.zeros(n_features)  # Σ c/L, every document alike
        self.documents = np.zeros(3, dtype=np.int64)  # documents with L >= 1, 2, 3

    def update(self, chunk: Documents) -> WordSums:
        L, signs = chunk.lengths, chunk.signs
        xp = array_namespace(L)
        w = xp.stack(list(document_weights(chunk, self.half_length)))
        counts = xp.stack(_tuple_counts(L)) if self.half_length is not None else xp.ones_like(w)
        halves = [w * (signs == sign) for sign in (1, -1)]
        columns = xp.concat([*halves, document_weights(chunk, 0.0).single[None]]).T
        rows = chunk.rows.astype("float64") if is_tensors(chunk.rows) else chunk.rows
        sums = to_numpy(rows.tdot(xp.ones_like(L), columns)).T
        self.parts += sums[:6].reshape(self.parts.shape)
        self.plain += sums[6]
        self.part_totals += [to_numpy((half * counts).sum(axis=1)) for half in halves]
        self.documents += to_numpy((w > 0).sum(axis=1))
        return self

    def merge(self, other: WordSums) -> WordSums:
        self.parts += other.parts
        self.part_totals += other.part_totals
        self.plain += other.plain
        self.documents += other.documents
        return self

    def half(self, which: int) -> WordSums:
        """The sums of one half alone."""
        alone = WordSums(self.parts.shape[2], self.half_length)
        alone.parts[which], alone.part_totals[which] = self.parts[which], self.part_totals[which]
        return alone

    @property
    def sums(self) -> np.ndarray:
        """(3, d) of both halves."""
        return self.parts.sum(axis=0)

    @property
    def totals(self) -> np.ndarray:
        """(3,) of both halves."""
        return self.part_totals.sum(axis=0)

    @property
    def mean(self) -> np.ndarray:
        """mu (d,), the mean word distribution."""
        return self.sums[0] / self.totals[0]

    @property
    def document_mean(self) -> np.ndarray:
        """Mean word distribution (d,) with every document alike, whatever its length."""
        return self.plain / self.plain.sum()

    @property
    def split_mean(self) -> np.ndarray:
        """(mu_A - mu_B)/2 of the two halves (d,); zero where one is empty."""
        if not np.all(self.part_totals[:, 0] > 0):
            return np.zeros(self.parts.shape[2])
        return (self.half(0).mean - self.half(1).mean) / 2

    @property
    def pair_tilt(self) -> float:
        """How much heavier the first half is than the second, between -1 and 1."""
        return float((self.part_totals[0, 1] - self.part_totals[1, 1]) / self.totals[1])

    @property
    def split_diagonal(self) -> np.ndarray:
        """Σ w2 c (d,) of the first half less that of the second, brought to equal weight."""
        first, second = _share_of_half(np.array([1.0, -1.0]), self.pair_tilt)
        return self.parts[0, 1] / first - self.parts[1, 1] / second

    @property
    def pair_diagonal(self) -> np.ndarray:
        """dg (d,) of TF-4."""
        return self.sums[1] / self.totals[1]

    @property
    def triple_diagonal(self) -> np.ndarray:
        """c3 (d,) of TF-6."""
        return self.sums[2] / self.totals[2]


def _tuple_counts(L: Array) -> list[Array]:
    xp = array_namespace(L)
    one, two = (xp.where(m < L, L - m, 0.0) for m in (1, 2))
    return [L, L * one, L * one * two]


def _share_of_half(signs: Array, tilt: float) -> Array:
    """How heavy the half of each document is, next to an even share."""
    heavy = 1 + signs * tilt
    return array_namespace(signs).where(heavy > 1e-12, heavy, 1e-12)


class PairsProduct:
    """Xᵀ (w2 ⊙ (X Q)) summed over chunks.

    With ``tilt`` given (`WordSums.pair_tilt`) documents carry the sign of their half, and the two
    halves are brought to equal weight: the difference of the halves, for the noise gauge.
    """

    def __init__(
        self,
        Q: Array,
        half_length: float | None = 0.0,
        *,
        tilt: float | None = None,
        scale: np.ndarray | None = None,
    ) -> None:
        self.Q, self.half_length, self.tilt, self.scale = Q, half_length, tilt, scale
        self.total: Array = None  # (d, q), None until the first chunk

    def update(self, chunk: Documents) -> PairsProduct:
        weight = document_weights(chunk, self.half_length).pair
        if self.tilt is not None:
            weight = weight * chunk.signs / _share_of_half(chunk.signs, self.tilt)
        rows = chunk.rows if self.scale is None else chunk.rows.scaled(self.scale)
        self.total = rows.gram(weight, self.Q, self.total)
        return self

    def merge(self, other: PairsProduct) -> PairsProduct:
        if self.total is None:
            self.total = other.total
        elif other.total is not None:
            self.total += other.total
        return self

    def pairs(self, sums: WordSums, b2: float) -> Array:
        """Pairs·Q, between scales if given, with same-token and Dirichlet corrections (TF-4)."""
        s = 1.0 if self.scale is None else to_numpy(self.scale).astype(np.float64)
        Q, mu = self.Q, _like(self.Q, s * sums.mean)
        dg = _like(Q, s * s * sums.pair_diagonal)
        out = self.total / float(sums.totals[1])  # blocks are large: one more at a time
        out -= dg[:, None] * Q
        out -= mu[:, None] * (b2 * (mu @ Q))[None, :]
        return out

    def split_difference(self, sums: WordSums, b2: float) -> Array:
        """(Pairs_A - Pairs_B)/2 applied to Q, of the two halves of the documents (N-11)."""
        s = 1.0 if self.scale is None else to_numpy(self.scale).astype(np.float64)
        Q, mu, delta = self.Q, _like(self.Q, s * sums.mean), _like(self.Q, s * sums.split_mean)
        raw = self.total - _like(Q, s * s * sums.split_diagonal)[:, None] * Q
        raw /= float(sums.totals[1])
        mixed = mu[:, None] * (delta @ Q)[None, :] + delta[:, None] * (mu @ Q)[None, :]
        return raw - b2 * mixed


class PairSums:
    """Second moment contracted with a thin W (d, k) on both sides (TF-6)."""

    def __init__(self, W: Array, half_length: float | None = 0.0) -> None:
        self.W, self.half_length = W, half_length
        self.pair: Array = 0.0  # Yᵀ diag(w2) Y

    def update(self, chunk: Documents) -> PairSums:
        Y = chunk.rows.dot(self.W)
        w2 = _like(Y, document_weights(chunk, self.half_length).pair)
        self.pair = self.pair + (Y * w2[:, None]).T @ Y
        return self

    def merge(self, other: PairSums) -> PairSums:
        self.pair = self.pair + other.pair
        return self

    def finish(self, sums: WordSums) -> Array:
        """P2(W, W) with the same-token correction; on the host where W is."""
        W = self.W
        pair = to_numpy(self.pair) if isinstance(W, np.ndarray) else self.pair
        dg = _like(W, sums.pair_diagonal)
        return pair / float(sums.totals[1]) - (W * dg[:, None]).T @ W


class TripleSums:
    """Third pass: the raw moments contracted with a thin W (d, k) in every slot (TF-6).

    With ``halves`` the two halves of the documents are summed apart, for the sampling noise of the
    tensor; it costs one more sparse product.
    """

    def __init__(
        self,
        W: Array,
        half_length: float | None = 0.0,
        *,
        halves: bool = False,
        block: int | None = None,
    ) -> None:
        xp = array_namespace(W)
        k, like = W.shape[1], {"dtype": W.dtype, "device": getattr(W, "device", None)}
        parts = 2 if halves else 1
        self.W, self.half_length, self.halves, self.block = W, half_length, halves, block
        self.pair = xp.zeros((parts, k, k), **like)  # Yᵀ diag(w2) Y
        self.cube = xp.zeros((parts, k, k, k), **like)  # upper part of Σ w3 y⊗y⊗y
        self.cross = [None] * parts  # G = Xᵀ (w3 ⊙ Y), None until the first chunk

    def update(self, chunk: Documents) -> TripleSums:
        w = document_weights(chunk, self.half_length)
        Y = chunk.rows.dot(self.W)
        signs = chunk.signs
        groups = [signs > 0, signs < 0] if self.halves else [signs == signs]
        for i, own in enumerate(groups):
            w2, w3, y = w.pair[own], w.triple[own], Y[own] if self.halves else Y
            for block in blocks_of(y, self.block):
                self.pair[i] += (y[block, :] * _like(Y, w2[block])[:, None]).T @ y[block, :]
                add_symmetric_cube(self.cube[i], _like(Y, w3[block]), y[block, :])
            self.cross[i] = chunk.rows.tdot(w.triple * own, Y, self.cross[i])
        return self

    def merge(self, other: TripleSums) -> TripleSums:
        self.pair += other.pair
        self.cube += other.cube
        for i, theirs in enumerate(other.cross):
            if self.cross[i] is None:
                self.cross[i] = theirs
            elif theirs is not None:
                self.cross[i] += theirs
        return self

    def finish(self, sums: WordSums) -> RawMoments:
        """m, P2(W,W), P3(W,W,W) with the same-token corrections (TF-6, TF-7)."""
        return self._moments(sum(self.pair), sum(self.cube), sum(self.cross), sums)

    def half(self, sums: WordSums, i: int) -> RawMoments:
        """The same of one half alone."""
        return self._moments(self.pair[i], self.cube[i], self.cross[i], sums.half(i))

    def _moments(self, pair: Array, cube: Array, cross: Array, sums: WordSums) -> RawMoments:
        W = self.W
        dg, c3 = _like(W, sums.pair_diagonal), _like(W, sums.triple_diagonal)
        A2 = pair / float(sums.totals[1]) - (W * dg[:, None]).T @ W
        H = cross / float(sums.totals[2]) - (2 / 3) * c3[:, None] * W
        A3 = fill_symmetric(cube) / float(sums.totals[2])
        A3 = A3 - sum_of_axes(_diagonal_cube(W, H))
        return RawMoments(W.T @ _like(W, sums.mean), A2, A3)


def _diagonal_cube(W: Array, H: Array) -> Array:
    """Σ_j w_j⊗w_j⊗h_j over the words, (k, k, k) symmetric in the first two axes."""
    xp = array_namespace(W)
    k = W.shape[1]
    total = xp.zeros((k, k, k), dtype=W.dtype, device=getattr(W, "device", None))
    for block in blocks_of(W):
        add_symmetric_products(total, W[block, :], H[block, :])
    return fill_pairs(total)


class RawMoments(NamedTuple):
    """Moments of one, two and three distinct words in k dimensions."""

    m: Array  # (k,)
    A2: Array  # (k, k)
    A3: Array  # (k, k, k)


def adjusted_moments(raw: RawMoments, b: Corrections) -> tuple[Array, Array]:
    """Pairs and Triples of N-4 from raw moments in the same coordinates."""
    m, A2, A3 = raw
    mm = m[:, None] * m[None, :]
    pairs = A2 - b.b2 * mm
    return pairs, A3 - b.b1 * outer_sum(A2, m) + b.b3 * (mm[:, :, None] * m[None, None, :])


def change_basis(raw: RawMoments, C: Array) -> RawMoments:
    """Raw moments after the coordinates u -> Cᵀu, C (k, j)."""
    return RawMoments(C.T @ raw.m, C.T @ raw.A2 @ C, contract(raw.A3, C, C, C))


_like = like_one
