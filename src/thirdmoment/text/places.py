"""Where the counted words stand in a text, for those who show it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Any, NamedTuple

from thirdmoment.text.tokens import PLAIN, TOKEN, as_read, phrase_starts
from thirdmoment.text.words import WordCounter

PIECE = re.compile(r"\S+")


class Place(NamedTuple):
    """Characters of a text that are one counted word."""

    start: int
    end: int
    column: int


class Places:
    """Finds the words of some columns in texts, as they were counted.

    Words of our own counter are found where it counts them. Of another vectorizer only the words
    are known: they are found as we read texts, pairs of words included.
    """

    def __init__(self, words: Sequence[Any], counter: Any = None) -> None:
        self.names = [str(word) for word in words]
        self.column = {name: j for j, name in enumerate(self.names)}
        self.stop: frozenset[str] = frozenset()
        pairs = [word for word in self.column if " " in word]
        if isinstance(counter, WordCounter):
            self.stop, pairs = frozenset(counter.stop_words), counter.pairs
        self.rank = {tuple(pair.split(" ", 1)): number for number, pair in enumerate(pairs)}

    def find(self, text: str, among: Collection[int] | None = None) -> list[Place]:
        """Counted words of a text, in its order; of some columns only where they are given."""
        known = self.column
        if among is not None:
            known = {self.names[j]: j for j in among}
            if not self.rank:  # no word is part of another
                known = {name: j for name, j in known.items() if name not in self.stop}
                return [Place(*place, known[name]) for place, name in _tokens(text, known)]
        tokens = [(*place, name) for place, name in _tokens(text) if name not in self.stop]
        if self.rank:
            self._join(tokens)
        return [Place(start, end, known[name]) for start, end, name in tokens if name in known]

    def _join(self, tokens: list[tuple[int, int, str]]) -> None:
        """Make one of neighbours that were counted as a pair, in place."""
        names = [name for _, _, name in tokens]
        rank = {
            p: self.rank[pair]
            for p, pair in enumerate(itertools.pairwise(names))
            if pair in self.rank
        }
        for p in phrase_starts(rank):
            (start, _, first), (_, end, second) = tokens[p : p + 2]
            tokens[p : p + 2] = (start, end, f"{first} {second}"), (end, end, "")


def _tokens(
    text: str, among: Container[str] | None = None
) -> Iterator[tuple[tuple[int, int], str]]:
    """Start and end, and reading, of every word; of some only where they are given.

    Words of a piece whose reading is longer or shorter than its letters (capital I with a dot) all
    have the place of the piece.
    """
    if text.isascii():
        found = PLAIN.finditer(as_read(text))
        return ((one.span(), one[0]) for one in found if among is None or one[0] in among)
    return (one for one in _any_tokens(text) if among is None or one[1] in among)


def _any_tokens(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    for piece in PIECE.finditer(text):
        read, begin = as_read(piece.group()), piece.start()
        same = len(read) == len(piece.group())
        for one in (PLAIN if read.isascii() else TOKEN).finditer(read):
            place = (begin + one.start(), begin + one.end()) if same else piece.span()
            yield place, one.group()
