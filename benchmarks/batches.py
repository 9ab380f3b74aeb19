"""Batches that come once: `partial_fit` next to `fit` on all documents.

python benchmarks/batches.py [--data FOLDER]

Documents drawn from the model: n = 100,000, d = 5,000, k = 20, 50 batches in random order, three
seeds, and the error of the topics. Texts: batches of 1,000, k = 20, three splits, 2,000 documents
held out. Sorted: newsgroups in the order of their groups, and how many batches are told.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp
from common import arguments, load_corpus, write_table

import thirdmoment as tm
from thirdmoment.metrics import npmi_coherence, recovery_error


def learned(batches: list[sp.csr_array], k: int) -> tuple[tm.LatentDirichletAllocation, float]:
    model, begin = tm.LatentDirichletAllocation(k), time.perf_counter()
    for batch in batches:
        model.partial_fit(batch)
    return model, time.perf_counter() - begin


def cut(X: sp.csr_array, size: int) -> list[sp.csr_array]:
    return [X[i : i + size] for i in range(0, X.shape[0], size)]


def drawn(seed: int) -> list[float]:
    corpus = tm.datasets.make_lda_corpus(100_000, 5_000, 20, random_state=seed)
    X = sp.csr_array(corpus.X)
    begin = time.perf_counter()
    plain = tm.LatentDirichletAllocation(20).fit(X)
    first = time.perf_counter() - begin
    order = np.random.default_rng(seed).permutation(X.shape[0])
    stream, took = learned(cut(X[order], 2_000), 20)
    errors = [recovery_error(m.components_, corpus.topics) for m in (plain, stream)]
    return [*errors, errors[1] / errors[0], took / first]


def text(X: sp.csr_array, seed: int) -> list[float]:
    order = np.random.default_rng(seed).permutation(X.shape[0])
    test, train = X[order[:2000]], X[order[2000:]]
    begin = time.perf_counter()
    plain = tm.LatentDirichletAllocation(20).fit(train)
    first = time.perf_counter() - begin
    stream, took = learned(cut(train, 1_000), 20)
    scores = [m.perplexity(test) for m in (plain, stream)]
    coherence = [float(np.mean(npmi_coherence(m.components_, X))) for m in (plain, stream)]
    return [100 * (scores[1] / scores[0] - 1), coherence[1] - coherence[0], took / first]


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(3):
        plain, stream, ratio, took = drawn(seed)
        rows.append([f"drawn, seed {seed}", f"error {plain:.4f}", f"error {stream:.4f}",
                     f"{ratio:.2f}", f"{took:.1f}"])  # fmt: skip
    for name in ("20 Newsgroups", "IMDb"):
        X = load_corpus(name, options.data)
        for seed in range(3):
            worse, coherence, took = text(X, seed)
            rows.append([f"{name}, split {seed}", "", f"perplexity {worse:+.1f}%",
                         f"NPMI {coherence:+.3f}", f"{took:.1f}"])  # fmt: skip
    header = ["data", "fit", "partial_fit", "next to fit", "times the seconds of fit"]
    write_table("batches", header, rows, "")


if __name__ == "__main__":
    main()
