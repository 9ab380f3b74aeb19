"""A hundred topics: error, topics found, time against one SciPy round trip, peak memory.

    python benchmarks/large_k.py [--seeds 3]

n = 100,000 documents of 200 words over d = 20,000, k = 100, alpha0 = 1 known, without refinement.
The unit of time is X.T @ (X @ Q) by SciPy in float64 with 110 columns, median of three, in the same
process. Memory is the peak above the input, of a process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
from common import arguments, mean_spread, timed, write_table

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.metrics import align

N, D, K, WORDS = 100_000, 20_000, 100, 200


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--memory-only", action="store_true", help="used by the script itself")
    options = parser.parse_args()
    if options.memory_only:
        print(peak_memory())
        return
    tm.LatentDirichletAllocation(10, refine="none").fit(make_lda_corpus(8000, 300, 10).X)
    rows, ratios = [], []
    for seed in range(options.seeds):
        corpus = make_lda_corpus(N, D, K, mean_length=WORDS, random_state=seed)
        Q = np.random.default_rng(0).standard_normal((D, K + 10))
        trips = [timed(lambda: corpus.X.T @ (corpus.X @ Q))[1] for _ in range(3)]
        trip = float(np.median(trips))
        model, time = timed(fit(corpus.X))
        topics = model.components_[align(model.components_, corpus.topics)]
        error = np.abs(topics - corpus.topics).sum(axis=1)
        oracle = corpus.topic_counts / corpus.topic_counts.sum(axis=1, keepdims=True)
        best = np.abs(oracle - corpus.topics).sum(axis=1).mean()
        found = int(np.sum(error < 0.4))
        ratios.append(time / trip)
        rows.append(
            [
                seed,
                f"{error.mean():.4f}",
                f"{best:.4f}",
                f"{found} of {K}",
                f"{time:.1f}",
                f"{trip:.2f}",
                f"{ratios[-1]:.2f}",
                model.report_.passes,
            ]
        )
        print(rows[-1], flush=True)
    command = [sys.executable, __file__, "--memory-only"]
    memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    header = ["seed", "mean L1", "oracle", "found", "seconds", "round trip", "ratio", "passes"]
    note = (
        f"n = {N:,}, d = {D:,}, k = {K}, {WORDS} words, alpha0 = 1 known, refine='none'. Time in "
        f"round trips: {mean_spread(ratios, 2)}. Peak memory above the input: {memory} GB."
    )
    write_table("large_k", header, rows, note)


def fit(X):
    model = tm.LatentDirichletAllocation(K, refine="none", concentration=1.0)
    return lambda: model.fit(X)


def peak_memory() -> str:
    """Peak resident memory of the fit above what the input took, in GB."""
    tm.LatentDirichletAllocation(10, refine="none").fit(make_lda_corpus(8000, 300, 10).X)
    X = make_lda_corpus(N, D, K, mean_length=WORDS, random_state=0).X
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak of making the corpus
    before = status("VmRSS")
    fit(X)()
    peak = status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{(peak - before) / 1e6:.2f}"


def status(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))


if __name__ == "__main__":
    main()
