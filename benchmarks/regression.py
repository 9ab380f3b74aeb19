"""Mixed linear regression against EM from the truth and against ten restarts of EM."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from common import arguments, timed, write_table

from thirdmoment import MixedLinearRegression
from thirdmoment._array import single_threaded_blas
from thirdmoment.exceptions import ThirdMomentWarning, UnusableMoments
from thirdmoment.likelihood.mixture import from_labels
from thirdmoment.likelihood.regressions import Regressions
from thirdmoment.metrics import align
from thirdmoment.refinement.mixture import mixture_em
from thirdmoment.starts.regression import RegressionData, standardised

FIRST_SEED, SEEDS, SIGMA = 100, 10, 0.5


def draw(seed: int, n: int, d: int, k: int) -> tuple[np.ndarray, ...]:
    """Slopes of length 2 in standardised x; correlated x with a mean, intercepts, weights."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d)) / np.sqrt(d) + np.eye(d)
    standard = rng.standard_normal((k, d))
    standard *= 2 / np.linalg.norm(standard, axis=1, keepdims=True)
    weights, shift = rng.dirichlet(np.full(k, 10.0)), rng.standard_normal(k) * 0.5
    Z = rng.standard_normal((n, d))
    labels = rng.choice(k, n, p=weights)
    y = (Z * standard[labels]).sum(axis=1) + shift[labels] + SIGMA * rng.standard_normal(n)
    slopes = standard @ np.linalg.inv(root)
    return Z @ root.T + 1.0, y, slopes, weights, shift - slopes @ np.ones(d), root


def error(found: np.ndarray, slopes: np.ndarray, root: np.ndarray) -> float:
    """Mean relative error of the slopes in standardised x."""
    found, slopes = found @ root, slopes @ root
    found = found[align(found, slopes)]
    return float(np.mean(np.linalg.norm(found - slopes, axis=1) / np.linalg.norm(slopes, axis=1)))


def em(data: RegressionData, start: object, k: int) -> tuple[np.ndarray, float]:
    """EM of the library from labels or parameters; slopes in x and mean log-likelihood."""
    family = Regressions(1e-7)
    chunks = data.chunks()
    if isinstance(start, np.ndarray):
        start = from_labels(family, chunks, start, k)
    with single_threaded_blas():
        found = mixture_em(family, chunks, start, tol=0.02, max_steps=500, n_threads=2)
    value = found.path[-1] - float(np.log(data.standard.y_scale))  # in the units of y
    return data.standard.slopes(found.parameters[1][:, :-1]), value


def from_truth(
    data: RegressionData, slopes: np.ndarray, weights: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, ...]:
    unit = data.standard.y_scale
    standard = slopes @ np.linalg.inv(data.standard.root).T
    constant = shift + slopes @ data.standard.mean - data.standard.y_mean
    beta = np.column_stack([standard, constant]) / unit
    return weights, beta, np.full(len(weights), (SIGMA / unit) ** 2)


def one(seed: int, n: int, d: int, k: int, *, restarts: bool) -> list[float]:
    X, y, slopes, weights, shift, root = draw(seed, n, d, k)
    try:
        raw = error(MixedLinearRegression(k, refine="none").fit(X, y).coef_, slopes, root)
    except UnusableMoments:
        raw = np.nan
    model, seconds = timed(lambda: MixedLinearRegression(k).fit(X, y))
    data = standardised(X, y, np.ones(n), n_threads=2)
    best, top = em(data, from_truth(data, slopes, weights, shift), k)
    ours = error(model.coef_, slopes, root)
    row = [raw, ours, ours / error(best, slopes, root), model.lower_bound_ - top, seconds]
    if restarts:

        def ten() -> tuple[np.ndarray, float]:
            draws = [np.random.default_rng([seed, r]).integers(k, size=n) for r in range(10)]
            return max((em(data, labels, k) for labels in draws), key=lambda pair: pair[1])

        (found, value), slow = timed(ten)
        row += [error(found, slopes, root) / ours, (model.lower_bound_ - value) * n, slow]
    return row


def synthetic() -> None:
    rows = []
    for d in (5, 10, 20):
        for k in (2, 3, 5):
            for n in (20_000, 100_000, 1_000_000):
                seeds = range(FIRST_SEED, FIRST_SEED + (SEEDS if n < 1_000_000 else 3))
                found = np.array([one(s, n, d, k, restarts=n == 20_000) for s in seeds])
                usable = found[:, 0] < 0.5
                near = int(np.sum(found[usable, 2] <= 1.1))
                cells = [d, k, f"{n:,}", f"{np.nanmedian(found[:, 0]):.3f}"]
                cells += [f"{np.median(found[:, 1]):.4f}", f"{near} of {int(usable.sum())}"]
                cells += [f"{int(np.sum(found[:, 2] <= 1.1))} of {len(found)}"]
                if n == 20_000:
                    level = int(np.sum(found[:, 6] > -1))
                    cells += [f"{level} of {len(found)}"]
                    cells += [f"{np.median(found[:, 4] / found[:, 7]):.2f}"]
                else:
                    cells += ["", ""]
                rows.append([*cells, f"{np.median(found[:, 4]):.2f}"])
                print(*rows[-1], flush=True)
    write_table(
        "regression",
        ["d", "k", "n", "moments alone", "error", "within 1.1, start < 0.5", "within 1.1, all",
         "likelihood at least ten restarts", "time / ten restarts", "time (s)"],
        rows,
        f"MixedLinearRegression, slopes of length 2, noise {SIGMA}, correlated x with a mean, "
        f"intercepts; relative error of the slopes, medians of {SEEDS} seeds (3 for a million "
        "rows); within 1.1 of EM from the truth. Restarts of the same EM from random labels. "
        "`benchmarks/regression.py`.",
    )  # fmt: skip


def real(data: Path) -> None:
    import pandas as pd

    tone = pd.read_csv(data / "mixtools" / "tonedata.csv")
    oxide = pd.read_csv(data / "mixtools" / "NOdata.csv")
    made = pd.read_csv(data / "flexmix" / "NPreg.csv")
    rows = []
    for name, X, y in (
        ("tone perception", tone[["stretchratio"]], tone["tuned"]),
        ("nitric oxide", oxide[["NO"]], oxide["Equivalence"]),
        ("NPreg, x and x²", np.column_stack([made["x"], made["x"] ** 2]), made["yn"]),
    ):
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        prepared = standardised(X, y, np.ones(len(y)), n_threads=1)
        gaps, names = [], set()
        for seed in range(3):
            model = MixedLinearRegression(2, random_state=seed).fit(X, y)
            draws = [np.random.default_rng([seed, r]).integers(2, size=len(y)) for r in range(10)]
            best = max(em(prepared, labels, 2)[1] for labels in draws)
            gaps.append((model.lower_bound_ - best) * len(y))
            names.add(model.report_.start)
        value = model.lower_bound_ * len(y)
        rows.append([name, len(y), f"{value:.2f}", f"{min(gaps):+.3f}", ", ".join(sorted(names))])
    write_table(
        "regression_real",
        [
            "data",
            "n",
            "log-likelihood",
            "less ten restarts (worst of 3 seeds)",
            "start",
        ],
        rows,
        "Small real sets with two regressions: one column, or x that is not Gaussian, so the "
        "moments do not apply. `benchmarks/regression.py`.",
    )


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    warnings.simplefilter("ignore", ThirdMomentWarning)
    real(options.data)
    synthetic()


if __name__ == "__main__":
    main()
