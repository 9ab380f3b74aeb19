"""Words of the columns: their names, their order in a topic, and those that topics share."""

from __future__ import annotations

import difflib
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_number
from thirdmoment.recovery.order import leading, leading_columns
from thirdmoment.report import Finding
from thirdmoment.report.labels import size

# Words among this many top words of a topic lead it; words that lead more than a third of the
# topics, and more than a few, are told where there are several (docs/benchmarks/alarms.md).
LEADING: Wording[int] = 10
SHARED, FEW, SEVERAL = 1 / 3, 3, 2


def column_names(names: Any, n_columns: int) -> list[Any]:
    """Names of the columns, each once: strings or integers, or column numbers if none are given."""
    if names is None:
        return list(range(n_columns))
    if hasattr(names, "get_feature_names_out"):  # the vectorizer itself
        names = names.get_feature_names_out
    if callable(names):
        names = names()
    if isinstance(names, (set, frozenset)):
        raise InvalidInput("feature_names is a set, which has no order; give a list of words.")
    if isinstance(names, Mapping):  # word -> column
        if sorted(names.values()) != list(range(n_columns)):
            raise InvalidInput(
                f"feature_names as a dict must give every column from 0 to {n_columns - 1} once."
            )
        names = sorted(names, key=names.get)  # type: ignore[arg-type]
    if isinstance(names, str):
        raise InvalidInput(f"feature_names={names!r} is one word; give one for each column.")
    found = [int(n) if isinstance(n, numbers.Integral) else str(n) for n in names]
    if len(found) != n_columns:
        raise InvalidInput(f"feature_names has {len(found)} names, but X has {n_columns} columns.")
    if len(set(found)) < len(found):
        twice = Counter(found).most_common(1)[0][0]
        raise InvalidInput(f"feature_names has {twice!r} twice; every word needs one column.")
    return found


def training_words(model: Any, feature_names: Any, n_columns: int) -> list[Any]:
    """The words given, else those of the columns of X; both must be the same."""
    own = getattr(model, "feature_names_in_", None)
    names = column_names(own if feature_names is None else feature_names, n_columns)
    if own is not None and list(own) != names:
        i = next(i for i, name in enumerate(own) if name != names[i])
        raise InvalidInput(
            f"Column {i} of X is named {own[i]!r}, but feature_names calls it {names[i]!r}. Leave "
            "feature_names out, or put the columns in its order."
        )
    return names


def word_columns(words: Any, vocabulary: dict[Any, int], names: Sequence[Any]) -> list[int]:
    """Columns of one word or of several; columns may also be given by number."""
    if words is None:
        return []
    several = not isinstance(words, str) and hasattr(words, "__iter__")
    return [_column(word, vocabulary, names) for word in (words if several else [words])]


def near_words(word: str, words: Sequence[str]) -> list[str]:
    """Words of nearly the same spelling, those with two letters exchanged first."""
    near = difflib.get_close_matches(word, words, n=20, cutoff=0.5)
    return sorted(near, key=lambda one: sorted(one) != sorted(word))[:5]


def near_spellings(word: str, words: Sequence[str]) -> list[str]:
    """Phrases that hold a word, and words of nearly the same spelling."""
    near = [one for one in words if word.lower() in one.split(" ")][:3]
    return list(dict.fromkeys(near + near_words(word.lower(), words)))[:5]


def find(word: Any, vocabulary: Mapping[Any, int]) -> Any:
    """The word as it stands in the vocabulary, maybe in lower case; None where it does not."""
    if word in vocabulary:
        return word
    lower = word.lower() if isinstance(word, str) else None
    return lower if lower in vocabulary else None


def _column(word: Any, vocabulary: dict[Any, int], names: Sequence[Any]) -> int:
    usable = isinstance(word, (str, numbers.Integral)) and not isinstance(word, (bool, np.bool_))
    if not usable:
        raise InvalidInput(f"{word!r} is no word: give a string, or a list of strings.")
    known = find(word, vocabulary)
    if known is not None:
        return vocabulary[known]
    named = all(isinstance(name, str) for name in names)
    if named and not isinstance(word, str) and 0 <= word < len(names):
        return int(word)
    if isinstance(word, str) and not named:
        raise InvalidInput(
            f"{word!r} cannot be looked up: fit was given no words, so columns have numbers only. "
            "Pass fit(X, feature_names=vectorizer.get_feature_names_out())."
        )
    spelled = [str(name) for name in names]
    near = near_spellings(str(word), spelled)
    raise InvalidInput(
        f"{word!r} is not in the vocabulary of {len(spelled)} words. "
        + (f"Near it: {', '.join(near)}." if near else "No word is near it.")
    )


def check_frequency(word: Any, documents: float, advice: str) -> None:
    """A word must be in two documents or more."""
    if documents < 2:
        raise InvalidInput(
            f"{word!r} occurs in {documents:.3g} document(s) of three or more words; at least 2 "
            f"are needed to tell a topic from a single text. {advice}"
        )


def ranked_words(law: np.ndarray, mean: np.ndarray, n: int, relevance: float) -> np.ndarray:
    """Columns of the ``n`` top words of a word law (d,) next to the mean law of the corpus.

    Ranked by relevance · log p + (1 - relevance) · log lift; words that never occur come last.
    """
    if not 0 <= check_number("relevance", relevance) <= 1:
        raise InvalidInput(f"relevance={relevance} must lie between 0 and 1.")
    return ranked_at(law, mean, n, [relevance])[0]


def ranked_at(
    law: np.ndarray, mean: np.ndarray, n: int, relevances: Sequence[float] | np.ndarray
) -> np.ndarray:
    """`ranked_words` at each of several relevances (r, n)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(mean > 0, np.log(law), -np.inf)
        base = np.log(np.where(mean > 0, mean, 1.0))
    return np.stack([leading(log - (1 - r) * base, n) for r in relevances])


def refuse_names(y: Any) -> None:
    """Words in the place of the target, which is ignored, are not meant to be."""
    words = isinstance(y, (list, tuple, np.ndarray)) and len(y) > 0 and isinstance(y[0], str)
    if words:
        raise InvalidInput(
            "The second argument of fit is a target, which is ignored, and it holds words. Pass "
            "them as feature_names=."
        )


def topic_labels(topics: np.ndarray, weights: np.ndarray, names: Sequence[Any]) -> tuple[str, ...]:
    """Share and the three top words of each topic."""
    top = leading_columns(topics, 3)
    return tuple(
        ", ".join([f"{size(float(weight))} of text", *(str(names[j]) for j in row)])
        for weight, row in zip(weights, top, strict=True)
    )


def shared_words(topics: np.ndarray, names: Sequence[Any]) -> list[Finding]:
    """Words that lead many topics: they belong on the list of stop words."""
    k = len(topics)
    if not isinstance(names[0], str):  # numbers of columns
        return []
    top = leading_columns(topics, LEADING)
    words, count = np.unique(top, return_counts=True)
    many = words[count > max(FEW, SHARED * k)]
    if len(many) < SEVERAL:
        return []
    listed = ", ".join(str(names[j]) for j in many[:LEADING])
    listed += f" and {len(many) - LEADING} more" if len(many) > LEADING else ""
    text = (
        f"The words {listed} are among the ten top words of more than a third of the topics: they "
        "tell no topic from another."
    )
    return [Finding("stop words", text, f"Remove {listed}, and fit again.", "care")]
