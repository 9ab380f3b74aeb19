"""Counts that are read in chunks: one look at all of them, and a sample that stays in memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import content_keys
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.counts import (
    LARGEST_COUNT,
    Counts,
    Streamed,
    merged,
    training_counts,
)
from thirdmoment.models.topics.words import column_names
from thirdmoment.streaming import Source, StreamedCorpus

# Documents, and stored counts, of the sample that topics are refined on; a source that has no more
# of either is read into memory (docs/decisions/streams.md).
SAMPLED: Choice[int] = 50_000
SAMPLED_COUNTS: Choice[int] = 10_000_000


class Sample:
    """The documents with the smallest keys: the same ones however the source is cut."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, sp.csr_array]] = []
        self.documents = self.counts = 0

    def add(self, X: sp.csr_array) -> None:
        self.parts.append((content_keys(X), X))
        self.documents += X.shape[0]
        self.counts += X.nnz
        if self.documents > 2 * SAMPLED or self.counts > 2 * SAMPLED_COUNTS:
            self._trim()

    def merge(self, other: Sample) -> None:
        for _, X in other.parts:
            self.add(X)

    def _trim(self) -> None:
        if not self.parts:
            return
        keys = np.concatenate([part[0] for part in self.parts])
        X = sp.csr_array(sp.vstack([part[1] for part in self.parts], format="csr"))
        order = np.argsort(keys, kind="stable")
        size = np.cumsum(np.diff(X.indptr)[order])
        kept = order[: min(SAMPLED, max(1, int(np.sum(size <= SAMPLED_COUNTS))))]
        self.parts = [(keys[kept], X[kept])]
        self.documents, self.counts = len(kept), self.parts[0][1].nnz

    def rows(self) -> sp.csr_array:
        """The sample (m, d), in the order of the keys."""
        self._trim()
        return self.parts[0][1]


class Look:
    """What one pass sees of a source: sizes, and a sample; every count is checked."""

    def __init__(self) -> None:
        self.sample, self.n, self.nnz, self.words, self.too_short = Sample(), 0, 0, 0.0, 0

    def update(self, X: sp.csr_array) -> Look:
        lengths = X.sum(axis=1)
        self.n, self.nnz = self.n + X.shape[0], self.nnz + X.nnz
        self.words += float(lengths.sum())
        self.too_short += int(np.sum(lengths < 3))
        self.sample.add(X)
        return self

    def merge(self, other: Look) -> Look:
        self.n, self.nnz, self.words = (
            self.n + other.n,
            self.nnz + other.nnz,
            self.words + other.words,
        )
        self.too_short += other.too_short
        self.sample.merge(other.sample)
        return self


def read_stream(model: Any, source: Source, feature_names: Any) -> Counts | None:
    """A sample of a source, with the whole of it behind; None where the sample would be all."""
    seen = _looked(source)
    if seen.n <= SAMPLED and seen.nnz <= SAMPLED_COUNTS:
        return None
    if not seen.words:
        raise InvalidInput(f"{source.name} holds no words: every count is zero.")
    source.n_rows = seen.n
    _set_words(model, source, feature_names)
    found = training_counts(seen.sample.rows(), None, model.n_components, np.dtype(np.float64))
    X, weights = merged(found.X, found.weights)
    whole = Streamed(StreamedCorpus(source, seen.nnz, seen.words), seen.words / seen.n)
    return Counts(X, weights, found.dtype, 1.0, seen.too_short, whole)


def _looked(source: Source) -> Look:
    prepare = functools.partial(_checked, name=source.name)
    if hasattr(source, "reduce"):
        return source.reduce(Look, prepare)
    seen = Look()
    for chunk in source:
        seen.update(prepare(chunk.rows))
    return seen


def _set_words(model: Any, source: Source, feature_names: Any) -> None:
    """Columns and their words, as validation sets them for a matrix."""
    vars(model).pop("feature_names_in_", None)
    model.n_features_in_ = source.width
    names = source.words if feature_names is None else feature_names
    model.words_ = column_names(names, source.width)
    model.vocabulary_ = {word: j for j, word in enumerate(model.words_)}
    model.counter_, model._names = source.own_counter, {}


def _checked(rows: Any, name: str) -> sp.csr_array:
    """Counts without zeros and with every word once."""
    X = sp.csr_array(rows, dtype=np.float64)
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
    return X
