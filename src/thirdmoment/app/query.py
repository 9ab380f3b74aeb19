"""What a person types into the search box: words, ``-words``, and "phrases in quotes"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.words import find, near_spellings
from thirdmoment.text.tokens import as_read

LONGEST: Limit[int] = 500  # characters of a query
MOST_WORDS: Limit[int] = 20  # words of a query
MOST_ROWS: Limit[int] = 50  # documents of a query

TERM = re.compile(r'(-?)(?:"([^"]*)"|(\S+))')


class Query(NamedTuple):
    """Words to search for and words to keep away from, as they stand in the vocabulary."""

    include: list[str]
    exclude: list[str]


class UnknownWord(InvalidInput):
    """A word that is not counted; ``near`` has words that are, of nearly the same spelling."""

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.near = list(near)


def parse(text: str, vocabulary: Mapping[Any, int], stop_words: frozenset[str]) -> Query:
    """The words of a query; neighbours that were counted as one phrase are one."""
    if len(text) > LONGEST:
        raise InvalidInput(f"The query has {len(text):,} characters; {LONGEST} are the limit.")
    terms = _joined([_term(found, vocabulary) for found in TERM.findall(text)], vocabulary)
    terms = [(out, word) for out, word in terms if word.strip("-")]
    if len(terms) > MOST_WORDS:
        raise InvalidInput(f"The query has {len(terms)} words; {MOST_WORDS} are the limit.")
    common = [word for _, word in terms if as_read(word) in stop_words]
    kept = [(out, word) for out, word in terms if as_read(word) not in stop_words]
    if common and not any(not out for out, _ in kept):
        raise UnknownWord(
            f"{', '.join(map(repr, common))}: words that are in all kinds of texts are not "
            "counted. Type a word that is about something."
        )
    found = [(out, _known(word, vocabulary)) for out, word in kept]
    include = list(dict.fromkeys(word for out, word in found if not out))
    exclude = list(dict.fromkeys(word for out, word in found if out))
    if not include:
        raise InvalidInput(
            "Type a word to find its topic; words after a minus sign only narrow it."
        )
    return Query(include, exclude)


def _term(found: tuple[str, str, str], vocabulary: Mapping[Any, int]) -> tuple[bool, str, bool]:
    """Whether a term is to be kept away from, the term, and whether it stood in quotes."""
    sign, phrase, word = found
    if phrase:
        return sign == "-", phrase, True
    if sign + word in vocabulary:  # it has its signs from the texts
        return False, sign + word, False
    return sign == "-", word if word in vocabulary else word.strip(",;.!?"), False


def _joined(
    terms: list[tuple[bool, str, bool]], vocabulary: Mapping[Any, int]
) -> list[tuple[bool, str]]:
    """Terms, neighbours of one phrase of the vocabulary as one unless quotes part them."""
    out: list[tuple[bool, str]] = []
    free = False  # whether the last term may be joined
    for minus, word, quoted in terms:
        pair = f"{out[-1][1]} {word}" if free and not quoted and not minus else ""
        if pair and find(pair, vocabulary) is not None:
            out[-1], free = (out[-1][0], pair), False
        else:
            out.append((minus, word))
            free = not quoted
    return out


def _known(word: str, vocabulary: Mapping[Any, int]) -> str:
    known = find(as_read(word) if word not in vocabulary else word, vocabulary)
    if known is None:
        near = near_spellings(word, list(map(str, vocabulary)))
        raise UnknownWord(
            f"{word!r} is not among the {len(vocabulary):,} words that were counted. Words of very "
            "few documents, or of very many, often are not.",
            near,
        )
    return str(known)


def parse_rows(text: str, n: int) -> list[int]:
    """Row numbers that are parted by commas."""
    try:
        rows = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput("Documents are given by their numbers, parted by commas.") from None
    if len(rows) > MOST_ROWS:
        raise InvalidInput(f"{len(rows)} documents are given; {MOST_ROWS} are the limit.")
    if not all(0 <= row < n for row in rows):
        raise InvalidInput(f"There are {n:,} documents, numbered from 0.")
    return rows
