"""Documents and weights that a search is asked with."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.counts import read_counts, refuse_texts


def labelled_documents(search: Any, documents: Any) -> sp.csr_array:
    """Counts of labelled documents: a matrix, one row, or row numbers of the corpus."""
    refuse_texts(documents)
    if isinstance(documents, (list, tuple)) and any(sp.issparse(one) for one in documents):
        for one in documents:
            check_sparse(one)
        documents = sp.vstack(documents)
    if not sp.issparse(documents) and np.ndim(documents) < 2:
        values = np.atleast_1d(np.asarray(documents))
        mask = values.dtype == bool and len(values) == len(search._used)
        if mask:
            values = np.flatnonzero(values)
        if not len(values):
            raise InvalidInput("No document is given, so there is nothing to point at a topic.")
        whole, fits = values.dtype.kind in "iu", len(values) == search.n_features_in_
        if whole and fits and not mask:
            raise InvalidInput(
                f"documents has {len(values)} integers, as many as there are columns: are they row "
                "numbers or one document? Give X[rows], or the document as a matrix of one row."
            )
        if whole:
            return _rows_of_corpus(search, values)
        documents = values[None] if fits else documents
    return read_counts(search, documents, reset=False)[0] / search._unit


def _rows_of_corpus(search: Any, rows: np.ndarray) -> sp.csr_array:
    used = search._used
    if rows.min() < 0 or rows.max() >= len(used):
        raise InvalidInput(
            f"documents names rows {rows.min()} to {rows.max()}, but the corpus has {len(used)}."
        )
    place = np.cumsum(used) - 1  # the index holds the used rows only
    return search.index_.X[place[rows[used[rows]]]].astype(np.float64)


def mean_frequency(X: sp.csr_array) -> tuple[np.ndarray, dict[str, int]]:
    """Mean word distribution (d,) of the documents that have words, and how many these are."""
    lengths = np.asarray(X.sum(axis=1)).ravel()
    used = lengths > 0
    if not used.any():
        raise InvalidInput(
            f"None of the {X.shape[0]} documents holds a word of the vocabulary, so they point at "
            "no topic."
        )
    total = np.asarray((X[used] / lengths[used][:, None]).sum(axis=0)).ravel()
    counts = {"labels": int(used.sum()), "empty_labels": int((~used).sum())}
    return total / total.sum(), counts


def check_strength(weights: Any, count: int) -> np.ndarray:
    """Weights of the words of a hint (count,), positive."""
    strength = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if strength.shape != (count,):
        raise InvalidInput(f"weights has shape {strength.shape} for {count} words.")
    if not np.isfinite(strength).all() or not np.all(strength > 0):
        raise InvalidInput(
            "weights of words must be positive and finite; give words the topic is not about as "
            "negative=."
        )
    return strength
