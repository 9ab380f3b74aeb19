"""States from stretches of a sequence: states that last show in what occurs together for a while.

The sequences are cut into blocks of one length; blocks with like averages form a class, and every
observation of a block gets it as its state. Windows of three neighbours, which the moments use,
hardly tell states apart that change once in a hundred observations; long blocks do
(docs/decisions/markov.md).
"""

from __future__ import annotations

import numpy as np

from thirdmoment._constants import Choice
from thirdmoment.refinement.spread import classes_of
from thirdmoment.sizes import LOOK

LENGTHS: Choice[tuple[int, ...]] = (10, 40, 160)  # observations of a block
LEAST_BLOCKS: Choice[int] = 5  # for each state


def stretches(
    features: np.ndarray,
    offsets: np.ndarray,
    k: int,
    rng: np.random.Generator,
    *,
    code: np.ndarray | None = None,
) -> list[tuple[str, np.ndarray]]:
    """A name and the states (n,) of all observations for each length that leaves enough blocks.

    Parameters
    ----------
    features : (n, q), or (m, q) with ``code``
        What blocks are averaged by, of each observation or of each kind of observation.
    offsets : (S + 1,)
        Where sequences begin, and the end.
    code : (n,), optional
        Kind of each observation.
    """
    found = []
    for length in LENGTHS:
        block = blocks(offsets, length)
        size = np.bincount(block).astype(np.float64)
        if len(size) < LEAST_BLOCKS * k:
            break
        columns = (column if code is None else column[code] for column in features.T)
        means = np.stack([np.bincount(block, weights=c) / size for c in columns], axis=1)
        labels = classes_of(means, size, k, rng, most=LOOK)
        found.append((f"stretches of {length} observations", labels[block]))
    return found


def blocks(offsets: np.ndarray, length: int) -> np.ndarray:
    """Block of every observation (n,), numbered from zero; blocks do not cross sequences."""
    sizes = np.diff(offsets)
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    counts = -(-sizes // length)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.repeat(first, sizes) + within // length
