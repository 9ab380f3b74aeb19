"""Components in a few words, and numbers as people say them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment._constants import Wording


def shown(word: object) -> str:
    """A word with control characters written out, so that none of them reaches a terminal."""
    return "".join(
        ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in str(word)
    )


def drawn(word: object) -> str:
    """A word for a picture: dollar signs stand for themselves, not for formulas."""
    return shown(word).replace("$", r"\$")


# Columns that a label names, and the spread of a column from which on it is told.
COLUMNS: Wording[int] = 2
TOLD: Wording[float] = 0.5


def column_labels(
    means: np.ndarray,
    weights: np.ndarray,
    scale: np.ndarray,
    names: Sequence[str],
    data: str = "rows",
) -> tuple[str, ...]:
    """``"12% of rows, height high"`` of each row of means (k, d); ``scale`` (d,) are spreads."""
    means, weights = np.asarray(means, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    with np.errstate(all="ignore"):
        apart = (means - weights @ means / weights.sum()) / np.where(scale > 0, scale, 1.0)
    apart = np.nan_to_num(apart)
    labels = []
    for weight, row in zip(weights, apart, strict=True):
        order = np.argsort(-np.abs(row), kind="stable")[:COLUMNS]
        told = [
            f"{names[j]} {'high' if row[j] > 0 else 'low'}" for j in order if abs(row[j]) > TOLD
        ]
        labels.append(", ".join([f"{size(weight)} of {data}", *told]))
    return tuple(labels)


def category_labels(
    tables: Sequence[np.ndarray], weights: np.ndarray, names: Sequence[str]
) -> tuple[str, ...]:
    """``"12% of rows, smoker = 1"``: the categories (k, d_v) that stand out most from the rest."""
    labels = []
    rest = [weights @ table / weights.sum() for table in tables]
    for h, weight in enumerate(weights):
        rise = [
            (float(table[h, j] - common[j]), f"{name} = {j}")
            for table, common, name in zip(tables, rest, names, strict=True)
            for j in [int(np.argmax(table[h] - common))]
        ]
        rise.sort(key=lambda pair: -pair[0])
        labels.append(", ".join([f"{size(weight)} of rows", *(text for _, text in rise[:COLUMNS])]))
    return tuple(labels)


def size(weight: float) -> str:
    """A share of the data."""
    return f"{weight:.0%}" if weight >= 0.01 else "under 1%"
