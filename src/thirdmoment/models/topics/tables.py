"""Topics and documents as tables for people; pandas is loaded when one is asked for."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment.exceptions import InvalidInput
from thirdmoment.metrics.topics import npmi_coherence
from thirdmoment.models.base import check_integer, check_option
from thirdmoment.models.frames import pandas as load_pandas
from thirdmoment.models.topics.averages import PERIODS, as_key, averages, grouped, periods
from thirdmoment.models.topics.counts import read_counts
from thirdmoment.models.topics.words import ranked_words
from thirdmoment.recovery.order import leading, leading_columns


class TopicTables:
    """Tables of a fitted topic model; ``_shares_of`` gives topic shares of documents."""

    components_: np.ndarray
    weights_: np.ndarray
    topic_trust_: np.ndarray
    report_: Any
    words_: list[Any]

    def _shares_of(self, X: Any) -> np.ndarray:
        """Share of each topic in each document (n, k); rows sum to one."""
        return self.transform(X)  # type: ignore[attr-defined]

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def topic_labels_(self) -> list[str]:
        """A name for each topic: its three top words, or what `rename` was given."""
        check_is_fitted(self, "components_")
        return self._labels(getattr(self, "_names", {}))

    def _labels(self, given: Mapping[int, str]) -> list[str]:
        top = leading_columns(self.components_, 3)
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
        labels = self._labels(new)
        twice = [name for name in new.values() if labels.count(name) > 1]
        if twice:
            raise InvalidInput(f"Two topics would have the name {twice[0]!r}.")
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
        pandas = load_pandas()
        check_is_fitted(self, "components_")
        n = check_integer("n_words", n_words, 1)
        topics = np.asarray(self.components_, dtype=np.float64)
        mean = np.asarray(self.weights_, dtype=np.float64) @ topics

        def words(law: np.ndarray, relevance: float) -> str:
            return ", ".join(str(self.words_[j]) for j in ranked_words(law, mean, n, relevance))

        table = {
            "label": self.topic_labels_,
            "weight": self.weights_,
            "trust": self.topic_trust_,
            "words": [words(law, 1.0) for law in topics],
            "relevant_words": [words(law, 0.6) for law in topics],
        }
        if corpus is not None:
            table["coherence"] = npmi_coherence(topics, read_counts(self, corpus, reset=False)[0])
        return pandas.DataFrame(table, index=pandas.RangeIndex(len(topics), name="topic"))

    def similarity_frame(self) -> Any:
        """How far topics share their words: 1 for equal topics, 0 for topics without a common word.

        The affinity of Bhattacharyya, Σ √(p q) over the words.
        """
        pandas = load_pandas()
        check_is_fitted(self, "components_")
        labels = self.topic_labels_
        return pandas.DataFrame(_affinity(self.components_), index=labels, columns=labels)

    def hierarchy_frame(self, *, n_words: int = 5) -> Any:
        """Topics joined step by step, the most similar first; k - 1 rows.

        Every row joins two topics, or groups of topics from earlier rows, to one: ``topics`` lists
        those in it, ``words`` the top words of their mean, ``distance`` how unlike the two are on
        average (Hellinger, 0 to 1).
        """
        pandas, n_words = load_pandas(), check_integer("n_words", n_words, 1)
        tree, topics = self._tree(), np.asarray(self.components_, dtype=np.float64)
        k, weights = len(topics), np.asarray(self.weights_, dtype=np.float64) + 1e-300
        groups = [[j] for j in range(k)]
        for left, right in tree[:, :2].astype(int):
            groups.append(sorted(groups[left] + groups[right]))
        mean = weights @ topics
        words = [
            ", ".join(str(self.words_[j]) for j in ranked_words(law, mean, n_words, 0.6))
            for law in (np.average(topics[own], axis=0, weights=weights[own]) for own in groups[k:])
        ]
        table = {
            "left": [groups[a] for a in tree[:, 0].astype(int)],
            "right": [groups[b] for b in tree[:, 1].astype(int)],
            "distance": tree[:, 2],
            "topics": groups[k:],
            "words": words,
        }
        return pandas.DataFrame(table)

    def _tree(self) -> np.ndarray:
        """Average linkage of the topics by Hellinger distance, as SciPy writes it."""
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        check_is_fitted(self, "components_")
        if len(self.components_) < 2:
            raise InvalidInput("One topic alone has no hierarchy.")
        distance = np.sqrt(np.clip(1 - _affinity(self.components_), 0, 1))
        np.fill_diagonal(distance, 0.0)
        return linkage(squareform(distance, checks=False), "average", optimal_ordering=True)

    def plot_hierarchy(self, *, figure: Any = None) -> Any:
        """The hierarchy as a tree; on ``figure`` or a new matplotlib figure, which is returned."""
        from thirdmoment.report.plot import plot_tree

        return plot_tree(self._tree(), self.topic_labels_, figure=figure)

    def merge(self, topics: Sequence[Any], *, name: str | None = None) -> Any:
        """A new model in which some topics, given by number or name, are one.

        The words of the new topic are those of all its parts, by how much text each has; it takes
        the place of the first, and the names of the others stay. Shares of documents are found anew
        under the new topics: near the sums of the old ones where the parts are alike, and other
        ones where they are not. Trust was not checked for it (NaN).

        Examples
        --------
        >>> import thirdmoment as tm
        >>> corpus = tm.datasets.make_lda_corpus(500, 60, 4)
        >>> model = tm.LatentDirichletAllocation(4).fit(corpus.X)
        >>> model.merge([0, 2], name="both").topic_labels_[0]
        'both'
        """
        check_is_fitted(self, "components_")
        if not self._mergeable:
            raise InvalidInput(
                f"Topics of {type(self).__name__} vary each on their own and cannot be one; fit "
                "fewer, or add up their shares."
            )
        if isinstance(topics, str) or not hasattr(topics, "__iter__"):
            raise InvalidInput("Give a list of topics to make one of, such as [1, 4].")
        own = sorted({self._topic(topic) for topic in topics})
        if len(own) < 2:
            raise InvalidInput(f"To make one of several topics takes two; {list(topics)} is one.")
        merged = copy.deepcopy(self)
        merged._merge(own)
        merged.report_ = merged.report_.outdated("topics were merged after the fit")
        return merged if name is None else merged.rename({own[0]: name})

    _mergeable = True

    def _merge(self, own: list[int]) -> None:
        """Make one of the topics ``own``, in place."""
        first, gone, k = own[0], own[1:], len(self.components_)
        size = np.asarray(getattr(self, "word_share_", self.weights_), dtype=np.float64)[own]
        size = size if size.sum() > 0 else np.ones(len(own))
        law = np.average(self.components_[own], axis=0, weights=size)
        self.components_[first] = law / law.sum()
        self.topic_trust_ = np.array(self.topic_trust_, dtype=np.float64)
        self.topic_trust_[first] = np.nan
        for name in ("weights_", "word_share_", "concentration_"):
            if hasattr(self, name):
                getattr(self, name)[first] = getattr(self, name)[own].sum()
        for name in ("components_", "topic_trust_", "weights_", "word_share_", "concentration_"):
            if hasattr(self, name):
                setattr(self, name, np.delete(getattr(self, name), gone, axis=0))
        given = {**getattr(self, "_names", {})}
        given.pop(first, None)
        kept = [j for j in range(k) if j not in gone]
        self._names = {new: given[old] for new, old in enumerate(kept) if old in given}
        self.n_components = len(kept)

    def documents_frame(self, corpus: Any) -> Any:
        """One row a document: its name, group, time, main topic, and the share of every topic."""
        pandas = load_pandas()
        shares, labels = self._shares_of(corpus), self.topic_labels_
        main = shares.argmax(axis=1)
        table: dict[str, Any] = dict(_about(corpus))
        table |= {"topic": main, "label": [labels[j] for j in main]}
        table |= {"share": shares[np.arange(len(main)), main]}
        given = getattr(self, "_names", {})
        for j in range(shares.shape[1]):
            name = given.get(j, f"topic {j}")
            while name in table:  # a topic may be called group
                name += "_"
            table[name] = shares[:, j]
        return pandas.DataFrame(table)

    def typical_documents(self, topic: Any, corpus: Any, *, n: int = 5) -> Any:
        """The ``n`` documents with most of a topic, given by number or name, and their texts."""
        pandas = load_pandas()
        number, n = self._topic(topic), check_integer("n", n, 1)
        share = self._shares_of(corpus)[:, number]
        order = leading(share, n)
        table: dict[str, Any] = {"share": share[order]}
        for name, values in _about(corpus):
            table[name] = [values[i] for i in order]
        if hasattr(corpus, "texts_at"):
            table["text"] = corpus.texts_at(order)
        return pandas.DataFrame(table, index=pandas.Index(order, name="document"))

    def by_group(self, corpus: Any, groups: Sequence[Any] | None = None) -> Any:
        """Mean share of every topic in each group of documents, with its standard error."""
        known = dict(_about(corpus)).get("group") if groups is None else groups
        return self._averages(corpus, known, "group")

    def over_time(
        self, corpus: Any, times: Sequence[Any] | None = None, *, period: str = "year"
    ) -> Any:
        """Mean share of every topic in each year, month or day, with its standard error."""
        check_option("period", period, tuple(PERIODS))
        known = dict(_about(corpus)).get("time") if times is None else times
        known = None if known is None else periods(known, period)
        return self._averages(corpus, known, "time")

    def _averages(self, corpus: Any, keys: Sequence[Any] | None, name: str) -> Any:
        pandas = load_pandas()
        keys = None if keys is None else [as_key(key) for key in keys]
        if keys is None or all(key is None for key in keys):
            raise InvalidInput(
                f"The documents have no {name}s. Read them with {name}=, or give {name}s= here."
            )
        shares, labels = self._shares_of(corpus), self.topic_labels_
        if len(keys) != len(shares):
            raise InvalidInput(f"{len(keys)} {name}s are given for {len(shares)} documents.")
        by, k = grouped(keys), len(labels)
        found = averages(shares, by)
        columns = {
            name: [key for key in by.keys for _ in range(k)],
            "topic": np.tile(np.arange(k), len(by.keys)),
            "label": labels * len(by.keys),
            "share": found.share.ravel(),
            "standard_error": found.error.ravel(),
            "documents": np.repeat(by.documents, k),
        }
        return pandas.DataFrame(columns)


def _about(corpus: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Ids, groups and times that a corpus of texts has; columns of a frame are words."""
    for name in ("id", "group", "time"):
        values = getattr(corpus, f"{name}s", None) if hasattr(corpus, "__counts__") else None
        if values is not None and any(value is not None for value in values):
            yield name, values


def _affinity(topics: np.ndarray) -> np.ndarray:
    """Σ √(p q) of all pairs of topics (k, k)."""
    roots = np.sqrt(np.asarray(topics, dtype=np.float64))
    return np.clip(roots @ roots.T, 0, 1)
