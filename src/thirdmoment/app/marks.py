"""Texts as parts: plain strings, and ``[string, mark]`` for words that are to stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from thirdmoment._constants import Wording
from thirdmoment.text.places import Place

# Characters of an excerpt, of the beginning of a text that it is chosen from, and of a page.
EXCERPT: Wording[int] = 320
LOOKED_AT: Wording[int] = 4_000
PAGE: Wording[int] = 20_000

Parts = list[Any]


def parts(
    text: str, places: Iterable[Place], mark: Mapping[int, int], start: int, end: int
) -> Parts:
    """Characters ``start`` to ``end``, words with a mark apart."""
    out: Parts = []
    last = start
    for place in places:
        if place.column in mark and place.start >= last and place.end <= end:
            if place.start > last:
                out.append(text[last : place.start])
            out.append([text[place.start : place.end], mark[place.column]])
            last = place.end
    if last < end:
        out.append(text[last:end])
    return out


def excerpt(text: str, places: list[Place], mark: Mapping[int, int]) -> Parts:
    """The stretch of a text in which most different marked words stand; a word counts its mark."""
    short = (place for place in places if place.end - place.start <= EXCERPT - 60)
    marked = [place for place in short if place.column in mark]
    start = _best_start(marked, mark)
    start = max(0, min(start, len(text) - EXCERPT))
    if start:
        start = text.find(" ", start, start + 30) + 1 or start
    end = min(len(text), start + EXCERPT)
    if end < len(text):
        end = max(text.rfind(" ", end - 30, end), start) if " " in text[end - 30 : end] else end
    inside = [place for place in marked if start <= place.start and place.end <= end]
    found = parts(text, inside, mark, start, end)
    return [*(["… "] if start else []), *found, *([" …"] if end < len(text) else [])]


def _best_start(marked: list[Place], mark: Mapping[int, int]) -> int:
    """Where the best stretch begins, a little before its first marked word."""
    best, start, first, score = 0, 0, 0, 0
    inside: Counter[int] = Counter()
    for place in marked:
        if not inside[place.column]:
            score += mark[place.column]
        inside[place.column] += 1
        while place.end - marked[first].start > EXCERPT - 60:
            gone = marked[first].column
            inside[gone] -= 1
            if not inside[gone]:
                score -= mark[gone]
            first += 1
        if score > best:
            best, start = score, max(0, marked[first].start - 30)
    return start
