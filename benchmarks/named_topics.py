"""Named topics: fits with seeds, without, and tomotopy with word priors.

python benchmarks/named_topics.py [--data FOLDER] [--splits N]

Six topics of each corpus are named by one to three words that its labels suggest; they were written
down before any fit. A named topic is found as far as its shares tell the documents of its label
from all others (area under the curve, 0.5 to 1; documents of the test set); without seeds the topic
with the largest area is taken, which nobody could know without the labels. The rest: perplexity of
the test set and mean NPMI of all topics. tomotopy: 200 sweeps, prior 1 in the topic of the word and
0.01 elsewhere, as its documentation shows.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import (
    FOLDERS,
    arguments,
    filter_words,
    mean_spread,
    timed,
    tomotopy_topics,
    write_table,
)
from sklearn.metrics import roc_auc_score

import thirdmoment as tm
from thirdmoment.likelihood.documents import fold_in
from thirdmoment.metrics import npmi_coherence, perplexity

SEEDS = {
    "20 Newsgroups": {
        "rec.sport.hockey": ["hockey", "nhl"],
        "sci.space": ["space", "nasa", "orbit"],
        "sci.med": ["disease", "patients", "doctor"],
        "talk.politics.guns": ["gun", "firearms"],
        "sci.crypt": ["encryption", "clipper"],
        "rec.autos": ["car", "engine"],
    },
    "Reuters": {
        "coffee": ["coffee"],
        "gold": ["gold", "ounces"],
        "ship": ["ship", "vessel"],
        "sugar": ["sugar"],
        "crude": ["crude", "opec", "barrel"],
        "grain": ["wheat", "corn"],
    },
}


def load(name: str, data: Path) -> tuple[sp.csr_array, list[str], list[set[str]]]:
    """Counts, words, and the labels of each document."""
    folder = data / FOLDERS[name]
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"), dtype=np.float64)
    words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    with (folder / "docs.csv").open() as file:
        rows = list(csv.DictReader(file))
    if name == "Reuters":
        labels = [set(row["topics"].split()) for row in rows]
        labels = [own | ({"grain"} if own & {"wheat", "corn"} else set()) for own in labels]
    else:
        groups = (folder / "groups.txt").read_text().split()
        labels = [{groups[int(row["label"])]} for row in rows]
    names = filter_words(X, words)[1]
    column = {word: j for j, word in enumerate(words)}
    X = sp.csr_array(X[:, [column[word] for word in names]])
    kept = np.flatnonzero(X.sum(axis=1) >= 10)  # as filter_words keeps them
    return X[kept], names, [labels[i] for i in kept]


def areas(topics: np.ndarray, alpha: np.ndarray, X: sp.csr_array, marks: np.ndarray) -> np.ndarray:
    """Area under the curve of every topic for every label (labels, k)."""
    H = fold_in(topics, alpha, X, tol=1e-5, n_threads=2)
    return np.array([[roc_auc_score(own, share) for share in H.T] for own in marks])


def seeded_tomotopy(X: sp.csr_array, k: int, seeds: list[list[int]], seed: int) -> np.ndarray:
    def prior(model: object, name: list[str]) -> None:
        for j, columns in enumerate(seeds):
            for c in columns:
                model.set_word_prior(name[c], [1.0 if i == j else 0.01 for i in range(k)])

    return tomotopy_topics(X, k, seed=seed, prepare=prior)


def one(name: str, data: Path, split: int, k: int = 20) -> dict[str, list[float]]:
    X, words, labels = load(name, data)
    seeds = SEEDS[name]
    order = np.random.default_rng(split).permutation(X.shape[0])
    test, train = order[:2000], order[2000:]
    marks = np.array([[label in labels[i] for i in test] for label in seeds])
    place = {word: j for j, word in enumerate(words)}
    columns = [[place[w] for w in own] for own in seeds.values()]
    model = tm.LatentDirichletAllocation(k, random_state=split)
    plain, plain_time = timed(lambda: model.fit(X[train], feature_names=words))
    given, given_time = timed(
        lambda: tm.LatentDirichletAllocation(k, random_state=split).fit(
            X[train], feature_names=words, seeds=seeds
        )
    )
    alpha = np.full(k, 0.05)
    peer, peer_time = timed(lambda: tomotopy_topics(X[train], k, seed=split + 1))
    guided, guided_time = timed(lambda: seeded_tomotopy(X[train], k, columns, split + 1))
    found = {}
    for way, topics, prior, seconds, named in (
        ("without seeds", plain.components_, plain.concentration_, plain_time, False),
        ("with seeds", given.components_, given.concentration_, given_time, True),
        ("tomotopy", peer, alpha, peer_time, False),
        ("tomotopy, word priors", guided, alpha, guided_time, True),
    ):
        area = areas(topics, prior, X[test], marks)
        own = area[np.arange(len(seeds)), np.arange(len(seeds))] if named else area.max(axis=1)
        first = [
            min(int(np.sum(topics[j] > topics[j, c])) for c in columns[j]) < 10
            for j in range(len(seeds))
        ]
        found[way] = [
            own.mean(), own.min(), sum(first) if named else np.nan,
            perplexity(topics, X[test], concentration=prior),
            npmi_coherence(topics, X[test]).mean(), seconds,
        ]  # fmt: skip
    return found


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in SEEDS:
        runs = [one(name, options.data, split) for split in range(options.splits)]
        for way in runs[0]:
            table = np.array([run[way] for run in runs])
            digits = (3, 3, 1, 0, 3, 1)
            cells = [mean_spread(table[:, j], d) for j, d in enumerate(digits)]
            cells[2] = "" if np.isnan(table[0, 2]) else cells[2]
            rows.append([name, way, *cells])
    header = ["corpus", "fit", "mean area", "worst area", "of six, seed word among ten top words",
              "perplexity", "NPMI", "seconds"]  # fmt: skip
    note = f"k = 20, {options.splits} splits, half the range behind ±."
    write_table("named_topics", header, rows, note)


if __name__ == "__main__":
    main()
