"""Searches from a few documents: do the documents that are found have the label of those given?

One, five or ten documents of a label of 200 or more are drawn as the hint, three draws for each
label; the share of the label among the 20 documents that are most about the answer, the hint left
out. Words of ten or more documents and under 20% of all, without stop words. The likelihood step
on the hint was chosen by these numbers.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import arguments, write_table

import thirdmoment as tm

CORPORA = {"20 Newsgroups": "newsgroups20", "Reuters": "reuters21578"}
DRAWS, LARGE, SHOWN = 3, 200, 20


def load(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Counts, and the label of each document, -1 where it has none or several."""
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"), dtype=np.float64)
    words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    stop = set((folder / "stopwords.txt").read_text("utf-8").split())
    df = np.bincount(X.indices, minlength=X.shape[1])
    kept = [
        j for j, word in enumerate(words) if word not in stop and 10 <= df[j] < 0.2 * X.shape[0]
    ]
    with (folder / "docs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    told = [row["label"].split() if "label" in row else row["topics"].split() for row in rows]
    names = {name: i for i, name in enumerate(sorted({t[0] for t in told if len(t) == 1}))}
    labels = np.array([names[t[0]] if len(t) == 1 else -1 for t in told])
    X = X[:, kept]
    long = X.sum(axis=1) >= 10
    return X[long], labels[long]


def precision(search: tm.TopicSearch, labels: np.ndarray, size: int) -> float:
    """Mean over labels and draws of the share of the label among what is found."""
    large = np.flatnonzero(np.bincount(labels[labels >= 0]) >= LARGE)
    found = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        for label in large:
            rows = rng.choice(np.flatnonzero(labels == label), size, replace=False)
            order = search.search(documents=rows).documents(SHOWN + size)
            others = [i for i in order if i not in rows][:SHOWN]
            found.append(np.mean(labels[others] == label))
    return float(np.mean(found))


def main() -> None:
    given = arguments(__doc__ or "").parse_args()
    table = []
    for name, folder in CORPORA.items():
        X, labels = load(given.data / folder)
        for k in (20, 50):
            search = tm.TopicSearch(k).fit(X)
            found = [precision(search, labels, size) for size in (1, 5, 10)]
            table.append([name, k, *(f"{one:.2f}" for one in found)])
            print(" | ".join(map(str, table[-1])), flush=True)
    note = (
        f"Share of the right label among the {SHOWN} documents found, from a few documents as the "
        f"hint; {DRAWS} draws for each label. `benchmarks/search_labels.py`"
    )
    header = ["corpus", "k", "one document", "five", "ten"]
    write_table("search_labels", header, table, note)


if __name__ == "__main__":
    main()
