"""Do clear answers come back? Words searched in two halves of a corpus.

Two searches with 50 topics, each prepared with one half of the documents; for 60 words of every
band of how many documents hold them, the share of the ten top words that the other half gives too.
Words of five or more documents and under 30% of all, without stop words; two ways to halve. The
limit of documents for a clear answer was chosen by these numbers: half of the words should come
back.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import FOLDERS, arguments, load_words, write_table
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput

CORPORA = ("20 Newsgroups", "Reuters", "AP", "KOS", "docstrings")
BANDS = ((5, 8), (8, 15), (15, 40), (40, 100), (100, 300), (300, 1500))
WORDS, HALVES = 60, 2


def load(name: str, data: Path) -> tuple[sp.csr_array, list[str]]:
    """Counts with rare words, and the words."""
    if name == "docstrings":
        X, words = load_words(name, data)
    else:
        folder = data / FOLDERS[name]
        X = sp.csr_array(sp.load_npz(folder / "counts.npz"), dtype=np.float64)
        words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    df = np.bincount(X.indices, minlength=X.shape[1])
    kept = [
        j for j, word in enumerate(words)
        if 5 <= df[j] < 0.3 * X.shape[0] and len(word) > 2 and word not in ENGLISH_STOP_WORDS
    ]  # fmt: skip
    X = X[:, kept]
    return X[X.sum(axis=1) >= 10], [words[j] for j in kept]


def main() -> None:
    given = arguments(__doc__ or "").parse_args()
    kept = defaultdict(list)
    for name in CORPORA:
        X, words = load(name, given.data)
        for seed in range(HALVES):
            rng = np.random.default_rng(seed)
            first = rng.random(X.shape[0]) < 0.5
            parts = [X[first], X[~first]]
            one, two = (tm.TopicSearch(50).fit(part, feature_names=words) for part in parts)
            df, other = (np.bincount(part.indices, minlength=X.shape[1]) for part in parts)
            for low, high in BANDS:
                some = np.flatnonzero((df >= low) & (df < high) & (other >= 3))
                for j in rng.choice(some, min(WORDS, len(some)), replace=False):
                    try:
                        a, b = one.search(words[j]), two.search(words[j])
                    except InvalidInput:  # too few documents of three words
                        continue
                    share = len(set(a.top_words(10)) & set(b.top_words(10))) / 10
                    doubts = [text for text in a.report.warnings if "documents hold it" not in text]
                    kept[low, high, not doubts].append(share)
    rows = [
        [f"{low} to {high - 1}", len(kept[low, high, True]),
         f"{np.mean(kept[low, high, True]):.2f}", len(kept[low, high, False]),
         f"{np.mean(kept[low, high, False]):.2f}"]
        for low, high in BANDS
    ]  # fmt: skip
    header = ["documents with the word", "clear but for their number", "top words that come back",
              "not clear", "top words that come back"]  # fmt: skip
    note = f"{', '.join(CORPORA)}; k = 50. `benchmarks/search_halves.py`"
    write_table("search_halves", header, rows, note)


if __name__ == "__main__":
    main()
