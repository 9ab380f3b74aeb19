"""Sequences of any lengths, one after another, and how their work is cut into tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.moments.sequences import whole_sequences

# Tasks take whole sequences up to about this many observations.
TASK_SIZE = 25_000

# From this length on a sequence is worked on by itself, its recursions side by side.
LONG = 50_000

FIRST, LAST = 1, 2  # marks of ``edge``


class Task(NamedTuple):
    """Observations [begin, end) of whole sequences, the first of which has this number."""

    begin: int
    end: int
    number: int


class Sequences(NamedTuple):
    """Where sequences begin and end among n observations."""

    offsets: np.ndarray  # (S + 1,)
    edge: np.ndarray  # (n,) uint8: 1 first, 2 last observation of a sequence, 3 both
    tasks: tuple[Task, ...]  # fixed by the data alone

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def n(self) -> int:
        return int(self.offsets[-1])


def sequences(lengths: np.ndarray) -> Sequences:
    """Sequences of the given lengths, which are positive."""
    lengths = np.asarray(lengths, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    edge = np.zeros(int(offsets[-1]), dtype=np.uint8)
    edge[offsets[:-1]] |= FIRST
    edge[offsets[1:] - 1] |= LAST
    parts = whole_sequences(offsets, TASK_SIZE)
    tasks = tuple(Task(int(offsets[a]), int(offsets[b]), a) for a, b in parts)
    return Sequences(offsets, edge, tasks)
