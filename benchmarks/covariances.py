"""Covariances of views by linear scores (MV-18) and as printed (Proposition D.2): error over n.

python benchmarks/covariances.py
"""

from __future__ import annotations

import numpy as np
from common import arguments, write_table

from thirdmoment import MultiViewMixture
from thirdmoment.metrics import align
from thirdmoment.recovery.covariance import printed_second_moments

SIZES = [10_000, 30_000, 100_000, 300_000, 1_000_000]
FIRST_SEED, SEEDS = 100, 10
K, WIDTH = 3, 4


def draw(n: int, seed: int):
    rng = np.random.default_rng(seed)
    means = 2 * rng.standard_normal((K, 3 * WIDTH))
    factors = 0.7 * rng.standard_normal((K, 3, WIDTH, WIDTH))
    weights = rng.dirichlet(np.full(K, 10.0))
    labels = rng.choice(K, size=n, p=weights)
    X = np.empty((n, 3 * WIDTH))
    for j in range(K):
        rows = np.flatnonzero(labels == j)
        z = rng.standard_normal((len(rows), 3, WIDTH))
        noise = np.einsum("vij,avj->avi", factors[j], z).reshape(len(rows), -1)
        X[rows] = means[j] + noise
    truth = factors @ factors.transpose(0, 1, 3, 2)
    return X, means, truth


def printed_form(X, model, groups) -> np.ndarray:
    """Covariances (k, d, d) of the last view by the operator of Proposition D.2."""
    x1, x2, x3 = (X[:, group] for group in groups)
    n, d = len(X), x3.shape[1]
    square = (x3[:, :, None] * x3[:, None, :]).reshape(n, -1)
    outer = (x1[:, :, None] * x2[:, None, :]).reshape(n, -1)
    fourth = (outer.T @ square / n).reshape(x1.shape[1], x2.shape[1], d, d)
    P12 = x1.T @ x2 / n
    U, _, Vt = np.linalg.svd(P12)
    R = U[:, :K].T @ model.means_[0].T.astype(float)
    second = printed_second_moments(fourth, P12, U[:, :K], Vt[:K].T, R)
    mu = model.means_[2]
    return second - mu[:, :, None] * mu[:, None, :]


def main() -> None:
    arguments(__doc__ or "").parse_args()
    groups = [list(range(WIDTH * v, WIDTH * v + WIDTH)) for v in range(3)]
    table = np.empty((len(SIZES), SEEDS, 2))
    for i, n in enumerate(SIZES):
        for s in range(SEEDS):
            X, means, truth = draw(n, FIRST_SEED + s)
            model = MultiViewMixture(K, views=groups, covariance_type="full").fit(X)
            order = align(np.concatenate(model.means_, axis=1), means, metric="euclidean")
            found = np.stack(model.covariances_, axis=1)[order]
            table[i, s, 0] = np.abs(found - truth).mean()
            table[i, s, 1] = np.abs(printed_form(X, model, groups)[order] - truth[:, 2]).mean()
        print(n, np.median(table[i], axis=0), flush=True)
    median = np.median(table, axis=1)
    slope = [np.polyfit(np.log(SIZES), np.log(median[:, c]), 1)[0] for c in range(2)]
    rows = [[f"{n:,}", *(f"{m:.4f}" for m in median[i])] for i, n in enumerate(SIZES)]
    rows.append(["slope", *(f"{value:.2f}" for value in slope)])
    note = (
        f"Mean absolute error of the covariances of {WIDTH}-dimensional Gaussian views, k = {K}, "
        f"median of {SEEDS} models; last row: slope in log n."
    )
    header = ["n", "linear scores (MV-18, default)", "operator (Proposition D.2, as printed)"]
    write_table("covariances", header, rows, note)


if __name__ == "__main__":
    main()
