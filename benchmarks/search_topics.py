"""Topics searched from words where the truth is known (X-R4, X-R6), and how fast.

The gain G compares the search with all topics through the tensor, 1 - error / error of the tensor.
The plug-in uses normalised frequencies in place of unbiased moments, as the paper does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import arguments, load_corpus, timed, write_table

from thirdmoment import LatentDirichletAllocation, TopicSearch
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.linalg import whiten
from thirdmoment.recovery.search import whitened_search

FIRST_SEED = 100
ALPHA = np.array([0.1, 0.15, 0.2, 0.25, 0.3])


def draw(seed: int, n: int, d: int, length: float) -> tuple[sp.csr_array, np.ndarray]:
    """Documents of LDA with topics from Dirichlet(0.1)."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.1), size=len(ALPHA))
    shares = rng.dirichlet(ALPHA, size=n) @ topics
    lengths = np.maximum(rng.poisson(length, n), 3)
    rows = [rng.multinomial(m, p / p.sum()) for m, p in zip(lengths, shares, strict=True)]
    return sp.csr_array(np.array(rows, dtype=np.float64)), topics


def telling_word(topics: np.ndarray, target: int, ratio: float | None) -> int:
    """The word of the target with the largest ratio to other topics, or one near ``ratio``."""
    others = np.delete(topics, target, axis=0).max(axis=0)
    score = topics[target] / np.maximum(others, 1e-12)
    usable = topics[target] > 2 / topics.shape[1]
    if ratio is None:
        return int(np.argmax(np.where(usable, score, 0)))
    return int(np.argmin(np.where(usable, np.abs(np.log(score / ratio)), np.inf)))


def long_documents() -> None:
    rows = []
    for length in (2000, 3000):
        for n in (4000, 6000, 8000):
            gains, errors, times = [], [], []
            for seed in range(FIRST_SEED, FIRST_SEED + 3):
                X, topics = draw(seed, n, 500, length)
                options = {"concentration": 1.0, "weighting": "none"}
                search = TopicSearch(5, **options).fit(X)
                tensor = LatentDirichletAllocation(5, refine="none", **options)
                _, seconds = timed(lambda X=X, t=tensor: t.fit(X))
                for target in range(5):
                    whole = np.linalg.norm(tensor.components_ - topics[target], axis=1).min()
                    for ratio in (None, 3.0):
                        word = telling_word(topics, target, ratio)
                        found, query = timed(lambda s=search, w=word: s.search(w))
                        error = np.linalg.norm(found.parameters - topics[target])
                        gains.append([ratio is None, 1 - error / whole])
                        errors.append(error)
                        times.append(5 * query / seconds)
            gains = np.array(gains)
            best, third = (gains[gains[:, 0] == flag, 1] for flag in (1, 0))
            rows.append(
                [length, n, f"{np.mean(errors):.4f}", f"{best.mean():+.1%}", f"{third.mean():+.1%}",
                 f"{np.median(times):.3f}"]
            )  # fmt: skip
    write_table(
        "search_lda",
        ["length", "n", "error", "G, best word", "G, ratio 3", "time of 5 queries / tensor fit"],
        rows,
        "TopicSearch against all topics by the tensor, k = 5, d = 500, three seeds, every topic a "
        "target (X-R4). `benchmarks/search_topics.py`.",
    )


def plug_in(X: sp.csr_array, k: int, word: int) -> np.ndarray:
    """The search with normalised frequencies, dense (EK-R7), alpha0 = 1."""
    F = X.toarray() / X.sum(axis=1)[:, None]
    n, v = len(F), np.eye(F.shape[1])[word]
    m, E2 = F.mean(axis=0), F.T @ F / n
    E3 = (F * F[:, [word]]).T @ F / n
    A = 2 * E2 - np.outer(m, m)
    mixed = m[word] * E2 + np.outer(E2 @ v, m) + np.outer(m, E2 @ v)
    B = 3 * E3 - mixed + m[word] * np.outer(m, m)
    white = whiten(A, k)
    W, up = np.asarray(white.W), np.asarray(white.B)
    found = whitened_search(W.T @ B @ W, W.T @ m, up, up.T @ v).component
    return np.maximum(found, 0) / np.maximum(found, 0).sum()


def short_documents() -> None:
    rows = []
    for length in (10, 30, 100):
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + 3):
            X, topics = draw(seed, 20_000, 200, length)
            search = TopicSearch(5, concentration=1.0).fit(X)
            for target in range(5):
                word = telling_word(topics, target, None)
                ours = np.abs(search.search(word).parameters - topics[target]).sum()
                found.append([ours, np.abs(plug_in(X, 5, word) - topics[target]).sum()])
        ours, plain = np.array(found).mean(axis=0)
        rows.append([length, f"{ours:.3f}", f"{plain:.3f}", f"{ours / plain:.2f}"])
    write_table(
        "search_short",
        ["length", "unbiased moments", "plug-in", "ratio"],
        rows,
        "L1 error of the searched topic with unbiased moments and with normalised frequencies, "
        "n = 20,000, d = 200, k = 5, three seeds, every topic a target. "
        "`benchmarks/search_topics.py`.",
    )


def zipf() -> None:
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + 3):
        corpus = make_lda_corpus(40_000, 5000, 30, mean_length=100, random_state=seed)
        search, fit = timed(lambda c=corpus: TopicSearch(30, concentration=1.0).fit(c.X))
        df = np.bincount(corpus.X.indices, minlength=5000)
        order = np.sort(corpus.topics, axis=0)
        ratio = order[-1] / np.maximum(order[-2], 1e-12)
        rng = np.random.default_rng(seed)
        cells = [seed]
        for low, high, least, most in ((2, np.inf, 500, np.inf), (1.2, 2, 500, np.inf),
                                       (2, np.inf, 50, 200)):  # fmt: skip
            fits = (ratio > low) & (ratio <= high) & (df > least) & (df <= most)
            words = rng.permutation(np.flatnonzero(fits))[:150]
            right, sure = [], []
            for word in words:
                found = search.search(int(word))
                errors = np.abs(corpus.topics - found.parameters).sum(axis=1)
                right.append(errors.argmin() == corpus.topics[:, word].argmax())
                sure.append(found.informative)
            right, sure = np.array(right), np.array(sure)
            wrong = int(np.sum(sure & ~right))
            cells.append(f"{right.mean():.1%} of {len(words)} ({sure.mean():.0%}, {wrong})")
        rows.append([*cells, f"{fit:.1f}"])
    write_table(
        "search_zipf",
        ["seed", "ratio > 2, over 500 documents", "ratio 1.2 to 2", "ratio > 2, 50 to 200",
         "fit (s)"],
        rows,
        "Words whose topic is found, of 150 (in brackets the share called informative, and how "
        "many of these were wrong): synthetic Zipf corpus, n = 40,000, d = 5,000, k = 30. "
        "`benchmarks/search_topics.py`.",
    )  # fmt: skip


def speed(data: Path) -> None:
    import tomotopy

    rows = []
    for name in ("20 Newsgroups", "Reuters", "IMDb"):
        X = load_corpus(name, data)
        TopicSearch(100).fit(X)  # compile
        search, fit = timed(lambda X=X: TopicSearch(100).fit(X))
        df = np.bincount(X.indices, minlength=X.shape[1])
        rng = np.random.default_rng(FIRST_SEED)
        words = rng.choice(X.shape[1], 500, p=df / df.sum(), replace=False)
        times = [timed(lambda w=w, s=search: s.search(int(w)))[1] * 1e3 for w in words]
        _, many = timed(lambda s=search, w=words: s.search_many([int(x) for x in w]))
        model = tomotopy.LDAModel(k=100, alpha=0.01, eta=0.01, seed=1)
        for row in range(X.shape[0]):
            place = slice(X.indptr[row], X.indptr[row + 1])
            counts = X.data[place].astype(int)
            model.add_doc([str(j) for j in np.repeat(X.indices[place], counts)])
        model.train(0)
        _, peer = timed(lambda m=model: m.train(5, workers=2))
        low, high = np.percentile(times, [50, 99])
        rows.append(
            [name, f"{X.shape[0]:,}", f"{X.shape[1]:,}", f"{fit:.2f}", f"{peer:.2f}",
             f"{low:.1f}", f"{high:.1f}", f"{many / len(words) * 1e3:.1f}"]
        )  # fmt: skip
    write_table(
        "search_speed",
        ["corpus", "documents", "words", "fit (s)", "5 iterations of tomotopy (s)",
         "query, median (ms)", "99% (ms)", "search_many (ms a query)"],
        rows,
        "k = 100, 500 words drawn by frequency, two shared cores. "
        "`benchmarks/search_topics.py`.",
    )  # fmt: skip


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    speed(options.data)
    long_documents()
    short_documents()
    zipf()


if __name__ == "__main__":
    main()
