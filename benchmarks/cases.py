"""Small cases of every family, drawn and real: what a default fit is worth, in one number each.

    python benchmarks/cases.py [--data FOLDER] [--families ...] [--seeds 10] [--save FILE]
    python benchmarks/cases.py --compare BEFORE AFTER

The number is better when higher: the mean log-likelihood of a row that was not fitted (drawn data,
real tables: the seed draws the rows) or that was (real sequences: the seed is `random_state`),
minus the logarithm of the perplexity for topics, the adjusted Rand index for subspaces, minus the
angle between true and found directions for factors. `--save` keeps all numbers, `--compare` sets
two such files side by side: the mean difference of equal seeds and its standard error.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from common import DATA, load_corpus, split, write_table
from hmm_real import letters, series
from real_mixtures import gaussian_sets, read_latent_class
from sklearn.metrics import adjusted_rand_score
from subspaces import sequences

import thirdmoment as tm
from thirdmoment.metrics import perplexity

Case = Callable[[int], tuple[Any, Callable[[Any], float]]]  # seed -> fit, and its worth

FIRST = 7000  # seeds of drawn data; nothing was chosen on these


def halves(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(X))
    return X[np.sort(order[: len(X) // 2])], X[np.sort(order[len(X) // 2 :])]


def table(make: Callable[[int], Any], rows: Callable[[int], np.ndarray]) -> Case:
    """Half of the rows is fitted, the other half is scored."""

    def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
        train, test = halves(rows(seed), seed)
        return lambda: make(seed).fit(train), lambda model: float(model.score(test))

    return case


def topics(data: Path) -> dict[str, Case]:
    def text(name: str, k: int) -> Case:
        X = cache(lambda: load_corpus(name, data))

        def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
            train, test = split(X(), FIRST + seed)
            train = train[: min(train.shape[0], 3000)]
            return (
                lambda: tm.LatentDirichletAllocation(k).fit(train),
                lambda model: -float(np.log(perplexity(model.components_, test))),
            )

        return case

    def drawn(n: int, k: int, alpha0: float, model: Any) -> Case:
        def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
            draw = tm.datasets.make_lda_corpus(
                n, 1000, k, concentration=alpha0, random_state=FIRST + seed
            )
            return lambda: model(k).fit(
                draw.X
            ), lambda fit: -tm.metrics.recovery_error(fit.components_, draw.topics)

        return case

    def single(seed: int) -> tuple[Any, Callable[[Any], float]]:
        draw = tm.datasets.make_single_topic_corpus(2000, 500, 8, random_state=FIRST + seed)
        return lambda: tm.SingleTopicModel(8).fit(
            draw.X
        ), lambda fit: -tm.metrics.recovery_error(fit.components_, draw.topics)

    def poisson(seed: int) -> tuple[Any, Callable[[Any], float]]:
        rng = np.random.default_rng(FIRST + seed)
        truth = rng.dirichlet(np.full(300, 0.1), size=5)
        X = sp.csr_array(rng.poisson(rng.gamma(0.4, 50.0, size=(3000, 5)) @ truth), dtype=float)
        X = X[X.sum(axis=1) > 0]
        return lambda: tm.PoissonTopicModel(5).fit(
            X
        ), lambda fit: -tm.metrics.recovery_error(fit.components_, truth)

    lda = tm.LatentDirichletAllocation
    return {
        "AP, k = 20": text("AP", 20),
        "KOS, k = 20": text("KOS", 20),
        "docstrings, k = 10": text("docstrings", 10),
        "LDA, n = 2,000, k = 20, alpha0 = 1": drawn(2000, 20, 1.0, lda),
        "LDA, n = 5,000, k = 10, alpha0 = 3": drawn(5000, 10, 3.0, lda),
        "single topics, n = 2,000, k = 8": single,
        "Poisson, n = 3,000, k = 5": poisson,
    }


def gaussian(data: Path) -> dict[str, Case]:
    def blobs(n: int, k: int, d: int, apart: float) -> Callable[[int], np.ndarray]:
        def rows(seed: int) -> np.ndarray:
            rng = np.random.default_rng(FIRST + seed)
            means = rng.standard_normal((k, d))
            means *= apart / np.sqrt(2) / np.linalg.norm(means, axis=1, keepdims=True)
            spread = rng.uniform(0.5, 1.5, (k, d))
            labels = rng.choice(k, 2 * n, p=rng.dirichlet(np.full(k, 5.0)))
            return means[labels] + spread[labels] * rng.standard_normal((2 * n, d))

        return rows

    def mixture(k: int, kind: str) -> Callable[[int], Any]:
        return lambda seed: tm.GaussianMixture(k, covariance_type=kind, random_state=seed)

    found = {
        "blobs, spherical, n = 500": table(mixture(4, "spherical"), blobs(500, 4, 6, 5.0)),
        "blobs, diag, n = 2,000": table(mixture(8, "diag"), blobs(2000, 8, 6, 5.0)),
        "plane, full, n = 1,000, k = 8": table(mixture(8, "full"), blobs(1000, 8, 2, 6.0)),
        "blobs, tied, n = 1,000": table(mixture(5, "tied"), blobs(1000, 5, 4, 5.0)),
    }
    for name, X, _, k, kind in gaussian_sets(data):
        if (name, kind) in {("banknote", "full"), ("wdbc", "diag"), ("gvhd 3", "full"),
                            ("gvhd 5", "diag"), ("geyser", "full")}:  # fmt: skip
            small = X[:: max(1, len(X) // 4000)]
            found[f"{name}, {kind}"] = table(mixture(k, kind), lambda seed, X=small: X)
    views = [[0, 1], [2, 3], [4, 5]]
    found["three views, n = 2,000"] = table(
        lambda seed: tm.MultiViewMixture(4, views=views, random_state=seed), blobs(2000, 4, 6, 5.0)
    )
    return found


def classes(data: Path) -> dict[str, Case]:
    def drawn(n: int, k: int, columns: int, sharp: float) -> Callable[[int], np.ndarray]:
        def rows(seed: int) -> np.ndarray:
            rng = np.random.default_rng(FIRST + seed)
            tables = rng.dirichlet(np.full(3, sharp), size=(k, columns)).cumsum(axis=2)
            labels = rng.integers(k, size=2 * n)
            return (rng.random((2 * n, columns, 1)) > tables[labels]).sum(axis=2).clip(max=2)

        return rows

    def mixture(k: int, sizes: Any) -> Callable[[int], Any]:
        return lambda seed: tm.CategoricalMixture(k, n_categories=sizes, random_state=seed)

    found = {
        "drawn, n = 500, k = 3": table(mixture(3, [3] * 8), drawn(500, 3, 8, 0.5)),
        "drawn, n = 2,000, k = 5": table(mixture(5, [3] * 8), drawn(2000, 5, 8, 1.0)),
        "drawn, n = 2,000, k = 4, 4 columns": table(mixture(4, [3] * 4), drawn(2000, 4, 4, 0.5)),
    }
    for name, k in (("election", 3), ("gss82", 3), ("gss82", 6), ("values", 2)):
        codes = read_latent_class(data, name)
        sizes = (np.nanmax(codes, axis=0) + 1).astype(int)
        found[f"{name}, k = {k}"] = table(mixture(k, sizes), lambda seed, X=codes: X)
    return found


def chains(data: Path) -> dict[str, Case]:
    def real(make: Callable[[int], Any], X: np.ndarray, lengths: Any) -> Case:
        return lambda seed: (
            lambda: make(seed).fit(X, lengths=lengths),
            lambda model: model.log_likelihood(X, lengths=lengths) / len(X),
        )

    def drawn(model: Any, sample: Callable[[int], Any]) -> Case:
        def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
            draw = sample(FIRST + seed)
            cut = len(draw.lengths) // 2
            n = int(np.sum(draw.lengths[:cut]))
            return (
                lambda: model.fit(draw.X[:n], lengths=draw.lengths[:cut]),
                lambda fit: fit.score(draw.X[n:], lengths=draw.lengths[cut:]),
            )

        return case

    make_gaussian, make_coded = tm.datasets.make_gaussian_hmm, tm.datasets.make_categorical_hmm
    found = {
        "Gaussian, n = 500, k = 3": drawn(
            tm.GaussianHMM(3),
            lambda s: make_gaussian(20, 50, n_features=2, n_components=3, random_state=s),
        ),
        "Gaussian, n = 2,000, k = 6, d = 2": drawn(
            tm.GaussianHMM(6),
            lambda s: make_gaussian(80, 50, n_features=2, n_components=6, random_state=s),
        ),
        "symbols, n = 2,000, k = 3": drawn(
            tm.CategoricalHMM(3, n_features=12),
            lambda s: make_coded(40, 100, n_symbols=12, n_components=3, random_state=s),
        ),
        "symbols, n = 10,000, k = 5": drawn(
            tm.CategoricalHMM(5, n_features=20),
            lambda s: make_coded(200, 100, n_symbols=20, n_components=5, random_state=s),
        ),
    }
    for name, (X, lengths) in series(data).items():
        for k in (3, 5):
            found[f"{name}, k = {k}"] = real(
                lambda seed, k=k: tm.GaussianHMM(k, random_state=seed), X, lengths
            )
    X, lengths = letters(data)
    ends = np.cumsum(lengths)
    place = int(np.searchsorted(ends, 20_000))
    found["letters, k = 4"] = real(
        lambda seed: tm.CategoricalHMM(4, random_state=seed), X[: ends[place]], lengths[: place + 1]
    )
    marks = np.load(data / "chromhmm_chr11" / "marks.npz")["K562"][:4000]
    found["marks, k = 5"] = real(lambda seed: tm.BernoulliHMM(5, random_state=seed), marks, None)
    return found


def regressions(data: Path) -> dict[str, Case]:
    import pandas as pd

    def judged(k: int, rows: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> Case:
        def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
            X, y = rows(seed)
            train, test = halves(np.column_stack([X, y]), seed)

            def worth(model: Any) -> float:
                rest = test[:, -1:] - test[:, :-1] @ model.coef_.T - model.intercept_
                v = np.broadcast_to(model.noise_variance_, (k,))
                logs = np.log(model.weights_) - 0.5 * np.log(2 * np.pi * v) - rest**2 / (2 * v)
                return float(np.logaddexp.reduce(logs, axis=1).mean())

            fit = tm.MixedLinearRegression(k, random_state=seed).fit
            return lambda: fit(train[:, :-1], train[:, -1]), worth

        return case

    def drawn(n: int, k: int, d: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
            rng = np.random.default_rng(FIRST + seed)
            slopes, X = 2 * rng.standard_normal((k, d)), rng.standard_normal((2 * n, d))
            labels = rng.integers(k, size=2 * n)
            noise = 0.4 * rng.standard_normal(2 * n)
            return X, np.sum(X * slopes[labels], axis=1) + noise

        return rows

    made = pd.read_csv(data / "flexmix" / "NPreg.csv")
    X, y = np.column_stack([made["x"], made["x"] ** 2]), made["yn"].to_numpy(float)
    return {
        "n = 300, k = 2, d = 4": judged(2, drawn(300, 2, 4)),
        "n = 2,000, k = 3, d = 6": judged(3, drawn(2000, 3, 6)),
        "n = 1,500, k = 4, d = 2": judged(4, drawn(1500, 4, 2)),
        "NPreg": judged(2, lambda seed: (X, y)),
    }


def subspaces(data: Path) -> dict[str, Case]:
    def case_of(
        k: int, rows: Callable[[int], tuple[np.ndarray, np.ndarray]], **options: Any
    ) -> Case:
        def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
            X, labels = rows(seed)
            fit = tm.SubspaceClustering(k, 3, random_state=seed, **options).fit
            return lambda: fit(X), lambda model: adjusted_rand_score(labels, model.labels_)

        return case

    def drawn(n: int, k: int, sigma: float) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
            rng = np.random.default_rng(FIRST + seed)
            bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(k)]
            labels = rng.integers(k, size=n)
            X = np.stack([bases[h] @ rng.standard_normal(3) for h in labels])
            return X + sigma * rng.standard_normal(X.shape), labels

        return rows

    def hopkins(seed: int) -> tuple[np.ndarray, np.ndarray]:
        return two[(7 * seed) % len(two)]

    two = [found for found in sequences(data) if len(np.unique(found[1])) == 2]
    return {
        "n = 600, k = 3, noise 0.1": case_of(3, drawn(600, 3, 0.1)),
        "n = 600, k = 4, noise 0.25": case_of(4, drawn(600, 4, 0.25)),
        "Hopkins, two motions": case_of(2, hopkins, affine=True),
    }


def kernels(data: Path) -> dict[str, Case]:
    def drawn(n: int, k: int) -> Callable[[int], np.ndarray]:
        def rows(seed: int) -> np.ndarray:
            rng = np.random.default_rng(FIRST + seed)
            labels = rng.integers(k, size=2 * n)
            X = rng.gamma(2.0, 1.0, size=(2 * n, 4)) + 3 * rng.random((k, 4))[labels]
            return np.where((labels % 2)[:, None] == 1, 6 - X, X)

        return rows

    def mixture(k: int) -> Callable[[int], Any]:
        return lambda seed: tm.KernelMixture(k, random_state=seed)

    found = {
        "gamma, n = 500, k = 2": table(mixture(2), drawn(500, 2)),
        "gamma, n = 2,000, k = 3": table(mixture(3), drawn(2000, 3)),
    }
    for name, X, _, k, kind in gaussian_sets(data):
        if (name, kind) in {("banknote", "full"), ("gvhd 2", "full")}:
            small = X[:: max(1, len(X) // 3000)]
            found[name] = table(mixture(k), lambda seed, X=small: X)
    return found


def factors(data: Path) -> dict[str, Case]:
    def drawn(n: int, k: int, shape: str) -> Case:
        def case(seed: int) -> tuple[Any, Callable[[Any], float]]:
            rng = np.random.default_rng(FIRST + seed)
            S = rng.exponential(size=(n, k)) if shape == "skewed" else rng.uniform(size=(n, k))
            mixing = rng.standard_normal((k, k + 2))
            X = (S - S.mean(axis=0)) @ mixing + 0.01 * rng.standard_normal((n, k + 2))

            def worth(model: Any) -> float:
                a, b = (m / np.linalg.norm(m, axis=1)[:, None] for m in (model.components_, mixing))
                alike = np.minimum(np.abs(a @ b.T), 1.0)
                return -float(np.arccos(alike[scipy.optimize.linear_sum_assignment(-alike)]).mean())

            return lambda: tm.IndependentFactors(k).fit(X), worth

        return case

    return {
        "skewed, n = 2,000, k = 4": drawn(2000, 4, "skewed"),
        "even, n = 2,000, k = 4": drawn(2000, 4, "even"),
    }


FAMILIES = {
    "topics": topics, "gaussian": gaussian, "classes": classes, "chains": chains,
    "regressions": regressions, "subspaces": subspaces, "kernels": kernels, "factors": factors,
}  # fmt: skip


def run(families: list[str], data: Path, seeds: int) -> dict[str, list[list[float]]]:
    """Worth and seconds of every case and seed."""
    found: dict[str, list[list[float]]] = {}
    for family in families:
        for name, case in FAMILIES[family](data).items():
            cells = []
            for seed in range(seeds):
                fit, worth = case(seed)
                begin = time.perf_counter()
                model = fit()
                seconds = time.perf_counter() - begin
                cells.append([worth(model), seconds])
            found[f"{family}: {name}"] = cells
    return found


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    """One line a case: worth before, the mean difference and its standard error, times."""
    rows = []
    for name, old in before.items():
        if name not in after:
            continue
        a, b = np.array(old), np.array(after[name])
        m = min(len(a), len(b))
        change = b[:m, 0] - a[:m, 0]
        error = change.std() / np.sqrt(max(m - 1, 1))
        worth, ratio = a[:, 0], b[:m, 1].sum() / a[:m, 1].sum()
        cells = [f"{worth.mean():.4f}", f"{worth.std():.4f}", f"{change.mean():+.4f}"]
        rows.append([name, *cells, f"{error:.4f}", f"{ratio:.2f}"])
    return rows


HEADER = ["case", "before", "spread", "change", "its error", "time"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.compare:
        before, after = (json.loads(path.read_text()) for path in options.compare)
        note = "Ten seeds each; a change counts when it is beyond twice its error."
        write_table("cases", HEADER, compare(before, after), note)
        return
    found = run(options.families, options.data, options.seeds)
    for name, cells in found.items():
        worth, seconds = np.array(cells).T
        print(f"{name}: {worth.mean():.4f} ± {worth.std():.4f} ({seconds.mean():.3f} s)")
    if options.save:
        options.save.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
