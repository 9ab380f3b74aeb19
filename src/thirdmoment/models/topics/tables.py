"""Topics and documents as tables for people; pandas is loaded when one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment.exceptions import InvalidInput
from thirdmoment.metrics.topics import npmi_coherence
from thirdmoment.models.base import check_integer, check_option
from thirdmoment.models.topics.words import ranked_words

PERIODS: dict[str, Callable[[Any], str]] = {
    "year": lambda when: f"{when.year:04d}",
    "month": lambda when: f"{when.year:04d}-{when.month:02d}",
    "day": lambda when: f"{when.year:04d}-{when.month:02d}-{when.day:02d}",
}


class TopicTables:
    """Tables of a fitted topic model; ``_shares_of`` gives topic shares of documents."""

    components_: np.ndarray
    weights_: np.ndarray
    topic_trust_: np.ndarray
    words_: list[Any]

    def _shares_of(self, X: Any) -> np.ndarray:
        """Share of each topic in each document (n, k); rows sum to one."""
        return self.transform(X)  # type: ignore[attr-defined]

    @property
    def topic_labels_(self) -> list[str]:
        """A name for each topic: its three top words, or what `rename` was given."""
        check_is_fitted(self, "components_")
        given = getattr(self, "_names", {})
        top = np.argsort(-self.components_, axis=1, kind="stable")[:, :3]
        own = [" ".join(str(self.words_[j]) for j in row) for row in top]
        return [given.get(j, name) for j, name in enumerate(own)]

    def rename(self, names: Mapping[int, str] | Sequence[str]) -> Any:
        """Name topics, by number or all in order; names show in all tables and are saved."""
        check_is_fitted(self, "components_")
        if not isinstance(names, Mapping):
            if isinstance(names, str) or len(names) != len(self.components_):
                raise InvalidInput(
                    f"Give {len(self.components_)} names, or a dict such as {{0: 'sport'}}."
                )
            names = dict(enumerate(names))
        found = {self._topic(topic): name for topic, name in names.items()}
        if not all(isinstance(name, str) and name.strip() for name in found.values()):
            raise InvalidInput("Names of topics are strings that are not empty.")
        new = {**getattr(self, "_names", {}), **found}
        if len(set(new.values())) < len(new):
            raise InvalidInput("Two topics would have the same name.")
        self._names = new
        return self

    def _topic(self, topic: Any) -> int:
        """The number of a topic that is given by number or by name."""
        if isinstance(topic, str):
            if topic not in self.topic_labels_:
                raise InvalidInput(f"No topic is called {topic!r}; there are {self.topic_labels_}.")
            return self.topic_labels_.index(topic)
        number, k = check_integer("topic", topic, 0), len(self.components_)
        if number >= k:
            raise InvalidInput(f"There is no topic {number}: they are numbered 0 to {k - 1}.")
        return number

    def topics_frame(self, corpus: Any = None, *, n_words: int = 10) -> Any:
        """One row a topic: label, weight, trust, top words by probability and by relevance.

        Parameters
        ----------
        corpus : TextCorpus or counts, optional
            Adds the coherence (NPMI) of the top words in these documents.
        n_words : int, default=10
        """
        pandas = _pandas()
        check_is_fitted(self, "components_")
        n = check_integer("n_words", n_words, 1)
        topics = np.asarray(self.components_, dtype=np.float64)
        mean = np.asarray(self.weights_, dtype=np.float64) @ topics

        def words(law: np.ndarray, relevance: float) -> str:
            return " ".join(str(self.words_[j]) for j in ranked_words(law, mean, n, relevance))

        table = {
            "label": self.topic_labels_,
            "weight": self.weights_,
            "trust": self.topic_trust_,
            "words": [words(law, 1.0) for law in topics],
            "relevant_words": [words(law, 0.6) for law in topics],
        }
        if corpus is not None:
            table["coherence"] = npmi_coherence(topics, _counts(corpus))
        return pandas.DataFrame(table, index=pandas.RangeIndex(len(topics), name="topic"))

    def documents_frame(self, corpus: Any) -> Any:
        """One row a document: its name, group, time, main topic, and the share of every topic."""
        pandas = _pandas()
        shares, labels = self._shares_of(corpus), self.topic_labels_
        main = shares.argmax(axis=1)
        table: dict[str, Any] = {
            name: getattr(corpus, f"{name}s")
            for name in ("id", "group", "time")
            if any(value is not None for value in getattr(corpus, f"{name}s", ()))
        }
        table |= {"topic": main, "label": [labels[j] for j in main]}
        table |= {"share": shares[np.arange(len(main)), main]}
        table |= {f"topic {j}": shares[:, j] for j in range(shares.shape[1])}
        return pandas.DataFrame(table)

    def typical_documents(self, topic: Any, corpus: Any, *, n: int = 5) -> Any:
        """The ``n`` documents with most of a topic, given by number or name, and their texts."""
        pandas = _pandas()
        number, n = self._topic(topic), check_integer("n", n, 1)
        share = self._shares_of(corpus)[:, number]
        order = np.argsort(-share, kind="stable")[:n]
        table: dict[str, Any] = {"share": share[order]}
        for name in ("id", "group", "time"):
            values = getattr(corpus, f"{name}s", None)
            if values is not None and any(value is not None for value in values):
                table[name] = [values[i] for i in order]
        if hasattr(corpus, "texts_at"):
            table["text"] = corpus.texts_at(order)
        return pandas.DataFrame(table, index=pandas.Index(order, name="document"))

    def by_group(self, corpus: Any, groups: Sequence[Any] | None = None) -> Any:
        """Mean share of every topic in each group of documents, with its standard error."""
        return self._averages(corpus, getattr(corpus, "groups", None) if groups is None else groups,
                              "group")  # fmt: skip

    def over_time(
        self, corpus: Any, times: Sequence[Any] | None = None, *, period: str = "year"
    ) -> Any:
        """Mean share of every topic in each year, month or day, with its standard error."""
        check_option("period", period, tuple(PERIODS))
        known = getattr(corpus, "times", None) if times is None else times
        if known is not None:
            wrong = [when for when in known if when == when and not hasattr(when, "year")]
            if any(when is not None for when in wrong):
                raise InvalidInput(f"{wrong[0]!r} is no date; give datetime objects as times=.")
            known = [
                None if when is None or when != when else PERIODS[period](when) for when in known
            ]
        return self._averages(corpus, known, "time")

    def _averages(self, corpus: Any, keys: Sequence[Any] | None, name: str) -> Any:
        pandas = _pandas()
        keys = None if keys is None else [None if key != key else key for key in keys]
        if keys is None or all(key is None for key in keys):
            raise InvalidInput(
                f"The documents have no {name}s. Read them with {name}=, or give {name}s= here."
            )
        shares, labels = self._shares_of(corpus), self.topic_labels_
        if len(keys) != len(shares):
            raise InvalidInput(f"{len(keys)} {name}s are given for {len(shares)} documents.")
        rows = []
        known = {key for key in keys if key is not None}
        plain = all(isinstance(key, int | float) for key in known)
        for key in sorted(known) if plain else sorted(known, key=str):
            own = shares[[i for i, one in enumerate(keys) if one == key]]
            error = own.std(axis=0, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan * own[0]
            for j, label in enumerate(labels):
                rows.append((key, j, label, own[:, j].mean(), error[j], len(own)))
        return pandas.DataFrame(
            rows, columns=[name, "topic", "label", "share", "standard_error", "documents"]
        )


def _counts(corpus: Any) -> Any:
    return corpus.__counts__()[0] if hasattr(corpus, "__counts__") else corpus


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise InvalidInput("Tables are pandas frames: pip install pandas.") from error
    return pandas
