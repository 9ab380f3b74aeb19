"""What is needed for a page of a model and its corpus, found and checked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from thirdmoment._constants import Choice, Wording
from thirdmoment.app.documents import documents_of
from thirdmoment.app.explorer import Explorer
from thirdmoment.exceptions import (
    InputWarning,
    InvalidInput,
    MomentWarning,
    ThirdMomentError,
    warn,
)
from thirdmoment.models.topics.counts import read_counts
from thirdmoment.models.topics.tables import TopicTables
from thirdmoment.search import TopicSearch

# Topics that a search tells apart at the least, so that its answers are more specific than a model
# of few topics (docs/models/search.md).
SEARCHED: Choice[int] = 50

PER_TOPIC: Choice[int] = 3  # documents for each of them, at least

# Documents whose words agree less with the mean of the topics are told to be others.
ALIKE: Wording[float] = 0.5

# Directions of the second moment below this share of the noise are left out: those of seven
# real corpora are all above it, those behind the last of few drawn topics far below.
SEEN: Choice[float] = 0.25


def explore(
    model: Any,
    corpus: Any = None,
    *,
    search: TopicSearch | bool = True,
    texts: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    title: str | None = None,
) -> Explorer:
    """A page of topics, documents and a search, to look around in.

    Parameters
    ----------
    model : fitted topic model or TopicSearch
        A `TopicSearch` alone gives a page without a list of topics.
    corpus : TextCorpus, TextStream, counts, or list of texts, optional
        Documents to show; texts are counted by the words of the model. Without them there are
        topics only.
    search : TopicSearch or bool, default=True
        A prepared search, or whether to prepare one.
    texts, ids, groups, times : sequence, optional
        What belongs to each row of ``corpus``, where that is a matrix of counts.
    title : str, optional

    Returns
    -------
    Explorer
        Shows itself in a notebook; ``serve()`` opens the live page, ``to_html(path)`` writes one
        file to send.

    Examples
    --------
    >>> import thirdmoment as tm
    >>> corpus = tm.datasets.make_lda_corpus(500, 60, 3)
    >>> model = tm.LatentDirichletAllocation(3).fit(corpus.X)
    >>> tm.explore(model, corpus.X, title="Drawn documents")
    Explorer('Drawn documents': 500 documents, 3 topics)
    """
    topics, own = _checked(model, search)
    reader = topics if topics is not None else own
    corpus = _read(corpus, reader)
    if corpus is None:
        return _without_documents(
            topics, own, title, texts=texts, ids=ids, groups=groups, times=times
        )
    counts, _ = read_counts(reader, corpus, reset=False)
    n = counts.shape[0]
    if topics is not None:
        _check_belongs(topics, counts)
    documents = documents_of(corpus, n, texts=texts, ids=ids, groups=groups, times=times)
    why = "" if search is not False else "The page was made without a search."
    if own is None and search is True:
        own, why = _prepared(topics, counts)
    if own is not None and len(own._used) != n:
        raise InvalidInput(
            f"The search was prepared with {len(own._used):,} documents, the corpus has {n:,}: "
            "they do not belong together. Leave search= out, and one is prepared."
        )
    if own is not None:
        _check_same(own, counts)
    shares = None
    if topics is not None:
        shares = np.asarray(topics._shares_of(corpus), dtype=np.float32)
    whole = own is not None and bool(own._used.all())
    return Explorer(
        topics,
        own,
        documents,
        counts=None if whole else sp.csr_array(counts, dtype=np.float32),
        shares=shares,
        counter=getattr(corpus, "counter", None) or getattr(reader, "counter_", None),
        title=title or "Topics",
        why=why,
    )


def _checked(model: Any, search: Any) -> tuple[Any, TopicSearch | None]:
    """The topic model and the search that were given, each None if it was not."""
    if isinstance(model, str | Path):
        raise InvalidInput(f"Give a model, or tm.load({str(model)!r}).")
    if not isinstance(model, TopicTables | TopicSearch):
        kind = type(model)
        ours = kind.__module__.startswith("thirdmoment")
        why = "has no topics; its picture is plot()" if ours else "is not a model of thirdmoment"
        raise InvalidInput(
            f"A {kind.__module__}.{kind.__name__} {why}. Give a fitted topic model such as "
            "thirdmoment.LatentDirichletAllocation, or a TopicSearch."
        )
    check_is_fitted(model)
    own = search if isinstance(search, TopicSearch) else None
    if own is not None:
        check_is_fitted(own)
    if isinstance(model, TopicSearch):
        return None, model
    if own is not None and own.words_ != model.words_:
        raise InvalidInput(
            "The model and the search have different words: they do not belong together."
        )
    return model, own


def _read(corpus: Any, reader: Any) -> Any:
    """Texts in a list as a corpus of the model's words; anything else as it is."""
    first = corpus[0] if isinstance(corpus, list | tuple) and len(corpus) else None
    if isinstance(first, str):
        from thirdmoment.text import read

        return read(list(corpus), like=reader)
    return corpus


def _prepared(model: Any, counts: Any) -> tuple[TopicSearch | None, str]:
    """A search of the corpus, or why there is none."""
    most = counts.shape[0] // PER_TOPIC
    if not most:
        return None, "These documents cannot be searched: there are too few of them."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)  # fewer topics than we asked for are fine
        try:
            k = max(SEARCHED, len(model.components_))
            found = TopicSearch(min(k, most))
            found.fit(counts, feature_names=model.words_)
            k, report = found.n_components_, found.report_
            seen = int(np.sum(report.spectrum[:k] > SEEN * report.noise))
            if 0 < seen < k:
                found = TopicSearch(seen).fit(counts, feature_names=model.words_)
            return found, ""
        except ThirdMomentError as error:
            return None, f"These documents cannot be searched: {error}"


def _check_belongs(model: Any, counts: Any) -> None:
    """Refuse documents without words of the model; warn of words in other proportions."""
    n, held = counts.shape[0], int(np.sum(np.asarray(counts.sum(axis=1)).ravel() > 0))
    if 2 * held < n:
        raise InvalidInput(
            f"Only {held:,} of the {n:,} documents hold words of the model: they do not belong "
            "together. Learn topics of these documents."
        )
    if n < PER_TOPIC * len(model.components_):
        return  # so few may be of any topic
    own = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    mean = np.asarray(model.weights_) @ np.asarray(model.components_)
    common = float(np.minimum(own / own.sum(), mean / mean.sum()).sum())
    if common < ALIKE:
        warn(
            f"These documents have the words of the model in other proportions ({common:.0%} of "
            "them agree). Shares of the text and trust are those of the documents that the topics "
            "were learned from.",
            InputWarning,
        )


def _check_same(own: TopicSearch, counts: Any) -> None:
    """Raise where a search was prepared with other documents, or in another order."""
    here, there = sp.csr_array(counts)[own._used], own.index_.X
    if not (
        np.array_equal(here.indptr, there.indptr)
        and np.array_equal(here.indices, there.indices)
        and np.allclose(here.data, there.data * own._unit, rtol=1e-5)
    ):
        raise InvalidInput(
            "The search was prepared with other documents than the corpus has, or in another "
            "order: they do not belong together. Leave search= out, and one is prepared."
        )


def _without_documents(
    topics: Any, own: TopicSearch | None, title: str | None, **beside: Any
) -> Explorer:
    """Topics alone, or a search whose documents may have names of their own."""
    given = [name for name, values in beside.items() if values is not None]
    if topics is not None and (given or own is not None):
        what = f"{given[0]}=" if given else "search="
        raise InvalidInput(f"{what} is about documents: give their counts beside the model.")
    if own is not None:
        documents = documents_of(None, len(own._used), **beside)
        counts = None if own._used.all() else _spread(own)
        return Explorer(None, own, documents, counts=counts, counter=own.counter_,
                        title=title or "Topics")  # fmt: skip
    why = "Give the documents beside the model, and they can be searched."
    return Explorer(topics, None, documents_of(None, 0), counter=topics.counter_,
                    title=title or "Topics", why=why)  # fmt: skip


def _spread(own: TopicSearch) -> sp.csr_array:
    """Counts of all documents of a search, empty where their weight was zero."""
    X = own.index_.X
    length = np.zeros(len(own._used), dtype=np.int64)
    length[own._used] = np.diff(X.indptr)
    starts = np.concatenate([[0], np.cumsum(length)])
    return sp.csr_array((X.data, X.indices, starts), shape=(len(length), X.shape[1]))
