"""Is `informative` right? Answers of topic searches against the labels of two readers.

    python benchmarks/search_themes.py [--data FOLDER]          # judge the answers by the labels
    python benchmarks/search_themes.py --ask FILE --seed 402    # write questions for readers

Words in 1% to 10% of the documents are drawn and searched with `TopicSearch(20)`; readers see the
word and the ten top words of its topic, nothing else, and say whether these have one clear theme to
which the word belongs. An answer counts as clear where both say so. Limits were chosen on the words
of the first round (seed 400) in AP, KOS, Reuters and the New York Times; of the other corpora the
first round was looked at while diagnostics were designed, the second (seed 401) was not. Labels
belong to answers: a search that answers otherwise needs new labels, and answers whose ten words
differ from those that were read are left out and counted.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from common import FOLDERS, arguments, load_words, write_table

from thirdmoment import TopicSearch

LABELS = Path(__file__).resolve().parent / "labels" / "search_themes.csv"
CHOSEN_ON = ("AP", "KOS", "Reuters", "New York Times")
OTHERS = ("20 Newsgroups", "NIPS", "IMDb", "we8there", "docstrings")
FOLDERS["New York Times"] = "nyt_8k"
K, QUERIES = 20, 40


def shown(found) -> str:
    return " ".join(word.replace(" ", "_") for word in found.top_words(10))


def ask(path: Path, data: Path, seed: int, known: set[tuple[str, str]]) -> None:
    """New questions in random order, without a trace of what the library thinks."""
    rows, rng = [], np.random.default_rng(seed)
    for name in OTHERS:
        X, words = load_words(name, data)
        frequency = np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]
        usual = np.flatnonzero((frequency >= 0.01) & (frequency <= 0.1))
        drawn = [words[x] for x in rng.permutation(usual) if (name, words[x]) not in known]
        search = TopicSearch(K).fit(X, feature_names=words)
        rows += [(name, word, shown(search.search(word))) for word in drawn[:QUERIES]]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["corpus", "word", "answer"])
        writer.writerows(rows[i] for i in rng.permutation(len(rows)))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--ask", type=Path)
    parser.add_argument("--seed", type=int, default=402)
    options = parser.parse_args()
    with LABELS.open(newline="", encoding="utf-8") as file:
        labels = list(csv.DictReader(file))
    if options.ask is not None:
        known = {(row["corpus"], row["word"]) for row in labels}
        ask(options.ask, options.data, options.seed, known)
        return
    rows = []
    for title, group, number in (
        ("limits chosen here", CHOSEN_ON, "1"),
        ("others, first round", OTHERS, "1"),
        ("others, second round", OTHERS, "2"),
    ):
        read = [row for row in labels if row["round"] == number and row["corpus"] in group]
        found = [judge(name, read, options.data) for name in group]
        rows += [row_of(name, one) for name, one in zip(group, found, strict=True) if one.any()]
        rows.append(row_of(f"**{title}**", sum(found)))
    header = ["corpus", "read", "clear", "informative", "right", "precision", "recall", "left out"]
    note = (
        f"`TopicSearch({K})`, random words, read by two readers; clear where both say that the "
        "ten words have one theme of the word. Precision: share of clear ones among the "
        "informative; recall: share of informative ones among the clear. "
        "`benchmarks/search_themes.py`."
    )
    write_table("search_themes", header, rows, note)


def judge(name: str, labels: list[dict[str, str]], data: Path) -> np.ndarray:
    """Numbers of answers read, clear, informative, both, and left out for their words changed."""
    counts = np.zeros(5, dtype=int)
    own = [row for row in labels if row["corpus"] == name]
    if not own:
        return counts
    X, words = load_words(name, data)
    search = TopicSearch(K).fit(X, feature_names=words)
    for row in own:
        answer = search.search(row["word"])
        if shown(answer) != row["answer"]:
            counts[4] += 1
            continue
        clear = row["first"] == row["second"] == "1"
        counts += [1, clear, answer.informative, clear and answer.informative, 0]
    return counts


def row_of(name: str, counts: np.ndarray) -> list[object]:
    read, clear, informative, right, out = counts
    precision = f"{right / informative:.2f}" if informative else ""
    recall = f"{right / clear:.2f}" if clear else ""
    return [name, read, clear, informative, right, precision, recall, out]


if __name__ == "__main__":
    main()
