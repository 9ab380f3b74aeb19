"""A corpus prepared for queries: whitening, whitened documents, and the documents of each word."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import map_in_order, row_signs, single_threaded_blas
from thirdmoment.linalg import Eigenpairs, whitening_from
from thirdmoment.models.topics.start import MomentOptions, TopicMoments
from thirdmoment.moments.directed import DirectedMoment
from thirdmoment.moments.word_search import (
    direction_moment,
    search_matrix,
    third_factor,
    word_moment,
)
from thirdmoment.moments.words import Documents, dirichlet_corrections, document_weights
from thirdmoment.search.component import positive_rank, usable_rank
from thirdmoment.streaming import corpus

# Block products for the whitening; the un-whitener adds one more (docs/decisions/search.md).
PRODUCTS = 3

# Concentrations tried with "auto", and the share of the mean that must lie in the k directions.
CONCENTRATIONS = (5.0, 3.0, 2.0, 1.0, 0.5, 0.0)
MEAN_INSIDE = 0.98

# A part of the mean below this share of its length is rounding.
INSIDE = 1e-4


class IndexFacts(NamedTuple):
    """What the preparation saw of the second moment."""

    spectrum: np.ndarray
    noise: float
    passes: int


class SearchMatrix(NamedTuple):
    """What one query needs: M(v), half the difference of its halves, and WᵀAv."""

    M: np.ndarray  # (k, k)
    difference: np.ndarray  # (k, k)
    v_w: np.ndarray  # (k,)


@dataclass(frozen=True)
class TopicIndex:
    """All that queries read; arrays only, so that it can be memory-mapped."""

    X: sp.csr_array  # (n, d) counts
    starts: np.ndarray  # (d+1,) where the documents of each word begin in the next two
    rows: np.ndarray  # documents, word by word
    counts: np.ndarray  # how often the word is in them
    Y: np.ndarray  # (n, k) X W
    omega: np.ndarray  # (n,) weight / (L(L-1)(L-2)), zero for L < 3
    signs: np.ndarray  # (n,) ±1, the half of a document
    W: np.ndarray  # (d, k) whitens A = (a0+1) E2 - a0 E1 E1ᵀ
    unwhitener: np.ndarray  # (d, k) A W
    mean: np.ndarray  # (d,) E1
    m_w: np.ndarray  # (k,) WᵀE1
    a0: float

    def documents_of(self, x: int) -> slice:
        """Place of word x in ``rows`` and ``counts``."""
        return slice(int(self.starts[x]), int(self.starts[x + 1]))

    def usable_documents(self, x: int) -> int:
        """Documents of three or more words that contain word x."""
        return int(np.sum(self.omega[self.rows[self.documents_of(x)]] > 0))

    def word(self, x: int) -> SearchMatrix:
        """M(e_x) (SR-15)."""
        place = self.documents_of(x)
        rows = self.rows[place]
        q = self.omega[rows] * self.counts[place]
        C = self.X[rows]
        third = word_moment(C, self.Y[rows], q, self.signs[rows], x, self.W)
        return self._finish(third, self.unwhitener[x], float(self.mean[x]))

    def direction(self, v: np.ndarray) -> SearchMatrix:
        """M(v) for any v (d,) (SR-17)."""
        third = direction_moment(self.X, self.Y, self.omega, self.signs, v, self.W)
        return self._finish(third, self.unwhitener.T @ v, float(self.mean @ v))

    def _finish(self, third: DirectedMoment, v_w: np.ndarray, mean_score: float) -> SearchMatrix:
        v_w = v_w.astype(np.float64)
        whole = third.whole.astype(np.float64)
        M = search_matrix(whole, self.m_w, v_w, mean_score, self.a0)
        return SearchMatrix(M, third_factor(self.a0) * third.difference.astype(np.float64), v_w)


def prepare(
    X: sp.csr_array,
    weights: np.ndarray,
    k: int,
    concentration: float | None,
    rng: np.random.Generator,
    options: MomentOptions,
) -> tuple[TopicIndex, IndexFacts]:
    """Moments, whitening and the lists of documents, once for all queries.

    ``concentration=None`` takes the largest of a few at which the mean word law lies in the k
    leading directions, as it does in every model: the larger, the more of what all documents share
    is taken off, until the mean itself is lost (docs/decisions/search.md).

    The un-whitener is A W itself rather than the eigenvectors times √η: WᵀAv and A1 = E1 (SR-15,
    SR-18) then hold exactly, however far the eigenvectors have converged.
    """
    with single_threaded_blas():
        moments = TopicMoments(corpus(X, weights), options)
        mean = moments.sums.mean
        first = CONCENTRATIONS[0] if concentration is None else concentration
        pairs = moments.top_pairs(k, rng, first, products=PRODUCTS)
        passes = 3 + pairs.products
        a0, values, W, m_w = _whitened(pairs.values, pairs.vectors, k, first, moments)
        if concentration is None and m_w @ m_w < MEAN_INSIDE:
            basis, core = _with_mean(pairs, first, moments)
            passes += 1
            for a in CONCENTRATIONS[1:]:
                ritz, vectors = _at_concentration(core, basis, a, first, moments)
                a0, values, W, m_w = _whitened(ritz, vectors, k, a, moments)
                if m_w @ m_w >= MEAN_INSIDE:
                    break
        usable_rank(values, k, stacklevel=5)  # warns where fewer are seen
        noise, noise_passes = moments.split_half_noise(rng, a0, max_products=PRODUCTS)
        unwhitener = np.ascontiguousarray((a0 + 1) * moments.pairs(W, a0))
        omega = _triple_weights(X, weights, options, moments.sums.totals[2])
        Y = _whitened_documents(moments.corpus, W, options.n_threads)
    columns = sp.csc_array(X)
    index = TopicIndex(
        X.astype(W.dtype),
        columns.indptr,
        columns.indices,
        columns.data.astype(W.dtype),
        Y,
        omega,
        row_signs(0, X.shape[0]).astype(np.int8),
        W,
        unwhitener,
        mean,
        m_w,
        a0,
    )
    return index, IndexFacts(values, noise, passes + noise_passes)


def _whitened(
    values: np.ndarray, vectors: np.ndarray, k: int, a0: float, moments: TopicMoments
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """a0, eigenvalues, whitening of A = (a0+1) Pairs with at most k columns, and WᵀE1."""
    rank = positive_rank(values, k)
    white = whitening_from(values[:rank], vectors[:, :rank], scale=moments.scale)
    W = np.ascontiguousarray(white.W / math.sqrt(a0 + 1))
    return a0, values, W, W.T.astype(np.float64) @ moments.sums.mean


def _with_mean(
    pairs: Eigenpairs, a0: float, moments: TopicMoments
) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvectors found at a0 with the mean beside them, and scaled Pairs between these."""
    E = pairs.vectors
    mean = (moments.scale * moments.sums.mean).astype(E.dtype)
    rest = mean - E @ (E.T @ mean)
    rest = rest - E @ (E.T @ rest)
    size = float(np.linalg.norm(rest))
    if size <= INSIDE * float(np.linalg.norm(mean)):  # the eigenvectors hold it already
        return E, np.diag(pairs.values).astype(np.float64)
    rest = rest / size
    scaled = (moments.scale * rest)[:, None]
    image = moments.scale * moments.pairs(scaled, a0)[:, 0]
    basis = np.column_stack([E, rest])
    core = np.diag(np.append(pairs.values, float(rest @ image)))
    core[:-1, -1] = core[-1, :-1] = E.T @ image
    return basis, core


def _at_concentration(
    core: np.ndarray, basis: np.ndarray, a0: float, known: float, moments: TopicMoments
) -> tuple[np.ndarray, np.ndarray]:
    """Ritz pairs of scaled Pairs at a0 within a basis; only the multiple of mmᵀ changes."""
    m = basis.T @ (moments.scale * moments.sums.mean)
    change = dirichlet_corrections(known).b2 - dirichlet_corrections(a0).b2
    values, vectors = np.linalg.eigh(core + change * np.outer(m, m))
    return values[::-1], basis @ vectors[:, ::-1].astype(basis.dtype)


def _triple_weights(
    X: sp.csr_array, weights: np.ndarray, options: MomentOptions, total: float
) -> np.ndarray:
    lengths = np.asarray(X.sum(axis=1)).ravel()
    chunk = Documents(X, lengths, weights)
    return document_weights(chunk, options.half_length).triple / total


def _whitened_documents(chunks: Iterable[Documents], W: np.ndarray, n_threads: int) -> np.ndarray:
    parts = map_in_order(lambda chunk: chunk.rows.dot(W), chunks, n_threads=n_threads)
    return np.concatenate(list(parts))
