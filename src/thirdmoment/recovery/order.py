"""The one place that fixes the order of components."""

from __future__ import annotations

import numpy as np


def canonical_order(weights: np.ndarray) -> np.ndarray:
    """Permutation that sorts components by descending weight; ties keep their order."""
    return np.argsort(-np.asarray(weights), kind="stable")
