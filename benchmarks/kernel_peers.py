"""What kernel mixtures are compared with, all as functions (view, places) -> densities (k, m)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.optimize
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from thirdmoment import CategoricalMixture
from thirdmoment.datasets import ShapedMixture
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.models.kernel.views import read_views
from thirdmoment.refinement.smooth import SmoothTables, smooth_step
from thirdmoment.starts.kernel_rows import KernelRows, counts_from, density_tables, folded_rows

Density = Callable[[int, np.ndarray], np.ndarray]

MIXTOOLS = """
suppressMessages(library(mixtools)); set.seed(1); a <- commandArgs(TRUE)
x <- as.matrix(read.csv(a[1], header=FALSE)); g <- as.matrix(read.csv(a[2], header=FALSE))
invisible(capture.output(m <- npEM(x, as.integer(a[3]), verb=FALSE)))
out <- NULL
for (v in 1:ncol(x)) for (h in 1:as.integer(a[3]))
  out <- rbind(out, density(m, u=g[, v], component=h, block=v)$y)
write.table(out, a[4], sep=",", row.names=FALSE, col.names=FALSE)
"""


def places(data: ShapedMixture, view: int) -> np.ndarray:
    """400 places over the range of the rows ± 1."""
    return np.linspace(data.X[:, view].min() - 1, data.X[:, view].max() + 1, 400)


def density_error(density: Density, data: ShapedMixture) -> float:
    """Σ_h w_h · mean over views of (Δ Σ_j (p - p_hat)²)^½ on 400 places, best assignment (X-S1).

    Places closer than 0.02 to an unbounded start of a Gamma law are left out.
    """
    k, views = len(data.weights), data.X.shape[1]
    cost = np.zeros((k, k))
    for v in range(views):
        x = places(data, v)
        keep = np.ones(len(x), dtype=bool)
        if data.shape < 1:
            start = data.means[data.skewed, v] - data.shape
            keep = np.abs(x[:, None] - start).min(axis=1, initial=np.inf) >= 0.02
        apart = density(v, x)[:, None, keep] - data.density(x, v)[None][..., keep]
        cost += np.sqrt((x[1] - x[0]) * (apart**2).sum(axis=2)) / views
    i, j = scipy.optimize.linear_sum_assignment(cost * data.weights)
    return float((cost[i, j] * data.weights[j]).sum())


def with_labels(data: ShapedMixture) -> Density:
    """Kernel density estimate with the true labels and the rule K-15: the limit."""

    def density(v: int, x: np.ndarray) -> np.ndarray:
        found = []
        for h in range(len(data.weights)):
            rows = data.X[data.labels == h, v]
            if len(rows) < 2:
                found.append(np.zeros(len(x)))
                continue
            iqr = np.subtract(*np.quantile(rows, [0.75, 0.25])) / 1.34
            width = 0.9 * (min(rows.std(), iqr) or rows.std()) * len(rows) ** -0.2
            found.append(stats.norm.pdf(x[:, None], rows, width).mean(axis=1))
        return np.stack(found)

    return density


def gaussian_em(X: np.ndarray, k: int) -> Density:
    """scikit-learn's diagonal Gaussian mixture, ten starts."""
    model = GaussianMixture(k, covariance_type="diag", n_init=10, random_state=0).fit(X)
    sd = np.sqrt(model.covariances_)
    return lambda v, x: stats.norm.pdf(x, model.means_[:, v : v + 1], sd[:, v : v + 1])


def histogram_spectral(X: np.ndarray, k: int) -> Density | None:
    """Moments of quantile bins, ceil(2 m^¼) of them, and the densities of the bins."""
    bins = int(np.ceil(2 * len(X) ** 0.25))
    edges = [np.unique(np.quantile(column, np.linspace(0, 1, bins + 1))) for column in X.T]
    codes = np.stack(
        [
            np.searchsorted(e[1:-1], column, side="right")
            for e, column in zip(edges, X.T, strict=True)
        ],
        axis=1,
    )
    try:
        model = CategoricalMixture(k, refine="none", weighting="none").fit(codes)
    except UnusableMoments:
        return None

    def density(v: int, x: np.ndarray) -> np.ndarray:
        width = np.diff(edges[v])
        cell = np.searchsorted(edges[v], x, side="right") - 1
        inside = (cell >= 0) & (cell < len(width))
        value = (model.probabilities_[v] / width)[:, cell.clip(0, len(width) - 1)]
        return np.where(inside, value, 0.0)

    return density


def npem(X: np.ndarray, k: int, steps: int = 200) -> Density:
    """npEM as mixtools has it: k-means start, one bandwidth for all, no held-out rows."""
    rng, w = np.random.default_rng(0), np.ones(len(X))
    pooled = X.ravel()
    iqr = np.subtract(*np.quantile(pooled, [0.75, 0.25])) / 1.34
    width = 0.9 * min(pooled.std(), iqr) * len(pooled) ** -0.2  # bw.nrd0 of all values
    views = read_views(X, w, "auto", "rbf", float(width), rng)
    rows = KernelRows(X, w, views, False)
    family = SmoothTables(density_tables(rows, k, rng), k, folds=1)
    data = folded_rows(rows, family)
    labels = KMeans(k, n_init=1, random_state=0).fit_predict(X)
    counts, effective = counts_from(family, data, [np.eye(k)[labels]] * len(views))
    parameters = np.bincount(labels, minlength=k) / len(X), family.tables(counts, effective)
    last = -np.inf
    for _ in range(steps):
        parameters, value = smooth_step(family, data, parameters)
        if abs(value - last) < 1e-8:
            break
        last = value
    tables = parameters[1][:, 0]
    return lambda v, x: family.views[v].rows(x[:, None]).read.dot_t(tables[:, family.place[v]])


def mixtools(data: ShapedMixture, k: int) -> Density | None:
    """npEM of R's mixtools, where Rscript and the package are installed."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("x.csv", "g.csv", "out.csv", "run.R")]
        grid = np.stack([places(data, v) for v in range(data.X.shape[1])], axis=1)
        np.savetxt(files[0], data.X, delimiter=",")
        np.savetxt(files[1], grid, delimiter=",")
        Path(files[3]).write_text(MIXTOOLS)
        command = ["Rscript", files[3], files[0], files[1], str(k), files[2]]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        found = np.loadtxt(files[2], delimiter=",", ndmin=2).reshape(grid.shape[1], k, len(grid))
    return lambda v, x: found[v]
