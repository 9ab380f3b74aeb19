"""Is `informative` right? Answers of topic searches against the labels of two readers.

    python benchmarks/search_themes.py [--data FOLDER]     # judge the answers by the labels
    python benchmarks/search_themes.py --ask FILE          # write the questions for readers

Thirty words a corpus, drawn from those in 1% to 10% of the documents, are searched with
`TopicSearch(20)`; readers see the word and the ten top words of its topic, nothing else, and say
whether these have one clear theme to which the word belongs. An answer counts as clear where both
say so. Limits were chosen on AP, KOS, Reuters and the New York Times (`CHOSEN_ON`); the others are
reported. Labels belong to answers: a search that answers otherwise needs new labels, and answers
whose ten words differ from those that were read are left out and counted.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from common import FOLDERS, arguments, load_words, write_table

from thirdmoment import TopicSearch

LABELS = Path(__file__).resolve().parent / "labels" / "search_themes.csv"
CHOSEN_ON = ("AP", "KOS", "Reuters", "New York Times")
REPORTED = ("20 Newsgroups", "NIPS", "IMDb", "we8there")
FOLDERS["New York Times"] = "nyt_8k"
K, QUERIES, SEED = 20, 30, 400


def answers(name: str, data: Path) -> dict[str, object]:
    """The searched words of a corpus and what was found for each."""
    X, words = load_words(name, data)
    frequency = np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]
    usual = np.flatnonzero((frequency >= 0.01) & (frequency <= 0.1))
    rng = np.random.default_rng(SEED)
    chosen = rng.permutation(usual)[:QUERIES]
    search = TopicSearch(K).fit(X, feature_names=words)
    return {words[x]: search.search(words[x]) for x in chosen}


def shown(found) -> str:
    return " ".join(word.replace(" ", "_") for word in found.top_words(10))


def ask(path: Path, data: Path) -> None:
    """Questions in random order, without a trace of what the library thinks."""
    rows = [
        (name, word, shown(found))
        for name in (*CHOSEN_ON, *REPORTED)
        for word, found in answers(name, data).items()
    ]
    order = np.random.default_rng(SEED).permutation(len(rows))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["corpus", "word", "answer"])
        writer.writerows(rows[i] for i in order)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--ask", type=Path)
    options = parser.parse_args()
    if options.ask is not None:
        ask(options.ask, options.data)
        return
    with LABELS.open(newline="", encoding="utf-8") as file:
        labels = {(row["corpus"], row["word"]): row for row in csv.DictReader(file)}
    rows = []
    for group in (CHOSEN_ON, REPORTED):
        total = np.zeros(5, dtype=int)
        for name in group:
            counts = judge(name, answers(name, options.data), labels)
            rows.append(row_of(name, counts))
            total += counts
        rows.append(
            row_of("all four" + (" (limits chosen here)" if group == CHOSEN_ON else ""), total)
        )
    header = ["corpus", "read", "clear", "informative", "right", "precision", "recall", "left out"]
    note = (
        f"`TopicSearch({K})`, {QUERIES} random words a corpus, read by two readers; clear where "
        "both say that the ten words have one theme of the word. Precision: share of clear ones "
        "among the informative; recall: share of informative ones among the clear. "
        "`benchmarks/search_themes.py`."
    )
    write_table("search_themes", header, rows, note)


def judge(name, found, labels) -> np.ndarray:
    """Numbers of answers read, clear, informative, both, and left out for their words changed."""
    counts = np.zeros(5, dtype=int)
    for word, answer in found.items():
        label = labels.get((name, word))
        if label is None or label["answer"] != shown(answer):
            counts[4] += 1
            continue
        clear = label["first"] == label["second"] == "1"
        counts += [1, clear, answer.informative, clear and answer.informative, 0]
    return counts


def row_of(name: str, counts: np.ndarray) -> list[object]:
    read, clear, informative, right, out = counts
    precision = f"{right / informative:.2f}" if informative else ""
    recall = f"{right / clear:.2f}" if clear else ""
    return [name, read, clear, informative, right, precision, recall, out]


if __name__ == "__main__":
    main()
