"""A corpus of texts: word counts, their words, and the documents they came from."""

from __future__ import annotations

import functools
import itertools
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment.exceptions import InputWarning, InvalidInput, warn
from thirdmoment.text.files import paths_of, read_files, readable
from thirdmoment.text.records import (
    Columns,
    Problems,
    Record,
    of_callable,
    of_frame,
    of_items,
    of_list,
)
from thirdmoment.text.stream import Counted, TextStream
from thirdmoment.text.times import DATES, read_times
from thirdmoment.text.tokens import as_read
from thirdmoment.text.words import WordCounter, words_of


@dataclass(frozen=True, eq=False)
class TextCorpus:
    """Word counts and what their rows are; models take it in the place of counts.

    Attributes
    ----------
    X : sparse array (n_documents, n_words)
    words : list of str
        Of the columns of X.
    texts : list of str
    groups, times, ids : list
        One for each document, None where the source has none. Times are ``datetime``.
    dropped : str
        What could not be used, by reason and first place; empty if nothing.
    counter : WordCounter or a vectorizer
        Counts new texts in the same way.
    """

    X: sp.csr_array
    words: list[str]
    texts: list[str]
    groups: list[Any] = field(repr=False)
    times: list[Any] = field(repr=False)
    ids: list[Any] = field(repr=False)
    dropped: str
    counter: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"TextCorpus({len(self):,} documents, {len(self.words):,} words)"

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def texts_at(self, rows: Iterable[int]) -> list[str]:
        """The texts of some documents."""
        return [self.texts[i] for i in rows]

    def __counts__(self) -> tuple[sp.csr_array, list[str], Any]:
        """What a model reads: counts, words, and our own counter."""
        own = self.counter if isinstance(self.counter, WordCounter) else None
        return self.X, self.words, own


def read(
    source: Any,
    *,
    text: str | None = None,
    group: str | None = None,
    time: str | None = None,
    id: str | None = None,
    like: Any = None,
    vectorizer: Any = None,
    language: str | None = "english",
    stop_words: Sequence[str] = (),
    min_documents: int | None = None,
    max_share: float | None = None,
    phrases: bool = True,
    encoding: str | None = None,
    stream: bool = False,
    progress: Callable[[int, float | None], None] | None = None,
) -> TextCorpus | TextStream:
    """Texts as a corpus of word counts.

    Parameters
    ----------
    source : list of str, pandas or polars frame, path, pattern, folder or callable
        Files may be .csv, .tsv, .jsonl, .parquet (a row a document), .mallet (name, label and text
        on a line) or .txt, .md, .rst (a file a document, its folder the group), also with .gz
        behind it. A folder is read with all below. A callable returns a fresh iterator of texts, of
        rows (dicts), of lists of either, or of batches (dicts of columns).
    text, group, time, id : str, optional
        Columns of a table. The text column need not be given where there is one column only, or one
        that is called text, body or content.
    like : TextCorpus or a fitted model, optional
        Count its words, in its order: for new texts.
    vectorizer : CountVectorizer or the like, optional
        Counts words instead of our own rules.
    language : "english" or None, default="english"
        Whose common words are left out.
    stop_words : sequence of str
        More words to leave out.
    min_documents : int, optional
        Documents that a word must be in; by default a thousandth, from two to twenty, or one of
        twenty texts and fewer.
    max_share : float, optional
        Words in more than this share of the documents are left out; by default a half, and none of
        twenty texts and fewer.
    phrases : bool, default=True
        Count pairs such as "new york" as one word where they stand together far more often than by
        chance.
    encoding : str, optional
        Of text files; UTF-8, or Windows-1252 with a warning, by default.
    stream : bool, default=False
        Hold neither texts nor counts in memory: texts are read once, and their counts wait in a
        temporary folder (of about the size of the texts). A ``vectorizer`` must then be
        fitted already, or need no fit, as ``HashingVectorizer(alternate_sign=False, norm=None)``.
    progress : callable, optional
        Called now and then with the number of documents and the share of the files that were read
        (None where there are no files; 1 at the end).

    Returns
    -------
    TextCorpus, or TextStream with ``stream=True``
        Documents without any counted word are left out, with everything that belongs to them.

    Examples
    --------
    >>> import thirdmoment as tm
    >>> texts = ["the battery lasts long", "a bright screen", "the sound has bass"] * 10
    >>> corpus = tm.text.read(texts, phrases=False)
    >>> corpus.words
    ['bass', 'battery', 'bright', 'lasts', 'long', 'screen', 'sound']
    >>> tm.text.read(["my battery"], like=corpus).X.sum()
    np.float64(1.0)
    """
    _check_bounds(min_documents, max_share)
    words = {"stop_words": len(stop_words) > 0, "min_documents": min_documents is not None,
             "max_share": max_share is not None, "vectorizer": vectorizer is not None}  # fmt: skip
    _check_counting(like, vectorizer, [name for name, given in words.items() if given])
    problems, columns = Problems(), Columns(text, group, time, id)
    found = records(source, columns, problems, encoding)
    if progress is not None:
        found = _watched(found, problems, progress)
    if like is not None:
        counter, learn = _counter_of(like), False
    else:
        counter = vectorizer or WordCounter(
            stop_words=_stop_words(language, stop_words),
            min_documents=min_documents,
            max_share=max_share,
            phrases=phrases,
        )
        learn = not (stream and vectorizer is not None)
    if stream:
        again = functools.partial(records, source, columns, Problems(), encoding)
        return _streamed(found, counter, learn, problems, again, _name(source))
    return _held(list(found), counter, learn, problems, _name(source))


def _check_counting(like: Any, vectorizer: Any, given: list[str]) -> None:
    """One way to count words, not two."""
    rest = [name for name in given if name != "vectorizer"]
    if like is not None and given:
        raise InvalidInput(f"like= has its words already: leave {', '.join(given)} out.")
    if vectorizer is not None and rest:
        raise InvalidInput(f"The vectorizer chooses the words itself: leave {', '.join(rest)} out.")
    if isinstance(vectorizer, type) or (
        vectorizer is not None and not hasattr(vectorizer, "transform")
    ):
        raise InvalidInput(
            f"vectorizer={vectorizer!r} is none: give an object with fit_transform and transform, "
            "such as CountVectorizer()."
        )


def _check_bounds(least: Any, share: Any) -> None:
    """Bounds that would keep or drop every word are mistakes."""
    if share is not None and not (isinstance(share, int | float | np.floating) and 0 < share <= 1):
        raise InvalidInput(f"max_share={share!r} is no share of the documents: 0 < max_share <= 1.")
    whole = isinstance(least, int | np.integer) and least >= 1
    if least is not None and not whole:
        raise InvalidInput(f"min_documents={least!r} must be a number of documents, 1 or more.")


def records(
    source: Any, columns: Columns, problems: Problems, encoding: str | None = None
) -> Iterator[Record]:
    """Documents of a list, a frame, a file, a pattern of files, a folder or a callable."""
    if isinstance(source, str | Path):
        return read_files(paths_of(source), columns, problems, encoding)
    if _holds_paths(source):
        paths = [path for one in source for path in paths_of(one)]
        return read_files(paths, columns, problems, encoding)
    if hasattr(source, "to_pydict") and hasattr(source, "column_names"):  # an Arrow table
        return of_items([source.to_pydict()], columns, problems)
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        raise InvalidInput("The source is a lazy frame: give source.collect().")
    if hasattr(source, "columns") and not isinstance(source, Mapping):
        return of_frame(source, columns, problems)
    if hasattr(source, "__next__"):
        raise InvalidInput(
            "The source is a generator, which can be read once only. Give a list, a file, a frame, "
            "or a callable that makes the generator anew: read(lambda: generator())."
        )
    if callable(source):
        return of_callable(source, columns, problems)
    if isinstance(source, Mapping) or _holds_rows(source):
        return of_items([source], columns, problems)
    return of_list(source, columns, problems)


def _holds_paths(source: Any) -> bool:
    """Whether a list holds paths: as such, or as names of files that are there."""
    if not isinstance(source, list | tuple) or not source:
        return False
    if all(isinstance(one, Path) for one in source):
        return True
    short = all(isinstance(one, str) and len(one) < 1000 and "\n" not in one for one in source)
    return short and all(readable(Path(one)) and Path(one).is_file() for one in source)


def _holds_rows(source: Any) -> bool:
    """Whether a list holds rows (dicts), as json.load gives them."""
    return isinstance(source, list | tuple) and bool(source) and isinstance(source[0], Mapping)


def _watched(
    found: Iterator[Record], problems: Problems, progress: Callable[[int, float | None], None]
) -> Iterator[Record]:
    """The same documents; ``progress`` is told a few times a second, and at the end."""
    last, number = 0.0, 0
    for number, record in enumerate(found, start=1):
        yield record
        if number % 64 == 0 and clock.monotonic() - last > 0.1:
            last = clock.monotonic()
            progress(number, problems.share)
    progress(number, 1.0)


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else "The source"


def _held(
    found: list[Record], counter: Any, learn: bool, problems: Problems, name: str
) -> TextCorpus:
    """The corpus in memory."""
    _check_some(len(found), problems, name)
    texts = [record.text for record in found]
    X = sp.csr_array(
        counter.fit_transform(texts) if learn else counter.transform(texts), dtype=float
    )
    kept = np.flatnonzero(np.diff(X.indptr) > 0)
    own = ([getattr(record, name) for record in found] for name in ("group", "time", "id"))
    groups, times, ids = _aligned(kept, tuple(own), problems)
    told = _tell(problems)
    words = words_of(counter, X.shape[1])
    return TextCorpus(X[kept], words, [texts[i] for i in kept], groups, times, ids, told, counter)


def _streamed(
    found: Iterator[Record],
    counter: Any,
    learn: bool,
    problems: Problems,
    again: Callable[[], Iterator[Record]],
    name: str,
) -> TextStream:
    """The corpus on disk."""
    if not learn and not isinstance(counter, WordCounter):
        _check_fitted(counter)
    first = next(found, None)
    _check_some(int(first is not None), problems, name)
    assert first is not None
    counted = Counted(itertools.chain([first], found), counter, learn=learn)
    stream = TextStream(counted, again, name)
    own = counted.groups, counted.times, counted.ids
    stream.groups, stream.times, stream.ids = _aligned(stream._places, own, problems)
    stream.dropped = _tell(problems)
    return stream


def _check_fitted(vectorizer: Any) -> None:
    """A vectorizer that would have to see all texts first cannot count a stream."""
    from sklearn.exceptions import NotFittedError

    try:
        vectorizer.transform(["a text"])
    except NotFittedError as error:
        raise InvalidInput(
            "With stream=True a vectorizer must know its words already: fit it to some of the "
            "texts first, take HashingVectorizer, or leave vectorizer= out."
        ) from error


def _check_some(n: int, problems: Problems, name: str) -> None:
    if not n:
        told = problems.told()
        raise InvalidInput(f"{name} has no texts to read{f': {told}' if told else ''}.")


def _aligned(
    kept: np.ndarray, columns: tuple[list[Any], ...], problems: Problems
) -> tuple[list[Any], list[Any], list[Any]]:
    """Groups, times and ids of the documents that have words; the others are told."""
    groups, times, ids = columns
    for i in np.setdiff1d(np.arange(len(ids)), kept).tolist():
        problems.add("documents without a counted word", f"document {ids[i]}")
    if not len(kept):
        raise InvalidInput("None of the texts has a word that is counted.")
    rows = kept.tolist()
    read, bad = read_times([times[i] for i in rows])
    for i in bad:
        problems.add("times that are no dates", repr(times[rows[i]]))
    if bad and all(when is None for when in read):
        raise InvalidInput(
            "None of the times is a date that can be read (first: "
            f"{times[rows[bad[0]]]!r}). Dates are {', '.join(DATES)}; "
            "pandas.to_datetime(column, format=...) makes them of others."
        )
    return [groups[i] for i in rows], read, [ids[i] for i in rows]


def _tell(problems: Problems) -> str:
    told = problems.told()
    if told:
        warn(f"Not everything could be used: {told}.", InputWarning)
    return told


def _counter_of(like: Any) -> Any:
    """What counted the words of a corpus, or of the corpus that a model was fitted to."""
    own = getattr(like, "counter", None) or getattr(like, "counter_", None)
    if own is None:
        raise InvalidInput(
            "like= is a corpus of this function, or a model that was fitted to one that our own "
            "rules counted. Other models do not know how their words were counted: give them the "
            "counts of the vectorizer that was used."
        )
    return own


# What common English words become with an apostrophe: endings, and the words that have them.
_PERSONS = ("he", "i", "it", "she", "that", "there", "they", "we", "what", "who", "you")
_ENDINGS = {
    "n't": (
        "ai", "are", "ca", "could", "did", "do", "does", "had", "has", "have", "is", "might",
        "must", "need", "sha", "should", "was", "were", "wo", "would",
    ),
    "'d": _PERSONS,
    "'ll": _PERSONS,
    "'m": ("i",),
    "'re": ("they", "we", "what", "who", "you"),
    "'s": ("he", "here", "how", "it", "let", "one", "she", "that", "there", "what", "when", "where",
           "who", "why"),
    "'ve": ("could", "i", "might", "must", "should", "they", "we", "who", "would", "you"),
}  # fmt: skip
CONTRACTIONS = [word + end for end, words in _ENDINGS.items() for word in words]


def _stop_words(language: str | None, more: Sequence[str]) -> list[str]:
    """Common words of a language and what else is to be left out, as texts are read."""
    if language not in ("english", None):
        raise InvalidInput(
            f"language={language!r} has no list of common words here. Give language=None and your "
            "own stop_words=; words in more than half of the documents are left out anyway."
        )
    common: Sequence[str] = ()
    if language == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        common = [*sorted(ENGLISH_STOP_WORDS), *CONTRACTIONS]
    if isinstance(more, str):
        raise InvalidInput(f"stop_words={more!r} is one word; give a list.")
    wrong = [word for word in more if not isinstance(word, str)]
    if wrong:
        raise InvalidInput(f"stop_words has {wrong[0]!r}, which is no word.")
    return [*common, *(as_read(word) for word in more)]
