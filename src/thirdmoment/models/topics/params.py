"""Parameters of the topic models, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class TopicParameters(NamedTuple):
    """Topics in canonical order: heaviest first."""

    topics: np.ndarray  # (k, d) rows sum to one
    weights: np.ndarray  # (k,) sums to one
    concentration: np.ndarray  # (k,) Dirichlet parameters; the weights for single topics
