"""How far topics of real text move when the documents change a little, against tomotopy.

    python benchmarks/stability.py [--data FOLDER] [--corpora AP KOS ...] [--repeats 5]

Overlap of the ten top words of matched topics, k = 20, between a fit and another one with one
document dropped, with the rows in another order, with another seed, and with a bootstrap of the
documents. tomotopy: 200 iterations, one worker, so that nothing but the data or the seed changes.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import FOLDERS, arguments, load_corpus, tomotopy_topics, write_table
from scipy.optimize import linear_sum_assignment

import thirdmoment as tm

K, TOP = 20, 10


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Mean share of top words that matched topics have in common."""
    tops = [
        [set(row) for row in np.argsort(-T, axis=1, kind="stable")[:, :TOP]] for T in (one, other)
    ]
    shared = np.array([[len(a & b) for b in tops[1]] for a in tops[0]])
    rows, columns = linear_sum_assignment(-shared)
    return float(shared[rows, columns].mean()) / TOP


def ours(X, seed=0):
    return tm.LatentDirichletAllocation(K, random_state=seed).fit(X).components_


def theirs(X, seed=0):
    return tomotopy_topics(X, K, seed=seed + 1, workers=1)


def moved(fit, X, repeats: int, *, whole: bool) -> list[str]:
    """Overlaps as cells: dropped document (mean, least), order, seed, bootstrap."""
    rng, n = np.random.default_rng(0), X.shape[0]
    base = fit(X)
    dropped = [0, *rng.choice(np.arange(1, n), repeats - 1, replace=False)]
    boots = [np.sort(rng.integers(n, size=n)) for _ in range(repeats)]
    cells = []
    drops = [overlap(base, fit(X[np.delete(np.arange(n), i)])) for i in dropped]
    cells.append(f"{np.mean(drops):.2f} ({min(drops):.2f})")
    if whole:
        orders = [rng.permutation(n) for _ in range(repeats)]
        cells.append(f"{np.mean([overlap(base, fit(X[order])) for order in orders]):.2f}")
    cells.append(f"{np.mean([overlap(base, fit(X, seed)) for seed in range(1, repeats)]):.2f}")
    cells.append(f"{np.mean([overlap(base, fit(X[rows])) for rows in boots]):.2f}")
    return cells


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--corpora", nargs="+", default=["docstrings", "AP", "KOS", "NIPS", "Reuters"]
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="The training result may differ")
    rows = []
    for name in options.corpora:
        if name != "docstrings" and not (options.data / FOLDERS[name]).exists():
            continue
        X = load_corpus(name, options.data)
        row = [name, *moved(ours, X, options.repeats, whole=True)]
        peer = [] if options.no_peer else moved(theirs, X, options.repeats, whole=False)
        rows.append([*row, *peer])
        print(" | ".join(rows[-1]), flush=True)
    if options.no_peer:
        return
    header = ["corpus", "a document dropped (least)", "order", "seed", "bootstrap"]
    header += ["tomotopy: dropped (least)", "seed", "bootstrap"]
    note = (
        f"Overlap of the ten top words of matched topics, k = {K}, means of {options.repeats} "
        "(seeds one less). `benchmarks/stability.py`."
    )
    write_table("stability", header, rows, note)


if __name__ == "__main__":
    main()
