"""Table 2 of the Schur paper in its printed design and in one that can be identified.

python benchmarks/hmm_schur.py

Sequences of 20, five states. Mean squared error of an emission column for the papers' estimators
with three solvers, the default, the label oracle (emissions counted with the true states) and the
constant guess. Printed design: all laws are normalised uniform numbers. Identifiable design:
T = 0.7 I + 0.3 Dirichlet(1), emissions Dirichlet(0.3).
"""

from __future__ import annotations

import warnings

import joblib
import numpy as np
from common import arguments, write_table

from thirdmoment import CategoricalHMM
from thirdmoment.datasets.synthetic import HMMSample, draw_states
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.metrics import align

FIRST_SEED, SEEDS, K = 100, 10, 5
SIZES = (100, 500, 1000, 2000, 5000)


def draw(design: str, d: int, n: int, seed: int) -> HMMSample:
    rng = np.random.default_rng(seed)

    def uniform(*shape: int) -> np.ndarray:
        law = rng.random(shape)
        return law / law.sum(axis=-1, keepdims=True)

    if design == "printed":
        emission, T, start = uniform(K, d), uniform(K, K), uniform(K)
    else:
        emission = rng.dirichlet(np.full(d, 0.3), size=K)
        T = 0.7 * np.eye(K) + 0.3 * rng.dirichlet(np.ones(K), size=K)
        start = rng.dirichlet(3 * np.ones(K))
    states = draw_states(start, T, n, 20, rng).ravel()
    edges = np.cumsum(emission, axis=1)
    X = (rng.random(len(states))[:, None] > edges[states]).sum(axis=1).clip(max=d - 1)
    return HMMSample(X[:, None], np.full(n, 20), states, start, T, emission)


def column_error(found: np.ndarray, truth: np.ndarray) -> float:
    found = found[align(found, truth, metric="sqeuclidean")]
    return float(((found - truth) ** 2).sum(axis=1).mean())


def one(design: str, d: int, n: int, seed: int) -> list[float]:
    warnings.simplefilter("ignore")
    data = draw(design, d, n, seed)
    out = []
    for options in (
        {"solver": "eig", "refine": "none", "weighting": "none"},
        {"solver": "schur", "refine": "none", "weighting": "none"},
        {"solver": "joint", "refine": "none", "weighting": "none"},
        {},
    ):
        try:
            model = CategoricalHMM(K, n_features=d, n_jobs=1, **options)
            model.fit(data.X, lengths=data.lengths)
            out.append(column_error(model.emissionprob_, data.emission))
        except UnusableMoments:  # counts with the squared norm of the truth, as in the paper
            out.append(float((data.emission**2).sum(axis=1).mean()))
    counts = np.zeros((K, d))
    np.add.at(counts, (data.states, data.X[:, 0]), 1)
    oracle = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    out.append(float(((oracle - data.emission) ** 2).sum(axis=1).mean()))
    out.append(float(((1 / d - data.emission) ** 2).sum(axis=1).mean()))
    out.append(model.report_.snr)
    return out


def main() -> None:
    arguments(__doc__ or "").parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for design in ("printed", "identifiable"):
        for d in (30, 20, 10, 5):
            if design == "identifiable" and d == 5:
                continue
            cells = [
                (design, d, n, s) for n in SIZES for s in range(FIRST_SEED, FIRST_SEED + SEEDS)
            ]
            found = np.array(joblib.Parallel(n_jobs=2)(joblib.delayed(one)(*c) for c in cells))
            runs = dict(zip(SIZES, found.reshape(len(SIZES), SEEDS, -1), strict=True))
            medians = np.array([np.median(runs[n], axis=0) for n in SIZES])
            slopes = [np.polyfit(np.log(SIZES[1:]), np.log(medians[1:, j]), 1)[0] for j in range(4)]
            for i, n in enumerate(SIZES):
                if n not in (500, 5000):
                    continue
                wins = int(np.sum(runs[n][:, 1] < runs[n][:, 0]))
                rows.append(
                    [design, d, f"{n:,}", *(f"{value:.4f}" for value in medians[i, :6]),
                     f"{wins} of {SEEDS}", f"{medians[i, 6]:.2f}",
                     " / ".join(f"{s:.1f}" for s in slopes) if n == 5000 else ""]
                )  # fmt: skip
                print(rows[-1], flush=True)
    note = (
        "Median over ten seeds of the mean squared error of an emission column. snr is "
        "report_.snr of the default fit, to be trusted above 1.5; slopes of log error in log N "
        "over N = 500 to 5,000 for eig, schur, joint and the default."
    )
    header = ["design", "d", "N", "eig", "schur", "joint", "default", "label oracle",
              "constant guess", "schur below eig", "snr", "slopes"]  # fmt: skip
    write_table("hmm_schur", header, rows, note)


if __name__ == "__main__":
    main()
