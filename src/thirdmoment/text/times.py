"""Dates of documents, in the forms that people write."""

from __future__ import annotations

import datetime
from typing import Any

from thirdmoment.text.records import missing

# Dates that are read beside ISO 8601; days and months in figures could be either way round.
FORMS = ("%Y", "%Y-%m", "%d.%m.%Y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")
DATES = ("2021-09-08T14:00", "2021-09-08", "2021-09", "2021", "08.09.2021", "Sep 8, 2021")


def read_times(values: list[Any]) -> tuple[list[Any], list[int]]:
    """Times as datetimes, None where there is none, and which could not be read."""
    out: list[Any] = []
    bad = []
    for i, value in enumerate(values):
        try:
            out.append(_time(value))
        except ValueError:
            out.append(None)
            bad.append(i)
    return out, bad


def _time(value: Any) -> datetime.datetime | None:
    if missing(value) or value == "":
        return None
    if hasattr(value, "to_pydatetime"):
        return value.to_pydatetime()
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    whole = isinstance(value, float) and value.is_integer()
    text = str(int(value) if whole else value).strip()
    if len(text) >= 10 and text[4:5] == "-":
        return datetime.datetime.fromisoformat(text)
    for form in FORMS:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    raise ValueError(text)
