"""Words as hints: their columns, their weights, and errors that help."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thirdmoment.exceptions import InvalidInput


def column_names(names: Any, n_columns: int) -> list[Any]:
    """Names of the columns, each once: strings or integers, or column numbers if none are given."""
    if names is None:
        return list(range(n_columns))
    if isinstance(names, Mapping):  # word -> column
        if sorted(names.values()) != list(range(n_columns)):
            raise InvalidInput(
                f"feature_names as a dict must give every column from 0 to {n_columns - 1} once."
            )
        names = sorted(names, key=names.get)  # type: ignore[arg-type]
    found = [int(n) if isinstance(n, numbers.Integral) else str(n) for n in names]
    if len(found) != n_columns:
        raise InvalidInput(f"feature_names has {len(found)} names, but X has {n_columns} columns.")
    if len(set(found)) < len(found):
        twice = next(name for i, name in enumerate(found) if name in found[:i])
        raise InvalidInput(f"feature_names has {twice!r} twice; every word needs one column.")
    return found


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


def refuse_names(y: Any) -> None:
    """Words in the place of the target, which is ignored, are not meant to be."""
    words = isinstance(y, (list, tuple, np.ndarray)) and len(y) > 0 and isinstance(y[0], str)
    if words:
        raise InvalidInput(
            "The second argument of fit is a target, which is ignored, and it holds words. Pass "
            "them as feature_names=."
        )
