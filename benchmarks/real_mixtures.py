"""Real mixtures: likelihood and adjusted Rand index against ten restarts of EM.

python benchmarks/real_mixtures.py [--data FOLDER]

Latent classes: EM coded with the same steps from ten random starts. Gaussian mixtures:
scikit-learn's GaussianMixture with n_init=10.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments, timed, write_table
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Peer

from thirdmoment import CategoricalMixture, GaussianMixture
from thirdmoment.exceptions import ThirdMomentWarning
from thirdmoment.likelihood.categories import Categories, distinct_rows
from thirdmoment.refinement.mixture import em_step
from thirdmoment.starts.categorical import coded_chunks

CLASSES = {
    "carcinoma": (3, None),
    "cheating": (2, ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]),
    "election": (3, 12),
    "gss82": (3, None),
    "values": (2, None),
}


def read_latent_class(folder: Path, name: str) -> np.ndarray:
    """Items as integer codes, NaN where missing."""
    table = pd.read_csv(folder / "latent_class" / f"{name}.csv")
    columns = CLASSES[name][1]
    if isinstance(columns, int):
        table = table.iloc[:, :columns]
    elif columns is not None:
        table = table[columns]
    codes = table.apply(lambda column: column.astype("category").cat.codes)
    return np.where(codes < 0, np.nan, codes).astype(float)


def ten_restarts(codes: np.ndarray, k: int, iterations: int = 500) -> list[float]:
    """Mean log-likelihoods of EM from ten random starts."""
    table = np.where(np.isnan(codes), -1, codes).astype(int)
    sizes = table.max(axis=0) + 1
    rows = distinct_rows(table, np.ones(len(table)), sizes)
    family, data = Categories(sizes, 0.01), coded_chunks(rows)
    values = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tables = family.normalised(rng.dirichlet(np.ones(int(sizes.sum())), size=k) + 1e-3)
        parameters = (np.full(k, 1 / k), tables)
        for _ in range(iterations):
            parameters, value = em_step(family, data, parameters)
        values.append(value)
    return values


def latent_classes(data: Path) -> list[list]:
    rows = []
    for name, (k, _) in CLASSES.items():
        codes = read_latent_class(data, name)
        model, ours = timed(lambda codes=codes, k=k: CategoricalMixture(k).fit(codes))
        values, theirs = timed(lambda codes=codes, k=k: ten_restarts(codes, k))
        n = len(codes)
        cells = [
            f"{n * model.lower_bound_:.2f}",
            f"{n * max(values):.2f}",
            f"{n * np.median(values):.2f}",
        ]
        rows.append([name, k, *cells, "", "", f"{ours:.3f}", f"{theirs:.2f}", model.report_.start])
        print(rows[-1], flush=True)
    return rows


def gaussian_sets(data: Path) -> list[tuple[str, np.ndarray, np.ndarray | None, int, str]]:
    folder = data / "mixtures_small"
    found = []
    for name, k, label, drop in [
        ("faithful", 2, None, []),
        ("geyser", 3, None, []),
        ("galaxies", 4, None, []),
        ("acidity", 2, None, []),
        ("banknote", 2, "Status", []),
        ("wdbc", 2, "Diagnosis", ["ID"]),
    ]:
        table = pd.read_csv(folder / f"{name}.csv")
        table = table.drop(columns=[c for c in drop if c in table])
        truth = None
        if label is not None:
            truth = table[label].astype("category").cat.codes.to_numpy()
            table = table.drop(columns=label)
        X = table.to_numpy(dtype=float)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        for kind in ("spherical", "diag", "full"):
            found.append((name, X, truth, k, kind))
    cells = np.load(data / "flowcap_gvhd" / "cells.npz", allow_pickle=False)
    for sample in range(1, 9):
        here = cells["sample"] == sample
        X = cells["X"][here].astype(float)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        truth = cells["label"][here]
        for kind in ("diag", "full"):
            found.append((f"gvhd {sample}", X, truth, int(truth.max()), kind))
    return found


def gaussians(data: Path) -> list[list]:
    rows = []
    for name, X, truth, k, kind in gaussian_sets(data):
        model, ours = timed(
            lambda X=X, k=k, kind=kind: GaussianMixture(k, covariance_type=kind).fit(X)
        )
        peer, theirs = timed(
            lambda X=X, k=k, kind=kind: Peer(
                k, covariance_type=kind, n_init=10, random_state=0, max_iter=200
            ).fit(X)
        )
        n = len(X)
        index = ["", ""]
        if truth is not None:
            known = truth > 0 if name.startswith("gvhd") else np.ones(n, dtype=bool)
            index = [
                f"{adjusted_rand_score(truth[known], m.predict(X)[known]):.3f}"
                for m in (model, peer)
            ]
        likelihood = [f"{n * m.score(X):.1f}" for m in (model, peer)]
        rows.append(
            [
                f"{name} ({kind})",
                k,
                *likelihood,
                "",
                *index,
                f"{ours:.3f}",
                f"{theirs:.2f}",
                model.report_.start,
            ]
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    data = arguments(__doc__ or "").parse_args().data
    warnings.simplefilter("ignore", ThirdMomentWarning)
    CategoricalMixture(2).fit(read_latent_class(data, "values"))  # compile
    rows = latent_classes(data) + gaussians(data)
    note = (
        "Total log-likelihood, adjusted Rand index against the labels where there are any, seconds."
        " Peer: ten restarts (latent classes: the same EM steps from random tables, 500 each, best "
        "and median; Gaussian: scikit-learn, `n_init=10`, `max_iter=200`). Columns standardised."
    )
    header = [
        "data", "k", "log-likelihood", "peer", "peer, median start", "Rand index", "peer",
        "seconds", "peer", "start",
    ]  # fmt: skip
    write_table("real_mixtures", header, rows, note)


if __name__ == "__main__":
    main()
