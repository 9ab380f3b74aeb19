"""Cost that follows cells and rows: many categories, many columns, topics of documents.

python benchmarks/cells.py

Memory is the largest that Python's allocator held during the fit; each time is told against a peer
or a primitive in the same run. Data are drawn from the models, with three seeds.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from common import timed, write_table
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Peer

from thirdmoment import (
    CategoricalMixture,
    GaussianMixture,
    LatentDirichletAllocation,
    PoissonTopicModel,
)
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.models.rows import counted_rows

SEEDS = (0, 1, 2)


def memory_of(call: Callable[[], Any]) -> float:
    """Peak gigabytes of a call."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e9


def codes(seed: int, n: int, columns: int, categories: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n)
    laws = rng.dirichlet(np.full(categories, 0.1), size=(columns, 3))
    drawn = [[rng.choice(categories, p=law[j]) for j in z] for law in laws]
    return np.array(drawn).T, z


def many_categories() -> list[list[Any]]:
    rows = []
    for n, columns, categories in ((20_000, 3, 2000), (20_000, 30, 100)):
        found = []
        for seed in SEEDS:
            X, z = codes(seed, n, columns, categories)
            model, seconds = timed(lambda X=X: CategoricalMixture(3).fit(X))
            _, sort = timed(lambda X=X: np.unique(X, axis=0))
            peak = memory_of(lambda X=X: CategoricalMixture(3).fit(X))
            found.append((seconds, seconds / sort, peak, adjusted_rand_score(z, model.predict(X))))
        a = np.array(found)
        rows.append([f"CategoricalMixture, {n:,} x {columns} columns of {categories:,}",
                     f"{a[:, 0].max():.1f} s", f"{np.median(a[:, 1]):.0f} sorts of the rows",
                     f"{a[:, 2].max():.2f} GB", f"agreement {a[:, 3].min():.3f}"])  # fmt: skip
    return rows


def many_columns() -> list[list[Any]]:
    found = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        z = rng.integers(5, size=2000)
        X = 0.3 * rng.normal(size=(5, 4000))[z] + rng.normal(size=(2000, 4000))
        model, ours = timed(lambda X=X: GaussianMixture(5).fit(X))
        peer = Peer(5, covariance_type="spherical", random_state=0)
        _, theirs = timed(lambda X=X, peer=peer: peer.fit(X))
        found.append((ours, ours / theirs, adjusted_rand_score(z, model.predict(X))))
    a = np.array(found)
    return [["GaussianMixture, 2,000 x 4,000, five components", f"{a[:, 0].max():.1f} s",
             f"{np.median(a[:, 1]):.1f} single fits of scikit-learn", "",
             f"agreement {a[:, 2].min():.3f}"]]  # fmt: skip


def topics_of_documents() -> list[list[Any]]:
    X = make_lda_corpus(20_000, 2000, 10, mean_length=100, random_state=0).X
    lda = LatentDirichletAllocation(10).fit(X[:2000])
    poisson = PoissonTopicModel(10).fit(X[:2000])
    ours, others = [], []
    for _ in SEEDS:
        ours.append(timed(lambda: poisson.transform(X))[1])
        others.append(timed(lambda: lda.transform(X))[1])
    return [["PoissonTopicModel.transform, 20,000 documents", f"{max(ours):.1f} s",
             f"{np.median(ours) / np.median(others):.1f} times LatentDirichletAllocation", "",
             ""]]  # fmt: skip


def the_door() -> list[list[Any]]:
    """Merging and sorting rows, as a part of the fit."""
    rows = []
    for n in (300, 100_000):
        rng = np.random.default_rng(n)
        X = 3 * rng.normal(size=(4, 6))[rng.integers(4, size=n)] + rng.normal(size=(n, 6))
        GaussianMixture(4).fit(X)
        whole = min(timed(lambda X=X: GaussianMixture(4).fit(X))[1] for _ in range(5))
        door = min(timed(lambda X=X: counted_rows(X, None, 4))[1] for _ in range(5))
        rows.append([f"counted_rows, {n:,} x 6", f"{door * 1e3:.1f} ms",
                     f"{door / whole:.0%} of a spherical fit", "", ""])  # fmt: skip
    return rows


def main() -> None:
    CategoricalMixture(2).fit(codes(9, 200, 3, 4)[0])  # compile
    rows = [*many_categories(), *many_columns(), *topics_of_documents(), *the_door()]
    note = "Largest of three seeds for times and memory, median for ratios, least agreement."
    write_table("cells", ["", "time", "against", "memory", ""], rows, note)


if __name__ == "__main__":
    main()
