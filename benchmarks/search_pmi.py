"""Topics searched from words against the topic of the word in a fitted model with the same k.

    python benchmarks/search_pmi.py [--data FOLDER] [--topics 20 100] [--seed 7]

Half of the documents (8,000 at most) are for learning, the other half for scoring: the pointwise
mutual information of a word and the 20 top words of its topic. Sixty random words in 1% to 10% of
the documents. Of the fitted model the topic with the largest p(topic | word) is taken. Seeds 1, 2
and 5 were looked at while the likelihood step was chosen.
"""

from __future__ import annotations

import numpy as np
from common import FOLDERS, arguments, load_corpus, timed, write_table
from search_text import Scorer

import thirdmoment as tm

WORDS, MOST = 60, 16_000


def compare(X, k: int, seed: int) -> list[str]:
    """Cells of one corpus: medians, how often the search is better, time of a query."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(X.shape[0])[:MOST]
    train, test = X[order[: len(order) // 2]], X[order[len(order) // 2 :]]
    train = train[train.sum(axis=1) >= 3]
    seen = np.bincount(train.indices, minlength=X.shape[1]) / train.shape[0]
    words = rng.permutation(np.flatnonzero((seen >= 0.01) & (seen <= 0.1)))[:WORDS]
    search, score = tm.TopicSearch(k).fit(train), Scorer(test)
    model = tm.LatentDirichletAllocation(k).fit(train)
    belongs = model.components_ * model.word_share_[:, None]
    search.search(int(words[0]))  # compile
    found, seconds = timed(lambda: [search.search(int(x)).parameters for x in words])
    ours = np.array([score(x, law) for x, law in zip(words, found, strict=True)])
    theirs = np.array([score(x, model.components_[np.argmax(belongs[:, x])]) for x in words])
    better = f"{np.mean(ours > theirs):.0%}"
    time = f"{1e3 * seconds / len(words):.1f}"
    return [f"{np.median(ours):.2f}", f"{np.median(theirs):.2f}", better, time]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--topics", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    rows = []
    for k in options.topics:
        for name in ("docstrings", *FOLDERS):
            rows.append([k, name, *compare(load_corpus(name, options.data), k, options.seed)])
            print(" | ".join(map(str, rows[-1])), flush=True)
    header = ["k", "corpus", "search", "fitted model", "search better", "ms a query"]
    note = (
        f"Median PMI of {WORDS} random words with their topics, seed {options.seed}. "
        "`benchmarks/search_pmi.py`."
    )
    write_table("search_pmi", header, rows, note)


if __name__ == "__main__":
    main()
