"""Topics that the user names by a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice, Wording
from thirdmoment.exceptions import InputWarning, InvalidInput, UnusableMoments, warn
from thirdmoment.models.topics.counts import Counts
from thirdmoment.models.topics.estimator import TopicStart
from thirdmoment.models.topics.words import check_frequency, find, near_words, word_columns
from thirdmoment.report import Finding
from thirdmoment.starts.seeds import place_first, topic_of_words
from thirdmoment.starts.topic_index import prepare
from thirdmoment.starts.words import MomentOptions

# Seeds are searched for among so many times more topics than are fitted: with fewer the topics that
# they name are blurred, with more they become narrow (docs/decisions/seeds.md).
SEARCHED: Choice[float] = 1.5

# A seed has found its topic if one of its words is among so many top words.
FOUND_AMONG: Wording[int] = 20


class Seeds(NamedTuple):
    """Names of topics, and the columns of the words that point at each."""

    names: tuple[str, ...] = ()
    columns: tuple[tuple[int, ...], ...] = ()

    def placed(
        self, starts: list[TopicStart], themes: np.ndarray | None, *, trusted: bool
    ) -> list[TopicStart]:
        """Starts with the named topics first; where the moments are trusted they only choose."""
        if themes is None:
            return starts
        found = []
        for start in starts:
            topics, order = place_first(start.topics, themes, keep=trusted)
            estimate = None if start.estimate is None else start.estimate.reordered(order)
            weights = start.weights[order]
            found.append(start._replace(topics=topics, weights=weights, estimate=estimate))
        return found

    def lost(self, topics: np.ndarray) -> list[int]:
        """Seeds that have no topic of their own among the topics (k, d), the named ones first."""
        return [
            i
            for i, (columns, topic) in enumerate(zip(self.columns, topics, strict=False))
            if min(int(np.sum(topic > topic[j])) for j in columns) >= FOUND_AMONG
        ]

    def labels(self, topics: np.ndarray) -> dict[int, str]:
        """Names of the first topics; that of a seed without a topic says so."""
        lost = self.lost(topics)
        return {i: f"{n} (not found)" if i in lost else n for i, n in enumerate(self.names)}

    def notes(self, topics: np.ndarray, words: Sequence[Any]) -> list[Finding]:
        """What the report says of seeds without a topic."""
        own = [", ".join(str(words[j]) for j in columns) for columns in self.columns]
        lost = [f"{self.names[i]} ({own[i]})" for i in self.lost(topics)]
        if not lost:
            return []
        text = (
            f"The seeds of {'; '.join(lost)} found no topic of their own: none of their words is "
            f"among its {FOUND_AMONG} top words."
        )
        return [Finding("seeds", text, "Give words that belong to this topic alone.", "care")]


def read_seeds(seeds: Any, k: int, words: Sequence[Any], counts: Counts) -> Seeds:
    """Seeds as the user gives them: a dict of names and words."""
    if seeds is None:
        return Seeds()
    good = isinstance(seeds, Mapping) and all(isinstance(n, str) and n.strip() for n in seeds)
    if not good:
        raise InvalidInput(
            "seeds is a dict of names (strings) and words, such as {'sport': ['game', 'team']}."
        )
    if len(seeds) > k:
        raise InvalidInput(
            f"{len(seeds)} seeds are more than n_components={k} topics. Give fewer, or raise "
            "n_components."
        )
    vocabulary = {word: j for j, word in enumerate(words)}
    unknown: list[str] = []
    seen = (counts.weights * (counts.X.sum(axis=1) >= 3)) @ (counts.X > 0)
    found = []
    for name, own in seeds.items():
        several = [own] if isinstance(own, str) or not hasattr(own, "__iter__") else list(own)
        known = [word for word in several if not isinstance(word, str) or find(word, vocabulary)]
        unknown += [
            f"{word!r} ({name}{_nearby(word, words)})"
            for word in several
            if known and word not in known
        ]
        columns = tuple(dict.fromkeys(word_columns(known or several, vocabulary, words)))
        if not columns:
            raise InvalidInput(f"The seed {name!r} has no words.")
        for j in columns:
            check_frequency(words[j], seen[j], "Give another word.")
        found.append(columns)
    if unknown:
        text = f"Words of seeds that no document has are left out: {', '.join(unknown)}."
        warn(text, InputWarning)
    return Seeds(tuple(seeds), tuple(found))


def seed_themes(
    seeds: Seeds,
    X: sp.csr_array,
    weights: np.ndarray,
    k: int,
    concentration: float | None,
    rng: np.random.Generator,
    options: MomentOptions,
) -> np.ndarray | None:
    """The topics (s, d) that seeds point at; None without seeds."""
    if not seeds.names:
        return None
    try:
        rank = min(round(SEARCHED * k), min(X.shape) - 1)
        index = prepare(X, weights, max(rank, 1), concentration, rng, options)[0]
    except UnusableMoments:  # too little data for moments: their words alone
        mean = np.asarray(X.sum(axis=0)).ravel() + 1.0
        return np.stack([_of_words(columns, mean / mean.sum()) for columns in seeds.columns])
    found = []
    for columns in seeds.columns:  # a word may stand in documents of weight zero alone
        seen = [j for j in columns if index.usable_documents(j) and index.mean[j] > 0]
        found.append(topic_of_words(index, seen) if seen else _of_words(columns, index.mean))
    return np.stack(found)


def _of_words(columns: Sequence[int], mean: np.ndarray) -> np.ndarray:
    law = 0.5 * mean
    law[list(columns)] += 0.5 / len(columns)
    return law / law.sum()


def _nearby(word: str, words: Sequence[Any]) -> str:
    near = near_words(word.lower(), list(map(str, words)))
    return f"; near it: {', '.join(near)}" if near else ""
