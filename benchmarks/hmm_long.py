"""One long sequence: moments and the whole fit in units of hmmlearn's EM iteration.

python benchmarks/hmm_long.py

1,000,000 observations, 50 symbols, 10 states. An hmmlearn iteration is the difference of 6 and 2
iterations, divided by four, with implementation="scaling".
"""

from __future__ import annotations

import logging
import resource

import numpy as np
from common import arguments, timed, write_table

from thirdmoment import CategoricalHMM
from thirdmoment.datasets import make_categorical_hmm
from thirdmoment.metrics import align

FIRST_SEED, SEEDS, K, D, N = 100, 10, 10, 50, 1_000_000


def iteration(data) -> float:
    from hmmlearn.hmm import CategoricalHMM as Peer

    seconds = []
    for steps in (2, 6):
        peer = Peer(K, n_features=D, n_iter=steps, tol=0, implementation="scaling", random_state=0)
        seconds.append(timed(lambda: peer.fit(data.X))[1])
    return (seconds[1] - seconds[0]) / 4


def memory() -> float:
    """Largest resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    arguments(__doc__ or "").parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    warm = make_categorical_hmm(1, 60_000, n_symbols=D, n_components=K)
    CategoricalHMM(K).fit(warm.X)  # compile
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        data = make_categorical_hmm(1, N, n_symbols=D, n_components=K, random_state=seed)
        before = memory()
        quick = timed(lambda: CategoricalHMM(K, refine="none", n_features=D).fit(data.X))[1]
        model, ours = timed(lambda: CategoricalHMM(K, n_features=D).fit(data.X))
        used = memory() - before if seed == FIRST_SEED else np.nan
        step = iteration(data)
        order = align(model.emissionprob_, data.emission, metric="sqeuclidean")
        error = float(((model.emissionprob_[order] - data.emission) ** 2).sum())
        row = [quick / step, ours / step, model.n_iter_, error, step, used, memory()]
        rows.append(row)
        print(seed, [float(f"{v:.3g}") for v in row], model.report_.start, flush=True)
    found = np.array(rows)
    table = [[
        f"{np.median(found[:, 0]):.2f} (up to {found[:, 0].max():.2f})",
        f"{np.median(found[:, 1]):.1f} (up to {found[:, 1].max():.1f})",
        f"{np.median(found[:, 2]):.0f}",
        f"{np.median(found[:, 3]):.5f}",
        f"{np.median(found[:, 4]):.2f} s",
        f"{found[0, 5]:.2f} GB",
    ]]  # fmt: skip
    note = (
        "One sequence of 1,000,000 symbols out of 50, ten states, ten seeds. Times in iterations "
        "of hmmlearn's EM (scaling) on the same data; memory is what the first moment estimate "
        "and fit added to the resident size."
    )
    header = ["moments", "whole fit", "EM steps", "squared error", "one iteration", "memory"]
    write_table("hmm_long", header, table, note)


if __name__ == "__main__":
    main()
