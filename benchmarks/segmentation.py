"""Segments of photographs from one pixel each (X-R7), against k-means from the same pixels.

python benchmarks/segmentation.py --data FOLDER

Photographs of the Berkeley segmentation data at half their size; colours and half-weighted places
of the pixels are the columns. Every drawing with at most eight segments is one case, and the two
largest segments of every drawing another; hints are one random pixel in each segment.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import arguments, timed, write_table
from matplotlib.image import imread
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from thirdmoment import GaussianSearch
from thirdmoment.exceptions import MomentWarning

SEEDS, FIRST_SEED, MOST = 3, 100, 8


def features(image: np.ndarray, places: float = 0.5) -> np.ndarray:
    height, width = image.shape[:2]
    row, column = np.mgrid[:height, :width] / max(height, width)
    colours = image.reshape(-1, 3) / 255
    return np.column_stack([colours, places * row.ravel(), places * column.ravel()])


def cases(data: Path, two: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Columns and segments 0, 1, ... of the pixels that count."""
    folder = data / "bsds500_40"
    drawings = np.load(folder / "segmentations.npz")
    for path in sorted((folder / "images").glob("*.jpg")):
        X = features(imread(path)[::2, ::2])
        for drawing in drawings[path.stem]:
            segment = drawing[::2, ::2].ravel()
            names, sizes = np.unique(segment, return_counts=True)
            if two:
                names = names[np.argsort(-sizes)[:2]]
            if len(names) > MOST or len(names) < 2:
                continue
            kept = np.isin(segment, names)
            yield X[kept], np.searchsorted(np.sort(names), segment[kept])


def answers(X: np.ndarray, hints: np.ndarray) -> dict[str, tuple[np.ndarray, float]]:
    """Labels and seconds of each way."""
    k = len(hints)

    def searched() -> tuple[GaussianSearch, list]:
        search = GaussianSearch(k).fit(X)
        return search, search.search_many(list(hints))

    (search, found), before = timed(searched)
    ours, seconds = timed(lambda: search.assign(X, found))
    plain, more = timed(lambda: search.assign(X, found, refine="none"))
    near, quick = timed(lambda: ((X[:, None] - hints) ** 2).sum(axis=2).argmin(axis=1))
    peer, slow = timed(lambda: KMeans(k, init=hints, n_init=1).fit_predict(X))
    return {
        "GaussianSearch": (ours, before + seconds),
        'refine="none"': (plain, before + more),
        "nearest labelled pixel": (near, quick),
        "k-means from the pixels": (peer, slow),
    }


def main() -> None:
    data = arguments(__doc__ or "").parse_args().data
    warnings.simplefilter("ignore", MomentWarning)
    rows = []
    for two, name in ((False, "all of at most 8"), (True, "the two largest")):
        scores: dict[str, list] = {}
        for number, (X, truth) in enumerate(cases(data, two)):
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                rng = np.random.default_rng((seed, number))
                own = [rng.choice(np.flatnonzero(truth == j)) for j in range(truth.max() + 1)]
                for method, (labels, seconds) in answers(X, X[own]).items():
                    nmi = normalized_mutual_info_score(truth, labels)
                    scores.setdefault(method, []).append((nmi, np.mean(labels == truth), seconds))
        peer = np.array(scores["k-means from the pixels"])
        for method, values in scores.items():
            table = np.array(values)
            nmi = table[:, 0].reshape(-1, SEEDS).mean(axis=0)
            rows.append([
                name, method, len(table) // SEEDS,
                f"{nmi.mean():.3f} ({nmi.min():.3f} to {nmi.max():.3f})",
                f"{table[:, 1].mean():.3f}",
                f"{np.mean(table[:, 0] > peer[:, 0]):.0%}",
                f"{np.mean(table[:, 1] > peer[:, 1]):.0%}",
                f"{np.median(table[:, 2] / peer[:, 2]):.1f}",
            ])  # fmt: skip
    write_table(
        "segmentation",
        ["segments", "method", "drawings", "NMI (seeds)", "pixels right", "NMI above k-means",
         "pixels above k-means", "time / k-means"],
        rows,
        f"Segments from one random pixel each, 40 photographs of BSDS500, {SEEDS} draws of the "
        "pixels. `benchmarks/segmentation.py`.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
