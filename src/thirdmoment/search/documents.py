"""Documents and words of a search: nearest spellings, typical documents."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Sequence
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
        if values.dtype == bool and len(values) == len(search._used):
            values = np.flatnonzero(values)
        if not len(values):
            raise InvalidInput("No document is given, so there is nothing to point at a topic.")
        whole, fits = values.dtype.kind in "iu", len(values) == search.n_features_in_
        if whole and fits:
            raise InvalidInput(
                f"documents has {len(values)} integers, as many as there are columns: are they row "
                "numbers or one document? Give X[rows], or the document as a matrix of one row."
            )
        if whole:
            return _rows_of_corpus(search, values)
        documents = values[None] if fits else documents
    return read_counts(search, documents, reset=False)[0]


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


def word_columns(words: Any, vocabulary: dict[Any, int], names: Sequence[Any]) -> list[int]:
    """Columns of one word or of several; columns may also be given by number."""
    if words is None:
        return []
    several = not isinstance(words, str) and hasattr(words, "__iter__")
    return [_column(word, vocabulary, names) for word in (words if several else [words])]


def _column(word: Any, vocabulary: dict[Any, int], names: Sequence[Any]) -> int:
    usable = isinstance(word, (str, numbers.Integral)) and not isinstance(word, (bool, np.bool_))
    if not usable:
        raise InvalidInput(f"{word!r} is no word: give a string, or a list of strings.")
    if word in vocabulary:
        return vocabulary[word]
    named = all(isinstance(name, str) for name in names)
    if named and not isinstance(word, str) and 0 <= word < len(names):
        return int(word)
    if isinstance(word, str) and not named:
        raise InvalidInput(
            f"{word!r} cannot be looked up: fit was given no words, so columns have numbers only. "
            "Pass fit(X, feature_names=vectorizer.get_feature_names_out())."
        )
    known = [str(name) for name in names]
    near = difflib.get_close_matches(str(word).lower(), known, n=5, cutoff=0.5)
    raise InvalidInput(
        f"{word!r} is not in the vocabulary of {len(known)} words. "
        + (f"Near it: {', '.join(near)}." if near else "No word is near it.")
    )


def check_frequency(word: Any, documents: int) -> None:
    """A word must be in two documents or more."""
    if documents < 2:
        raise InvalidInput(
            f"{word!r} occurs in {documents} document(s) of three or more words; at least 2 are "
            "needed to tell a topic from a single text. Search for a more frequent word, or give "
            "documents=."
        )


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
