"""A corpus and its topics to look around in: one word in, its topic and documents out."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from thirdmoment._constants import Limit, Wording, Work
from thirdmoment.app.documents import Documents
from thirdmoment.app.view import RELEVANCE, Groupings, View, groupings, make_view
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.saving import SavedModel
from thirdmoment.models.topics.tables import TopicTables
from thirdmoment.models.topics.words import ranked_words
from thirdmoment.search import TopicSearch
from thirdmoment.text.places import Places
from thirdmoment.text.words import WordCounter

LAYOUT: Limit[int] = 1  # raise when what a file holds changes
PAST: Work[int] = 20  # changes that can be undone

# Words to begin with, and where they are looked for: so many topics, so many telling words of each.
EXAMPLES: Wording[int] = 8
LOOKED_AT: Wording[int] = 24
TELLING: Wording[int] = 3


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
    _unsaved = (
        "_view", "_groupings", "_searched", "_places", "_frequency", "_examples", "_past",
        "_version",
    )  # fmt: skip

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

    @property
    def examples(self) -> list[str]:
        """Words to begin with: telling words of the largest topics whose own answer is clear."""
        if "_examples" not in vars(self):
            self._examples = self._found_examples()
        return self._examples

    def _found_examples(self) -> list[str]:
        if self.search is None or self.view is None:
            return []
        view = self.view
        clear: list[str] = []
        other: list[str] = []
        for law in view.topics[:LOOKED_AT]:
            for j in ranked_words(law, view.mean, TELLING, RELEVANCE):
                word = str(self.words[j])
                if len(clear) == EXAMPLES or word in clear or not word.isalpha():
                    continue
                try:
                    found = self.search.search(self.words[j])
                except InvalidInput:  # in too few documents
                    continue
                (clear if found.informative else other).append(word)
                if found.informative:
                    break
        return (clear + [word for word in dict.fromkeys(other) if word not in clear])[:EXAMPLES]

    def prepare(self) -> None:
        """Make what answers read before the first is asked for."""
        _ = self.view, self.places, self.examples
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
