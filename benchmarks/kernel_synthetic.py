"""The synthetic study of the paper: density errors over m, k and shapes (X-S1 to X-S3).

python benchmarks/kernel_synthetic.py

Three scalar views, ten data sets a cell. Columns: the default fit, moments alone, bandwidths by
cross-validation; EM of diagonal Gaussian mixtures with ten starts, npEM from k-means with one
bandwidth, moments of histograms; the limit is a kernel density estimate with the true labels.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from common import arguments, timed, write_table
from kernel_peers import (
    density_error,
    gaussian_em,
    histogram_spectral,
    mixtools,
    npem,
    with_labels,
)

from thirdmoment import KernelMixture
from thirdmoment.datasets import ShapedMixture, make_shaped_mixture
from thirdmoment.exceptions import ThirdMomentError, ThirdMomentWarning

FIRST_SEED, REPEATS = 100, 10
COUNTS = (2, 3, 4, 8)
SIZES = (50, 200, 500, 2000, 4000, 10_000)
METHODS = ("fit", "moments", "cv", "labels", "Gaussian EM", "npEM", "histogram")


def ours(data: ShapedMixture, k: int, **options) -> float:
    try:
        model = KernelMixture(k, **options).fit(data.X)
    except ThirdMomentError:
        return np.nan
    return density_error(lambda v, x: model.density(x, v).T, data)


def errors(data: ShapedMixture) -> list[float]:
    k = len(data.weights)
    histogram = histogram_spectral(data.X, k)
    return [
        ours(data, k),
        ours(data, k, refine="none"),
        ours(data, k, bandwidth="cv"),
        density_error(with_labels(data), data),
        density_error(gaussian_em(data.X, k), data),
        density_error(npem(data.X, k), data),
        density_error(histogram, data) if histogram else np.nan,
    ]


def study(
    name: str,
    note: str,
    counts: tuple[int, ...] = COUNTS,
    sizes: tuple[int, ...] = SIZES,
    **options,
) -> np.ndarray:
    """Medians of ten data sets in every cell; one row a cell."""
    rows, cells = [], []
    for k in counts:
        for m in sizes:
            found = np.array(
                [
                    errors(make_shaped_mixture(m, k, random_state=seed, **options))
                    for seed in range(FIRST_SEED, FIRST_SEED + REPEATS)
                ]
            )
            middle = np.nanmedian(found, axis=0)
            cells.append([k, m, *middle])
            ratios = f"{middle[0] / middle[3]:.2f}", f"{middle[0] / middle[4]:.2f}"
            rows.append([k, m, *(f"{value:.4f}" for value in middle), *ratios])
            print(name, *rows[-1], flush=True)
    header = ["k", "m", *METHODS, "fit/labels", "fit/Gaussian EM"]
    write_table(name, header, rows, note)
    return np.array(cells)


def harder(note: str) -> None:
    """Gamma laws of shape 0.8, whose density is unbounded at its start."""
    note += "Every second component a shifted Gamma law of shape 0.8."
    study("kernel_hard", note, counts=(2, 4), sizes=(500, 4000, 10_000), shape=0.8)


def spacings() -> None:
    """Overlap: the default fit against known labels, with all ten ratios in view."""
    rows = []
    for skewed in (False, True):
        for spacing in (2.5, 2.0, 1.2):
            for k in (2, 3, 4, 8):
                for m in (4000, 10_000):
                    make = partial(make_shaped_mixture, m, k, spacing=spacing, skewed=skewed)
                    found = []
                    for seed in range(FIRST_SEED, FIRST_SEED + REPEATS):
                        data = make(random_state=seed)
                        found.append(ours(data, k) / density_error(with_labels(data), data))
                    kind = "Gaussian/Gamma" if skewed else "Gaussian"
                    rows.append([kind, spacing, k, m, f"{np.median(found):.3f}",
                                 f"{max(found):.3f}"])  # fmt: skip
                    print(*rows[-1], flush=True)
    header = ["components", "spacing", "k", "m", "fit/labels, median", "largest of ten"]
    write_table("kernel_spacing", header, rows, "Error of the default fit over that with labels.")


def exchangeable() -> None:
    """X-S3: one law for all views, the shared route against the general one."""
    rows = []
    for skewed in (False, True):
        for k in (2, 3, 4):
            for m in (500, 3000):
                ratio = []
                for seed in range(FIRST_SEED, FIRST_SEED + REPEATS):
                    data = make_shaped_mixture(
                        m, k, exchangeable=True, skewed=skewed, random_state=seed
                    )
                    each = [
                        [
                            ours(data, k, exchangeable=shared, refine=refine)
                            for shared in (True, False)
                        ]
                        for refine in ("auto", "none")
                    ]
                    ratio.append([shared / general for shared, general in each])
                middle = np.nanmedian(ratio, axis=0)
                kind = "Gaussian/Gamma" if skewed else "Gaussian"
                rows.append([kind, k, m, *(f"{value:.2f}" for value in middle)])
                print(*rows[-1], flush=True)
    header = ["components", "k", "m", "shared/general, fit", "shared/general, moments alone"]
    note = "Views of one law: error of `exchangeable=True` over the general route."
    write_table("kernel_exchangeable", header, rows, note)


def two_densities() -> None:
    """X-S2: L1 error of the one Gamma component of two, against Gaussian EM."""
    rows = []
    for m in (2000, 10_000):
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + REPEATS):
            data = make_shaped_mixture(m, 2, random_state=seed)
            fit = KernelMixture(2).fit(data.X)
            sharp = KernelMixture(2, bandwidth="cv").fit(data.X)
            each = []
            peer = gaussian_em(data.X, 2)
            for density in (
                lambda v, x: fit.density(x, v).T,
                lambda v, x: sharp.density(x, v).T,
                peer,
            ):
                x = np.linspace(data.X[:, 0].min() - 1, data.X[:, 0].max() + 1, 4000)
                apart = np.abs(density(0, x) - data.density(x, 0)[1]).sum(axis=1) * (x[1] - x[0])
                each.append(apart.min())
            found.append(each)
        middle = np.median(found, axis=0)
        rows.append([m, *(f"{value:.3f}" for value in middle), f"{middle[0] / middle[2]:.2f}"])
    header = ["m", "fit", "cv", "Gaussian EM", "fit/Gaussian EM"]
    write_table("kernel_gamma", header, rows, "∫|p̂ - p| of the Gamma component, first view.")


def against_mixtools() -> None:
    """npEM of R's mixtools and ours of the same kind, which it must agree with, and the fit."""
    rows = []
    for k in (2, 3, 4):
        for seed in range(FIRST_SEED, FIRST_SEED + 3):
            data = make_shaped_mixture(500, k, random_state=seed)
            model, seconds = timed(lambda: KernelMixture(k).fit(data.X))
            peer, theirs = timed(lambda: mixtools(data, k))
            if peer is None:
                print("Rscript with mixtools is not installed; nothing to compare.")
                return
            values = [
                density_error(lambda v, x: model.density(x, v).T, data),
                density_error(npem(data.X, k), data),
                density_error(peer, data),
            ]
            rows.append([k, seed, *(f"{value:.4f}" for value in values), f"{seconds / theirs:.3f}"])
            print(*rows[-1], flush=True)
    header = ["k", "seed", "fit", "npEM (ours)", "npEM (mixtools)", "time fit/mixtools"]
    note = (
        "500 rows, Gaussian/Gamma. Both npEM use the same bandwidth and differ in the draw of "
        "their k-means start; the time of mixtools includes starting R."
    )
    write_table("kernel_mixtools", header, rows, note)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--mixtools", action="store_true", help="compare with R's mixtools instead")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ThirdMomentWarning)
    warnings.filterwarnings("ignore", module="sklearn")
    if options.mixtools:
        against_mixtools()
        return
    note = "Median error of ten data sets (seeds 100 to 109), spacing 2.5. "
    exchangeable()
    two_densities()
    spacings()
    skewed = study("kernel_skewed", note + "Every second component a shifted exponential.")
    study("kernel_gaussian", note + "All components Gaussian.", skewed=False)
    harder(note)
    for column, name in ((6, "Gaussian EM"), (7, "npEM"), (8, "histogram")):
        wins = np.sum(skewed[:, 2] < skewed[:, column])
        print(f"Gaussian/Gamma: below {name} in {wins} of {len(skewed)} cells")


if __name__ == "__main__":
    main()
