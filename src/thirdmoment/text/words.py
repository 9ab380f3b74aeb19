"""Which words of a corpus are counted: tokens, phrases such as "new york", and what is left out."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput

# Words have letters, at least so many, with apostrophes and hyphens inside; numbers tell no topic.
SHORTEST: Choice[int] = 3
TOKEN = re.compile(rf"[^\W\d_](?:[^\W\d_]|['-](?=[^\W\d_])){{{SHORTEST - 1},}}")

# Words in more documents than this share are left out.
LARGEST_SHARE: Choice[float] = 0.5

# Two words are a phrase when the rarer one stands in it more than half of the time, so many times
# more often than by chance, and in enough documents.
PHRASE_SHARE: Choice[float] = 0.5
PHRASE_LIFT: Choice[float] = 10.0
PHRASE_DOCUMENTS: Choice[int] = 10


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
        stop = frozenset(self.stop_words)
        documents = [_tokens(text, stop) for text in texts]
        n = len(documents)
        if self.phrases:
            self.pairs = _phrases(documents)
            rank = self._ranks()
            documents = [_joined(tokens, rank) for tokens in documents]
        counted = [Counter(tokens) for tokens in documents]
        seen = Counter(itertools.chain.from_iterable(counted))
        least = least_documents(n) if self.min_documents is None else self.min_documents
        most = self.max_share * n if n > 20 else n
        kept = sorted(word for word, count in seen.items() if least <= count <= most)
        if not kept:
            rare = sum(count < least for count in seen.values())
            raise InvalidInput(
                f"No word is left of {n:,} texts: of {len(seen):,} different ones {rare:,} are in "
                f"fewer than {least} documents (min_documents), the others in more than "
                f"{self.max_share:.0%} of them (max_share); words of fewer than {SHORTEST} letters "
                f"and {len(self.stop_words)} stop words are not counted."
            )
        self.words = kept
        return self._matrix(counted)

    def transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Count the words that were learned; others are passed over."""
        stop, rank = frozenset(self.stop_words), self._ranks()
        return self._matrix(Counter(_joined(_tokens(text, stop), rank)) for text in texts)

    def tokens(self, text: str) -> list[str]:
        """Words of one text, in its order, as they are counted."""
        known, stop = set(self.words), frozenset(self.stop_words)
        return [word for word in _joined(_tokens(text, stop), self._ranks()) if word in known]

    def _ranks(self) -> dict[str, int]:
        """Phrases by their strength, the strongest first."""
        return {pair: i for i, pair in enumerate(self.pairs)}

    def _matrix(self, counted: Iterable[Counter[str]]) -> sp.csr_array:
        column = {word: j for j, word in enumerate(self.words)}
        indptr, indices, data = [0], [], []
        for counts in counted:
            own = [(column[word], count) for word, count in counts.items() if word in column]
            indices += [j for j, _ in own]
            data += [count for _, count in own]
            indptr.append(len(indices))
        shape = (len(indptr) - 1, len(self.words))
        X = sp.csr_array(
            (np.array(data, float), np.array(indices, np.int32), np.array(indptr)), shape=shape
        )
        X.sort_indices()
        return X


def _tokens(text: str, stop: frozenset[str]) -> list[str]:
    found = TOKEN.findall(text.lower().replace("’", "'"))
    return [word for word in found if word not in stop]


def _joined(tokens: list[str], rank: dict[str, int]) -> list[str]:
    """Pairs that are phrases as one word, from the left, unless the next pair is a stronger one."""
    if not rank:
        return tokens
    pairs = [f"{a} {b}" for a, b in itertools.pairwise(tokens)]
    place = [rank.get(pair, len(rank)) for pair in pairs] + [len(rank)] * 2
    out, i = [], 0
    while i < len(tokens):
        join = place[i] < len(rank) and place[i] <= place[i + 1]
        out.append(pairs[i] if join else tokens[i])
        i += 2 if join else 1
    return out


def _phrases(documents: list[list[str]]) -> list[str]:
    """Pairs of neighbours that stand together far more often than by chance, the surest first."""
    single: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for tokens in documents:
        single.update(tokens)
        pairs.update(set(itertools.pairwise(tokens)))
    total = sum(single.values())
    found = {
        f"{a} {b}": count / min(single[a], single[b])
        for (a, b), count in pairs.items()
        if count >= PHRASE_DOCUMENTS and a != b
        and count > PHRASE_SHARE * min(single[a], single[b])
        and count * total > PHRASE_LIFT * single[a] * single[b]
    }  # fmt: skip
    return sorted(found, key=lambda pair: (-found[pair], pair))
