"""Word counts that are tensors of a device: checked there, without a copy to the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    array_namespace,
    by_halves,
    find_device,
    holds_tensors,
    like_one,
    row_keys,
    tensor_rows,
    to_numpy,
)
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_weights
from thirdmoment.models.topics.counts import LARGEST_COUNT, Counts, check_different
from thirdmoment.models.topics.words import training_words

# Stored counts that are looked at together.
TOGETHER: Work[int] = 50_000_000


def read_there(model: Any, X: Any, sample_weight: Any, feature_names: Any, seeds: Any) -> Counts:
    """Training counts on the device that they are on, or that is asked for."""
    if seeds is not None:
        raise InvalidInput(
            "Topics by seeds= are made on the host: leave device out, and give counts of SciPy or "
            "NumPy."
        )
    device = None if model.device is None else find_device(model.device)  # before any work
    k = model._check_shared(model._refinements)
    rows = _plain_counts(model, X, device)
    if rows is None:
        counts = model._read_any(X, sample_weight, feature_names)
        return moved(counts, device)
    model.counter_, model._names = None, {}
    model.words_ = training_words(model, feature_names, rows.shape[1])
    model.vocabulary_ = {word: j for j, word in enumerate(model.words_)}
    return training_tensors(rows, sample_weight, k)


def _plain_counts(model: Any, X: Any, device: Any) -> Any:
    """Counts that can be checked where they go; None for all that the host has to look at."""
    if not (holds_tensors(X) or (sp.issparse(X) and X.format == "csr")):
        return None
    try:
        return read_tensors(model, X, device, reset=True)
    except InvalidInput:
        if holds_tensors(X):
            raise
        return None  # the host says what is wrong, or brings real values into units


def read_tensors(estimator: Any, X: Any, device: Any, *, reset: bool) -> Any:
    """Rows of counts on the device asked for, or where they are."""
    if len(X.shape) != 2:
        raise InvalidInput(f"X has {len(X.shape)} dimensions; counts are a matrix of two.")
    rows = tensor_rows(X, device)
    d = rows.shape[1]
    if reset:
        estimator.n_features_in_ = d
        vars(estimator).pop("feature_names_in_", None)
    elif d != estimator.n_features_in_:
        raise InvalidInput(
            f"X has {d} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    if rows.nnz:
        _check(estimator, rows)
        rows = rows.merged()
    return rows


def _check(estimator: Any, rows: Any) -> None:
    """Raise where the arrays are no counts, or point outside the matrix."""
    xp = array_namespace(rows.data)
    low, high, whole = _range_of(rows.data)
    if low < 0:
        raise InvalidInput(
            f"Negative values in data passed to {type(estimator).__name__} (smallest {low:.3g}): "
            "word counts cannot be negative."
        )
    if low != low:
        raise InvalidInput("Input X contains NaN.")
    if not high <= LARGEST_COUNT:
        raise InvalidInput(f"The largest entry of X is {high:.3g}; counts go to {LARGEST_COUNT:g}.")
    if not whole:
        raise InvalidInput(
            "X has real values (tf-idf?) where word counts are expected. Give counts; on the host "
            "(a SciPy matrix) real values are brought into units."
        )
    steps = rows.indptr[1:] - rows.indptr[:-1]
    inside = int(xp.min(rows.indices)) >= 0 and int(xp.max(rows.indices)) < rows.shape[1]
    sound = len(rows.indptr) == rows.shape[0] + 1 and len(rows.indices) == rows.nnz
    sound = sound and int(rows.indptr[0]) == 0 and int(rows.indptr[-1]) == rows.nnz
    if not (inside and sound and int(xp.min(steps)) >= 0):
        raise InvalidInput("X is not a sound sparse matrix: its indices point outside it.")


def _range_of(values: Array) -> tuple[float, float, bool]:
    """The least and the largest of the values, NaN where one is, and whether all are whole."""
    xp = array_namespace(values)

    def some(a: int, b: int) -> Array:
        part = values[a:b]
        whole = xp.astype(xp.all(part == xp.round(part)), part.dtype)
        return xp.stack([xp.min(part), xp.max(part), whole])

    n = values.shape[0]
    steps = (by_halves(some, min(a + TOGETHER, n), a) for a in range(0, n, TOGETHER))
    found = np.stack([to_numpy(part) for parts in steps for part in parts])  # NaN stays NaN
    return float(found[:, 0].min()), float(found[:, 1].max()), bool(found[:, 2].all())


def training_tensors(X: Any, sample_weight: Any, k: int) -> Counts:
    """Counts on a device, fit for learning k topics; raises before any long work.

    Copies of a document are not made one: each counts for itself.
    """
    lengths = X.sum(axis=1)
    xp = array_namespace(lengths)
    given = check_weights(sample_weight, np.broadcast_to(0.0, X.shape))
    weights = xp.ones_like(lengths) if given is None else like_one(lengths, given)
    if int(xp.sum(xp.astype(weights > 0, xp.int64))) < max(k, 1):
        raise InvalidInput(
            f"n_samples = {X.shape[0]} document(s) cannot show n_components={k} topics. Lower "
            "n_components or give more documents."
        )
    used = lengths[weights > 0]
    if not bool(xp.any(used >= 3)):
        raise InvalidInput(
            "Every document is shorter than three words, but three words of one document are what "
            "identifies the topics. Join short texts into longer documents."
        )
    keys = row_keys(X)[weights > 0]
    if k > 1 and bool(xp.all(keys == keys[0])):
        check_different(1, k)
    short = int(xp.sum(xp.astype(used < 3, xp.int64)))
    weights = weights / xp.mean(weights[weights > 0])
    return Counts(X, weights, np.dtype(np.float32), 1.0, short)


def moved(counts: Counts, device: Any) -> Counts:
    """Counts of the host on a device; those of a source go there in every pass."""
    X, whole = tensor_rows(counts.X, device), counts.whole
    if whole is not None:
        whole = whole._replace(corpus=replace(whole.corpus, device=device))
    return counts._replace(X=X, weights=like_one(X.sum(axis=1), counts.weights), whole=whole)
