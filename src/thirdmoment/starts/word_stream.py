"""Moments of words in one pass: no document is seen twice.

A basis of more columns than topics is fixed by the first documents. Pairs of words are then summed
against this basis, and triples inside of it. The topics are found in the best k directions that all
documents together show within the basis, and read off from Pairs times these directions, which is
not confined to it (TF-4, TF-6).
"""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import RankDeficientMoment
from thirdmoment.moments.words import (
    Documents,
    PairsProduct,
    TripleSums,
    WordSums,
    change_basis,
    dirichlet_corrections,
    document_weights,
)
from thirdmoment.recovery.dirichlet import USUAL
from thirdmoment.starts.word_components import in_memory, solve, two_halves
from thirdmoment.starts.words import CoreMoments, MomentOptions, TopicMoments, WordMoments
from thirdmoment.streaming import AnyCorpus

# Columns of the basis for each topic, and at most.
OVERSAMPLED: Choice[int] = 4
MOST_COLUMNS: Work[int] = 200

# A batch is unlike the first documents if the basis captures less than this share of what it
# captured of them: shuffled text reaches 0.5 and more, sorted text 0.2 and less.
CAPTURED: Choice[float] = 0.3


class StreamMoments:
    """Sums over all documents so far, in a basis that the first ones have fixed."""

    def __init__(
        self, first: AnyCorpus, k: int, rng: np.random.Generator, options: MomentOptions
    ) -> None:
        with single_threaded_blas():
            moments = TopicMoments(first, options._replace(single_precision=False))
            columns = min(max(OVERSAMPLED * k, k + 10), max(MOST_COLUMNS, k + 10), first.shape[1])
            pairs = moments.top_pairs(columns, rng, USUAL, products=4)
            self.scale = moments.scale
            self.basis = self.scale[:, None] * pairs.vectors[:, :columns]
        self.k, self.options = k, options
        half = options.half_length
        self.sums = WordSums(first.shape[1], half)
        self.product = PairsProduct(self.basis, half)
        self.triples = TripleSums(self.basis, half, halves=True)
        self.captured = 0.0
        for chunk in first:
            self._add(chunk)
            self.captured += self._share(chunk) * len(chunk.lengths) / first.shape[0]

    def _add(self, chunk: Documents) -> None:
        for part in (self.sums, self.product, self.triples):
            part.update(chunk)

    def with_batch(self, batch: Documents) -> tuple[StreamMoments, float]:
        """The same with one more batch, and how much of it the basis captures next to the first."""
        new = copy.deepcopy(self)
        with single_threaded_blas():
            new._add(batch)
            return new, self._share(batch) / max(self.captured, 1e-300)

    def _share(self, chunk: Documents) -> float:
        """Share of the trace of scaled Pairs that lies within the basis, 1 without pairs."""
        w2 = document_weights(chunk, self.options.half_length).pair
        X = chunk.rows.scipy()  # type: ignore[attr-defined]
        twice = sp.csr_array((X.data * (X.data - 1), X.indices, X.indptr), shape=X.shape)
        whole = float(self.scale**2 @ (twice.T @ w2))
        Y = chunk.rows.dot(self.basis)
        same = float(np.sum(self.basis**2, axis=1) @ (X.T @ w2))
        inside = float(w2 @ np.sum(Y * Y, axis=1)) - same
        return inside / whole if whole > 0 else 1.0

    def estimate(self, alpha0: float | None, rng: np.random.Generator) -> WordMoments:
        """Topics of all documents so far; ``alpha0=None`` estimates the total concentration."""
        b2 = dirichlet_corrections(USUAL if alpha0 is None else alpha0).b2
        with single_threaded_blas():
            PQ = self.product.pairs(self.sums, b2)  # (d, q)
            G = self.basis.T @ self.basis
            S = self.basis.T @ PQ
            root = np.linalg.cholesky(G + 1e-12 * np.trace(G) / len(G) * np.eye(len(G)))
            inverse = np.linalg.inv(root)  # the basis times inverse.T is orthonormal
            values, U = np.linalg.eigh(inverse @ ((S + S.T) / 2) @ inverse.T)
            values, U = values[::-1], U[:, ::-1]
            if not values[self.k - 1] > 1e-10 * values[0]:
                rank = int(np.sum(values > 1e-10 * values[0]))
                raise RankDeficientMoment(
                    rank=rank, k=self.k, smallest=float(values[self.k - 1]), floor=0.0
                )
            C = inverse.T @ (U[:, : self.k] / np.sqrt(values[: self.k]))
            raw = change_basis(in_memory(self.triples.finish(self.sums)), C)
            halves = two_halves(self.triples, self.sums)
            if halves is not None:
                halves = change_basis(halves[0], C), change_basis(halves[1], C)
            solved = solve(raw, halves, alpha0, rng, self.options.solver)
        core = CoreMoments(raw, PQ @ C, self.sums.document_mean, self.options.solver, self.k)
        found = tuple(core.recover(*piece, solved.alpha0) for piece in solved.pieces)
        return WordMoments(found, solved, core, values, np.nan, 1, 0.0)
