"""Real text against tomotopy: held-out perplexity, coherence and time, over several splits.

    python benchmarks/real_text.py [--data FOLDER] [--corpora docstrings AP ...] [--splits 70 71 72]
    python benchmarks/real_text.py --device cuda --no-peer    # the same fits on a GPU

Each corpus is fitted by the default `LatentDirichletAllocation(20)` and by tomotopy (200
iterations, 2 workers) on the same training documents in the same process. Constants were chosen on
splits 0 to 5; splits 10 to 12, 40 to 42 and 60 to 62 were looked at during development; the
default splits were not.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import (
    FOLDERS,
    arguments,
    load_corpus,
    mean_spread,
    split,
    timed,
    tomotopy_topics,
    write_table,
)

import thirdmoment as tm
from thirdmoment.metrics import npmi_coherence, perplexity

K = 20


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--corpora", nargs="+", default=["docstrings", *FOLDERS])
    parser.add_argument("--splits", nargs="+", type=int, default=[70, 71, 72])
    parser.add_argument("--no-peer", action="store_true", help="only the library, no table")
    parser.add_argument("--device", help="of the library's fits")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="The training result may differ")
    for n in (1000, 20_000):  # compile for small and for large corpora
        fresh(options).fit(tm.datasets.make_lda_corpus(n, 300, K).X)
    rows = []
    for name in options.corpora:
        if name != "docstrings" and not (options.data / FOLDERS[name]).exists():
            print(f"{name}: no folder {options.data / FOLDERS[name]}, skipped")
            continue
        X = load_corpus(name, options.data)
        results = [compare(X, seed, options) for seed in options.splits]
        rows.append(summary(name, X, results))
        print(" | ".join(rows[-1]), flush=True)
    if not options.no_peer:
        header = [
            "corpus",
            "documents × words",
            "perplexity",
            "tomotopy",
            "NPMI",
            "tomotopy",
            "seconds",
            "tomotopy",
            "time ratio",
        ]
        splits = ", ".join(map(str, options.splits))
        write_table("real_text", header, rows, f"k = {K}, mean ± half range over splits {splits}.")


def fresh(options):
    return tm.LatentDirichletAllocation(K, device=options.device)


def compare(X, seed, options):
    train, test = split(X, seed)
    model, ours = timed(lambda: fresh(options).fit(train))
    result = [score(model.components_, X, test) + (ours,)]
    if not options.no_peer:
        topics, theirs = timed(lambda: tomotopy_topics(train, K))
        result.append(score(topics, X, test) + (theirs,))
    print(
        f"  split {seed}: " + "; ".join(f"{p:.1f} {c:.4f} {s:.2f} s" for p, c, s in result),
        "|",
        model.report_.start[:24],
        model.n_iter_,
        model.report_.details["returned"],
        f"alpha0 {model.concentration_.sum():.2f}",
        flush=True,
    )
    return np.array(result)


def score(topics, X, test):
    return perplexity(topics, test), float(npmi_coherence(topics, X).mean())


def summary(name, X, results):
    table = np.array(results)  # (splits, tools, scores)
    cells = [name, f"{X.shape[0]:,} × {X.shape[1]:,}"]
    for column, digits in ((0, 0), (1, 3), (2, 2)):
        cells += [mean_spread(table[:, tool, column], digits) for tool in range(table.shape[1])]
    if table.shape[1] > 1:
        cells.append(f"{table[:, 0, 2].mean() / table[:, 1, 2].mean():.2f}")
    return cells


if __name__ == "__main__":
    main()
