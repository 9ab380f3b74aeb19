"""Which warnings tell fits that win from fits that lose? One line for each finding of a report.

    python benchmarks/alarms.py [--data FOLDER] [--families topics gaussian ...] [--details FILE]

Every family of models is fitted to data of all kinds: drawn from the model with enough and with too
few rows, with the right and with a wrong number of components, without any structure, and real. A
fit wins

- on drawn data if it is near the truth: topics by their mean L1 distance, groups by their adjusted
  Rand index against that of the true parameters (`NEAR`, `OF_THE_BEST`), and the number of
  components is right,
- on real data if it is not behind the best peer (tomotopy in perplexity; ten restarts of
  scikit-learn, of hmmlearn or of random starts in likelihood; k-subspaces against known labels),
  and if fits to bootstrap samples find its components again (`AGAIN`).

The other fits lose. The limits of the report were chosen on another run (`--run 0`). The last rows
are alarms that earlier reports raised; their numbers are still in `report_.full()`.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from common import DATA, FOLDERS, load_words, split, tomotopy_topics, write_table
from hmm_real import series
from real_mixtures import gaussian_sets, read_latent_class, ten_restarts
from scipy.stats import gamma
from sklearn.metrics import adjusted_rand_score
from subspaces import k_subspaces, misclassified, sequences

import thirdmoment as tm
from thirdmoment.metrics import align, perplexity, recovery_error

NEAR = 0.3  # L1 distance of topics to the truth
OF_THE_BEST = 0.9  # of the Rand index of the true parameters
LEAST_BEST = 0.2  # Rand index of the true parameters below which there is nothing to find
AGAIN = {"words": 0.5, "rows": 0.6}  # share of a component that bootstrap samples find again
BEHIND = {"perplexity": 1.02, "likelihood": 1.0}  # factor; units
SAMPLES = 3
MOST_DOCUMENTS = 4000
RUN = 1


class Case(NamedTuple):
    """A fit, and whether it wins."""

    family: str
    name: str
    fit: Callable[[], Any]
    wins: Callable[[Any], bool]


def again(fit: Callable[[np.ndarray], np.ndarray], n: int, labels: np.ndarray, k: int) -> bool:
    """Whether bootstrap samples find the groups again; ``fit`` gives labels of all rows."""
    found = []
    for seed in range(SAMPLES):
        other = fit(np.sort(np.random.default_rng(seed).integers(n, size=n)))
        table = np.zeros((k, k))
        for i in range(k):
            for j in range(k):
                both = np.sum((labels == i) & (other == j))
                table[i, j] = both / max(np.sum((labels == i) | (other == j)), 1)
        found.append(table[scipy.optimize.linear_sum_assignment(-table)].mean())
    return float(np.mean(found)) >= AGAIN["rows"]


# topics ---------------------------------------------------------------------------------------


def topics(data: Path) -> Iterator[Case]:
    for name in ("docstrings", "NYT", *FOLDERS):
        X, words = load_words(name, data)
        rng = np.random.default_rng(1 + RUN)
        X = X[np.sort(rng.permutation(X.shape[0])[:MOST_DOCUMENTS])]
        for k in (5, 20, 60):
            yield text(f"{name}, k = {k}", X, words, k)
        yield text(f"{name}, 250 documents", X[:250], words, 20)
        if name in FOLDERS and name != "we8there":
            raw = sp.csr_array(sp.load_npz(data / FOLDERS[name] / "counts.npz"), dtype=float)
            every = (data / FOLDERS[name] / "vocab.txt").read_text("utf-8").splitlines()
            raw = raw[np.sort(rng.permutation(raw.shape[0])[:MOST_DOCUMENTS])]
            yield text(f"{name}, every word", raw[raw.sum(axis=1) >= 5], every, 20)
        p = np.asarray(X.sum(axis=0)).ravel() / X.sum()
        lengths = np.asarray(X.sum(axis=1)).ravel().astype(int)
        mixed = sp.csr_array(np.stack([rng.multinomial(m, p) for m in lengths[:2000]]), dtype=float)
        yield Case(
            "topics",
            f"{name}, words shuffled",
            lambda X=mixed: tm.LatentDirichletAllocation(10).fit(X),
            lambda model: False,
        )
    for seed in range(4):
        for n, length, k, asked in (
            (3000, 100, 5, 5), (3000, 100, 20, 20), (5000, 30, 8, 8), (300, 20, 10, 10),
            (3000, 100, 5, 15), (2000, 60, 4, 30),
        ):  # fmt: skip
            truth = tm.datasets.make_lda_corpus(
                n, 1000, k, mean_length=length, random_state=900 + seed + 500 * RUN
            )
            yield Case(
                "topics",
                f"drawn, n = {n}, k = {k}, asked {asked}",
                lambda X=truth.X, k=asked: tm.LatentDirichletAllocation(k).fit(X),
                lambda model, truth=truth, k=k: (
                    len(model.components_) == k
                    and recovery_error(model.components_, truth.topics) < NEAR
                ),
            )


def text(name: str, X: sp.csr_array, words: list[str], k: int) -> Case:
    train, test = split(X, 80 + RUN)

    def fit(weights: Any = None) -> Any:
        model = tm.LatentDirichletAllocation(k)
        return model.fit(train, sample_weight=weights, feature_names=words)

    def wins(model: Any) -> bool:
        peer = tomotopy_topics(train, k)
        ours, theirs = (perplexity(topics, test) for topics in (model.components_, peer))
        if ours > BEHIND["perplexity"] * theirs:
            return False
        n, overlaps = train.shape[0], []
        for seed in range(SAMPLES):
            draws = np.random.default_rng(seed).integers(n, size=n)
            other = fit(np.bincount(draws, minlength=n).astype(float)).components_
            top = np.argsort(-model.components_, axis=1)[:, :10]
            new = np.argsort(-other[align(other, model.components_)], axis=1)[:, :10]
            overlaps.append(np.mean([np.isin(a, b).mean() for a, b in zip(top, new, strict=True)]))
        return float(np.mean(overlaps)) >= AGAIN["words"]

    return Case("topics", name, fit, wins)


# mixtures -------------------------------------------------------------------------------------


def gaussian(data: Path) -> Iterator[Case]:
    from sklearn.mixture import GaussianMixture as Peer

    for name, X, _, k, kind in gaussian_sets(data):
        X = X[:: max(1, len(X) // 4000)]
        for asked in (k, 2 * k + 2):

            def make(kind: str = kind, k: int = asked) -> Any:
                return tm.GaussianMixture(k, covariance_type=kind)

            def wins(model: Any, X: Any = X, kind: str = kind, k: int = asked, make: Any = make):
                peer = Peer(k, covariance_type=kind, n_init=10, random_state=0, max_iter=300).fit(X)
                if collapsed(peer):
                    ahead = 0.0
                else:
                    ahead = len(X) * (model.score(X) - peer.score(X))
                if ahead < -BEHIND["likelihood"]:
                    return False
                return again(
                    lambda rows: make().fit(X[rows]).predict(X), len(X), model.predict(X), k
                )

            yield Case("gaussian", f"{name} ({kind}), k = {asked}",
                       lambda X=X, make=make: make().fit(X), wins)  # fmt: skip
    for seed in range(4):
        for n, k, asked, apart, kind in (
            (1000, 4, 4, 5.0, "spherical"), (1000, 4, 4, 5.0, "full"), (3000, 6, 6, 4.0, "diag"),
            (150, 4, 4, 2.0, "full"), (1000, 3, 8, 5.0, "full"), (1000, 3, 7, 4.0, "spherical"),
            (500, 1, 4, 0.0, "full"), (2000, 8, 8, 1.0, "spherical"),
        ):  # fmt: skip
            X, labels, best = blobs(950 + seed + 500 * RUN, n, k, apart)
            yield grouped(
                "gaussian",
                f"drawn, n = {n}, k = {k}, asked {asked}, {apart:g} apart",
                lambda X=X, k=asked, kind=kind: tm.GaussianMixture(k, covariance_type=kind).fit(X),
                lambda model, X=X: model.predict(X), labels, best, k,
            )  # fmt: skip


def collapsed(peer: Any) -> bool:
    """A component of scikit-learn's that shrank: its likelihood has no limit."""
    cov = np.asarray(peer.covariances_)
    least = np.linalg.eigvalsh(cov).min() if cov.ndim == 3 else cov.min()
    return bool(least < 1e-4)


def blobs(seed: int, n: int, k: int, apart: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows of k unit Gaussians in six columns, their labels, and the best Rand index."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((k, 6))
    means *= apart / np.sqrt(2) / np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.integers(k, size=n)
    X = means[labels] + rng.standard_normal((n, 6))
    nearest = np.argmin(((X[:, None] - means) ** 2).sum(axis=2), axis=1)
    return X, labels, adjusted_rand_score(labels, nearest)


def grouped(
    family: str, name: str, fit: Any, predict: Any, labels: np.ndarray, best: float, k: int
) -> Case:
    """A case with known groups."""

    def wins(model: Any) -> bool:
        found = predict(model)
        there = model.n_components == k and k > 1 and best > LEAST_BEST
        return there and adjusted_rand_score(labels, found) >= OF_THE_BEST * best

    return Case(family, name, fit, wins)


def classes(data: Path) -> Iterator[Case]:
    for name, k in (("carcinoma", 2), ("carcinoma", 3), ("cheating", 2), ("election", 3),
                    ("gss82", 3), ("values", 2), ("gss82", 6), ("election", 8)):  # fmt: skip
        codes = read_latent_class(data, name)

        def wins(model: Any, codes: Any = codes, k: int = k) -> bool:
            ahead = len(codes) * (model.lower_bound_ - max(ten_restarts(codes, k, 200)))
            sizes = np.nanmax(codes, axis=0).astype(int) + 1
            if ahead < -BEHIND["likelihood"]:
                return False
            fit = tm.CategoricalMixture(k, n_categories=sizes).fit
            return again(
                lambda rows: fit(codes[rows]).predict(codes), len(codes), model.predict(codes), k
            )

        yield Case("classes", f"{name}, k = {k}",
                   lambda X=codes, k=k: tm.CategoricalMixture(k).fit(X), wins)  # fmt: skip
    for seed in range(5):
        for n, k, asked, sharp in ((2000, 3, 3, 0.4), (500, 3, 3, 0.4), (100, 4, 4, 2.0),
                                   (1000, 2, 6, 0.4), (1000, 1, 3, 0.4)):  # fmt: skip
            rng = np.random.default_rng(970 + seed + 500 * RUN)
            tables = rng.dirichlet(np.full(3, sharp), size=(k, 8))
            labels = rng.integers(k, size=n)
            codes = np.stack([
                [rng.choice(3, p=tables[h, j]) for j in range(8)] for h in labels
            ])  # fmt: skip
            likely = np.log(tables)[:, np.arange(8), codes].sum(axis=2)
            best = adjusted_rand_score(labels, likely.argmax(axis=0))
            yield grouped(
                "classes", f"drawn, n = {n}, k = {k}, asked {asked}",
                lambda X=codes, k=asked: tm.CategoricalMixture(k).fit(X),
                lambda model, X=codes: model.predict(X), labels, best, k,
            )  # fmt: skip


# chains ---------------------------------------------------------------------------------------


def chains(data: Path) -> Iterator[Case]:
    from hmmlearn.hmm import GaussianHMM as Peer

    for name, (X, lengths) in series(data).items():
        for k in (2, 3, 8):

            def wins(model: Any, X: Any = X, lengths: Any = lengths, k: int = k) -> bool:
                peers = [Peer(k, n_iter=200, random_state=seed) for seed in range(5)]
                best = max(peer.fit(X, lengths).score(X, lengths) for peer in peers)
                if model.log_likelihood(X, lengths) < best - BEHIND["likelihood"]:
                    return False
                pieces = [len(X) // 20] * 19 + [len(X) - 19 * (len(X) // 20)]
                ends = np.cumsum(pieces)

                def label(rows: np.ndarray) -> np.ndarray:
                    chosen = np.unique(rows * 20 // len(X))  # pieces that hold the drawn rows
                    chosen = np.random.default_rng(int(rows.sum())).choice(20, len(chosen))
                    parts = [X[ends[i] - pieces[i] : ends[i]] for i in chosen]
                    fit = tm.GaussianHMM(k).fit(np.concatenate(parts),
                                                lengths=[len(p) for p in parts])  # fmt: skip
                    return fit.predict(X, lengths)

                return again(label, len(X), model.predict(X, lengths), k)

            yield Case("chains", f"{name}, k = {k}",
                       lambda X=X, n=lengths, k=k: tm.GaussianHMM(k).fit(X, lengths=n),
                       wins)  # fmt: skip
    for seed in range(5):
        for n, k, asked, apart, stay in ((3000, 3, 3, 3.0, 0.9), (1000, 3, 3, 2.5, 0.95),
                                         (150, 4, 4, 1.0, 0.5), (2000, 3, 8, 3.0, 0.9),
                                         (2000, 1, 3, 0.0, 0.9),
                                         (3000, 3, 3, 4.0, 1 / 3)):  # fmt: skip
            rng = np.random.default_rng(980 + seed + 500 * RUN)
            T = np.full((k, k), (1 - stay) / max(k - 1, 1))
            np.fill_diagonal(T, stay if k > 1 else 1.0)
            states = [0]
            for _ in range(n - 1):
                states.append(rng.choice(k, p=T[states[-1]]))
            means = rng.standard_normal((k, 3)) * apart
            X = means[states] + rng.standard_normal((n, 3))
            nearest = np.argmin(((X[:, None] - means) ** 2).sum(axis=2), axis=1)
            best = adjusted_rand_score(states, nearest) if k > 1 else 1.0
            case = grouped(
                "chains", f"drawn, n = {n}, k = {k}, asked {asked}, stays {stay:.2g}",
                lambda X=X, k=asked: tm.GaussianHMM(k).fit(X),
                lambda model, X=X: model.predict(X), np.array(states), best, k,
            )  # fmt: skip
            if stay == 1 / 3:  # no memory: a chain is not what these data are
                case = case._replace(wins=lambda model: False)
            yield case


# regressions, subspaces, kernels, factors -----------------------------------------------------


def regressions(data: Path) -> Iterator[Case]:
    import pandas as pd

    made = pd.read_csv(data / "flexmix" / "NPreg.csv")
    X = np.column_stack([made["x"], made["x"] ** 2])
    yield grouped(
        "regressions", "NPreg",
        lambda: tm.MixedLinearRegression(2).fit(X, made["yn"]),
        lambda model: labels_of(model, X, made["yn"]),
        made["class"].to_numpy(), 0.5, 2,
    )  # fmt: skip
    for seed in range(6):
        for n, k, asked, noise in ((1000, 2, 2, 0.3), (3000, 3, 3, 0.3), (60, 3, 3, 2.0),
                                   (1000, 2, 6, 0.3), (1000, 1, 3, 0.3)):  # fmt: skip
            rng = np.random.default_rng(990 + seed + 500 * RUN)
            slopes = rng.standard_normal((k, 4)) * 2
            X = rng.standard_normal((n, 4))
            labels = rng.integers(k, size=n)
            y = np.sum(X * slopes[labels], axis=1) + noise * rng.standard_normal(n)
            nearest = np.argmin((y[:, None] - X @ slopes.T) ** 2, axis=1)
            best = adjusted_rand_score(labels, nearest) if k > 1 else 1.0
            yield grouped(
                "regressions", f"drawn, n = {n}, k = {k}, asked {asked}",
                lambda X=X, y=y, k=asked: tm.MixedLinearRegression(k).fit(X, y),
                lambda model, X=X, y=y: labels_of(model, X, y), labels, best, k,
            )  # fmt: skip


def labels_of(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Most probable regression of each row."""
    rest = np.asarray(y)[:, None] - X @ model.coef_.T - model.intercept_
    score = np.log(model.weights_) - 0.5 * np.log(model.noise_variance_)
    return np.argmax(score - rest**2 / (2 * model.noise_variance_), axis=1)


def subspaces(data: Path) -> Iterator[Case]:
    for number, (X, labels) in enumerate(sequences(data)):
        if number % 3:
            continue
        k = len(np.unique(labels))

        def wins(model: Any, X: Any = X, labels: Any = labels, k: int = k) -> bool:
            ours = misclassified(labels, model.labels_)
            theirs = misclassified(labels, k_subspaces(X, k, 3, affine=True))
            return ours <= theirs + 0.02 and ours < 0.15

        yield Case("subspaces", f"Hopkins {number}",
                   lambda X=X, k=k: tm.SubspaceClustering(k, 3, affine=True).fit(X),
                   wins)  # fmt: skip
    for seed in range(4):
        for n, k, asked, sigma in ((600, 3, 3, 0.02), (600, 3, 3, 0.6), (600, 2, 5, 0.05)):
            rng = np.random.default_rng(1000 + seed + 500 * RUN)
            bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(k)]
            labels = rng.integers(k, size=n)
            X = np.stack([bases[h] @ rng.standard_normal(3) for h in labels])
            X += sigma * rng.standard_normal(X.shape)
            inside = np.stack([((X @ basis) ** 2).sum(axis=1) for basis in bases])
            nearest = inside.argmax(axis=0)
            yield grouped(
                "subspaces", f"drawn, k = {k}, asked {asked}, noise {sigma}",
                lambda X=X, k=asked: tm.SubspaceClustering(k, 3).fit(X),
                lambda model: model.labels_, labels, adjusted_rand_score(labels, nearest), k,
            )  # fmt: skip


def kernels(data: Path) -> Iterator[Case]:
    for seed in range(4):
        for n, asked, depend in ((2000, 2, 0.0), (500, 2, 0.0), (80, 4, 0.0), (1500, 2, 0.8),
                                 (1500, 5, 0.0)):  # fmt: skip
            rng = np.random.default_rng(1010 + seed + 500 * RUN)
            labels = rng.integers(2, size=n)
            X = rng.gamma(2.0, 1.0, size=(n, 4))
            X[labels == 1] = 6 - X[labels == 1]
            likely = [np.log(gamma.pdf(part, 2.0) + 1e-300).sum(axis=1) for part in (X, 6 - X)]
            best = adjusted_rand_score(labels, np.argmax(likely, axis=0))
            if depend:
                X = X + depend * 4 * rng.standard_normal((n, 1))
            yield grouped(
                "kernels", f"drawn, n = {n}, asked {asked}, dependence {depend}",
                lambda X=X, k=asked: tm.KernelMixture(k).fit(X),
                lambda model, X=X: model.predict(X), labels, best, 2,
            )  # fmt: skip


def factors(data: Path) -> Iterator[Case]:
    for seed in range(6):
        for n, k, shape in ((5000, 4, "skewed"), (1000, 3, "skewed"), (200, 5, "even"),
                            (2000, 4, "gaussian")):  # fmt: skip
            rng = np.random.default_rng(1020 + seed + 500 * RUN)
            draw = {"skewed": lambda: rng.exponential(size=(n, k)) - 1,
                    "even": lambda: rng.uniform(-1, 1, size=(n, k)),
                    "gaussian": lambda: rng.standard_normal((n, k))}[shape]  # fmt: skip
            mixing = rng.standard_normal((k, k + 2))
            X = draw() @ mixing

            def wins(model: Any, mixing: Any = mixing) -> bool:
                a, b = (m / np.linalg.norm(m, axis=1)[:, None] for m in (model.components_, mixing))
                alike = np.abs(a @ b.T)
                pairs = scipy.optimize.linear_sum_assignment(-alike)
                return bool(np.mean(alike[pairs]) > 0.95)

            yield Case("factors", f"drawn, n = {n}, {shape}",
                       lambda X=X, k=k: tm.IndependentFactors(k).fit(X), wins)  # fmt: skip


FAMILIES = {
    "topics": topics, "gaussian": gaussian, "classes": classes, "chains": chains,
    "regressions": regressions, "subspaces": subspaces, "kernels": kernels, "factors": factors,
}  # fmt: skip


def run(case: Case) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = case.fit()
    names = sorted({w.category.__name__ for w in caught})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        won = bool(case.wins(model))
    report = model.report_
    former = {
        "eigenvalue below 1.5 times the noise": report.snr < 1.5,
        "third moment unexplained by over 30%": report.residual > 0.3,
        "negative mass projected away": np.max(report.clipped_mass, initial=0.0) > 0.05,
        "weights do not sum to 1": abs(np.sum(report.raw_weights) - 1) > 0.1,
    }
    return {
        "family": case.family,
        "name": case.name,
        "won": won,
        "level": report.level,
        "kinds": {f.kind: f.level for f in report.findings},
        "warned": names,
        "former": [name for name, fires in former.items() if fires],
        "trust": np.asarray(report.trust).round(3).tolist(),
        "gains": [(g.against, g.value, g.error) for g in report.gains],
        "text": str(report),
    }


def table(found: list[dict[str, Any]]) -> list[list[Any]]:
    wins, losses = (sum(one["won"] is won for one in found) for won in (True, False))
    fires: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for one in found:
        fires["verdict", one["level"]][one["won"]] += 1
        for kind, level in one["kinds"].items():
            fires["finding" if level != "note" else "note", kind][one["won"]] += 1
        for name in one["warned"]:
            fires["Python warning", name][one["won"]] += 1
        for name in one["former"]:
            fires["gone", name][one["won"]] += 1
    order = ("verdict", "finding", "Python warning", "note", "gone")
    rows = []
    for (group, name), count in sorted(fires.items(), key=lambda item: order.index(item[0][0])):
        cells = [f"{count[won]} of {total} ({count[won] / max(total, 1):.0%})"
                 for won, total in ((True, wins), (False, losses))]  # fmt: skip
        rows.append([group, name, *cells])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--run", type=int, default=1, help="other seeds, splits and documents")
    parser.add_argument("--details", type=Path, help="JSON with every fit")
    options = parser.parse_args()
    global RUN
    RUN = options.run
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    found = []
    for family in options.families:
        for case in FAMILIES[family](options.data):
            found.append(run(case))
            one = found[-1]
            print(family, case.name, "won" if one["won"] else "lost", one["level"], one["kinds"],
                  one["warned"], flush=True)  # fmt: skip
            if options.details:
                options.details.write_text(json.dumps(found))
    header = ["", "what is said", "on fits that win", "on fits that lose"]
    families = Counter((one["family"], one["won"]) for one in found)
    sizes = ", ".join(
        f"{name} {families[name, True]} + {families[name, False]}" for name in options.families
    )
    note = f"Fits that win + fits that lose: {sizes}. `benchmarks/alarms.py`."
    write_table("alarms", header, table(found), note)


if __name__ == "__main__":
    main()
