"""Validation of word counts, shared by the topic models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from thirdmoment._array import check_sparse, content_keys
from thirdmoment._constants import Limit
from thirdmoment.exceptions import InputWarning, InvalidInput, warn
from thirdmoment.models.base import beside_a_prior
from thirdmoment.streaming import StreamedCorpus
from thirdmoment.streaming.dask import DaskSource, is_dask

# Products of three larger counts would not fit into floating point with room to spare.
LARGEST_COUNT: Limit[float] = 1e12


class Whole(NamedTuple):
    """Documents that are read in chunks."""

    corpus: StreamedCorpus
    mean_length: float


class Counts(NamedTuple):
    """Validated counts, ready for the moments."""

    X: sp.csr_array  # (n, d) float64, no stored zeros, documents of weight zero left out
    weights: np.ndarray  # (n,) positive, mean one or more
    dtype: np.dtype  # of the results: float32 only for float32 input
    unit: float  # what one stored unit was in the input; 1 for counts
    too_short: int  # documents with fewer than three words
    whole: Whole | None = None  # of what X is a sample, None where it is everything

    def details(self) -> dict[str, Any]:
        """For the report: every walk over a source, with its seconds and bytes."""
        if self.whole is None:
            return {}
        return {"stream_passes": [one._asdict() for one in self.whole.corpus.rows.passes]}


def refuse_texts(X: Any, *, fitted: bool = False) -> None:
    """Texts, or lists of words, instead of counts get an error that says how to count them."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # a frame; does a column hold texts?
        first = X[:1]
        texts = {n: [one for one in first[n] if isinstance(one, str)] for n in X.columns}
        sizes = {n: max(map(len, some)) for n, some in texts.items() if some}
        if sizes:
            longest = max(sizes, key=sizes.__getitem__)
            raise InvalidInput(
                f"X is a frame of texts (column {longest!r}), not of word counts. Give "
                f"thirdmoment.text.read(frame, text={longest!r}"
                f"{', like=model' if fitted else ''}) in its place."
            )
    if hasattr(X, "__next__"):
        raise InvalidInput(
            "X is a generator, which can be read once only. Give a callable that makes it anew, "
            "thirdmoment.source(lambda: generator()), or call partial_fit for each batch; texts "
            "are read by thirdmoment.text.read."
        )
    if type(X).__name__ == "Series":  # of pandas or polars
        X = list(X[:1])
    rows = isinstance(X, (list, tuple, np.ndarray)) and len(X) > 0
    first = X[0] if rows else None
    if isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    if (isinstance(X, str) or isinstance(first, str)) and fitted:
        raise InvalidInput(
            "X holds texts, not word counts. Count them by the words of the fit: "
            "thirdmoment.text.read(texts, like=model) where the model was fitted to such a corpus, "
            "or transform of the vectorizer that made the counts (one of your own is not saved "
            "with a model)."
        )
    if isinstance(X, str) or isinstance(first, str):
        raise InvalidInput(
            "X holds texts, not word counts. Count the words first: corpus = "
            "thirdmoment.text.read(texts) can be given in the place of X; or X = "
            "CountVectorizer(stop_words='english', min_df=5).fit_transform(texts), whose "
            "get_feature_names_out() are the words of its columns (feature_names)."
        )


def from_corpus(X: Any, feature_names: Any) -> tuple[Any, Any, Any]:
    """Counts, their words and what counted them; a corpus of texts brings all three."""
    X = DaskSource(X) if is_dask(X) else X
    if not hasattr(X, "__counts__"):
        return X, feature_names, None
    counts, words, counter = X.__counts__()
    return counts, words if feature_names is None else feature_names, counter


def read_counts(estimator: Any, X: Any, *, reset: bool) -> tuple[sp.csr_array, np.dtype]:
    """Check the type, the shape, and that values are finite and non-negative."""
    X = DaskSource(X) if is_dask(X) else X
    if hasattr(X, "__counts__"):
        X, words, _ = X.__counts__()
        known: list[Any] = getattr(estimator, "words_", [])
        named = words is not None and known and isinstance(known[0], str)
        if not reset and named and list(words) != known:
            raise InvalidInput(
                "The corpus has other words than the model was fitted to. Read it with like= the "
                "corpus of the fit, or like= the model."
            )
    refuse_texts(X, fitted=not reset)
    check_sparse(X)
    with np.errstate(all="ignore"):  # sums of infinite values, which are refused
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=reset,
            ensure_min_samples=1,
        )
    dtype = X.dtype
    X = sp.csr_array(X, dtype=np.float64)
    if X.nnz and X.data.min() < 0:
        raise InvalidInput(
            f"Negative values in data passed to {type(estimator).__name__} (smallest "
            f"{X.data.min():.3g}): word counts cannot be negative. Give counts, for example from "
            "CountVectorizer."
        )
    largest = float(X.data.max(initial=0.0))
    if largest > LARGEST_COUNT or 0 < largest < 1 / LARGEST_COUNT:
        raise InvalidInput(
            f"The largest entry of X is {largest:.3g}; counts between {1 / LARGEST_COUNT:.0g} and "
            f"{LARGEST_COUNT:.0g} can be used."
        )
    if not X.has_canonical_format or np.any(X.data == 0):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X, dtype


def mean_length(counts: Counts) -> float:
    """Mean number of words of a training document."""
    if counts.whole is not None:
        return counts.whole.mean_length
    return float(counts.weights @ counts.X.sum(axis=1) / counts.weights.sum())


def training_counts(X: Any, sample_weight: np.ndarray | None, k: int, dtype: np.dtype) -> Counts:
    """Counts fit for learning k topics; raises before any long work."""
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    used = weights > 0
    X, weights = (X, weights) if used.all() else (X[used], weights[used])
    weights = beside_a_prior(weights) if len(weights) else weights
    if len(weights) < k:
        raise InvalidInput(
            f"n_samples = {len(weights)} document(s) cannot show n_components={k} topics. Lower "
            "n_components or give more documents."
        )
    if X.nnz == 0:
        raise InvalidInput(
            "X holds no words: every count is zero. Check the vocabulary or the vectorizer."
        )
    X, unit = _in_units(X, weights)
    lengths = X.sum(axis=1)
    if not np.any(lengths >= 3):
        raise InvalidInput(
            f"Every document is shorter than three words (the longest has {lengths.max():.3g}), "
            "but three words of one document are what identifies the topics. Join short texts "
            "into longer documents."
        )
    return Counts(X, weights, dtype, unit, int(np.sum(lengths < 3)))


def merged(X: sp.csr_array, weights: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
    """Equal documents as one with their weights added up: copies are weights from here on."""
    _, first, group = np.unique(content_keys(X), return_index=True, return_inverse=True)
    if len(first) == len(weights):
        return X, weights
    order = np.argsort(first)
    return X[first[order]], np.bincount(group, weights=weights)[order]


def check_different(m: int, k: int) -> None:
    """Raise where m distinct documents could not show k topics."""
    if m == 1 and k > 1:
        raise InvalidInput(
            f"All documents are equal: they show one topic, not n_components={k}. Were the right "
            "texts read?"
        )


def _in_units(X: sp.csr_array, weights: np.ndarray) -> tuple[sp.csr_array, float]:
    """Counts as they are; real values divided by a unit of their own, with a warning.

    The unit is the mean entry, or less where documents would have fewer than ten units on average.
    """
    if np.all(X.data == np.rint(X.data)):
        return X, 1.0
    each = np.repeat(weights, np.diff(X.indptr))
    total = float(np.sum(each * X.data))
    unit = min(total / float(np.sum(each)), total / (10 * float(np.sum(weights))))
    warn(
        f"X has real values (tf-idf?) where word counts are expected. They are divided by "
        f"{unit:.3g}, so that a typical entry counts as one word; the correction for a word met "
        "twice in one document is then only approximate and the topics may be biased. Counts, for "
        "example from CountVectorizer, avoid this.",
        InputWarning,
    )
    return sp.csr_array((X.data / unit, X.indices, X.indptr), shape=X.shape), unit
