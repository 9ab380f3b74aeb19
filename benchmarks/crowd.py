"""Crowd labels (Dawid-Skene): error rates against majority vote and EM from it.

python benchmarks/crowd.py [--data FOLDER]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments, timed, write_table

from thirdmoment import CategoricalMixture
from thirdmoment.metrics import align

SETS = ["bluebird", "rte", "trec", "dog", "web"]
PUBLISHED = {  # majority vote and EM Dawid-Skene, per cent
    "bluebird": (24.07, 11.11),
    "rte": (12.50, 7.25),
    "trec": (33.89, 29.85),
    "dog": (18.84, 15.74),
    "web": (31.17, 17.08),
}


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (items, workers) with NaN where a worker gave no label; items with truth, truth."""
    labels = pd.read_csv(folder / "crowd" / f"{name}_labels.csv.gz")
    truth = pd.read_csv(folder / "crowd" / f"{name}_truth.csv.gz")
    items, workers = labels["item"].max(), labels["worker"].max()
    codes = np.full((items, workers), np.nan)
    codes[labels["item"] - 1, labels["worker"] - 1] = labels["label"] - 1
    return codes, truth["item"].to_numpy() - 1, truth["label"].to_numpy() - 1


def component_classes(model: CategoricalMixture, codes: np.ndarray, classes: int) -> np.ndarray:
    """Component to class by the labels that the items of a component received."""
    posterior = model.predict_proba(codes)
    votes = np.stack([(codes == c).sum(axis=1) for c in range(classes)], axis=1)
    table = posterior.T @ (votes / votes.sum(axis=1, keepdims=True))
    table = table / table.sum(axis=1, keepdims=True)
    order = align(table, np.eye(classes))  # component of each class
    return np.argsort(order)


def majority(codes: np.ndarray, classes: int) -> np.ndarray:
    votes = np.stack([(codes == c).sum(axis=1) for c in range(classes)], axis=1)
    return votes.argmax(axis=1)


def main() -> None:
    data = arguments(__doc__ or "").parse_args().data
    rows = []
    for name in SETS:
        codes, items, truth = load(data, name)
        classes = int(np.nanmax(codes)) + 1
        model, seconds = timed(
            lambda codes=codes, classes=classes: CategoricalMixture(
                classes, n_categories=classes
            ).fit(codes)
        )
        found = component_classes(model, codes, classes)[model.predict(codes)]
        error = 100 * np.mean(found[items] != truth)
        vote = 100 * np.mean(majority(codes, classes)[items] != truth)
        published = PUBLISHED[name]
        rows.append(
            [name, f"{error:.2f}", f"{vote:.2f}", *published, f"{seconds:.2f}", model.report_.start]
        )
        print(rows[-1], model.report_.details["starts"], flush=True)
    note = (
        "Error rate in per cent of the items with a known truth. Majority vote here breaks ties "
        "towards the first class; the published figures are for majority vote and for EM from it."
    )
    header = [
        "set",
        "ours",
        "majority",
        "majority (published)",
        "EM (published)",
        "seconds",
        "start",
    ]
    write_table("crowd", header, rows, note)


if __name__ == "__main__":
    main()
