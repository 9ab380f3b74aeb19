"""Everything the page shows, as plain data: one function an address, ``answer`` finds it.

The server sends what ``answer`` returns; an export holds the same answers to addresses that were
asked beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.app.marks import LOOKED_AT, PAGE, excerpt, parts
from thirdmoment.app.query import Query, UnknownWord, parse, parse_rows
from thirdmoment.app.view import RELEVANCE, View
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.averages import Averages, Grouping, averages
from thirdmoment.models.topics.words import ranked_at, ranked_words
from thirdmoment.recovery.order import leading
from thirdmoment.report import Report
from thirdmoment.search import TopicComponent
from thirdmoment.search.themes import LIMITS

if TYPE_CHECKING:
    from thirdmoment.app.explorer import Explorer

# Words of a topic that are shown; the page ranks them again as its slider moves in these steps.
SHOWN: Wording[int] = 30
STEPS: Wording[int] = 10
LISTED: Wording[int] = 10  # words of a topic in the list of all
MARKED: Wording[int] = 40  # words of a topic that stand out in its documents
NEAR: Wording[int] = 5  # neighbouring topics
DOCUMENTS: Wording[int] = 10  # documents of a topic, and at the most
MOST_DOCUMENTS: Wording[int] = 100
TOPICS: Wording[int] = 8  # topics of a document
SUGGESTED: Wording[int] = 50_000  # words that suggestions are made of, the most frequent


class NotThere(InvalidInput):
    """An address that leads nowhere."""


def answer(explorer: Explorer, path: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The answer to one address, such as ``topic/3``."""
    kind, _, rest = path.partition("/")
    if kind == "overview" and not rest:
        return overview(explorer)
    if kind == "words" and not rest:
        return words(explorer)
    if kind == "search" and not rest:
        return search(explorer, given)
    if kind == "topic":
        return topic(explorer, _number(rest), _most(given))
    if kind == "document":
        return document(explorer, _number(rest), _number(given.get("from", "0")))
    raise NotThere("There is no such page.")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotThere("There is no such page: a number is expected.")
    return int(text)


def _most(given: Mapping[str, str]) -> int:
    """How many documents are asked for."""
    return min(max(_number(given.get("n", str(DOCUMENTS))), 1), MOST_DOCUMENTS)


def number(value: Any) -> float | None:
    """A number as JSON has it."""
    found = float(value)
    return float(f"{found:.6g}") if math.isfinite(found) else None


# all topics ----------------------------------------------------------------------------------


def overview(explorer: Explorer) -> dict[str, Any]:
    """What the page knows from the start."""
    view, search = explorer.view, explorer.search
    return {
        "title": explorer.title,
        "documents": len(explorer.documents),
        "words": len(explorer.words),
        "texts": len(explorer.documents.texts) > 0,
        "topics": []
        if view is None
        else [_row(explorer, view, j) for j in range(len(view.topics))],
        "mergeable": view is not None and bool(view.model._mergeable),
        "groups": len(explorer.documents.groups),
        "examples": explorer.examples,
        "changes": len(explorer.past),
        "version": explorer.version,
        "report": None if view is None else _report(view.model.report_),
        "search": None if search is None else _report(search.report_),
        "why": explorer.why,
    }


def _row(explorer: Explorer, view: View, j: int) -> dict[str, Any]:
    law, model = view.topics[j], view.model
    top, relevant = (
        [str(explorer.words[i]) for i in ranked_words(law, view.mean, LISTED, relevance)]
        for relevance in (1.0, RELEVANCE)
    )
    return {
        "number": j,
        "label": view.labels[j],
        "weight": number(model.weights_[j]),
        "trust": number(model.topic_trust_[j]) if len(model.topic_trust_) > j else None,
        "words": top,
        "relevant": relevant,
        "place": [number(x) for x in view.place[j]],
        "kin": int(view.kin[j]),
    }


def _report(report: Report) -> dict[str, Any]:
    first, *rest = str(report).split("\n")
    return {"level": report.level, "verdict": first, "lines": rest, "full": report.full()}


def words(explorer: Explorer) -> dict[str, Any]:
    """Words to suggest, the most frequent first."""
    order = leading(explorer.frequency, SUGGESTED)
    return {"words": [str(explorer.words[j]) for j in order if explorer.frequency[j] > 0]}


# one topic -----------------------------------------------------------------------------------


def topic(explorer: Explorer, j: int, n: int) -> dict[str, Any]:
    """One of the model's topics."""
    view, by = explorer.view, explorer.groupings
    if view is None or j >= len(view.topics):
        raise NotThere(f"There is no topic {j}.")
    law = view.topics[j]
    rows = leading(view.shares[:, j], n) if len(view.shares) else np.empty(0, np.int64)
    mark = dict.fromkeys(_telling(law, view.mean), 1)
    near = view.affinity(law)
    near[j] = -1
    return {
        "number": j,
        "words": _ranked(explorer, law, view.mean),
        "documents": [_card(explorer, i, view.shares[i, j], mark) for i in rows.tolist()],
        "near": _near(near),
        "groups": _averaged(view.groups, by.groups, j),
        "times": _averaged(view.times, by.times, j),
        "period": by.period,
    }


def _telling(law: np.ndarray, mean: np.ndarray) -> list[int]:
    """Words that stand for a topic in its documents."""
    order = ranked_words(law, mean, MARKED, RELEVANCE)
    return [int(j) for j in order if law[j] > mean[j]]


def _ranked(explorer: Explorer, law: np.ndarray, mean: np.ndarray) -> list[list[Any]]:
    """Word, probability and corpus frequency of all that are top words at a step of the slider."""
    own = np.flatnonzero((law > 0) & (mean > 0))
    top = own[np.unique(ranked_at(law[own], mean[own], SHOWN, np.linspace(0, 1, STEPS + 1)))]
    order = top[np.argsort(-law[top], kind="stable")]
    return [[str(explorer.words[j]), number(law[j]), number(mean[j])] for j in order.tolist()]


def _near(affinity: np.ndarray) -> list[dict[str, Any]]:
    order = [int(j) for j in leading(affinity, NEAR) if affinity[j] > 0]
    return [{"number": j, "affinity": number(affinity[j])} for j in order]


def _averaged(found: Averages | None, by: Grouping | None, j: int) -> list[list[Any]]:
    """Name, mean share, standard error and documents of each group or stretch of time."""
    if found is None or by is None:
        return []
    return [
        [str(key), number(found.share[g, j]), number(found.error[g, j]), int(by.documents[g])]
        for g, key in enumerate(by.keys)
    ]


def _card(explorer: Explorer, i: int, share: float, mark: Mapping[int, int]) -> dict[str, Any]:
    """A document in a list: who it is, and an excerpt."""
    return {**_about(explorer, i), "share": number(share), "parts": _excerpt(explorer, i, mark)}


def _about(explorer: Explorer, i: int) -> dict[str, Any]:
    own = explorer.documents
    return {"row": i, "id": own.ids[i], "group": own.group_of(i), "time": own.time_of(i)}


def _excerpt(explorer: Explorer, i: int, mark: Mapping[int, int]) -> list[Any]:
    if len(explorer.documents.texts):
        text = explorer.documents.texts.start(i, LOOKED_AT)
        return excerpt(text, explorer.places.find(text, mark), mark)
    own = [j for j, _ in _bag(explorer, i)]
    order = sorted(own, key=lambda j: -mark.get(j, 0))[:SHOWN]
    return [part for j in order for part in _listed(str(explorer.words[j]), mark.get(j))]


def _listed(word: str, mark: int | None) -> list[Any]:
    return [word if mark is None else [word, mark], " "]


def _bag(explorer: Explorer, i: int) -> list[tuple[int, float]]:
    """Words of a document and how often it has them, most frequent first."""
    X = explorer.counts
    start, end = int(X.indptr[i]), int(X.indptr[i + 1])
    columns, counts = X.indices[start:end], X.data[start:end] * explorer.unit
    order = np.argsort(-counts, kind="stable")
    return [(int(columns[p]), float(counts[p])) for p in order]


# a search ------------------------------------------------------------------------------------


def search(explorer: Explorer, given: Mapping[str, str]) -> dict[str, Any]:
    """The topic that words or documents point at."""
    if explorer.search is None:
        raise NotThere(explorer.why or "This page has no search.")
    column, n = explorer.places.column, _most(given)
    if given.get("rows"):
        rows = parse_rows(given["rows"], len(explorer.documents))
        query = Query([], [])
        found = explorer.search.search(documents=np.isin(np.arange(len(explorer.documents)), rows))
    else:
        rows = []
        query = parse(given.get("q", ""), column, explorer.places.stop)
        plus, minus = ([explorer.words[column[word]] for word in some] for some in query)
        found = explorer.search.search(plus, negative=minus or None)
    law, mean = found.parameters, found.index.mean
    mark = dict.fromkeys(_telling(law, mean), 1)
    mark |= {column[word]: 2 for word in query.include}
    shares, by, view = found.shares(), explorer.searched, explorer.view
    used = explorer.search._used
    top = leading(np.where(used, shares, -1.0), min(n, int(used.sum())))
    return {
        "include": query.include,
        "exclude": query.exclude,
        "held": list(found.report.details["documents"].values()) if query.include else [],
        "rows": rows,
        "weight": number(found.weight),
        "clear": bool(found.informative),
        "verdict": _in_plain_words(found, len(query.include)),
        "reasons": list(found.report.warnings),
        "measured": found.report.full().split("\n")[-1],
        "words": _ranked(explorer, law, mean),
        "documents": [_card(explorer, i, shares[i], mark) for i in top.tolist()],
        "near": [] if view is None else _near(view.affinity(law)),
        "groups": _averages_of(shares, by.groups),
        "times": _averages_of(shares, by.times),
        "period": by.period,
    }


def _in_plain_words(found: TopicComponent, words: int) -> str:
    """How far to trust an answer to so many words, or to documents."""
    who = "these words" if words > 1 else "this word" if words else "these documents"
    if found.informative:
        return f"{who} {'points' if words == 1 else 'point'} at one topic."
    told = found.report.details
    if told.get("coherence", 0.0) > LIMITS.coherence[1]:
        return (
            "the words below nearly always stand together: this looks like a text that many "
            "documents repeat, more than like a topic."
        )
    if not words:
        return (
            "these documents have no one topic in common, so this may be a blend of several. "
            "Choose fewer, or others."
        )
    if words == 1 and next(iter(told["documents"].values())) < LIMITS.documents:
        return "so few documents hold this word that others would give other words. Add a word."
    if told.get("lift", math.inf) < LIMITS.lift:
        return (
            f"the words below are common everywhere, so {who} may have no topic of "
            f"{'their' if words > 1 else 'its'} own here. Try a more particular word."
        )
    return (
        f"{who} may mean several topics, so this may be a blend of them. Add a word that says "
        "which one you mean, or leave one out with a minus sign."
    )


def _averages_of(shares: np.ndarray, by: Grouping | None) -> list[list[Any]]:
    return [] if by is None else _averaged(averages(shares[:, None], by), by, 0)


# one document --------------------------------------------------------------------------------


def document(explorer: Explorer, i: int, start: int) -> dict[str, Any]:
    """A document with its topics, its words marked by the topic they belong to most."""
    own, view = explorer.documents, explorer.view
    if i >= len(own):
        raise NotThere(f"There is no document {i}.")
    bag = _bag(explorer, i)
    mark: dict[int, int] = {}
    topics: list[list[Any]] = []
    if view is not None and len(view.shares):
        share = view.shares[i].astype(np.float64)
        columns = np.array([j for j, _ in bag], dtype=np.int64)
        best = np.argmax(share[:, None] * view.topics[:, columns], axis=0)
        mark = dict(zip(columns.tolist(), best.tolist(), strict=True))
        topics = [[int(j), number(share[j])] for j in leading(share, TOPICS)]
    found = {
        **_about(explorer, i),
        "topics": topics,
        "words": [[str(explorer.words[j]), count, mark.get(j, -1)] for j, count in bag],
    }
    if not len(own.texts):
        return {**found, "parts": [], "from": 0, "until": 0, "characters": 0}
    text = own.texts[i]
    if start > max(len(text) - 1, 0):
        raise NotThere(f"The document has {len(text):,} characters.")
    end = min(len(text), start + PAGE)
    shown = text[start:end]
    return {
        **found,
        "parts": parts(shown, explorer.places.find(shown), mark, 0, len(shown)),
        "from": start,
        "until": end,
        "characters": len(text),
    }


__all__ = ["NotThere", "UnknownWord", "answer"]
