"""Third moment of words applied to thin blocks, without a tensor (TF-8)."""

from __future__ import annotations

from thirdmoment._array import Array, array_namespace
from thirdmoment._array import like_one as _like
from thirdmoment.moments.words import Corrections, Documents, WordSums, document_weights


class TriplesProduct:
    """Matrix-free Triples(I, u, u) for the columns u of U (d, q) (TF-8). Cost 5 sparse products."""

    def __init__(self, U: Array, half_length: float | None = 0.0) -> None:
        self.U, self.half_length = U, half_length
        self.square: Array = 0.0  # Xᵀ(w3 ⊙ (s² - X U²))
        self.cross: Array = 0.0  # Xᵀ(w3 ⊙ s)
        self.pair: Array = 0.0  # Xᵀ(w2 ⊙ s)

    def update(self, chunk: Documents) -> TriplesProduct:
        w = document_weights(chunk, self.half_length)
        s = chunk.rows.dot(self.U)
        square = s * s - chunk.rows.dot(self.U * self.U)
        self.square = self.square + chunk.rows.tdot(w.triple, square)
        self.cross = self.cross + chunk.rows.tdot(w.triple, s)
        self.pair = self.pair + chunk.rows.tdot(w.pair, s)
        return self

    def merge(self, other: TriplesProduct) -> TriplesProduct:
        self.square = self.square + other.square
        self.cross = self.cross + other.cross
        self.pair = self.pair + other.pair
        return self

    def triples(self, sums: WordSums, b: Corrections) -> Array:
        """Triples(I, u, u), (d, q), with the same-token and Dirichlet corrections."""
        U = self.U
        xp = array_namespace(U)
        mu, dg = _like(U, sums.mean)[:, None], _like(U, sums.pair_diagonal)[:, None]
        c3 = _like(U, sums.triple_diagonal)[:, None]
        raw = (self.square - 2 * U * self.cross) / float(sums.totals[2]) + 2 * c3 * U * U
        pair = self.pair / float(sums.totals[1]) - dg * U
        r = xp.sum(mu * U, axis=0, keepdims=True)
        mixed = 2 * pair * r + mu * xp.sum(U * pair, axis=0, keepdims=True)
        return raw - b.b1 * mixed + b.b3 * mu * r * r
