"""A part of the sequences on which starts can race cheaply."""

from __future__ import annotations

import numpy as np

# Observations that are enough to tell starts apart.
RACE_SIZE = 40_000

# Long sequences are represented by pieces of this length.
PIECE = 2_000


def thinned(lengths: np.ndarray, size: int = RACE_SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Positions of about ``size`` observations, and the lengths of the pieces they form.

    Sequences are cut into pieces of at most `PIECE` observations, of which those around randomly
    spread observations are taken.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    count = -(-lengths // PIECE)
    owner = np.repeat(np.arange(len(lengths)), count)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    begin = offsets[owner] + rank * PIECE
    length = np.minimum(PIECE, offsets[owner + 1] - begin)
    ends = np.cumsum(length)
    typical = float(length @ length) / ends[-1]  # length of the piece an observation is in
    pieces = max(1, round(size / typical))
    # one in each stretch of equal size, at random: even steps may keep time with the lengths
    levels = (np.arange(pieces) + np.random.default_rng(0).random(pieces)) * ends[-1] / pieces
    chosen = np.unique(np.searchsorted(ends, levels, side="right"))
    begin, length = begin[chosen], length[chosen]
    shift = np.repeat(begin - (np.cumsum(length) - length), length)
    return np.arange(int(length.sum())) + shift, length
