"""How a prepared corpus answers: from words, from documents, from a direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.words import check_frequency, word_columns
from thirdmoment.recovery.search import FoundComponent, whitened_search, word_distribution
from thirdmoment.search.documents import check_strength, labelled_documents, mean_frequency
from thirdmoment.search.themes import TEXT_LIMITS, Theme, read_theme, theme_doubts
from thirdmoment.search.topic_component import (
    TopicComponent,
    topic_component,
    word_details,
)
from thirdmoment.starts.seeds import Near, near_documents, sharpened
from thirdmoment.starts.topic_index import SearchMatrix, TopicIndex


class TopicAnswers:
    """Queries; the search itself has prepared the corpus."""

    index_: TopicIndex
    words_: list[Any]
    vocabulary_: dict[Any, int]
    n_features_in_: int
    weighting: str
    _used: np.ndarray  # (n,) documents of positive weight
    _doubts: tuple[str, ...]

    def _from_words(self, words: Any, weights: Any, negative: Any) -> TopicComponent:
        plus, minus = (
            word_columns(hint, self.vocabulary_, self.words_) for hint in (words, negative)
        )
        shared = sorted({self.words_[j] for j in set(plus) & set(minus)}, key=str)
        if shared:
            raise InvalidInput(
                f"The hints contradict each other: {shared[0]!r} is given as a word of the topic "
                "and as a negative one."
            )
        if not plus:
            raise InvalidInput("No word is given; negative words alone point at no topic.")
        strength = check_strength(weights, len(plus))
        for column in (*plus, *minus):
            advice = "Search for a more frequent word, or give documents=."
            check_frequency(self.words_[column], self.index_.usable_documents(column), advice)
        index = self.index_
        signed = np.concatenate([strength, -np.full(len(minus), strength.mean())])
        query = index.words([*plus, *minus], signed)
        found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
        law = word_distribution(found)
        near = near_documents(index, plus, minus) if self._text else None
        sharp = sharpened(index, law[0], found.weight, near)
        details, extra = word_details(self.words_, index, plus, minus, found.direction, sharp)
        shown = law[0][plus] / index.mean[plus]
        with np.errstate(divide="ignore"):
            score = float(np.log(np.average(shown, weights=strength)))
        facts: dict[str, Any] = {"label_score": score, "details": details, "extra": extra}
        if self._text:
            under = self._under(query)
            laws = [sharpened(index, word_distribution(o)[0], o.weight, near) for o in under]
            self._add_theme(facts, read_theme(sharp, index, plus, laws))
            facts["limits"] = TEXT_LIMITS
        return self._answer(query, found, (sharp, law[1]), **facts)

    @property
    def _text(self) -> bool:
        """Whether the words of answers are read: the model is not borne out by the moments."""
        return not self.index_.trusted and self.weighting != "none"

    def _under(self, query: SearchMatrix) -> list[FoundComponent]:
        """What the query finds under half and twice the concentration."""
        a0 = self.index_.a0
        return [self.index_.under(other, query) for other in ((a0 / 2, 2 * a0) if a0 else (0.5,))]

    def _add_theme(self, facts: dict[str, Any], theme: Theme) -> None:
        """The verdict of the words themselves, beside what else is known."""
        told = theme._asdict()
        del told["rank"], told["documents"]  # those of each word are among the details
        facts["details"] = {**facts.get("details", {}), **told}
        facts["extra"] = [*facts.get("extra", ()), *theme_doubts(theme)]

    def _from_documents(self, documents: Any) -> TopicComponent:
        """Two directions, whitened (SR-24) and by lift; the topic that fits the documents better.

        Whitening is exact and amplifies the noise of few labels; lift, as for words, is robust.
        """
        X = labelled_documents(self, documents)
        frequency, details = mean_frequency(X)
        index = self.index_
        near = (X.astype(index.X.dtype), np.ones(X.shape[0])) if self._text else None
        hint = index.W.T.astype(np.float64) @ frequency  # Wᵀx̄
        seen = index.mean > 0
        lift = np.where(seen, frequency / np.where(seen, index.mean, 1.0), 0.0)
        answers = []
        for v in (index.W.astype(np.float64) @ hint, lift):
            if not np.any(v):
                continue
            query = index.direction(v / np.abs(v).max())
            found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
            law = word_distribution(found)
            ratio = np.log((0.9 * law[0] + 0.1 * index.mean + 1e-12) / (index.mean + 1e-12))
            answers.append((float(frequency @ ratio), query, found, law))
        score, query, found, law = max(answers, key=lambda one: one[0])
        sharp = sharpened(index, law[0], found.weight, near)
        facts: dict[str, Any] = {"label_score": score, "details": details}
        self._read(facts, query, sharp, near)
        return self._answer(query, found, (sharp, law[1]), hint=hint, **facts)

    def _from_vector(self, vector: Any) -> TopicComponent:
        v = np.asarray(vector, dtype=np.float64)
        if v.shape != (self.n_features_in_,):
            raise InvalidInput(
                f"vector has shape {v.shape}; a direction has {self.n_features_in_} entries, one "
                "a word."
            )
        if not np.isfinite(v).all() or not np.any(v):
            raise InvalidInput("vector is zero or not finite, so it points at no topic.")
        query = self.index_.direction(v / np.abs(v).max())
        found = whitened_search(query.M, self.index_.m_w, self.index_.unwhitener, query.v_w)
        law, facts = word_distribution(found), dict[str, Any]()
        self._read(facts, query, law[0])
        return self._answer(query, found, law, **facts)

    def _read(
        self, facts: dict[str, Any], query: SearchMatrix, law: np.ndarray, near: Near | None = None
    ) -> None:
        """Read the words of an answer that has no words as its hint."""
        if self._text:
            others = [(word_distribution(one)[0], one.weight) for one in self._under(query)]
            laws = [sharpened(self.index_, *other, near) for other in others]
            self._add_theme(facts, read_theme(law, self.index_, [], laws))

    def _answer(
        self,
        query: SearchMatrix,
        found: FoundComponent,
        law: tuple[np.ndarray, float],
        **facts: Any,
    ) -> TopicComponent:
        doubts = () if "limits" in facts else self._doubts
        facts["extra"] = (*doubts, *facts.get("extra", ()))
        return topic_component(query, found, law, self.index_, self.words_, self._used, **facts)
