"""The default fit against one that is told alpha0, on corpora drawn from the model.

    python benchmarks/concentration.py [--seeds 300 301 302] [--sizes 2000 5000 20000]

d = 1,000, 100 words a document, k in {5, 8, 20, 50}, alpha0 in {0.1, 0.3, 1, 3, 8, k}. A row shows
medians over the seeds: L1 topic error with alpha0 known and with "auto", their ratio, and alpha0 as
found. Constants were chosen with seeds 0 and 1; seeds 200 to 202 were looked at.
"""

from __future__ import annotations

import itertools
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from common import arguments, write_table

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.metrics import recovery_error

TOPICS = (5, 8, 20, 50)
CLEAR = 0.3  # cells with a larger error at known alpha0 are shown, but not judged


def measure(cell: tuple[int, int, float, int]) -> tuple[float, float, float, bool]:
    """Error with alpha0 known, with "auto", alpha0 found, and whether the moments were trusted."""
    n, k, alpha0, seed = cell
    corpus = make_lda_corpus(n, 1000, k, concentration=alpha0, random_state=seed)
    known = tm.LatentDirichletAllocation(k, concentration=alpha0, n_jobs=1).fit(corpus.X)
    auto = tm.LatentDirichletAllocation(k, n_jobs=1).fit(corpus.X)
    return (
        recovery_error(known.components_, corpus.topics),
        recovery_error(auto.components_, corpus.topics),
        float(auto.concentration_.sum()),
        bool(auto.report_.details["trusted"]),
    )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", nargs="+", type=int, default=[300, 301, 302])
    parser.add_argument("--sizes", nargs="+", type=int, default=[2000, 5000, 20_000])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = [
        (n, k, alpha0)
        for n, k in itertools.product(options.sizes, TOPICS)
        for alpha0 in sorted({0.1, 0.3, 1.0, 3.0, 8.0, float(k)})
    ]
    tasks = [(*cell, seed) for cell in cells for seed in options.seeds]
    rows, judged, off = [], 0, []
    with ProcessPoolExecutor(2) as pool:
        results = iter(pool.map(measure, tasks))
        for n, k, alpha0 in cells:
            found = np.array([next(results) for _ in options.seeds])
            known, auto, total, _ = np.median(found, axis=0)
            ratio = auto / known
            row = [f"{n:,}", k, f"{alpha0:g}", f"{known:.3f}", f"{auto:.3f}", f"{ratio:.2f}"]
            row += [f"{total:.3g}", f"{int(found[:, 3].sum())} of {len(options.seeds)}"]
            rows.append(row)
            print(" | ".join(map(str, row)), flush=True)
            if known < CLEAR:
                judged += 1
                if ratio > 1.15 or abs(total / alpha0 - 1) > 0.25:
                    off.append(f"n = {n}, k = {k}, alpha0 = {alpha0:g}")
    note = (
        f"d = 1,000, medians over seeds {', '.join(map(str, options.seeds))}. Of {judged} cells "
        f"with an error below {CLEAR} at known alpha0, {judged - len(off)} are within 1.15 of that "
        f"error and within 25% of alpha0{'; not: ' + '; '.join(off) if off else ''}. "
        "`benchmarks/concentration.py`."
    )
    header = ["n", "k", "alpha0", "error, known", "error, auto", "ratio", "alpha0 found", "trusted"]
    write_table("concentration_grid", header, rows, note)


if __name__ == "__main__":
    main()
