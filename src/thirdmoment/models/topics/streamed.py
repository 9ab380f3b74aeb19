"""Counts that are read in chunks: one look at all of them, and a sample that stays in memory."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import scrambled
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.tables import name_columns
from thirdmoment.models.topics.counts import (
    LARGEST_COUNT,
    Counts,
    Whole,
    merged,
    training_counts,
)
from thirdmoment.models.topics.words import column_names
from thirdmoment.streaming import Chunk, Source, Streamed, StreamedCorpus, fold
from thirdmoment.streaming.sample import SampledRows

# Documents, and stored counts, of the sample that topics are refined on; a source that has no more
# of either is read into memory (docs/decisions/streams.md).
SAMPLED: Choice[int] = 50_000
SAMPLED_COUNTS: Choice[int] = 10_000_000


class Look:
    """What one pass sees of a source: sizes, and a sample; every count is checked."""

    def __init__(self, *, sampled: bool = True) -> None:
        most = (SAMPLED, SAMPLED_COUNTS) if sampled else (1, 1)
        self.sample, self.sampled = SampledRows(*most), sampled
        self.n, self.nnz, self.words, self.too_short = 0, 0, 0.0, 0
        self.single = True  # whether all counts came in single precision

    def update(self, chunk: Chunk) -> Look:
        X = chunk.rows
        lengths = X.sum(axis=1)
        self.n, self.nnz = self.n + X.shape[0], self.nnz + X.nnz
        self.words += float(lengths.sum())
        self.too_short += int(np.sum(lengths < 3))
        self.single &= chunk.rows.dtype == np.float32
        if self.sampled:  # by places, for copies of a document share their content
            places = np.arange(chunk.start, chunk.start + X.shape[0], dtype=np.uint64)
            self.sample.add(scrambled(places), X.astype(np.float64, copy=False))
        return self

    def merge(self, other: Look) -> Look:
        self.n, self.nnz = self.n + other.n, self.nnz + other.nnz
        self.words += other.words
        self.too_short += other.too_short
        self.single &= other.single
        self.sample.merge(other.sample)
        return self

    @property
    def small(self) -> bool:
        """Whether the sample would be everything."""
        return self.n <= SAMPLED and self.nnz <= SAMPLED_COUNTS


def read_stream(model: Any, source: Source, feature_names: Any, *, sampled: bool) -> Counts | None:
    """How to walk over all counts, and a sample of them if asked for; None where all are few."""
    rows = Streamed(source, _same, source.width, tell=model._log)
    checked = rows.mapped(functools.partial(_checked, name=source.name))
    seen = fold(functools.partial(Look, sampled=sampled), checked, n_threads=model._threads())
    if seen.small:
        return None
    if not seen.words:
        raise InvalidInput(f"{source.name} holds no words: every count is zero.")
    source.n_rows = seen.n
    _set_words(model, source, feature_names)
    rows = replace(rows, bytes=12 * seen.nnz)
    rows.passes[0] = rows.passes[0]._replace(bytes=rows.bytes)
    corpus = StreamedCorpus(rows, seen.nnz, seen.words)
    whole = Whole(corpus, seen.words / seen.n)
    dtype = np.dtype(np.float32 if seen.single else np.float64)
    if not sampled:
        nothing = sp.csr_array((0, source.width))
        return Counts(nothing, np.ones(0), dtype, 1.0, seen.too_short, whole)
    found = training_counts(seen.sample.rows(), None, model.n_components, dtype)
    X, weights = merged(found.X, found.weights)
    return Counts(X, weights, found.dtype, 1.0, seen.too_short, whole)


def _same(chunk: Chunk) -> Chunk:
    return chunk


def _set_words(model: Any, source: Source, feature_names: Any) -> None:
    """Columns and their words, as validation sets them for a matrix."""
    name_columns(model, source, frames_only=True)
    names = source.words if feature_names is None else feature_names
    model.words_ = column_names(names, source.width)
    model.vocabulary_ = {word: j for j, word in enumerate(model.words_)}
    model.counter_, model._names = source.own_counter, {}


def _checked(chunk: Chunk, name: str) -> Chunk:
    """Counts without zeros and with every word once."""
    kind = np.float32 if chunk.rows.dtype == np.float32 else np.float64
    X = sp.csr_array(chunk.rows, dtype=kind)
    if X.nnz and X.data.min() < 0:
        raise InvalidInput(f"{name} has negative values (smallest {X.data.min():.3g}).")
    if np.any(X.data != np.rint(X.data)):
        raise InvalidInput(
            f"{name} has real values where word counts are expected (tf-idf?). Streams are read as "
            "counts; a matrix in memory may hold real values."
        )
    if X.data.max(initial=0.0) > LARGEST_COUNT:
        raise InvalidInput(f"{name} has a count above {LARGEST_COUNT:.0g}.")
    if not X.has_canonical_format or np.any(X.data == 0):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return chunk._replace(rows=X)
