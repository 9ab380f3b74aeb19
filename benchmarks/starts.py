"""Starts judged for the user: likelihood against ten restarts of a peer, and how far seeds matter.

python benchmarks/starts.py --data FOLDER

Blobs with heavy tails, more components than columns, small tables of binary answers, chains that
last, and real tables with three seeds each. Seeds are new: those of development are below 400.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, timed, write_table
from hmmlearn.hmm import CategoricalHMM as PeerHMM
from sklearn.mixture import GaussianMixture as Peer

from thirdmoment import CategoricalHMM, CategoricalMixture, GaussianMixture
from thirdmoment.datasets import make_gaussian_mixture

FIRST, SEEDS = 500, 10
OTHERS = ("flow_mouse_bal", "cytof_multicenter")


def row(name: str, found: list[tuple[float, float, float]]) -> list[Any]:
    """Cells for (units above the peer, our seconds, the peer's)."""
    ahead, ours, peers = np.array(found).T
    return [
        name, len(ahead), int(np.sum(ahead < -1)), int(np.sum(ahead > 1)), f"{ahead.min():.1f}",
        f"{np.median(ahead):.1f}", f"{ours.sum() / peers.sum():.2f}",
    ]  # fmt: skip


def mixture(X: np.ndarray, k: int, kind: str, n_init: int = 10) -> tuple[float, float, float]:
    model, ours = timed(lambda: GaussianMixture(k, covariance_type=kind).fit(X))
    peer, theirs = timed(
        lambda: Peer(k, covariance_type=kind, n_init=n_init, random_state=0, max_iter=300).fit(X)
    )
    return len(X) * (model.score(X) - peer.score(X)), ours, theirs


def heavy_tails(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((4, 4))
    means *= 4.8 / np.linalg.norm(means, axis=1, keepdims=True)
    return means[rng.integers(4, size=3000)] + rng.standard_t(3, (3000, 4))


def answers(seed: int, n: int) -> np.ndarray:
    """Ten binary answers of four classes."""
    rng = np.random.default_rng(seed)
    p = rng.random((4, 10))
    label = rng.choice(4, n, p=rng.dirichlet(np.full(4, 5.0)))
    return (rng.random((n, 10)) < p[label]).astype(int)


def random_classes(X: np.ndarray) -> float:
    """The best of ten random starts with the same EM and prior."""
    best = -np.inf
    for seed in range(10):
        ones = np.random.default_rng(seed).random((10, 4))
        tables = [np.stack([1 - p, p], axis=1) for p in ones]
        model = CategoricalMixture(4, n_starts=0, probabilities_init=tables, refine="em")
        best = max(best, model.fit(X).lower_bound_)
    return best * len(X)


def classes(X: np.ndarray) -> tuple[float, float, float]:
    model, ours = timed(lambda: CategoricalMixture(4).fit(X))
    try:
        from stepmix.stepmix import StepMix
    except ImportError:  # our own EM from ten random starts: the likelihood, not the time
        return model.lower_bound_ * len(X) - random_classes(X), ours, np.nan
    options = {"n_init": 10, "random_state": 0, "progress_bar": 0, "verbose": 0}
    peer, theirs = timed(lambda: StepMix(4, measurement="binary", **options).fit(X))
    return len(X) * (model.score(X) - peer.score(X)), ours, theirs


def lasting(seed: int, stay: float, n: int) -> tuple[float, float, float]:
    """A chain of six states and eight symbols against EM from the truth."""
    rng = np.random.default_rng(seed)
    T = np.full((6, 6), (1 - stay) / 5) + (stay - (1 - stay) / 5) * np.eye(6)
    laws = rng.dirichlet(np.full(8, 0.5), size=6)
    state, symbols = 0, np.empty((n, 1), dtype=int)
    for t in range(n):
        state = state if rng.random() < stay else int((state + rng.integers(1, 6)) % 6)
        symbols[t] = rng.choice(8, p=laws[state])
    model, ours = timed(lambda: CategoricalHMM(6).fit(symbols))
    peer = PeerHMM(6, n_iter=500, tol=1e-3, init_params="", n_features=8)
    peer.startprob_, peer.transmat_, peer.emissionprob_ = np.full(6, 1 / 6), T, laws
    _, theirs = timed(lambda: peer.fit(symbols))
    return model.log_likelihood(symbols) - peer.score(symbols), ours, theirs


def tables(data: Path) -> Iterator[np.ndarray]:
    """Standardised tables of at most 3,000 cells, no more than eight columns."""
    cells = np.load(data / "flowcap_gvhd" / "cells.npz")
    found = [cells["X"][cells["sample"] == s] for s in (2, 4, 6, 8)]
    found += [np.load(data / name / "cells.npz")["X"] for name in OTHERS]
    for X in found:
        X = X[np.random.default_rng(0).permutation(len(X))[:3000], :8].astype(float)
        yield (X - X.mean(axis=0)) / X.std(axis=0)


def at_floor(model: Any) -> bool:
    """Whether a component of the peer has collapsed: its likelihood then has no limit."""
    cov = model.covariances_
    least = np.linalg.eigvalsh(cov).min() if cov.ndim == 3 else cov.min()
    return bool(least < 1e-4)


def real(data: Path) -> tuple[list[list[Any]], list[list[Any]]]:
    """Fits against ten restarts, and what three seeds say about each other."""
    behind, seeds = [], []
    for kind in ("spherical", "diag", "full"):
        found, sound, counts = [], [], np.zeros((2, 2), dtype=int)
        for X in tables(data):
            for k in (3, 5, 8, 12):
                options = {"covariance_type": kind, "n_init": 10, "max_iter": 300}
                peer, theirs = timed(lambda: Peer(k, random_state=0, **options).fit(X))
                values, told = [], []
                for seed in range(3):
                    model, ours = timed(
                        lambda: GaussianMixture(k, covariance_type=kind, random_state=seed).fit(X)
                    )
                    values.append(len(X) * model.score(X))
                    told.append(any("Only one start" in w for w in model.report_.warnings))
                    found.append((values[-1] - len(X) * peer.score(X), ours, theirs))
                    sound.append(not at_floor(peer))
                for said in told:
                    counts[int(np.ptp(values) > 1), int(said)] += 1
        behind.append(row(f"real tables, {kind}", found))
        kept = [one for one, well in zip(found, sound, strict=True) if well]
        behind.append(row(f"the same, peers without collapsed components, {kind}", kept))
        seeds.append([kind, counts.sum(), counts[1].sum(), counts[1, 1], counts[0, 1]])
    return behind, seeds


def main() -> None:
    data = arguments(__doc__ or "").parse_args().data
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    every = range(FIRST, FIRST + SEEDS)
    rows = [row("heavy tails, k = 4", [mixture(heavy_tails(s), 4, "spherical") for s in every])]
    for kind in ("spherical", "diag"):
        for apart in (3.0, 5.0):
            sets = [make_gaussian_mixture(10_000, 10, 40, separation=apart, random_state=s).X
                    for s in every]  # fmt: skip
            name = f"k = 40 in 10 columns, {kind}, separation {apart:g}"
            rows.append(row(name, [mixture(X, 40, kind) for X in sets]))
    for n in (100, 200, 500):
        twenty = range(FIRST, FIRST + 2 * SEEDS)
        rows.append(row(f"4 classes, {n} rows", [classes(answers(s, n)) for s in twenty]))
    for stay in (0.9, 0.98, 0.999):
        found = [lasting(s, stay, 20_000) for s in every]
        rows.append(row(f"chain, stays with {stay:g} (EM from the truth)", found))
    behind, seeds = real(data)
    header = ["data", "fits", "behind by > 1", "ahead by > 1", "worst", "median", "time / peer"]
    write_table(
        "starts",
        header,
        [*rows, *behind],
        "Units of log-likelihood above ten restarts of scikit-learn (mixtures), of stepmix "
        "(classes) or above EM of hmmlearn from the truth (chains). `benchmarks/starts.py`.",
    )
    write_table(
        "seeds",
        ["covariances", "fits", "change by > 1 unit with the seed", "of these say so",
         "say so, but do not change"],
        seeds,
        "Three seeds of each fit of the real tables. `benchmarks/starts.py`.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
