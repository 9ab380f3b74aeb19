"""One Gaussian component from a direction, against all of them (X-R1, X-R2, X-R3).

G is the gain of the search over the tensor method, 1 - error / error of the tensor method, with
the variance either by the mean of the noise eigenvalues (unbiased) or by the (k+1)-th eigenvalue
as in the paper. Errors are also compared with the mean of the rows that belong to the component.
"""

from __future__ import annotations

import numpy as np
from common import arguments, timed, write_table

from thirdmoment import GaussianSearch
from thirdmoment._array import single_threaded_blas
from thirdmoment.decomposition import decompose
from thirdmoment.linalg import outer_sum, whiten
from thirdmoment.moments.gaussian import SphericalTriples
from thirdmoment.recovery.search import whitened_search
from thirdmoment.search.rows import training_rows
from thirdmoment.streaming import fold

FIRST_SEED, SEEDS, D = 100, 10, 500
WEIGHTS = np.array([0.04, 0.06, 0.08, 0.09, 0.1, 0.1, 0.11, 0.12, 0.14, 0.16])
RARE = np.append(0.0037, (1 - 0.0037) * np.arange(1, 10) / 45)


def draw(seed: int, n: int, weights: np.ndarray, sigma: float) -> tuple[np.ndarray, ...]:
    """Rows, labels and means (k, d) on a sphere of radius 10."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((len(weights), D))
    means *= 10 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(len(weights), n, p=weights)
    return means[labels] + sigma * rng.standard_normal((n, D)), labels, means


def direction(means: np.ndarray, target: int, gamma: float) -> np.ndarray:
    """√γ v_1 + √((1-γ)/(k-1)) Σ v_i, v_1 orthogonal to the other means, v_i a basis of them."""
    others = np.delete(means, target, axis=0)
    basis = np.linalg.qr(others.T)[0]
    first = means[target] - basis @ (basis.T @ means[target])
    first /= np.linalg.norm(first)
    return np.sqrt(gamma) * first + np.sqrt((1 - gamma) / len(others)) * basis.sum(axis=1)


class Plain:
    """The paper's own steps, uncentred, with one variance for all components."""

    def __init__(self, X: np.ndarray, k: int, *, biased: bool) -> None:
        n, self.m, self.k = len(X), X.mean(axis=0), k
        second = X.T @ X / n
        values = np.linalg.eigvalsh(second - np.outer(self.m, self.m))[::-1]
        self.sigma2 = values[k] if biased else values[k - 1 :].mean()
        white = whiten(second - self.sigma2 * np.eye(X.shape[1]), k)
        self.W, self.up = np.asarray(white.W), np.asarray(white.B)
        self.X, self.Y = X, X @ self.W

    def search(self, v: np.ndarray) -> np.ndarray:
        t, v_w, m_w = self.sigma2 * self.m, self.W.T @ v, self.W.T @ self.m
        M = (self.Y * (self.X @ v)[:, None]).T @ self.Y / len(self.X)
        mixed = np.outer(self.sigma2 * m_w, v_w)
        M = M - mixed - mixed.T - float(t @ v) * self.W.T @ self.W
        return whitened_search(M, m_w, self.up, self.up.T @ v).component

    def tensor(self) -> np.ndarray:
        cube = np.einsum("ai,aj,al->ijl", self.Y, self.Y, self.Y, optimize=True) / len(self.X)
        T = cube - outer_sum(self.W.T @ self.W, self.sigma2 * (self.W.T @ self.m))
        found = decompose(T, "power", np.random.default_rng(0))
        return (self.up @ (np.asarray(found.vectors) * np.asarray(found.eigenvalues))).T


def errors(X: np.ndarray, labels: np.ndarray, means: np.ndarray, targets: list[int]) -> np.ndarray:
    """Rows: targets; columns: ours, label mean, then search and tensor with each variance."""
    k = len(means)
    ours = GaussianSearch(k).fit(X)
    plain = [Plain(X, k, biased=biased) for biased in (False, True)]
    tensors = [one.tensor() for one in plain]
    rows = []
    for i in targets:
        v = direction(means, i, 0.9)
        found = [ours.search(direction=v).parameters, X[labels == i].mean(axis=0)]
        for one, all_means in zip(plain, tensors, strict=True):
            nearest = np.argmin(((all_means - means[i]) ** 2).sum(axis=1))
            found += [one.search(v), all_means[nearest]]
        rows.append([np.linalg.norm(estimate - means[i]) for estimate in found])
    return np.array(rows)


def accuracy() -> None:
    rows = []
    for weights, targets, sigmas, sizes in (
        (WEIGHTS, [0, 2, 4, 7, 9], (0.4, 0.5), (6000, 8000, 10_000)),
        (RARE, [0], (0.3, 0.4, 0.5, 0.6), (5000, 6000, 8000)),
    ):
        for sigma in sigmas:
            for n in sizes:
                every = []
                for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                    every.append(errors(*draw(seed, n, weights, sigma), targets))
                found = np.median(np.array(every), axis=0)
                ratio = np.array(every)[:, :, 0] / np.array(every)[:, :, 1]
                gains = 1 - found[:, [2, 4]] / found[:, [3, 5]]
                for j, target in enumerate(targets):
                    cells = [f"{weights[target]:g}", sigma, n, f"{found[j, 0]:.3f}"]
                    cells += [f"{np.median(ratio[:, j]):.3f} ({ratio[:, j].max():.3f})"]
                    rows.append([*cells, *(f"{gain:+.1%}" for gain in gains[j])])
    write_table(
        "search_gaussian",
        ["weight", "sigma", "n", "error", "error / label mean (worst)", "G", "G, paper's variance"],
        rows,
        f"GaussianSearch from a direction (gamma = .9), k = 10, d = {D}, medians of {SEEDS} seeds "
        "(X-R1, X-R2). `benchmarks/search_gaussian.py`.",
    )


def sensitivity() -> None:
    rows = []
    k, n = 20, 6000
    for sigma in (0.5, 0.6):
        for gamma in (0.9, 0.5, 0.3, 0.2, 0.15, 0.1):
            found = []
            for seed in range(FIRST_SEED, FIRST_SEED + 3):
                X, _, means = draw(seed, n, np.full(k, 1 / k), sigma)
                search = GaussianSearch(k).fit(X)
                for i in range(k):
                    v = direction(means, i, gamma)
                    scores = means @ v
                    ratio = scores[i] / np.delete(scores, i).max()
                    one = search.search(direction=v)
                    nearest = np.argmin(((means - one.parameters) ** 2).sum(axis=1))
                    far = np.linalg.norm(means[nearest] - one.parameters) > 2.0
                    found.append([ratio, nearest == i and not far, one.informative])
            ratio, right, sure = np.array(found).T
            clear = ratio >= 2
            cells = [sigma, gamma, f"{ratio.min():.2f} to {ratio.max():.2f}"]
            cells += [f"{int(clear.sum())}: {_share(right[clear])}, {_share(sure[clear])}"]
            cells += [f"{int((~clear).sum())}: {_share(right[~clear])}, {_share(sure[~clear])}"]
            wrong = right == 0
            rows.append([*cells, f"{int(sure[wrong].sum())} of {int(wrong.sum())}"])
    write_table(
        "search_sensitivity",
        ["sigma", "gamma", "s1/s2", "ratio >= 2: found, informative", "below", "wrong, yet sure"],
        rows,
        "What blurred directions find (X-R3): k = 20 equal components, every one a target, three "
        "seeds; shares of targets found and of answers called informative, and how many wrong "
        "answers were called informative. `benchmarks/search_gaussian.py`.",
    )


def _share(values: np.ndarray) -> str:
    return f"{values.mean():.0%}" if len(values) else "-"


def speed() -> None:
    rows = []
    for k in (10, 20, 40):
        X, _, means = draw(FIRST_SEED, 6000, np.full(k, 1 / k), 0.5)
        search, shared = timed(lambda X=X, k=k: GaussianSearch(k).fit(X))
        v = direction(means, 0, 0.9)
        times = [timed(lambda search=search, v=v: search.search(direction=v))[1] for _ in "abcde"]
        query = min(times)
        chunks = training_rows(X, None, k).samples()

        def everything(chunks=chunks, search=search) -> None:
            with single_threaded_blas():
                white = search._white
                triples = fold(lambda: SphericalTriples(white), chunks, n_threads=2)
                decompose(triples.finish()[0], "power", np.random.default_rng(0))

        tensor = min(timed(everything)[1] for _ in "abc")
        rows.append([k, f"{shared:.2f}", f"{query * 1e3:.1f}", f"{tensor * 1e3:.0f}",
                     f"{tensor / query:.0f}"])  # fmt: skip
    write_table(
        "search_gaussian_speed",
        ["k", "fit (s)", "query (ms)", "tensor and power method (ms)", "ratio"],
        rows,
        f"Time of one query against the tensor of all components, n = 6,000, d = {D}, without the "
        "moments that both share. `benchmarks/search_gaussian.py`.",
    )


def main() -> None:
    arguments(__doc__ or "").parse_args()
    speed()
    sensitivity()
    accuracy()


if __name__ == "__main__":
    main()
