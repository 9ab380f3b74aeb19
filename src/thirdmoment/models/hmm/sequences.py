"""Sequences of any lengths, one after another, and how their work is cut into tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment.exceptions import InvalidInput

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
    return Sequences(offsets, edge, tuple(_tasks(offsets)))


def _tasks(offsets: np.ndarray) -> list[Task]:
    """Neighbouring sequences put together; a long one stands alone."""
    count = len(offsets) - 1
    found, first = [], 0
    while first < count:
        begin = int(offsets[first])
        last = int(np.searchsorted(offsets, begin + TASK_SIZE, side="right")) - 1
        last = min(max(last, first + 1), count)
        found.append(Task(begin, int(offsets[last]), first))
        first = last
    return found


def read_lengths(lengths: Any, n: int) -> np.ndarray:
    """Lengths as integers that add up to the n observations; None is one sequence."""
    if lengths is None:
        return np.array([n], dtype=np.int64)
    given = np.atleast_1d(np.asarray(lengths))
    if given.ndim != 1 or given.dtype.kind not in "iuf" or len(given) == 0:
        raise InvalidInput(f"lengths must be a list of positive integers, not {lengths!r}.")
    found = given.astype(np.int64)
    if not np.array_equal(found, given) or found.min() < 1:
        wrong = given[(given != np.floor(given)) | (given < 1)][0]
        raise InvalidInput(
            f"lengths has the entry {wrong:g}, but lengths of sequences are positive integers. "
            "Leave empty sequences out."
        )
    if found.sum() != n:
        raise InvalidInput(
            f"lengths adds up to {found.sum()} in {len(found)} sequences, but X has {n} "
            "observations. X must hold all sequences one after another."
        )
    return found


def check_target(y: Any, n: int) -> None:
    """``y`` is ignored, but lengths in its place are a mistake with a name."""
    if y is None:
        return
    given = np.asarray(y)
    looks = given.ndim == 1 and given.dtype.kind in "iu" and len(given) != n
    if looks and given.sum() == n:
        raise InvalidInput(
            f"The second argument looks like the lengths of {len(given)} sequences, but here it is "
            "y, which is ignored, as everywhere in scikit-learn. Write fit(X, lengths=lengths)."
        )
