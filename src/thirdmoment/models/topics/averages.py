"""Mean shares of topics in groups of documents and in stretches of time."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from thirdmoment.exceptions import InvalidInput

PERIODS: dict[str, Callable[[Any], str]] = {
    "year": lambda when: f"{when.year:04d}",
    "month": lambda when: f"{when.year:04d}-{when.month:02d}",
    "day": lambda when: f"{when.year:04d}-{when.month:02d}-{when.day:02d}",
}


class Averages(NamedTuple):
    """Mean shares of the documents of each key, with standard errors."""

    share: np.ndarray  # (g, k)
    error: np.ndarray  # (g, k) NaN where a key has one document


class Grouping(NamedTuple):
    """Which documents belong to which key."""

    keys: list[Any]  # (g,) numbers in their order, anything else by its text
    rows: np.ndarray  # (m,) documents that have a key
    code: np.ndarray  # (m,) number of their key
    documents: np.ndarray  # (g,) how many have it

    def among(self, known: np.ndarray) -> Grouping:
        """The same of some documents alone, given as a mask (n,)."""
        if known.all():
            return self
        own = known[self.rows]
        count = np.bincount(self.code[own], minlength=len(self.keys))
        place = np.cumsum(count > 0) - 1
        keys = [key for key, m in zip(self.keys, count, strict=True) if m]
        return Grouping(keys, self.rows[own], place[self.code[own]], count[count > 0])


def grouped(keys: Sequence[Any]) -> Grouping:
    """Documents by their keys; None is no key."""
    known = {key for key in keys if key is not None}
    plain = all(isinstance(key, numbers.Real) for key in known)
    ordered = sorted(known) if plain else sorted(known, key=str)
    place = {key: g for g, key in enumerate(ordered)}
    rows = np.flatnonzero([key is not None for key in keys])
    code = np.array([place[keys[i]] for i in rows.tolist()], dtype=np.int64)
    return Grouping(ordered, rows, code, np.bincount(code, minlength=len(place)))


def averages(shares: np.ndarray, by: Grouping) -> Averages:
    """Means of the rows of shares (n, k) by key, with standard errors."""
    own, count = np.asarray(shares, dtype=np.float64)[by.rows], by.documents
    mean = _sums(own, by) / count[:, None]
    spread = _sums((own - mean[by.code]) ** 2, by)
    with np.errstate(invalid="ignore"):
        error = np.sqrt(spread / (count - 1.0)[:, None] / count[:, None])
    return Averages(mean, error)


def _sums(values: np.ndarray, by: Grouping) -> np.ndarray:
    """Sums (g, k) of the rows of values (m, k) by key."""
    sums = [np.bincount(by.code, column, len(by.keys)) for column in values.T]
    return np.stack(sums, axis=1)


def periods(times: Sequence[Any], period: str) -> list[str | None]:
    """The year, month or day of each time, None where it is missing."""
    known = [None if is_missing(when) else _date(when) for when in times]
    wrong = [when for when in known if when is not None and not hasattr(when, "year")]
    if wrong:
        raise InvalidInput(f"{wrong[0]!r} is no date; give datetime objects as times=.")
    return [None if when is None else PERIODS[period](when) for when in known]


def as_key(key: Any) -> Any:
    """A group that can be looked up, None where there is none."""
    if isinstance(key, list | dict | set):
        return str(key)
    return None if is_missing(key) else key


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas does not say whether NA is NA
        return True


def _date(when: Any) -> Any:
    """Dates of NumPy and in ISO's form as Python's; anything else as it is."""
    if isinstance(when, np.datetime64):
        return when.astype("datetime64[us]").item()
    try:
        return datetime.datetime.fromisoformat(when) if isinstance(when, str) else when
    except ValueError:
        return when
