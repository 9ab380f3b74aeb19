"""Which words of a corpus are counted: tokens, phrases such as "new york", and what is left out."""

from __future__ import annotations

import array
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput

# Words have letters, at least so many, with apostrophes and hyphens inside; numbers tell no topic.
SHORTEST: Choice[int] = 3
MARKS = "\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e"
TOKEN = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|['-](?=[^\W\d_])){{{SHORTEST - 1},}}")

# Words in more documents than this share are left out.
LARGEST_SHARE: Choice[float] = 0.5

# Two words are a phrase when the rarer one stands in it more than half of the time, so many times
# more often than by chance, and often enough.
PHRASE_SHARE: Choice[float] = 0.5
PHRASE_LIFT: Choice[float] = 10.0
PHRASE_TIMES: Choice[int] = 10


def least_documents(n: int) -> int:
    """Documents that a word must occur in: two of a few hundred, twenty of twenty thousand."""
    return int(np.clip(round(n / 1000), 2, 20)) if n > 20 else 1


class WordCounter:
    """Counts words of texts; what it learned of a corpus is plain lists."""

    def __init__(
        self,
        *,
        stop_words: Sequence[str] = (),
        min_documents: int | None = None,
        max_share: float = LARGEST_SHARE,
        phrases: bool = True,
    ) -> None:
        self.stop_words = list(stop_words)
        self.min_documents, self.max_share, self.phrases = min_documents, max_share, phrases
        self.words: list[str] = []
        self.pairs: list[str] = []

    def fit_transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Learn the words and count them."""
        read = _Tokens(self.stop_words).read(texts)
        n = len(read.ends)
        if self.phrases:
            self.pairs = _phrases(read)
            read = _joined(read, self.pairs)
        X = read.counts()
        seen = np.bincount(X.indices, minlength=X.shape[1])
        least = least_documents(n) if self.min_documents is None else self.min_documents
        most = self.max_share * n if n > 20 else n
        kept = np.flatnonzero((seen >= least) & (seen <= most))
        if not len(kept):
            known, rare = int(np.sum(seen > 0)), int(np.sum((seen > 0) & (seen < least)))
            raise InvalidInput(
                f"No word is left of {n:,} texts: of {known:,} different ones {rare:,} are in "
                f"fewer than {least} documents (min_documents), the others in more than "
                f"{self.max_share:.0%} of them (max_share); words of fewer than {SHORTEST} letters "
                f"and {len(self.stop_words)} stop words are not counted."
            )
        kept = kept[np.argsort(np.array(read.words, dtype=object)[kept], kind="stable")]
        self.words = [read.words[j] for j in kept]
        X = sp.csr_array(X[:, kept])
        X.sort_indices()
        return X

    def transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Count the words that were learned; others are passed over."""
        read = _joined(_Tokens(self.stop_words).read(texts), self.pairs)
        place = {word: j for j, word in enumerate(self.words)}
        column = np.array([place.get(word, -1) for word in read.words], dtype=np.int64)
        found, known = read.counts(), column >= 0
        turn = sp.csr_array(
            (np.ones(int(known.sum())), (np.flatnonzero(known), column[known])),
            shape=(len(column), len(self.words)),
        )
        X = sp.csr_array(found @ turn)
        X.sort_indices()
        return X

    def tokens(self, text: str) -> list[str]:
        """Words of one text, in its order, as they are counted."""
        read = _joined(_Tokens(self.stop_words).read([text]), self.pairs)
        known = set(self.words)
        return [read.words[j] for j in read.ids if read.words[j] in known]


def as_read(text: str) -> str:
    """Lower case, letters with their marks in one, one kind of apostrophe."""
    text = text.lower().replace("’", "'")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


class Tokens(NamedTuple):
    """All texts one after another, as numbers of words."""

    ids: np.ndarray  # (tokens,)
    ends: np.ndarray  # (n,) where each text ends
    words: list[str]

    def counts(self) -> sp.csr_array:
        """How often each word is in each text (n, words)."""
        starts = np.concatenate([[0], self.ends])
        X = sp.csr_array(
            (np.ones(len(self.ids)), self.ids, starts), shape=(len(self.ends), len(self.words))
        )
        X.sum_duplicates()
        return X


class _Tokens:
    """Numbers words as they come; stop words have none."""

    def __init__(self, stop_words: Sequence[str]) -> None:
        self.numbers: defaultdict[str, int] = defaultdict()
        self.numbers.default_factory = self.numbers.__len__
        self.stop = [self.numbers[word] for word in dict.fromkeys(stop_words)]

    def read(self, texts: Iterable[str]) -> Tokens:
        ids, ends, number = array.array("q"), [], self.numbers.__getitem__
        for text in texts:
            ids.extend(map(number, TOKEN.findall(as_read(text))))
            ends.append(len(ids))
        found, last = np.frombuffer(ids, dtype=np.int64), np.array(ends, dtype=np.int64)
        if self.stop and len(found):
            kept = found >= len(self.stop)  # they were numbered first
            last = np.concatenate([[0], np.cumsum(kept)])[last]
            found = found[kept]
        return Tokens(found, last, list(self.numbers))


def _neighbours(read: Tokens) -> np.ndarray:
    """Positions of tokens that are followed by another one of their text."""
    follows = np.ones(max(len(read.ids) - 1, 0), dtype=bool)
    inside = read.ends[(read.ends > 0) & (read.ends < len(read.ids))]
    follows[inside - 1] = False
    return np.flatnonzero(follows)


def _phrases(read: Tokens) -> list[str]:
    """Pairs of neighbours that stand together far more often than by chance, the surest first."""
    at, size = _neighbours(read), len(read.words)
    if not len(at):
        return []
    single = np.bincount(read.ids, minlength=size).astype(np.float64)
    often = single >= PHRASE_TIMES
    at = at[often[read.ids[at]] & often[read.ids[at + 1]]]
    keys, count = np.unique(read.ids[at] * size + read.ids[at + 1], return_counts=True)
    a, b = keys // size, keys % size
    share = count / np.minimum(single[a], single[b])
    found = (count >= PHRASE_TIMES) & (a != b) & (share > PHRASE_SHARE)
    found &= count * len(read.ids) > PHRASE_LIFT * single[a] * single[b]
    pairs = [(-share[i], f"{read.words[a[i]]} {read.words[b[i]]}") for i in np.flatnonzero(found)]
    return [pair for _, pair in sorted(pairs)]


def _joined(read: Tokens, pairs: list[str]) -> Tokens:
    """Phrases as one word, from the left, unless the next pair is a stronger one."""
    if not pairs or not len(read.ids):
        return read
    number, size, more = {word: j for j, word in enumerate(read.words)}, len(read.words), []
    keys = []
    for pair in pairs:
        a, _, b = pair.partition(" ")
        if a in number and b in number:
            keys.append(number[a] * size + number[b])
            more.append(pair)
    at = _neighbours(read)
    order = np.argsort(keys)
    here = read.ids[at] * size + read.ids[at + 1]
    spot = np.minimum(np.searchsorted(np.array(keys)[order], here), max(len(keys) - 1, 0))
    hit = np.array(keys)[order][spot] == here if len(keys) else np.zeros(len(here), bool)
    rank = {int(p): int(order[s]) for p, s in zip(at[hit], spot[hit], strict=True)}
    ids, gone, taken = read.ids.copy(), np.zeros(len(read.ids), dtype=bool), -1
    for p, own in rank.items():  # in the order of the text
        if p > taken and own <= rank.get(p + 1, len(keys)):
            ids[p], gone[p + 1], taken = size + own, True, p + 1
    ends = np.concatenate([[0], np.cumsum(~gone)])[read.ends]
    return Tokens(ids[~gone], ends, [*read.words, *more])
