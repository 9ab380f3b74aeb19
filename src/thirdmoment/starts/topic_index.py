"""A corpus prepared for queries: whitening, whitened documents, and the documents of each word."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    as_rows,
    check_sparse,
    map_in_order,
    single_threaded_blas,
    tensor_rows,
    to_numpy,
)
from thirdmoment._constants import Choice, Work
from thirdmoment.linalg import whitening_from
from thirdmoment.moments.word_search import (
    DirectedMoment,
    direction_moment,
    search_matrix,
    third_factor,
    word_moment,
)
from thirdmoment.moments.words import Documents, document_weights
from thirdmoment.recovery.dirichlet import USUAL
from thirdmoment.recovery.search import (
    FoundComponent,
    leading_component,
    positive_rank,
)
from thirdmoment.starts.words import MomentOptions, TopicMoments, settle
from thirdmoment.streaming import corpus, documents

# Block products for the whitening; the un-whitener adds one more (docs/decisions/search.md).
PRODUCTS: Work[int] = 3

# With more topics the third moment takes longer to judge than all the rest of the preparation.
MOST_TRUSTED: Choice[int] = 60


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
    third: np.ndarray  # (k, k) WᵀE3(v)W
    mean_score: float  # <E1, v>

    def combined(self, others: Sequence[SearchMatrix], weights: np.ndarray) -> SearchMatrix:
        """Weighted sum of this query and others: all parts are linear in v."""
        parts = zip(*(self, *others), strict=True)
        return SearchMatrix(
            *(sum(w * p for w, p in zip(weights, part, strict=True)) for part in parts)
        )


@dataclass(frozen=True)
class TopicIndex:
    """All that queries read; arrays only, so that it can be memory-mapped."""

    X: sp.csr_array  # (n, d) counts
    weights: np.ndarray  # (n,) how often each document counts
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
    trusted: bool  # whether k topics explain the third moment up to its noise

    _unsaved = ("lengths",)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Words of each document (n,)."""
        return self.X @ np.ones(self.X.shape[1], dtype=self.X.dtype)

    def check(self) -> None:
        """Raise where documents or words point outside the corpus, as in a damaged file."""
        check_sparse(self.X)
        lists = sp.csc_array(self.X.shape)
        lists.indptr, lists.indices, lists.data = self.starts, self.rows, self.counts
        check_sparse(lists)

    def documents_of(self, x: int) -> slice:
        """Place of word x in ``rows`` and ``counts``."""
        return slice(int(self.starts[x]), int(self.starts[x + 1]))

    def present(self, columns: np.ndarray) -> sp.csc_array:
        """Which document has which of a few words (n, m)."""
        lists = [self.rows[self.documents_of(int(x))] for x in columns]
        starts = np.cumsum([0, *(len(one) for one in lists)])
        rows = np.concatenate(lists)
        return sp.csc_array((np.ones(len(rows)), rows, starts), shape=(self.X.shape[0], len(lists)))

    def documents_with(self, plus: Sequence[int], minus: Sequence[int]) -> np.ndarray:
        """Documents with one of the words ``plus`` and none of ``minus``."""
        have = [self.rows[self.documents_of(x)] for x in plus]
        rows = np.unique(np.concatenate(have)) if len(have) > 1 else have[0]
        for x in minus:
            rows = np.setdiff1d(rows, self.rows[self.documents_of(x)], assume_unique=True)
        return rows

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

    def words(self, columns: Sequence[int], strength: np.ndarray) -> SearchMatrix:
        """M of several words by their lift: plain sums are ruled by the most frequent word."""
        if len(columns) == 1:
            return self.word(columns[0])
        first, *others = (self.word(column) for column in columns)
        return first.combined(others, strength / self.mean[list(columns)])

    def direction(self, v: np.ndarray) -> SearchMatrix:
        """M(v) for any v (d,) (SR-17)."""
        third = direction_moment(self.X, self.Y, self.omega, self.signs, v, self.W)
        return self._finish(third, self.unwhitener.T @ v, float(self.mean @ v))

    def _finish(self, third: DirectedMoment, v_w: np.ndarray, mean_score: float) -> SearchMatrix:
        v_w = v_w.astype(np.float64)
        whole = third.whole.astype(np.float64)
        M = search_matrix(whole, self.m_w, v_w, mean_score, self.a0)
        difference = third_factor(self.a0) * third.difference.astype(np.float64)
        return SearchMatrix(M, difference, v_w, whole, mean_score)

    def under(self, a0: float, query: SearchMatrix) -> FoundComponent:
        """What the query finds if the concentration were a0, within the same k directions.

        W whitens A = (a+1) E2 - a E1 E1ᵀ, so WᵀE2W = (I + a mmᵀ)/(a+1).
        """
        m, a = self.m_w, self.a0
        c = (a0 + 1) / (a + 1)
        beta, size = c * a - a0, float(m @ m)
        # (c I + beta mmᵀ)^(-1/2) = (I + apart mmᵀ)/√c: only m has another eigenvalue than c
        apart = (math.sqrt(c / (c + beta * size)) - 1) / size if size > 0 else 0.0
        side = apart * (query.third @ m)
        third = query.third + np.outer(side, m) + np.outer(m, side)
        third = (third + apart * float(m @ side) * np.outer(m, m)) / c
        v_w = c * (query.v_w + a * query.mean_score * m) - a0 * query.mean_score * m
        v_w, m_w = ((v + apart * float(m @ v) * m) / math.sqrt(c) for v in (v_w, m))
        M = search_matrix(third, m_w, v_w, query.mean_score, a0)
        root = (np.eye(len(m)) + apart * np.outer(m, m)) / math.sqrt(c)
        found = leading_component(M, m_w, root, v_w)
        r = found.component  # in the directions of W
        whole = self.unwhitener @ r.astype(self.unwhitener.dtype)
        law = c * whole + beta * float(m @ r) * self.mean
        return found._replace(component=law)


def prepare(
    X: sp.csr_array,
    weights: np.ndarray,
    k: int,
    concentration: float | None,
    rng: np.random.Generator,
    options: MomentOptions,
    device: Any = None,
) -> tuple[TopicIndex, IndexFacts]:
    """Moments, whitening and the lists of documents, once for all queries.

    Sums over documents are made on ``device``, if given; what queries read is on the host.

    ``concentration=None`` takes that of the third moment where the k topics explain it, and
    otherwise a usual one; from there on it is as if that value had been given.

    The un-whitener is A W itself rather than the eigenvectors times √η: WᵀAv and A1 = E1 (SR-15,
    SR-18) then hold exactly, however far the eigenvectors have converged.
    """
    look, work = rng.spawn(2)
    with single_threaded_blas():
        rows = X if device is None else tensor_rows(X, device)
        moments = TopicMoments(corpus(rows, weights), options)
        a0, trusted = _concentration(moments, k, concentration, look)
        pairs = moments.top_pairs(k, work, a0, products=PRODUCTS)
        values = pairs.values
        rank = positive_rank(values, k)
        white = whitening_from(values[:rank], pairs.vectors[:, :rank], scale=moments.scale)
        there = white.W / math.sqrt(a0 + 1)
        noise, noise_passes = moments.split_half_noise(work, a0, max_products=PRODUCTS)
        unwhitener = np.ascontiguousarray(to_numpy((a0 + 1) * moments.pairs(there, a0)))
        omega = _triple_weights(moments.corpus, options, float(moments.sums.totals[2]))
        Y = _whitened_documents(moments.corpus, there, options.n_threads)
        W, values = np.ascontiguousarray(to_numpy(there)), to_numpy(values)
    columns, mean = sp.csc_array(X), moments.sums.mean
    index = TopicIndex(
        X.astype(W.dtype),
        weights,
        columns.indptr,
        columns.indices,
        columns.data.astype(W.dtype),
        Y,
        omega,
        np.concatenate([to_numpy(chunk.signs) for chunk in moments.corpus]).astype(np.int8),
        W,
        unwhitener,
        mean,
        W.T.astype(np.float64) @ mean,
        a0,
        trusted,
    )
    passes = 3 + 2 * PRODUCTS + moments.triple_passes + noise_passes
    return index, IndexFacts(values, noise, passes)


def appended(
    index: TopicIndex, X: sp.csr_array, weights: np.ndarray, options: MomentOptions
) -> TopicIndex:
    """The index with more documents (m, d), in the directions that it has."""
    new = documents(X, weights)
    own = document_weights(new, options.half_length).triple
    lengths = index.lengths.astype(np.float64)
    before, more = (
        float(np.sum(w * tuples))
        for w, tuples in (
            (_length_weights(lengths, index.weights, options), lengths >= 3),
            (_length_weights(new.lengths, weights, options), new.lengths >= 3),
        )
    )
    total, kind = before + more, index.W.dtype
    omega = np.concatenate([index.omega * (before / total), own / total])
    rows = sp.csr_array(sp.vstack([index.X, X.astype(index.X.dtype)], format="csr"))
    columns = sp.csc_array(rows)
    return replace(
        index,
        X=rows,
        weights=np.concatenate([index.weights, weights]),
        starts=columns.indptr,
        rows=columns.indices,
        counts=columns.data.astype(kind),
        Y=np.concatenate([index.Y, as_rows(X).dot(index.W).astype(index.Y.dtype)]),
        omega=omega.astype(index.omega.dtype),
        signs=np.concatenate([index.signs, new.signs.astype(np.int8)]),
    )


def _length_weights(L: np.ndarray, weights: np.ndarray, options: MomentOptions) -> np.ndarray:
    half = options.half_length
    return weights * (L / (L + half) if half else np.ones_like(L))


def _concentration(
    moments: TopicMoments, k: int, given: float | None, rng: np.random.Generator
) -> tuple[float, bool]:
    """The concentration to assume, and whether the third moment bears it out.

    Two topics fit any concentration, so fewer than three do not show one (TF-12).
    """
    first = USUAL if given is None else given
    if k > MOST_TRUSTED:
        return first, False
    pairs = moments.top_pairs(k, rng, first, products=PRODUCTS)
    if positive_rank(pairs.values, k) < k:
        return first, False
    found = settle(moments, pairs, k, rng, given if k >= 3 else first)
    if found is None or not found.trusted:
        return first, False
    return found.alpha0, True


def _triple_weights(
    chunks: Iterable[Documents], options: MomentOptions, total: float
) -> np.ndarray:
    parts = [to_numpy(document_weights(chunk, options.half_length).triple) for chunk in chunks]
    return np.concatenate(parts) / total


def _whitened_documents(chunks: Iterable[Documents], W: Array, n_threads: int) -> np.ndarray:
    parts = map_in_order(lambda chunk: to_numpy(chunk.rows.dot(W)), chunks, n_threads=n_threads)
    return np.concatenate(list(parts))
