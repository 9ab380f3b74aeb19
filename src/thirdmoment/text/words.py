"""Which words of a corpus are counted, and counting them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.text.tokens import SHORTEST, Numbering, Phrases, Tokens, find_phrases

# Words in more documents than this share are left out.
LARGEST_SHARE: Choice[float] = 0.5

# So few texts keep all words, unless bounds are given.
FEW: Choice[int] = 20


def least_documents(n: int) -> int:
    """Documents that a word must occur in: two of a few hundred, twenty of twenty thousand."""
    return int(np.clip(round(n / 1000), 2, 20)) if n > FEW else 1


class Store(Protocol):
    """Where arrays of a chunk wait for the next step."""

    def put(self, *arrays: np.ndarray) -> Any: ...
    def get(self, held: Any) -> Sequence[np.ndarray]: ...
    def drop(self, held: Any) -> None: ...


class Memory:
    """Keeps arrays as they are."""

    def put(self, *arrays: np.ndarray) -> Any:
        return arrays

    def get(self, held: Any) -> Sequence[np.ndarray]:
        return held

    def drop(self, held: Any) -> None:
        """Nothing: the arrays go with their last reader."""


class Disk:
    """Keeps arrays in a temporary folder, which goes with this object or with the process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="thirdmoment-"))
        self.count = 0
        self.close = weakref.finalize(self, _remove, self.folder, os.getpid())

    def put(self, *arrays: np.ndarray) -> Any:
        path = self.folder / f"{self.count}.npy"
        self.count += 1
        try:
            with path.open("wb") as file:
                for part in arrays:
                    np.save(file, part, allow_pickle=False)
        except OSError as error:
            text = f"{error.strerror or error}; set TMPDIR to a folder with more room, or free some"
            raise OSError(error.errno, text, str(self.folder)) from error
        return path, len(arrays)

    def get(self, held: Any) -> Sequence[np.ndarray]:
        path, count = held
        if not path.exists():
            raise InvalidInput("The counts of this stream of texts are gone: it was closed.")
        with path.open("rb") as file:
            return [np.load(file, allow_pickle=False) for _ in range(count)]

    def drop(self, held: Any) -> None:
        held[0].unlink(missing_ok=True)


def _remove(folder: Path, pid: int) -> None:
    """The folder goes with the process that made it, not with its forks."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


class WordCounter:
    """Counts words of texts; what it learned of a corpus is plain lists."""

    def __init__(
        self,
        *,
        stop_words: Sequence[str] = (),
        min_documents: int | None = None,
        max_share: float | None = None,
        phrases: bool = True,
    ) -> None:
        self.stop_words = list(stop_words)
        self.min_documents, self.max_share, self.phrases = min_documents, max_share, phrases
        self.words: list[str] = []
        self.pairs: list[str] = []

    def fit_transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Learn the words and count them."""
        data, indices, indptr = self.learn([texts], Memory())[0]
        shape = len(indptr) - 1, len(self.words)
        return sp.csr_array((data.astype(np.float64), indices, indptr), shape=shape)

    def learn(self, batches: Iterable[Iterable[str]], store: Store) -> list[Any]:
        """Learn the words of batches of texts; what ``store`` holds then are their counts."""
        numbering, n = Numbering(self.stop_words), 0
        read = []
        for texts in batches:
            tokens = numbering.read(texts)
            n += len(tokens.ends)
            read.append(store.put(*tokens))
        words = numbering.words
        if self.phrases:
            found = find_phrases(lambda: (Tokens(*store.get(one)) for one in read), words)
            left_out = set(self.stop_words)
            self.pairs = [pair for pair in found if pair not in left_out]
        join = Phrases(words, self.pairs).join
        words += self.pairs
        seen, counted = np.zeros(len(words), dtype=np.int64), []
        for one in read:
            X = join(Tokens(*store.get(one))).counts(len(words))
            seen += np.bincount(X.indices, minlength=len(words))
            counted.append(store.put(X.data.astype(np.float32), X.indices, X.indptr))
            store.drop(one)
        kept = self._kept(seen, n)
        kept = kept[np.argsort(np.array(words, dtype=object)[kept], kind="stable")]
        self.words = [words[j] for j in kept]
        column = np.full(len(words), -1, dtype=np.int64)
        column[kept] = np.arange(len(kept))
        return list(self._chosen(store, counted, column))

    def _kept(self, seen: np.ndarray, n: int) -> np.ndarray:
        """Words that are in enough and not in too many documents."""
        least = least_documents(n) if self.min_documents is None else self.min_documents
        share = self.max_share
        if share is None:  # in a few texts any word may be everywhere
            share = LARGEST_SHARE if n > FEW else 1.0
        most = share * n
        kept = np.flatnonzero((seen > 0) & (seen >= least) & (seen <= most))
        if not len(kept):
            known, rare = int(np.sum(seen > 0)), int(np.sum((seen > 0) & (seen < least)))
            if not known:
                raise InvalidInput(
                    f"No word is left of {n:,} texts: they hold nothing but stop words "
                    f"({len(self.stop_words)} are left out), numbers, and words of fewer than "
                    f"{SHORTEST} letters. Give language=None to keep stop words, or a "
                    "vectorizer= of your own."
                )
            raise InvalidInput(
                f"No word is left of {n:,} texts: of {known:,} different ones {rare:,} are in "
                f"fewer than {least} documents (min_documents), the others in more than "
                f"{100 * share:.3g}% of them (max_share); words of fewer than {SHORTEST} letters "
                f"and {len(self.stop_words)} stop words are not counted."
            )
        return kept

    def _chosen(self, store: Store, counted: list[Any], column: np.ndarray) -> Iterator[Any]:
        """Counts with the columns of the words that are kept."""
        for one in counted:
            data, indices, indptr = store.get(one)
            X = _with_columns(sp.csr_array((data, indices, indptr), (len(indptr) - 1, len(column))),
                              column, len(self.words))  # fmt: skip
            yield store.put(X.data, X.indices, X.indptr)
            store.drop(one)

    def transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Count the words that were learned; others are passed over."""
        numbering = Numbering(self.stop_words)
        read = numbering.read(texts)
        words = numbering.words
        place = {word: j for j, word in enumerate(self.words)}
        found = Phrases(words, self.pairs).join(read).counts(len(words) + len(self.pairs))
        column = np.array([place.get(word, -1) for word in [*words, *self.pairs]], dtype=np.int64)
        return _with_columns(found, column, len(self.words))


def words_of(counter: Any, width: int) -> list[str]:
    """Words of the columns; numbers where a vectorizer (of hashes, say) knows none."""
    if isinstance(counter, WordCounter):
        return list(counter.words)
    if hasattr(counter, "get_feature_names_out"):
        return [str(word) for word in counter.get_feature_names_out()]
    return [f"#{j}" for j in range(width)]


def _with_columns(X: sp.csr_array, column: np.ndarray, width: int) -> sp.csr_array:
    """The same rows with column j as ``column[j]``, left out where that is -1."""
    new = column[X.indices]
    kept = new >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    found = sp.csr_array(
        (X.data[kept], new[kept].astype(np.int32), starts), shape=(X.shape[0], width)
    )
    found.sort_indices()
    return found
