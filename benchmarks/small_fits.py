"""Small data (n up to 2,000): likelihood and time against the best of ten restarts of a peer.

    python benchmarks/small_fits.py [--data FOLDER] [--seeds 3]

scikit-learn's GaussianMixture (n_init=10, max_iter=200) and hmmlearn's GaussianHMM and
CategoricalHMM (ten random states, 100 iterations), one after another in one process, after a first
fit of each that is not timed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, timed, write_table
from hmm_real import series
from hmmlearn import hmm
from real_mixtures import gaussian_sets
from sklearn.mixture import GaussianMixture as Peer

import thirdmoment as tm

FIRST = 7100


def mixtures(data: Path) -> Iterator[tuple[str, Callable[[int], np.ndarray], int, str]]:
    def drawn(n: int, k: int) -> Callable[[int], np.ndarray]:
        def rows(seed: int) -> np.ndarray:
            rng = np.random.default_rng(FIRST + seed)
            means = 3.5 * rng.standard_normal((k, 4)) / 2
            return means[rng.integers(k, size=n)] + rng.standard_normal((n, 4))

        return rows

    for n, k in ((200, 3), (1000, 5), (2000, 8)):
        for kind in ("spherical", "diag", "full"):
            yield f"drawn, {kind}, n = {n}, k = {k}", drawn(n, k), k, kind
    for name, X, _, k, kind in gaussian_sets(data):
        if len(X) <= 2000:
            yield f"{name}, {kind}, n = {len(X)}, k = {k}", lambda seed, X=X: X, k, kind


def on_mixture(X: np.ndarray, k: int, kind: str, seed: int) -> tuple[float, float, float]:
    ours = tm.GaussianMixture(k, covariance_type=kind, random_state=seed)
    peer = Peer(k, covariance_type=kind, n_init=10, max_iter=200, random_state=seed)
    (_, a), (_, b) = timed(lambda: ours.fit(X)), timed(lambda: peer.fit(X))
    return len(X) * (ours.score(X) - peer.score(X)), a, b


def best_of_ten(make: Callable[[int], Any], X: np.ndarray, lengths: Any, seed: int) -> float:
    return max(make(10 * seed + i).fit(X, lengths).score(X, lengths) for i in range(10))


def sequences(data: Path) -> Iterator[tuple[str, Callable[[int], Any], Any, Callable[[int], Any]]]:
    for n, k in ((500, 3), (2000, 6)):
        yield (
            f"drawn, Gaussian, n = {n}, k = {k}",
            lambda seed, n=n, k=k: tm.datasets.make_gaussian_hmm(
                n // 50, 50, n_features=2, n_components=k, random_state=FIRST + seed
            ),
            tm.GaussianHMM(k),
            lambda seed, k=k: hmm.GaussianHMM(k, n_iter=100, random_state=seed),
        )
        yield (
            f"drawn, symbols, n = {n}, k = {k}",
            lambda seed, n=n, k=k: tm.datasets.make_categorical_hmm(
                n // 50, 50, n_symbols=12, n_components=k, random_state=FIRST + seed
            ),
            tm.CategoricalHMM(k, n_features=12),
            lambda seed, k=k: hmm.CategoricalHMM(
                k, n_features=12, n_iter=100, implementation="scaling", random_state=seed
            ),
        )
    for name, (X, lengths) in series(data).items():
        if len(X) > 2000:
            continue
        for k in (2, 3, 5):
            sample = X, lengths
            yield (
                f"{name}, n = {len(X)}, k = {k}",
                lambda seed, sample=sample: sample,
                tm.GaussianHMM(k),
                lambda seed, k=k: hmm.GaussianHMM(k, n_iter=100, random_state=seed),
            )


def on_sequences(
    draw: Any, model: Any, make: Callable[[int], Any], seed: int
) -> tuple[float, float, float]:
    X, lengths = (draw.X, draw.lengths) if hasattr(draw, "X") else draw
    model.set_params(random_state=seed)
    _, a = timed(lambda: model.fit(X, lengths=lengths))
    best, b = timed(lambda: best_of_ten(make, X, lengths, seed))
    return model.log_likelihood(X, lengths=lengths) - best, a, b


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    rows = []

    def add(name: str, found: list[tuple[float, float, float]]) -> None:
        ahead, ours, theirs = np.array(found).T
        cells = [f"{ahead.min():+.1f}", f"{np.median(ahead):+.1f}", f"{np.median(ours):.3f}"]
        cells += [f"{np.median(theirs):.3f}", f"{np.median(ours / theirs):.2f}"]
        rows.append([name, *cells])
        print(*rows[-1], sep="  ", flush=True)

    warm = np.random.default_rng(0).standard_normal((200, 2))
    on_mixture(warm, 2, "full", 0)
    on_sequences((warm, None), tm.GaussianHMM(2), lambda s: hmm.GaussianHMM(2, random_state=s), 0)
    for name, draw, k, kind in mixtures(options.data):
        add(name, [on_mixture(draw(seed), k, kind, seed) for seed in range(options.seeds)])
    for name, draw, model, make in sequences(options.data):
        add(name, [on_sequences(draw(seed), model, make, seed) for seed in range(options.seeds)])
    header = ["data", "least ahead", "ahead (median)", "seconds", "peer's", "ratio"]
    note = "Log-likelihood units ahead of the best of ten restarts, and times, one process."
    write_table("small_fits", header, rows, note)


if __name__ == "__main__":
    main()
