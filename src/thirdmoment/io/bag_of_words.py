"""Word counts from files: UCI docword, Matrix Market, SciPy npz."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.io.entries import check_promise, from_entries, open_text, read_table, short_line
from thirdmoment.io.matrices import read_matrix_market, read_npz

# What broken and hostile files lead to.
BROKEN = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, OSError, EOFError,
    RuntimeError, MemoryError, SyntaxError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error,
)  # fmt: skip

# Letters of a word at most.
LONGEST_WORD: Limit[int] = 10_000

# Words of a vocabulary whose file of counts does not say how many there are.
MOST_WORDS: Limit[int] = 10_000_000


class BagOfWords(NamedTuple):
    """Counts and, where a vocabulary file was found, their words."""

    X: sp.csr_array  # (n, d)
    feature_names: np.ndarray | None  # (d,)


def load_bag_of_words(path: str | Path, *, vocabulary: str | Path | None = None) -> BagOfWords:
    """Read word counts from a file.

    Parameters
    ----------
    path : path
        ``docword.*.txt`` or ``.txt.gz`` (UCI: three header lines, then ``doc word count`` counted
        from one), ``.mtx`` or ``.mtx.gz`` (Matrix Market), ``.npz`` (``scipy.sparse.save_npz``).
    vocabulary : path, optional
        One word a line in column order, maybe gzipped. By default ``vocab.*.txt`` or
        ``vocab.txt`` (or the same with ``.gz``) beside the file is taken when it is there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from thirdmoment.datasets import load_bag_of_words
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "docword.tiny.txt").write_text("2\\n3\\n3\\n1 1 2\\n1 3 1\\n2 2 5\\n")
    >>> load_bag_of_words(folder / "docword.tiny.txt").X.toarray()
    array([[2., 0., 1.],
           [0., 5., 0.]])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"No file {path} with word counts.")
    X = _read(path)
    given = Path(vocabulary) if vocabulary is not None else None
    words = vocabulary_of(path, given, X.shape[1])
    if words is not None and len(words) != X.shape[1]:
        raise InvalidInput(
            f"The vocabulary has {_count(words, X.shape[1])} but {path.name} has {X.shape[1]} "
            "columns. "
            "Give the vocabulary that belongs to this file."
        )
    return BagOfWords(X, words)


def _count(words: np.ndarray, n_columns: int) -> str:
    return f"{len(words)} words" if len(words) < n_columns else f"more than {n_columns} words"


def _read(path: Path) -> sp.csr_array:
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith(".npz"):
            X = read_npz(path).astype(np.float64)
        elif name.endswith((".mtx", ".mm")):
            X = read_matrix_market(path)
        else:
            X = _read_docword(path)
    except BROKEN as error:
        raise InvalidInput(
            f"{path.name} is not a UCI docword file, a Matrix Market file or a sparse npz: {error}"
        ) from error
    return X


def _read_docword(path: Path) -> sp.csr_array:
    with open_text(path) as file:
        n, d, entries = (int(short_line(file)) for _ in range(3))
        check_promise(n, d, entries)
        table = read_table(file, entries, 3, np.int64)
    return from_entries(n, d, *table.T)


def vocabulary_of(path: Path, given: Path | None, n_columns: int | None) -> np.ndarray | None:
    """Words of the columns, from the file given or one beside ``path``; None where is none."""
    if given is None:
        stem = path.name.split(".")[1] if path.name.startswith("docword.") else path.name
        names = (f"vocab.{stem}.txt", f"vocab.{stem}.txt.gz", "vocab.txt", "vocab.txt.gz")
        beside = [path.with_name(name) for name in names]
        given = next((file for file in beside if file.exists()), None)
        if given is None:
            return None
    if not given.exists():
        raise FileNotFoundError(f"No file {given} with words.")
    most = MOST_WORDS if n_columns is None else n_columns
    try:
        # no more lines than needed: a gzip may unfold without end
        with io.TextIOWrapper(open_text(given), "utf-8-sig") as file:
            lines = list(_lines(file, most + 1))
        # objects: one long word must not make all others as long
        return np.array([line.rstrip("\n") for line in lines], dtype=object)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InvalidInput(
            f"{given.name} is not a text file with a word a line: {error}"
        ) from error


def _lines(file: io.TextIOWrapper, most: int) -> Iterator[str]:
    for _ in range(most):
        line = file.readline(LONGEST_WORD)
        if len(line) == LONGEST_WORD:
            raise ValueError(f"a word has more than {LONGEST_WORD} letters")
        if not line:
            return
        yield line
