"""Topics searched from words of real corpora, against topics that are fitted as a whole (X-R6).

Half of the documents are for learning, the other half for scoring: the mean pointwise mutual
information of the word and the 20 top words of its topic (the word itself left out), by documents
that hold both, with one added to every count. Words of 50 or more and under 20% of all documents,
no stop words. All words in 1% to 10% of the documents are searched; label words are drawn at
random, 20 from those with gap_snr above 3 and 10 from the others. Of a fitted model the topic that
gives the word the largest probability is taken. Re-weighted NMF is fitted anew for every word, on
documents weighted by the word's frequency.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import FOLDERS, arguments, tomotopy_topics, write_table

from thirdmoment import TopicSearch
from thirdmoment._array import single_threaded_blas

K, TOP, SPLITS, FIRST_SEED, CLEAR = 100, 20, 3, 100, 3.0
CLEAR_WORDS, OTHER_WORDS = 20, 10
CORPORA = ("20 Newsgroups", "Reuters", "IMDb")
PEERS = ("tomotopy", "NMF", "re-weighted NMF", "co-occurrence")


def load(name: str, data: Path) -> sp.csr_array:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    folder = data / FOLDERS[name]
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"), dtype=np.float64)
    words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    stop = set(ENGLISH_STOP_WORDS)
    if (folder / "stopwords.txt").exists():
        stop |= set((folder / "stopwords.txt").read_text("utf-8").split())
    df = np.bincount(X.indices, minlength=X.shape[1])
    keep = [
        50 <= count < 0.2 * X.shape[0] and len(word) > 2 and word not in stop
        for word, count in zip(words, df, strict=True)
    ]
    return X[:, np.flatnonzero(keep)]


class Scorer:
    """PMI on the documents kept back."""

    def __init__(self, X: sp.csr_array) -> None:
        self.P, self.n = sp.csc_array((X > 0).astype(float)), X.shape[0]
        self.df = np.asarray(self.P.sum(axis=0)).ravel()

    def __call__(self, x: int, topic: np.ndarray) -> float:
        top = [j for j in np.argsort(-topic, kind="stable") if j != x][:TOP]
        both = (self.P[:, [x]].T @ self.P[:, top]).toarray().ravel()
        expected = (self.df[x] + 1) * (self.df[top] + 1) / self.n
        return float(np.mean(np.log((both + 1) / expected)))


def topic_of(topics: np.ndarray, x: int) -> np.ndarray:
    law = topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)
    return topics[np.argmax(law[:, x])]


def nmf(X: sp.csr_array, k: int, iterations: int) -> np.ndarray:
    from sklearn.decomposition import NMF

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged after so many iterations
        return NMF(k, init="nndsvda", max_iter=iterations, random_state=0).fit(X).components_


def reweighted(X: sp.csr_array, x: int) -> np.ndarray:
    """NMF of the documents weighted by the frequency of word x."""
    share = X[:, [x]].toarray().ravel() / X.sum(axis=1)
    own = share > 0
    weighted = sp.csr_array(X[own].multiply((share[own] / share[own].mean())[:, None]))
    with single_threaded_blas():
        return topic_of(nmf(weighted, min(K, int(own.sum())), 50), x)


def co_occurrence(X: sp.csr_array, x: int) -> np.ndarray:
    """No topic at all: words that the documents of x have more often than the others."""
    share = X.multiply(1 / X.sum(axis=1)[:, None])
    mean = np.asarray(share.mean(axis=0)).ravel()
    own = np.asarray(sp.csr_array(share)[X[:, [x]].toarray().ravel() > 0].mean(axis=0)).ravel()
    return own * np.log(np.maximum(own, 1e-12) / np.maximum(mean, 1e-12))


def one_split(X: sp.csr_array, seed: int) -> np.ndarray:
    """gap_snr and the PMI of the search and its peers, a row a word."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(X.shape[0])
    train, test = X[order[: len(order) // 2]], X[order[len(order) // 2 :]]
    train = train[train.sum(axis=1) >= 3]
    score = Scorer(test)
    df = np.bincount(train.indices, minlength=X.shape[1])
    usual = np.flatnonzero((df >= 0.01 * train.shape[0]) & (df <= 0.1 * train.shape[0]))
    search = TopicSearch(K).fit(train)
    answers = search.search_many([int(x) for x in usual])
    clear = np.array([one.report.gap_snr > CLEAR for one in answers])
    chosen = np.concatenate(
        [
            rng.permutation(np.flatnonzero(clear))[:CLEAR_WORDS],
            rng.permutation(np.flatnonzero(~clear))[:OTHER_WORDS],
        ]
    )
    labels, ours = usual[chosen], [answers[j] for j in chosen]
    print(f"{clear.sum()} of {len(usual)} words are clear", flush=True)
    lda, factors = tomotopy_topics(train, K), nmf(train, K, 200)
    rows = []
    for x, found in zip(labels, ours, strict=True):
        rows.append(
            [
                found.report.gap_snr,
                score(x, found.parameters),
                score(x, topic_of(lda, x)),
                score(x, topic_of(factors, x)),
                score(x, reweighted(train, x)),
                score(x, co_occurrence(train, x)),
            ]
        )
    return np.array(rows)


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    rows, spread = [], []
    for name in CORPORA:
        X = load(name, options.data)
        splits = [one_split(X, FIRST_SEED + split) for split in range(SPLITS)]
        found = np.concatenate(splits)
        clear = found[:, 0] > CLEAR
        for label, chosen in (("gap_snr > 3", clear), ("others", ~clear)):
            ours = found[chosen, 1]
            cells = [name, label, len(ours), f"{np.median(ours):.2f}"]
            for j in range(len(PEERS)):
                peer = found[chosen, 2 + j]
                cells.append(f"{np.median(peer):.2f} ({np.mean(ours > peer):.0%})")
            rows.append(cells)
        parts = [s[s[:, 0] > CLEAR] for s in splits]
        wins = ["/".join(str(int(np.sum(s[:, 1] > s[:, 2 + j]))) for j in range(3)) for s in parts]
        counts = zip(wins, parts, strict=True)
        spread.append(f"{name}: " + ", ".join(f"{won} of {len(part)}" for won, part in counts))
        print(spread[-1], flush=True)
    write_table(
        "search_text",
        ["corpus", "label words", "number", "search", *PEERS],
        rows,
        f"Median PMI of the topics of single words, k = {K}; in brackets how often the search is "
        f"better. {SPLITS} splits with random label words, {CLEAR_WORDS} clear and {OTHER_WORDS} "
        "other ones each. Clear words won against "
        f"tomotopy/NMF/re-weighted NMF in each split: {'; '.join(spread)}. `benchmarks/"
        "search_text.py`. Co-occurrence is no topic but the words that documents of the label word "
        "have more often than others: the score itself rewards it most.",
    )


if __name__ == "__main__":
    main()
