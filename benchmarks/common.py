"""Corpora, peers and tables shared by the benchmarks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment.datasets import load_docstrings

TABLES = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FOLDERS = {
    "20 Newsgroups": "newsgroups20",
    "Reuters": "reuters21578",
    "AP": "ap",
    "NIPS": "uci_nips",
    "KOS": "uci_kos",
    "IMDb": "imdb50k",
    "we8there": "we8there",
}


def load_corpus(name: str, data: Path) -> sp.csr_array:
    """Counts of a corpus after the preprocessing of docs/benchmarks/index.md."""
    return load_words(name, data)[0]


def load_words(name: str, data: Path) -> tuple[sp.csr_array, list[str]]:
    """Counts and the words of their columns."""
    if name == "docstrings":
        found = load_docstrings()
        return sp.csr_array(found.X, dtype=np.float64), list(found.feature_names)
    folder = data / {**FOLDERS, "NYT": "nyt_8k"}[name]
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"), dtype=np.float64)
    words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    if name == "we8there":  # short phrases, no word list applies
        return X[X.sum(axis=1) >= 5], words
    return filter_words(X, words)


def filter_words(X: sp.csr_array, words: list[str]) -> tuple[sp.csr_array, list[str]]:
    """Words in 20 or more and under 20% of documents, over two letters, no stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    df = np.bincount(X.indices, minlength=X.shape[1])
    kept = [
        j
        for j, (word, count) in enumerate(zip(words, df, strict=True))
        if 20 <= count < 0.2 * X.shape[0] and len(word) > 2 and word not in ENGLISH_STOP_WORDS
    ]
    X = X[:, kept]
    return X[X.sum(axis=1) >= 10], [words[j] for j in kept]


def split(X: sp.csr_array, seed: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Training and test documents; the last tenth, at most 2,000, is the test set."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    size = min(2000, X.shape[0] // 10)
    return X[order[:-size]], X[order[-size:]]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def tomotopy_topics(
    X: sp.csr_array,
    k: int,
    iterations: int = 200,
    *,
    seed: int = 1,
    workers: int = 2,
    prepare: Callable[[Any, list[str]], None] | None = None,
) -> np.ndarray:
    """Topics of tomotopy's LDAModel (collapsed Gibbs), in the columns of X."""
    import tomotopy

    model = tomotopy.LDAModel(k=k, alpha=1 / k, eta=0.01, seed=seed)
    names = [f"{j:06d}" for j in range(X.shape[1])]
    for row in range(X.shape[0]):
        place = slice(X.indptr[row], X.indptr[row + 1])
        counts = X.data[place].astype(int)
        model.add_doc([names[j] for j in np.repeat(X.indices[place], counts)])
    if prepare is not None:
        prepare(model, names)
    model.train(iterations, workers=workers, show_progress=False)
    columns = np.array([int(word) for word in model.used_vocabs])
    topics = np.zeros((k, X.shape[1]))
    topics[:, columns] = [model.get_topic_word_dist(j) for j in range(k)]
    return topics


def write_table(name: str, header: Iterable[str], rows: Iterable[Iterable[Any]], note: str) -> None:
    """Print a Markdown table and keep it under docs/benchmarks."""
    header = list(header)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    text = "\n".join(lines)
    print(text)
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / f"{name}.md").write_text(f"{note}\n\n{text}\n", "utf-8")


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the real corpora")
    return parser


def mean_spread(values: Iterable[float], digits: int) -> str:
    """Mean and half the range."""
    values = np.array(list(values))
    return f"{values.mean():.{digits}f} ± {np.ptp(values) / 2:.{digits}f}"
