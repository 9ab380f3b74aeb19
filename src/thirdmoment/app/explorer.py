"""A corpus and its topics to look around in: one word in, its topic and documents out."""

from __future__ import annotations

import copy
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from thirdmoment._constants import Choice, Limit, Work
from thirdmoment.app.documents import Documents, documents_of
from thirdmoment.app.view import Groupings, View, groupings, make_view
from thirdmoment.exceptions import InvalidInput, MomentWarning, ThirdMomentError
from thirdmoment.models.saving import SavedModel
from thirdmoment.models.topics.counts import read_counts
from thirdmoment.models.topics.tables import TopicTables
from thirdmoment.search import TopicSearch
from thirdmoment.text.places import Places
from thirdmoment.text.words import WordCounter

# Topics that a search tells apart at the least, so that its answers are more specific than a model
# of few topics (docs/models/search.md).
SEARCHED: Choice[int] = 50

PER_TOPIC: Choice[int] = 3  # documents for each of them, at least

# Directions of the second moment below this share of the noise are left out: those of seven
# real corpora are all above it, those behind the last of few drawn topics far below.
SEEN: Choice[float] = 0.25

LAYOUT: Limit[int] = 1  # raise when what a file holds changes
PAST: Work[int] = 20  # changes that can be undone


class Explorer(SavedModel):
    """Topics, documents and a search in a page; `explore` makes it.

    In a notebook it shows itself. ``serve`` opens the live page, ``to_html`` writes one file to
    send, ``save`` keeps everything for ``thirdmoment explore FILE``.

    Attributes
    ----------
    model : topic model or None
        With the names and merged topics that the page was given.
    search : TopicSearch or None
    documents : Documents
    title : str
    """

    _changing = threading.RLock()
    _unsaved = ("_view", "_groupings", "_searched", "_places", "_frequency", "_past", "_version")

    def __init__(
        self,
        model: Any,
        search: TopicSearch | None,
        documents: Documents,
        *,
        counts: sp.csr_array | None = None,
        shares: np.ndarray | None = None,
        counter: Any = None,
        title: str = "Topics",
        why: str = "",
    ) -> None:
        self.layout = LAYOUT
        self.model, self.documents = model, documents
        self.search: Any = search
        self._counts = counts
        self._counter = counter if isinstance(counter, WordCounter) else None
        self.shares = np.empty((0, 0), np.float32) if shares is None else shares
        self.title, self.why = title, why  # why there is no search

    def __repr__(self) -> str:
        k = 0 if self.model is None else len(self.model.components_)
        return f"Explorer({self.title!r}: {len(self.documents):,} documents, {k} topics)"

    # what answers read ---------------------------------------------------------------------

    @property
    def words(self) -> list[Any]:
        """Names of the columns."""
        return (self.search if self.model is None else self.model).words_

    @property
    def counts(self) -> sp.csr_array:
        """Word counts of the documents; a search that knows all of them has them already."""
        return self.search.index_.X if self._counts is None else self._counts

    @property
    def past(self) -> list[tuple[Any, np.ndarray]]:
        """Models and shares before each change, the last one last."""
        return vars(self).setdefault("_past", [])

    @property
    def view(self) -> View | None:
        """What answers read of the topics."""
        if self.model is None:
            return None
        found = vars(self).get("_view")
        if found is None:
            with self._changing:
                found = vars(self).get("_view") or make_view(
                    self.model, self.shares, self.groupings
                )
                self._view = found
        return found

    @property
    def groupings(self) -> Groupings:
        """Documents by group and by time."""
        if "_groupings" not in vars(self):
            self._groupings = groupings(self.documents)
        return self._groupings

    @property
    def searched(self) -> Groupings:
        """Of the documents that the search knows alone."""
        if "_searched" not in vars(self):
            self._searched = self.groupings.among(self.search._used)
        return self._searched

    @property
    def unit(self) -> float:
        """What one count of ``counts`` was in the data."""
        return 1.0 if self._counts is not None or self.search is None else self.search._unit

    @property
    def version(self) -> int:
        """How many changes there have been, those that were taken back included."""
        return vars(self).get("_version", 0)

    @property
    def places(self) -> Places:
        """Finds counted words in texts."""
        if "_places" not in vars(self):
            self._places = Places(self.words, self._counter)
        return self._places

    @property
    def frequency(self) -> np.ndarray:
        """Documents that hold each word (d,); without documents how frequent the model says."""
        if "_frequency" not in vars(self):
            if len(self.documents):
                found = np.bincount(self.counts.indices, minlength=len(self.words))
            else:
                found = self.view.mean  # type: ignore[union-attr]
            self._frequency = found
        return self._frequency

    def prepare(self) -> None:
        """Make what answers read before the first is asked for."""
        _ = self.view, self.places
        if len(self.documents) or self.model is not None:
            _ = self.frequency

    # changes -------------------------------------------------------------------------------

    def rename(self, topic: int, name: str) -> None:
        """Give a topic another name."""
        with self._changing:
            model = copy.copy(self._model()).rename({topic: name})
            self._change(model, self.shares, self.view.renamed(model))  # type: ignore[union-attr]

    def merge(self, topics: Sequence[int], name: str | None = None) -> None:
        """Make one of several topics; the shares of all documents are found anew."""
        with self._changing:
            model = self._model().merge(topics, name=name)
            shares = self.shares
            if len(shares):
                shares = np.asarray(model._shares_of(self._whole_counts()), dtype=np.float32)
            self._change(model, shares, make_view(model, shares, self.groupings))

    def undo(self) -> None:
        """Take the last change back."""
        with self._changing:
            if not self.past:
                raise InvalidInput("There is no change to take back.")
            self.model, self.shares = self.past.pop()
            self._version = self.version + 1
            self._view = make_view(self.model, self.shares, self.groupings)

    def _change(self, model: Any, shares: np.ndarray, view: View) -> None:
        self.past.append((self.model, self.shares))
        del self.past[:-PAST]
        self._version = self.version + 1
        self.model, self.shares, self._view = model, shares, view

    def _model(self) -> Any:
        if self.model is None:
            raise InvalidInput("Here are no topics to change, only a search.")
        return self.model

    def _whole_counts(self) -> sp.csr_array:
        """Counts as they were given, which the search may have divided by a unit."""
        return self.counts if self.unit == 1 else self.counts * self.unit

    # out -----------------------------------------------------------------------------------

    def to_html(self, path: str | Path, *, words: int = 500, documents: int = 5) -> None:
        """Write the page as one file that needs neither a server nor a network.

        Parameters
        ----------
        path : str or Path
        words : int, default=500
            Words whose topic can be searched for in the file.
        documents : int, default=5
            Documents in it for each of them, and for each topic.
        """
        from thirdmoment.app.page import write_export

        write_export(self, Path(path), words, documents)

    def _repr_html_(self) -> str:
        from thirdmoment.app.page import notebook_page

        return notebook_page(self)

    def serve(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8642,
        browser: bool = True,
        block: bool = True,
    ) -> Any:
        """Open the live page; needs ``thirdmoment[app]``.

        Parameters
        ----------
        host : str, default="127.0.0.1"
            Where to listen. Where other machines reach it the page asks for a token, which is part
            of ``Server.url``.
        port : int, default=8642
            If it is in use the next free one is taken.
        browser : bool, default=True
            Open the page.
        block : bool, default=True
            Wait until the server is stopped with Ctrl-C. Otherwise a ``Server`` is returned, which
            has ``url`` and ``stop``.
        """
        try:
            from thirdmoment.app.server import Server
        except ModuleNotFoundError as error:
            raise ImportError(
                f"The live page needs {error.name}: pip install 'thirdmoment[app]'. to_html(path) "
                "writes the page without it."
            ) from error
        server = Server(self, host=host, port=port).start()
        if browser:
            server.open()
        if not block:
            return server
        sys.stderr.write(f"The page is at {server.url}\nPress Ctrl-C to end.\n")
        return server.wait()

    def _check_loaded(self) -> None:
        """Raise where the parts of a file do not belong together."""
        if getattr(self, "layout", None) != LAYOUT:
            raise InvalidInput("it is that of another release; make it again")
        self.documents.check()
        n, parts = (
            len(self.documents),
            [one for one in (self.model, self.search) if one is not None],
        )
        if not parts or not isinstance(self.model, TopicTables | None):
            raise InvalidInput("it holds neither topics nor a search")
        for part in parts:
            check_is_fitted(part)
            part._check_loaded()
        if len({tuple(part.words_) for part in parts}) != 1:
            raise InvalidInput("its topics and its search are of different words")
        if self._counts is not None or self.search is not None:
            if self.counts.shape != (n, len(self.words)):
                raise InvalidInput("its counts are not those of its documents")
        elif n:
            raise InvalidInput("it has documents without counts")
        sizes = (n, len(self.model.components_)) if self.model is not None and n else (0, 0)
        if self.shares.shape != sizes or self.shares.dtype != np.float32:
            raise InvalidInput("its shares are not those of its documents")


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
