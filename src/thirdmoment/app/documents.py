"""The documents that are explored: names, texts, groups and times, a row of counts each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.app.texts import Texts, pack, pack_on_disk
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.averages import (
    Grouping,
    as_key,
    grouped,
    is_missing,
    periods,
)
from thirdmoment.text import TextStream

# Groups that are shown, the largest ones; and stretches of time, days or months if so few.
MOST_GROUPS: Wording[int] = 40
MOST_PERIODS: Wording[int] = 60


@dataclass(frozen=True, eq=False)
class Documents:
    """What is known of each document besides its counts; lists are empty where nothing is."""

    ids: Texts  # (n,)
    texts: Texts  # (n,) or none
    groups: Texts  # names of all groups
    group: np.ndarray  # (n,) number of its group, -1 where it has none; or empty
    times: Texts  # (n,) in ISO's form, or none

    def __len__(self) -> int:
        return len(self.ids)

    def group_of(self, i: int) -> str | None:
        g = int(self.group[i]) if len(self.group) else -1
        return self.groups[g] if g >= 0 else None

    def time_of(self, i: int) -> str | None:
        return (self.times[i] or None) if len(self.times) else None

    def check(self) -> None:
        """Raise where the parts do not belong together, as in a damaged file."""
        n = len(self)
        for own in (self.ids, self.texts, self.groups, self.times):
            own.check()
        sizes = {len(self.texts), len(self.times), len(self.group)}
        if not sizes <= {0, n} or self.group.dtype != np.int32:
            raise InvalidInput("its texts, groups or times are not those of its documents")
        if len(self.group) and not -1 <= self.group.min() <= self.group.max() < len(self.groups):
            raise InvalidInput("its groups are not those of its documents")

    def by_group(self) -> Grouping | None:
        """Documents of the largest groups, in the order of their keys; None without two of them."""
        if len(self.groups) < 2:
            return None
        count = np.bincount(self.group[self.group >= 0], minlength=len(self.groups))
        shown = np.sort(np.argsort(-count, kind="stable")[:MOST_GROUPS])
        place = np.full(len(count) + 1, -1)  # the last is for documents without a group
        place[shown] = np.arange(len(shown))
        code = place[self.group]
        keys = [self.groups[int(g)] for g in shown]
        return Grouping(keys, np.flatnonzero(code >= 0), code[code >= 0], count[shown])

    def by_time(self) -> tuple[Grouping, str] | None:
        """Documents by day, month or year, whichever is short enough; None without two of them."""
        known = [self.time_of(i) for i in range(len(self.times))]
        for period in ("day", "month", "year"):
            keys = periods(known, period)
            n = len({key for key in keys if key is not None})
            if period == "year" or n <= MOST_PERIODS:
                return (grouped(keys), period) if n > 1 else None
        return None


def documents_of(
    corpus: Any,
    n: int,
    *,
    texts: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
) -> Documents:
    """What a corpus knows of its n documents, and what is given beside it."""
    own = hasattr(corpus, "__counts__")
    ids = getattr(corpus, "ids", None) if ids is None and own else ids
    groups = getattr(corpus, "groups", None) if groups is None and own else groups
    times = getattr(corpus, "times", None) if times is None and own else times
    for name, given in {"texts": texts, "ids": ids, "groups": groups, "times": times}.items():
        if given is not None and len(given) != n:
            raise InvalidInput(f"{len(given)} {name} are given for {n} documents.")
    if texts is not None:
        packed = pack("" if is_missing(text) else str(text) for text in texts)
    elif isinstance(corpus, TextStream):
        packed = pack_on_disk(corpus.each_text())
    else:
        packed = pack(corpus.texts if own and hasattr(corpus, "texts") else [])
    names, codes = _coded(groups)
    names_of = range(n) if ids is None else ids
    return Documents(
        ids=pack(str(i if is_missing(name) else name) for i, name in enumerate(names_of)),
        texts=packed,
        groups=pack(names),
        group=codes,
        times=pack(_written(times)),
    )


def _coded(groups: Sequence[Any] | None) -> tuple[list[str], np.ndarray]:
    """Names of the groups, and the number of each document's."""
    keys = [as_key(group) for group in (() if groups is None else groups)]
    by = grouped(keys)
    codes = np.full(len(keys) if by.keys else 0, -1, dtype=np.int32)
    codes[by.rows] = by.code
    return [str(key) for key in by.keys], codes


def _written(times: Sequence[Any] | None) -> list[str]:
    """Days in ISO's form, empty where a time is missing; no list where all are."""
    days = periods(times if times is not None else (), "day")
    return [day or "" for day in days] if any(days) else []
