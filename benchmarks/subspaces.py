"""Subspaces: one from labels against k-means and PCA (X-R5), all of them on real data (SR-23)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.optimize
from common import arguments, timed, write_table

from thirdmoment import SubspaceClustering, SubspaceSearch
from thirdmoment.exceptions import ThirdMomentWarning
from thirdmoment.refinement.subspaces import alternate
from thirdmoment.starts.subspaces import SubspaceData, flats_from_labels

FIRST_SEED, SEEDS = 100, 5
WEIGHTS = np.array([0.1, 0.15, 0.2, 0.25, 0.3])


def draw(
    seed: int, n: int, bases: list[np.ndarray], weights: np.ndarray, sigma: float
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    d, p = bases[0].shape
    labels = rng.choice(len(bases), n, p=weights)
    X = np.empty((n, d))
    for j, basis in enumerate(bases):
        own = labels == j
        X[own] = rng.standard_normal((int(own.sum()), p)) @ basis.T
    return X + sigma * rng.standard_normal((n, d)), labels


def distance(basis: np.ndarray, truth: np.ndarray) -> float:
    """‖P - P*‖₂ of the projections."""
    return float(np.linalg.norm(basis @ basis.T - truth @ truth.T, 2))


def peer_basis(X: np.ndarray, labels: np.ndarray, v: np.ndarray, p: int) -> np.ndarray:
    """PCA of the cluster whose basis holds most of v."""
    found = []
    for j in np.unique(labels):
        own = X[labels == j]
        if len(own) > p:
            found.append(np.linalg.svd(own, full_matrices=False)[2][:p].T)
    return max(found, key=lambda basis: float(np.linalg.norm(basis.T @ v)))


def one_of_five() -> None:
    from sklearn.cluster import KMeans

    rows = []
    d, k, p = 500, 5, 10
    for sigma in (0.1, 0.2):
        for n in (6000, 8000, 10_000):
            errors, gains, times = [], [], []
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                rng = np.random.default_rng(seed)
                bases = [np.linalg.qr(rng.standard_normal((d, p)))[0] for _ in range(k)]
                X, _ = draw(seed, n, bases, WEIGHTS, sigma)
                search = SubspaceSearch(k, p).fit(X)
                v = [basis.sum(axis=1) / np.sqrt(p) for basis in bases]
                found, query = timed(lambda s=search, v=v: s.search(direction=v[0]))
                one, _ = timed(lambda X=X: KMeans(k, n_init=1, random_state=0).fit(X))
                ten, slow = timed(lambda X=X: KMeans(k, n_init=10, random_state=0).fit(X))
                times.append(slow / query)
                for i in range(k):
                    ours = distance(search.search(direction=v[i]).parameters, bases[i])
                    peers = [
                        distance(peer_basis(X, model.labels_, v[i], p), bases[i])
                        for model in (one, ten)
                    ]
                    errors.append([i, ours, *peers])
                    gains.append(1 - ours / np.array(peers))
                del found
            errors, gains = np.array(errors), np.array(gains)
            by_weight = [np.median(errors[errors[:, 0] == i, 1]) for i in range(k)]
            cells = [sigma, n, f"{by_weight[0]:.3f} to {by_weight[-1]:.3f}"]
            cells += [f"{np.median(errors[:, 2]):.2f}, {np.median(errors[:, 3]):.2f}"]
            cells += [f"{np.median(gains[:, 0]):.0%}, {np.median(gains[:, 1]):.0%}"]
            rows.append([*cells, f"{np.median(times):.0f}"])
    write_table(
        "subspace_search",
        ["sigma", "n", "error, lightest to heaviest", "k-means + PCA, 1 and 10 starts",
         "median gain", "time of k-means (10) / query"],
        rows,
        f"SubspaceSearch from one direction, d = {d}, k = {k}, p = {p}, medians of {SEEDS} seeds "
        "over all five targets (X-R5). `benchmarks/subspaces.py`.",
    )  # fmt: skip


def affinities() -> None:
    """Targets found from one label, six labels, six whitened labels, at three affinities."""
    rows = []
    d, k, p, labelled = 60, 4, 4, 6
    for blend in (0.0, 0.5, 0.8):
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + 6):
            rng = np.random.default_rng(seed)
            shared = rng.standard_normal((d, p))
            bases = [
                np.linalg.qr(rng.standard_normal((d, p)) + blend * shared)[0] for _ in range(k)
            ]
            X, labels = draw(seed, 8000, bases, np.full(k, 1 / k), 0.3)
            search = SubspaceSearch(k, p).fit(X)
            for i in range(k):
                own = X[labels == i][:labelled]
                raw = search.search(own, whiten=False)
                answers = [search.search(direction=own[0]), raw, search.search(own)]
                others = [np.linalg.norm(b.T @ own[0]) ** 2 for j, b in enumerate(bases) if j != i]
                ratio = max(others) / np.linalg.norm(bases[i].T @ own[0]) ** 2
                found.append(
                    [ratio, *(distance(a.parameters, bases[i]) < 0.5 for a in answers),
                     answers[2].informative, distance(answers[2].parameters, bases[i])]
                )  # fmt: skip
        found = np.array(found)
        shares = [f"{share:.0%}" for share in found[:, 1:5].mean(axis=0)]
        rows.append([f"{np.median(found[:, 0]):.2f}", *shares, f"{np.median(found[:, 5]):.3f}"])
    write_table(
        "subspace_labels",
        ["s2/s1", "one row", "six rows", "six, whitened", "called informative", "error"],
        rows,
        "Share of targets found (error below 0.5) at three affinities, d = 60, k = 4, p = 4, "
        "sigma = 0.3, n = 8,000 (SR-23). Whitened labels are what `search` takes. "
        "`benchmarks/subspaces.py`.",
    )


def misclassified(truth: np.ndarray, labels: np.ndarray) -> float:
    counts = np.array([[np.sum((truth == a) & (labels == b)) for b in np.unique(labels)]
                       for a in np.unique(truth)])  # fmt: skip
    rows, columns = scipy.optimize.linear_sum_assignment(-counts)
    return 1 - counts[rows, columns].sum() / len(truth)


def k_subspaces(X: np.ndarray, k: int, p: int, *, affine: bool, starts: int = 10) -> np.ndarray:
    """The best of several alternations from random labels."""
    unit = np.sqrt((X**2).sum(axis=1).mean())
    data = SubspaceData(X / unit, np.ones(len(X)), affine)
    runs = []
    for seed in range(starts):
        labels = np.random.default_rng(seed).integers(k, size=len(X))
        flats = flats_from_labels(data, labels, k, p)
        runs.append(alternate(data.X, data.weights, flats, affine=affine, tol=1e-6, max_steps=100))
    return min(runs, key=lambda run: run.path[-1]).labels


def spectral(X: np.ndarray, k: int) -> np.ndarray:
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(k, affinity="nearest_neighbors", random_state=0)
    return model.fit_predict(X)


def sequences(data: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The 155 sequences: all of two and three motions, and the pairs of every three."""
    every = np.load(data / "hopkins155" / "sequences.npz")
    for name in sorted({key[:-3] for key in every.files if key.endswith("__X")}):
        X, labels = every[f"{name}__X"].astype(float), every[f"{name}__label"].astype(int)
        motions = np.unique(labels)
        if len(motions) > 3:
            continue
        yield X, labels
        for pair in itertools.combinations(motions, 2) if len(motions) == 3 else ():
            both = np.isin(labels, pair)
            yield X[both], labels[both]


def real(data: Path) -> None:
    rows = []
    errors, times = [], []
    for X, labels in sequences(data):
        k = len(np.unique(labels))
        answers = [
            timed(lambda X=X, k=k: SubspaceClustering(k, 3, affine=True).fit_predict(X)),
            timed(
                lambda X=X, k=k: SubspaceClustering(k, 3, affine=True, refine="none").fit_predict(X)
            ),
            timed(lambda X=X, k=k: spectral(X, k)),
            timed(lambda X=X, k=k: k_subspaces(X, k, 3, affine=True)),
        ]
        errors.append([k, *(misclassified(labels, found) for found, _ in answers)])
        times.append([seconds for _, seconds in answers])
    errors, times = np.array(errors), np.array(times)
    for name, chosen in (
        ("Hopkins, two motions", errors[:, 0] == 2),
        ("Hopkins, three motions", errors[:, 0] == 3),
        ("Hopkins, all", errors[:, 0] > 0),
    ):
        each = errors[chosen, 1:]
        cells = [f"{100 * each[:, j].mean():.2f} ({100 * np.median(each[:, j]):.2f})"
                 for j in range(4)]  # fmt: skip
        seconds = [f"{times[chosen, j].mean():.2f}" for j in range(4)]
        rows.append([name, int(chosen.sum()), *cells, ", ".join(seconds)])
    images = np.load(data / "coil20" / "images.npz")
    X, labels = images["X"].astype(float) / 255, images["label"].astype(int)
    each, seconds = [], []
    for work in (
        lambda: SubspaceClustering(20, 9).fit_predict(X),
        lambda: SubspaceClustering(20, 9, refine="none").fit_predict(X),
        lambda: spectral(X, 20),
        lambda: k_subspaces(X, 20, 9, affine=False, starts=3),
    ):
        found, took = timed(work)
        each.append(f"{100 * misclassified(labels, found):.2f}")
        seconds.append(f"{took:.1f}")
    rows.append(["COIL-20", 1, *each, ", ".join(seconds)])
    rows.append(faces(data))
    write_table(
        "subspace_real",
        ["data", "sets", "SubspaceClustering", "refine='none'", "spectral clustering",
         "k-subspaces (10 starts)", "seconds"],
        rows,
        "Misclassified rows in per cent, mean over the sets (median). Hopkins 155: affine "
        "subspaces of dimension 3 on the tracked points as they are; COIL-20: 1,440 images of 20 "
        "objects, subspaces of dimension 9, k-subspaces with three starts; Yale B: faces of ten "
        "people under 64 lights, the same. Spectral clustering is "
        "scikit-learn's on nearest neighbours. `benchmarks/subspaces.py`.",
    )  # fmt: skip


def drawn(
    seed: int, dims: list[int], d: int, n: int, sigma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of subspaces of these dimensions, and which one each belongs to."""
    rng = np.random.default_rng(seed)
    bases = [np.linalg.qr(rng.standard_normal((d, p)))[0] for p in dims]
    labels = rng.integers(len(dims), size=n)
    X = np.stack([bases[j] @ rng.standard_normal(dims[j]) for j in labels])
    return X + sigma * rng.standard_normal(X.shape), labels


def dimensions() -> None:
    """Subspaces of different dimensions: given, found, all the same, and full Gaussians."""
    from sklearn.mixture import GaussianMixture

    rows = []
    for dims, d, n, sigma in (
        ([1, 2, 3, 4], 20, 1500, 0.05),
        ([1, 2, 3, 4], 20, 1500, 0.2),
        ([1, 2, 3, 4], 20, 1500, 0.4),
        ([1, 5], 12, 800, 0.1),
        ([2, 2, 2], 12, 800, 0.1),
        ([1, 2], 3, 600, 0.05),
    ):
        each = []
        k, same = len(dims), round(float(np.mean(dims)))
        for seed in range(200, 210):
            X, labels = drawn(seed, dims, d, n, sigma)
            models = [SubspaceClustering(k, given) for given in (dims, "auto", same)]
            models.append(GaussianMixture(k, n_init=10, random_state=0))
            found = [model.fit_predict(X) for model in models]
            right = sorted(models[1].subspace_dims_) == sorted(dims)
            each.append([*(1 - misclassified(labels, one) for one in found), right])
        means = np.mean(each, axis=0)
        rows.append([str(dims), d, n, sigma, *(f"{m:.3f}" for m in means[:4]), f"{means[4]:.0%}"])
    write_table(
        "subspace_dims",
        ["dimensions", "d", "n", "sigma", "given", "auto", "all the same", "full Gaussians",
         "dimensions found"],
        rows,
        "Share of rows in the right subspace, ten seeds: dimensions given, by the data, their "
        "mean for all, and scikit-learn's full Gaussians with ten restarts. "
        "`benchmarks/subspaces.py`.",
    )  # fmt: skip


def faces(data: Path) -> list:
    """Ten people of Extended Yale B, three draws of people."""
    images = np.load(data / "yaleb_32x32" / "images.npz")
    X, person = images["X"].astype(float) / 255, images["label"].astype(int)
    errors, times = [], []
    for seed in range(3):
        own = np.isin(person, np.random.default_rng(seed).permutation(38)[:10] + 1)
        answers = [
            timed(lambda: SubspaceClustering(10, 9).fit_predict(X[own])),
            timed(lambda: SubspaceClustering(10, 9, refine="none").fit_predict(X[own])),
            timed(lambda: spectral(X[own], 10)),
            timed(lambda: k_subspaces(X[own], 10, 9, affine=False, starts=3)),
        ]
        errors.append([misclassified(person[own], found) for found, _ in answers])
        times.append([seconds for _, seconds in answers])
    each = [f"{100 * error:.2f}" for error in np.mean(errors, axis=0)]
    return ["Yale B, ten people", 3, *each, ", ".join(f"{t:.1f}" for t in np.mean(times, axis=0))]


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    warnings.simplefilter("ignore", ThirdMomentWarning)
    warnings.filterwarnings("ignore", message="Graph is not fully connected")
    affinities()
    dimensions()
    real(options.data)
    one_of_five()


if __name__ == "__main__":
    main()
