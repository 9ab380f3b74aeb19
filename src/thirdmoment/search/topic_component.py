"""A topic that was found: its words, its documents, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thirdmoment._constants import Choice
from thirdmoment.models.base import check_integer
from thirdmoment.models.topics.words import ranked_words
from thirdmoment.recovery.order import leading
from thirdmoment.recovery.search import FoundComponent, alignment
from thirdmoment.search.component import LIMITS, Component, Limits, search_report
from thirdmoment.starts.topic_index import SearchMatrix, TopicIndex

# Pseudo-words that a document's share of a topic is drawn to the topic's weight with.
PRIOR_LENGTH: Choice[float] = 20.0


@dataclass(frozen=True, repr=False, eq=False)
class TopicComponent(Component):
    """A topic found from a hint; ``parameters`` (d,) is its word distribution."""

    words: Sequence[Any]
    index: TopicIndex
    used: np.ndarray  # (n,) documents of positive weight, which the index holds

    def top_words(self, n: int = 10, *, relevance: float = 1.0) -> list[Any]:
        """The top ``n`` words, by name or, without names, by column.

        Parameters
        ----------
        n : int
        relevance : float between 0 and 1, default=1.0
            Words are ranked by relevance · log p + (1 - relevance) · log lift: 1 by probability,
            0 by lift, 0.6 brings out what sets the topic apart.
        """
        n = check_integer("n", n, 1)
        order = ranked_words(self.parameters, self.index.mean, n, relevance)
        return [self.words[j] for j in order if self.parameters[j] > 0]

    def shares(self) -> np.ndarray:
        """Share of this topic in each document of the corpus (n,), zero where a weight was zero.

        A word belongs to the topic with probability w mu(x)/p(x); shares of short documents are
        drawn to the topic's weight.
        """
        mean, X = self.index.mean, self.index.X
        ratio = self.weight * self.parameters / np.maximum(mean, 1e-300)
        belongs = np.where(mean > 0, np.clip(ratio, 0, 1), 0.0)
        prior = PRIOR_LENGTH * float(np.clip(self.weight, 0, 1))
        out = np.zeros(len(self.used))
        out[self.used] = (X @ belongs.astype(X.dtype) + prior) / (self.index.lengths + PRIOR_LENGTH)
        return out

    def documents(self, n: int = 10) -> np.ndarray:
        """Row numbers of the ``n`` documents that are most about this topic, best first."""
        n = check_integer("n", n, 1)
        return leading(self.shares(), n)


def topic_component(
    query: SearchMatrix,
    found: FoundComponent,
    law: tuple[np.ndarray, float],
    index: TopicIndex,
    words: Sequence[Any],
    used: np.ndarray,
    *,
    label_score: float = np.nan,
    details: dict[str, Any] | None = None,
    extra: Sequence[str] = (),
    hint: np.ndarray | None = None,
    limits: Limits = LIMITS,
) -> TopicComponent:
    """The answer to a query, judged; ``hint`` is the whitened label where it is not WᵀAv."""
    report = search_report(
        found,
        query.M,
        query.difference,
        query.v_w if hint is None else hint,
        label_score=label_score,
        details={"clipped_mass": law[1], **(details or {})},
        extra=extra,
        limits=limits,
    )
    shared = (found.weight, law[0], found.margin, report.alignment, not report.warnings, report)
    return TopicComponent(*shared, words, index, used)


def word_details(
    words: Sequence[Any],
    index: TopicIndex,
    plus: list[int],
    minus: list[int],
    direction: np.ndarray,
    law: np.ndarray,
) -> tuple[dict[str, Any], list[str]]:
    """Rank and documents of each word, and hints that do not agree with the others."""
    names = [words[j] for j in plus]
    lifts = law[[*plus, *minus]] / index.mean[[*plus, *minus]]
    ranks = [int(np.sum(law > law[j])) + 1 for j in plus]
    sizes = [index.documents_of(j) for j in plus]
    own = [alignment(direction, index.unwhitener[j].astype(np.float64)) for j in plus]
    details = {
        "rank": dict(zip(names, ranks, strict=True)),
        "documents": {n: s.stop - s.start for n, s in zip(names, sizes, strict=True)},
        "word_alignment": dict(zip(names, own, strict=True)),
    }
    extra = []
    off = [name for name, lift in zip(names, lifts, strict=False) if not lift > 1]
    if off and len(plus) > 1:
        extra.append(
            f"The words do not agree: {', '.join(map(repr, off))} is no more frequent in this "
            "topic than in the corpus."
        )
    kept = [words[j] for j, lift in zip(minus, lifts[len(plus) :], strict=True)
            if lift > 1]  # fmt: skip
    if kept:
        extra.append(
            f"The topic still holds the negative word {kept[0]!r}: the hints contradict each other."
        )
    return details, extra
