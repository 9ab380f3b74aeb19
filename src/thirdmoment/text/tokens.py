"""Texts as numbers of words, and phrases such as "new york" among them."""

from __future__ import annotations

import array
import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice

# Words have letters, at least so many, with apostrophes and hyphens inside; numbers tell no topic.
SHORTEST: Choice[int] = 3
MARKS = "\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e"
TOKEN = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|['-](?=[^\W\d_])){{{SHORTEST - 1},}}")

# The same for texts in ASCII, twice as fast.
_INNER = "[a-z]|['-](?=[a-z])"
PLAIN = re.compile(
    rf"[a-z](?:[a-z]{{{SHORTEST - 1}}}|(?:{_INNER}){{{SHORTEST - 1}}})[a-z]*(?:['-][a-z]+)*"
)

# Two words are a phrase when the rarer one stands in it more than half of the time (from there on
# candidates are found by a vote), so many times more often than by chance, and often enough.
PHRASE_LIFT: Choice[float] = 10.0
PHRASE_TIMES: Choice[int] = 10


def as_read(text: str) -> str:
    """Lower case, letters with their marks in one, one kind of apostrophe."""
    text = text.lower().replace("’", "'")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


class Tokens(NamedTuple):
    """Some texts one after another, as numbers of words."""

    ids: np.ndarray  # (tokens,) int32
    ends: np.ndarray  # (n,) where each text ends

    def counts(self, n_words: int) -> sp.csr_array:
        """How often each word is in each text (n, words)."""
        starts = np.concatenate([[0], self.ends])
        X = sp.csr_array(
            (np.ones(len(self.ids)), self.ids, starts), shape=(len(self.ends), n_words)
        )
        X.sum_duplicates()
        return X


class Numbering:
    """Numbers words as they come; stop words come first and are left out."""

    def __init__(self, stop_words: Sequence[str]) -> None:
        self.numbers: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        self.stop = len([self.numbers[word] for word in dict.fromkeys(stop_words)])

    @property
    def words(self) -> list[str]:
        return list(self.numbers)

    def read(self, texts: Iterable[str]) -> Tokens:
        ids, ends, number = array.array("i"), [], self.numbers.__getitem__
        for text in texts:
            text = as_read(text)
            ids.extend(map(number, (PLAIN if text.isascii() else TOKEN).findall(text)))
            ends.append(len(ids))
        found, last = np.frombuffer(ids, dtype=np.int32), np.array(ends, dtype=np.int64)
        if self.stop and len(found):
            kept = found >= self.stop
            last = np.concatenate([[0], np.cumsum(kept)])[last]
            found = found[kept]
        return Tokens(found, last)


def find_phrases(chunks: Callable[[], Iterator[Tokens]], words: list[str]) -> list[str]:
    """Pairs of neighbours that stand together far more often than by chance, the surest first.

    Three passes over the chunks: how often words are there, a vote for the neighbour of each, and a
    count of the candidates. Memory follows the words, not the pairs.
    """
    from thirdmoment.text._compiled import tally, vote

    size, total = len(words), 0
    single = np.zeros(size, dtype=np.int64)
    for chunk in chunks():
        single += np.bincount(chunk.ids, minlength=size)
        total += len(chunk.ids)
    often = single >= PHRASE_TIMES
    partner = np.full((2, size), -1, dtype=np.int32)
    lead, count = np.zeros((2, size), dtype=np.int64), np.zeros((2, size), dtype=np.int64)
    for chunk in chunks():
        vote(chunk.ids, chunk.ends, often, partner, lead)
    for chunk in chunks():
        tally(chunk.ids, chunk.ends, partner, count)
    found: dict[tuple[int, int], float] = {}
    for side in (0, 1):
        word = np.flatnonzero(partner[side] >= 0)
        other, times = partner[side, word].astype(np.int64), count[side, word]
        share = times / np.minimum(single[word], single[other])
        good = (times >= PHRASE_TIMES) & (word != other) & (share > 0.5)
        good &= times * float(total) > PHRASE_LIFT * single[word] * single[other]
        for w, o, s in zip(word[good], other[good], share[good], strict=True):
            found[(w, o) if side == 0 else (o, w)] = s
    return [
        pair for _, pair in sorted((-s, f"{words[a]} {words[b]}") for (a, b), s in found.items())
    ]


def phrase_starts(rank: Mapping[int, int]) -> Iterator[int]:
    """Where phrases begin, of the pairs at some places: from the left, unless the next is stronger.

    ``rank`` has the rank of the pair at each place, in the order of the text.
    """
    taken = -1
    for place, own in rank.items():
        if place > taken and own <= rank.get(place + 1, own):
            taken = place + 1
            yield place


class Phrases:
    """Joins phrases to one word each: numbers from ``len(words)`` on, in the order of ``pairs``."""

    def __init__(self, words: Sequence[str], pairs: Sequence[str]) -> None:
        number = {word: j for j, word in enumerate(words)}
        self.size = len(words)
        found = [
            (number.get(a, -1), number.get(b, -1)) for a, _, b in (p.partition(" ") for p in pairs)
        ]
        keys = np.array([a * self.size + b if min(a, b) >= 0 else -1 for a, b in found], np.int64)
        order = np.argsort(keys, kind="stable")
        self.rank = order[keys[order] >= 0]
        self.keys = keys[self.rank]
        self.first, self.second = (np.zeros(self.size, dtype=bool) for _ in range(2))
        self.first[self.keys // max(self.size, 1)] = True
        self.second[self.keys % max(self.size, 1)] = True

    def join(self, read: Tokens) -> Tokens:
        """Phrases as one word, from the left, unless the next pair is a stronger one."""
        if not len(self.keys) or not len(read.ids):
            return read
        at = np.flatnonzero(self.first[read.ids[:-1]] & self.second[read.ids[1:]])
        at = at[~np.isin(at + 1, read.ends)]
        here = read.ids[at].astype(np.int64) * self.size + read.ids[at + 1]
        spot = np.minimum(np.searchsorted(self.keys, here), len(self.keys) - 1)
        hit = self.keys[spot] == here
        rank = dict(zip(at[hit].tolist(), self.rank[spot[hit]].tolist(), strict=True))
        ids, gone = read.ids.copy(), np.zeros(len(read.ids), dtype=bool)
        for p in phrase_starts(rank):
            ids[p], gone[p + 1] = self.size + rank[p], True
        ends = np.concatenate([[0], np.cumsum(~gone)])[read.ends]
        return Tokens(ids[~gone], ends)
