"""Words as hints: their columns, their weights, and errors that help."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from thirdmoment.exceptions import InvalidInput


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
