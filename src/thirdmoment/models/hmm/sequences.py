"""Sequences of any lengths, one after another, and how their work is cut into tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment.exceptions import InvalidInput
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


def read_lengths(lengths: Any, n: int) -> np.ndarray:
    """Lengths as integers that add up to the n observations; None is one sequence."""
    if lengths is None:
        return np.array([n], dtype=np.int64)
    try:
        given = np.atleast_1d(np.asarray(_as_list(lengths), dtype=np.float64))
    except (TypeError, ValueError):
        given = np.empty((0, 0))
    if given.ndim != 1 or len(given) == 0:
        raise InvalidInput(f"lengths must be a list of positive integers, not {lengths!r}.")
    wrong = ~np.isfinite(given) | (given != np.floor(given)) | (given < 1)
    if wrong.any():
        raise InvalidInput(
            f"lengths has the entry {given[wrong][0]:g}, but lengths of sequences are positive "
            "integers. Leave empty sequences out."
        )
    found = given.astype(np.int64)
    if found.sum() != n:
        raise InvalidInput(
            f"lengths adds up to {found.sum()} in {len(found)} sequences, but X has {n} "
            "observations. X must hold all sequences one after another."
        )
    return found


def _as_list(values: Any) -> Any:
    if isinstance(values, str):
        raise TypeError
    return values if hasattr(values, "__len__") or np.isscalar(values) else list(values)


def check_one_table(X: Any) -> None:
    """A list of sequences is a likely mistake, with a remedy."""
    if not isinstance(X, list | tuple) or len(X) < 1:
        return
    sizes = {len(part) if hasattr(part, "__len__") else -1 for part in X}
    if -1 not in sizes and (len(sizes) > 1 or any(np.ndim(part) > 1 for part in X)):
        raise InvalidInput(
            f"X looks like a list of {len(X)} sequences. Give them one after another: "
            "fit(np.concatenate(sequences), lengths=[len(s) for s in sequences])."
        )


def check_target(y: Any, n: int, method: str = "fit") -> None:
    """``y`` is ignored, but lengths in its place are a mistake with a name."""
    if y is None:
        return
    size = len(y) if hasattr(y, "__len__") else 1
    if size != n:
        raise InvalidInput(
            f"The second argument has {size} entries for {n} observations. Here it is y, which is "
            "ignored, as everywhere in scikit-learn; if these are the lengths of sequences, write "
            f"{method}(X, lengths=lengths)."
        )
