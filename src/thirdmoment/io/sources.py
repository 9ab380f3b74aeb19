"""Files, folders and callables as sources of rows, checked as they are read.

Every reader gives whole rows, some hundred thousand entries at a time, and of text files holds no
more than that; an npz file is read as a whole.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.io.bag_of_words import BROKEN, vocabulary_of
from thirdmoment.io.entries import (
    check_promise,
    check_shape,
    from_entries,
    open_text,
    short_line,
    tables,
)
from thirdmoment.io.matrices import mapped_npz, market_header, market_table, read_npz
from thirdmoment.io.pairs import extent, pairs_of
from thirdmoment.streaming.dask import DaskSource, is_dask
from thirdmoment.streaming.source import Source, from_matrix

# Entries of a chunk that is read from a file.
CHUNK: Work[int] = 500_000

FORMATS = {
    ".mtx": "market", ".mm": "market", ".npz": "npz", ".npy": "npy", ".svmlight": "svmlight",
    ".svm": "svmlight", ".libsvm": "svmlight", ".ldac": "ldac", ".lda-c": "ldac", ".dat": "ldac",
}  # fmt: skip


def source(
    data: Any,
    *,
    format: str | None = None,
    width: int | None = None,
    vocabulary: Any = None,
    name: str | None = None,
    progress: Callable[[int, float | None], None] | None = None,
) -> Source:
    """Data of any size as rows that are read in chunks, as often as needed.

    Parameters
    ----------
    data : path, folder, pattern, list of paths, matrix, memory map or callable
        Files: UCI ``docword.*.txt``, Matrix Market (``.mtx``, ``.mm``), SciPy ``.npz``, NumPy
        ``.npy``, svmlight, LDA-C (``.ldac``, ``.dat``); text formats also with ``.gz`` behind it.
        A folder or a pattern is read file after file, in the order of the numbers in their names.
        A callable returns a fresh iterator of matrices each time it is called.
    format : {"docword", "market", "npz", "npy", "svmlight", "ldac"}, optional
        By default told by the name.
    width : int, optional
        Columns, where the file does not say: svmlight and LDA-C files, which are else read once for
        it (or have as many as the vocabulary). Others must have so many.
    vocabulary : path or sequence of str, optional
        Words of the columns; a ``vocab.txt`` beside the file is found.
    name : str, optional
        Stands in messages.
    progress : callable, optional
        Called after every chunk with the rows that were read in this pass and their share of all
        (None in a first pass that does not know how many there are).

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> import thirdmoment as tm
    >>> rows = tm.source(lambda: (np.ones((3, 2)) * i for i in range(4)))
    >>> rows.shape
    (12, 2)
    >>> [chunk.start for chunk in rows]
    [0, 3, 6, 9]
    """
    found = _source(data, format, width, vocabulary, name)
    found.progress = progress or found.progress
    return found


def _source(
    data: Any, format: str | None, width: int | None, vocabulary: Any, name: str | None
) -> Source:
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return _files(_paths(Path(data)), format, width, vocabulary, name)
    if isinstance(data, list | tuple) and data and all(isinstance(p, str | Path) for p in data):
        return _files([Path(p) for p in data], format, width, vocabulary, name)
    if vocabulary is not None and isinstance(vocabulary, str | Path):
        raise InvalidInput("vocabulary= of a matrix is its words; files are found beside files.")
    if hasattr(data, "__next__"):
        raise InvalidInput(
            "A generator can be read once only, and more passes are needed. Give a callable that "
            "makes it anew, source(lambda: generator()), or a list of its batches as "
            "source(lambda: batches); partial_fit takes one batch after another."
        )
    if is_dask(data):
        return DaskSource(data)
    if callable(data):
        return Source(data, width=width, name=name or "The callable", words=vocabulary)
    if sp.issparse(data) or (isinstance(data, np.ndarray) and data.ndim == 2):
        return from_matrix(data, name=name or "X", words=vocabulary)
    raise InvalidInput(
        f"A {type(data).__name__} is no source of rows: give a path, a matrix, or a callable that "
        "returns an iterator of matrices. Texts are read by thirdmoment.text.read."
    )


def _paths(path: Path) -> list[Path]:
    """Files of a folder or a pattern, by the numbers in their names."""
    if path.is_dir():
        found = [p for p in path.iterdir() if p.is_file() and _format_of(p, None) is not None]
    elif not path.exists() and any(sign in str(path) for sign in "*?["):
        base = Path(path.anchor) if path.is_absolute() else Path()
        named = base.glob(str(path.relative_to(path.anchor) if path.anchor else path))
        found = [p for p in named if p.is_file()]
    elif not path.exists():
        raise FileNotFoundError(2, "No such file or folder", str(path))
    else:
        return [path]
    if not found:
        raise InvalidInput(
            f"{path} has no files of rows: docword.*.txt, .mtx, .npz, .npy, .svmlight or .ldac."
        )
    return sorted(found, key=_by_numbers)


def _by_numbers(path: Path) -> list[list[Any]]:
    """Names of the folders and the file, with numbers by their size."""
    parts = (re.split(r"([0-9]+)", name) for name in path.parts)
    return [[int(s) if s.isdecimal() else s for s in part] for part in parts]


def _format_of(path: Path, given: str | None) -> str | None:
    if given is not None:
        known = ("docword", *dict.fromkeys(FORMATS.values()))
        if given not in known:
            raise InvalidInput(f"format={given!r} must be one of {', '.join(known)}.")
        return given
    stem = path.name.removesuffix(".gz")
    return "docword" if stem.startswith("docword") else FORMATS.get(Path(stem).suffix.lower())


def _files(
    paths: list[Path],
    format: str | None,
    width: int | None,
    vocabulary: Any,
    name: str | None = None,
) -> Source:
    """Rows of files, one file after another."""
    kinds, base = {_format_of(path, format) for path in paths}, 1
    unsaid = bool(kinds & {"svmlight", "ldac"})  # files that do not say how many columns there are
    words = _words(paths[0], vocabulary, None) if unsaid else vocabulary
    if unsaid:
        base, width = _pairs_layout(paths, kinds, width, words)
    parts = [_file(path, _format_of(path, format), base, width) for path in paths]
    first = parts[0]
    words = words if unsaid else _words(paths[0], vocabulary, first.width)
    for part in parts:
        if part.width != (first.width if width is None else width):
            raise InvalidInput(
                f"{part.name} has {part.width} columns instead of "
                f"{first.width if width is None else width}: all rows of a source have the same."
            )
    if len(parts) > 1:
        first = Source(
            lambda: (chunk.rows for part in parts for chunk in part),
            width=first.width, name=f"{first.name} and {len(parts) - 1} more files",
        )  # fmt: skip
        first.parts = parts
    first.given_chunks = False
    first.words, first.name = None if words is None else list(words), name or first.name
    return _checked_words(first)


def _words(path: Path, vocabulary: Any, width: int | None) -> Any:
    """Words as they are given, or of the file that is given or found."""
    if vocabulary is None or isinstance(vocabulary, str | Path):
        return vocabulary_of(path, None if vocabulary is None else Path(vocabulary), width)
    return vocabulary


def _pairs_layout(
    paths: list[Path], kinds: set[str | None], width: int | None, words: Any
) -> tuple[int, int]:
    """The number of the first column and the width of all files together."""
    if kinds == {"ldac"} and (width is not None or words is not None):
        return 0, len(words) if width is None else width
    spans = [_said(path, str(next(iter(kinds))), functools.partial(extent, path)) for path in paths]
    base = 0 if kinds == {"ldac"} or min(low for low, _ in spans) == 0 else 1
    if width is None:
        width = max(high for _, high in spans) - base + 1 if words is None else len(words)
    return base, max(width, 1)


def _checked_words(found: Source) -> Source:
    if found.words is not None and len(found.words) != found.width:
        many = len(found.words) > found.width  # no more are read than are needed
        told = f"more than {found.width}" if many else len(found.words)
        raise InvalidInput(
            f"The vocabulary has {told} words but {found.name} has {found.width} columns. Give the "
            "vocabulary that belongs to it."
        )
    return found


def _file(path: Path, format: str | None, base: int, width: int | None) -> Source:
    if format is None:
        raise InvalidInput(
            f"The format of {path.name} is not told by its name: give format= docword, market, "
            "npz, npy, svmlight or ldac. Texts are read by thirdmoment.text.read."
        )
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    readers: dict[str, Callable[[], Source]] = {
        "docword": lambda: _docword(path),
        "market": lambda: _market(path),
        "npz": lambda: _npz(path),
        "npy": lambda: _npy(path),
        "svmlight": lambda: pairs_of(path, base, width or 1, counted=False),
        "ldac": lambda: pairs_of(path, 0, width or 1, counted=True),
    }
    found = _said(path, format, readers[format])
    inner, found.name = found._batches, path.name

    def batches() -> Iterator[Any]:
        iterator = iter(inner())
        while True:
            batch = _said(path, format, lambda: next(iterator, None))
            if batch is None:
                return
            yield batch

    found._batches = batches
    return found


def _said(path: Path, format: str, work: Callable[[], Any]) -> Any:
    """What ``work`` gives; where the file is broken it is named."""
    try:
        return work()
    except InvalidInput:
        raise
    except BROKEN as error:
        text = str(error) or type(error).__name__
        raise InvalidInput(f"{path.name} is not a sound {format} file: {text}") from error


def _docword(path: Path) -> Source:
    with open_text(path) as file:
        n, d, entries = (int(short_line(file)) for _ in range(3))
    check_promise(n, d, entries)
    check_shape(n, d, entries)

    def batches() -> Iterator[Any]:
        with open_text(path) as file:
            for _ in range(3):
                short_line(file)
            yield from _in_rows(tables(file, entries, 3, np.int64), n, d)

    return Source(batches, width=d, n_rows=n)


def _market(path: Path) -> Source:
    with open_text(path) as file:
        kind, field, symmetry, sizes = market_header(file)
    if kind != "coordinate" or symmetry != "general":
        raise InvalidInput(
            f"{path.name} is {symmetry} {kind}: only general coordinate files are read in chunks. "
            "load_bag_of_words reads it whole."
        )
    n, d, entries = sizes
    check_promise(n, d, entries)
    check_shape(n, d, entries)

    def batches() -> Iterator[Any]:
        with open_text(path) as file:
            market_header(file)
            yield from _in_rows(market_table(file, entries, field), n, d)

    return Source(batches, width=d, n_rows=n)


def _in_rows(blocks: Iterable[np.ndarray], n: int, d: int) -> Iterator[sp.csr_array]:
    """Rows from entries (row, column, value) that are in the order of rows, counted from one."""
    waiting: list[np.ndarray] = []
    done = held = seen = 0
    for block in blocks:
        if len(block) == 0:
            continue
        own = block[:, 0]
        last = waiting[-1][-1, 0] if waiting else done
        if own[0] < max(last, 1) or np.any(own[1:] < own[:-1]):
            raise ValueError(
                "its entries are not in the order of the rows, counted from one, so that it cannot "
                "be read in chunks. load_bag_of_words reads it whole, or sort its lines."
            )
        waiting.append(block)
        held, seen = held + len(block), seen + len(block)
        check_shape(int(own[-1]), d, seen)
        if own[-1] > n:
            raise ValueError(f"document {int(own[-1])} is not one of 1 to {n}")
        if held >= CHUNK and own[-1] > done + 1:
            waiting = [np.concatenate(waiting)]
            table = waiting[0]
            cut = int(np.searchsorted(table[:, 0], table[-1, 0]))
            if cut:
                stop = int(table[-1, 0]) - 1
                yield _rows(table[:cut], done, stop, d)
                done, waiting, held = stop, [table[cut:]], len(table) - cut
    table = np.concatenate(waiting) if waiting else np.empty((0, 3))
    if n > done:
        yield _rows(table, done, n, d)


def _rows(table: np.ndarray, start: int, stop: int, d: int) -> sp.csr_array:
    rows, columns = (table[:, j].astype(np.int64) for j in (0, 1))
    return from_entries(stop - start, d, rows - start, columns, table[:, 2], first=start)


def _npz(path: Path) -> Source:
    X = mapped_npz(path, checked=True)
    X = read_npz(path) if X is None else X  # looked at once here, and again in each pass
    n, d = X.shape
    del X

    def batches() -> Iterator[Any]:
        X = mapped_npz(path)
        whole = from_matrix(read_npz(path) if X is None else X, name=path.name)
        return (chunk.rows for chunk in whole)

    return Source(batches, width=d, n_rows=n)


def _npy(path: Path) -> Source:
    X = np.load(path, mmap_mode="r", allow_pickle=False)
    if X.ndim != 2:
        raise ValueError(f"its array has {X.ndim} dimensions instead of 2")
    return from_matrix(X)
