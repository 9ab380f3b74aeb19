"""A hundred thousand rows: time against one product of the features, slope in m, memory.

python benchmarks/kernel_scale.py

Three scalar views, five components. A round trip is Zᵀ(w ⊙ Z) of the features of all rows, the
least that any second moment costs.
"""

from __future__ import annotations

import resource

import numpy as np
from common import arguments, timed, write_table

from thirdmoment import KernelMixture
from thirdmoment._array import single_threaded_blas
from thirdmoment.datasets import make_shaped_mixture
from thirdmoment.models.kernel.views import read_views
from thirdmoment.starts.kernel import FeatureOptions, feature_table
from thirdmoment.starts.kernel_rows import KernelRows

FIRST_SEED, SEEDS, K = 100, 3, 5
SIZES = (12_500, 25_000, 50_000, 100_000, 200_000)


def memory() -> float:
    """Largest resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def round_trip(X: np.ndarray) -> tuple[float, int]:
    """Seconds of one weighted product of all features, and how many features there are."""
    rng, w = np.random.default_rng(0), np.ones(len(X))
    views = read_views(X, w, "auto", "rbf", "auto", rng)
    rows = KernelRows(X, w, views, False)
    chunks = feature_table(rows, K, FeatureOptions("low-rank", 300), rng).table.chunks
    Z = np.concatenate([chunk.rows.toarray() for chunk in chunks])
    with single_threaded_blas():
        return min(timed(lambda: (Z * w[:, None]).T @ Z)[1] for _ in range(3)), Z.shape[1]


def main() -> None:
    arguments(__doc__ or "").parse_args()
    KernelMixture(2, bandwidth="cv").fit(make_shaped_mixture(2000, 2).X)  # compile
    start = memory()
    rows, seconds = [], []
    for m in SIZES:
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            X = make_shaped_mixture(m, K, random_state=seed).X
            each = [
                timed(lambda: KernelMixture(K, **options).fit(X))[1]
                for options in (
                    {"bandwidth": 0.15},
                    {"refine": "none"},
                    {},
                    {"bandwidth": "cv"},
                )
            ]
            trip, features = round_trip(X)
            found.append([*each, trip, features])
        middle = np.median(found, axis=0)
        seconds.append(middle[:4])
        worst = np.max(found, axis=0)
        times = [f"{a:.2f} ({b:.2f})" for a, b in zip(middle[:4], worst[:4], strict=True)]
        grown = memory() - start
        rows.append([f"{m:,}", *times, f"{middle[4]:.3f}", int(middle[5]), f"{grown:.2f}"])
        print(*rows[-1], flush=True)
    slopes = [np.polyfit(np.log(SIZES), np.log(column), 1)[0] for column in np.array(seconds).T]
    rows.append(["slope", *(f"{slope:.2f}" for slope in slopes), "", "", ""])
    header = ["m", "given bandwidth", "moments alone", "fit", "cv", "round trip", "features", "GB"]
    note = (
        "Seconds, median of three seeds (largest); GB is what the resident size grew by so far. "
        "Gaussian/Gamma, spacing 2.5."
    )
    write_table("kernel_scale", header, rows, note)


if __name__ == "__main__":
    main()
