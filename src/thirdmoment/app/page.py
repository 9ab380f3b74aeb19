"""The page as HTML: for the server, as one file to send, and inside a notebook.

Text of the data enters it as escaped text or as JSON in a data block, which nothing runs.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thirdmoment._constants import Work
from thirdmoment._version import __version__
from thirdmoment.app.answers import DOCUMENTS, answer
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_integer

if TYPE_CHECKING:
    from thirdmoment.app.explorer import Explorer

# Words and documents of the page inside a notebook, which is saved with it.
NOTEBOOK: Work[tuple[int, int]] = (100, 3)

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Ccircle cx='9' cy='22' r='7' fill='%231f5f9f'/%3E%3Ccircle cx='23' cy='22' r='7' "
    "fill='%23d1495b'/%3E%3Ccircle cx='16' cy='10' r='7' fill='%232e8b6f'/%3E%3C/svg%3E"
)

COMMON = "img-src data:; base-uri 'none'; form-action 'none'"
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; {COMMON}; "
    "frame-ancestors 'none'"
)


@functools.cache
def asset(name: str) -> str:
    """The script or the style sheet."""
    return (resources.files("thirdmoment.app") / "static" / name).read_text("utf-8")


def live_page(explorer: Explorer, token: str) -> str:
    """The page that asks the server."""
    data = {"live": True, "token": token, "overview": answer(explorer, "overview", {})}
    head = '<link rel="stylesheet" href="explorer.css">'
    return _page(data, head, '<script type="module" src="explorer.js"></script>')


def export_page(explorer: Explorer, words: int, documents: int) -> str:
    """The page with all its answers inside."""
    words, documents = check_integer("words", words, 0), check_integer("documents", documents, 1)
    script, style = asset("explorer.js"), asset("explorer.css")
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; {COMMON}"
    found = answers(explorer, words, documents)
    overview = found.pop("overview")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<style>{style}</style>"
    )
    data = {"live": False, "overview": overview, "answers": found}
    return _page(data, head, f'<script type="module">{script}</script>')


def answers(explorer: Explorer, words: int, documents: int) -> dict[str, Any]:
    """Answers by their addresses: all topics, some words, and the documents that these show."""
    found: dict[str, Any] = {}

    def ask(path: str, given: Mapping[str, str] | None = None) -> dict[str, Any]:
        address = path + "".join(f"?{name}={value}" for name, value in (given or {}).items())
        found[address] = answer(explorer, path, {"n": str(documents), **(given or {})})
        return found[address]

    overview = ask("overview")
    known = []
    shown: dict[int, None] = {}
    asked = [ask(f"topic/{row['number']}") for row in overview["topics"]]
    for word in _chosen(explorer, overview, words) if explorer.search is not None else ():
        try:
            asked.append(ask("search", {"q": _quoted(word)}))
            known.append(word)
        except InvalidInput:  # a word of too few documents, say
            continue
    for one in asked:
        one["documents"] = one["documents"][:documents]
        shown |= dict.fromkeys(card["row"] for card in one["documents"])
    for row in shown:
        one = ask(f"document/{row}")
        if one["parts"]:  # they show all there is to see
            one["words"] = []
    found["words"] = {"words": known}
    return found


def _chosen(explorer: Explorer, overview: dict[str, Any], most: int) -> list[str]:
    """Words to search for: those to begin with, those that stand for topics, the most frequent."""
    lists = [row["relevant"] for row in overview["topics"]]
    turns = [one[i] for i in range(DOCUMENTS) for one in lists if i < len(one)]
    frequent = answer(explorer, "words", {})["words"]
    return list(dict.fromkeys([*overview["examples"], *turns, *frequent]))[:most]


def _quoted(word: str) -> str:
    """A word as the page asks for it: in quotes where its signs could mean something else."""
    return word if re.fullmatch(r'[^\W_]([^\s"]*[^\W_])?', word) else f'"{word}"'


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _page(data: dict[str, Any], head: str, script: str) -> str:
    overview = data["overview"]
    title = escape(overview["title"])
    block = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":  # so that no text of the data ends the block
        block = block.replace(sign, f"\\u{ord(sign):04x}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><meta name="generator" content="thirdmoment {__version__}">'
        f'<meta name="color-scheme" content="light dark"><link rel="icon" href="{ICON}">{head}'
        '</head>\n<body><header id="head"></header>\n<main id="main" tabindex="-1">'
        f"{_plain(overview)}</main>\n"
        f'<script type="application/json" id="data">{block}</script>\n{script}</body></html>\n'
    )


def _plain(overview: dict[str, Any]) -> str:
    """The topics for a browser that runs no script, and for the first moment of one that does."""
    rows = "".join(
        f'<tr><td class="number">{row["weight"]:.1%}</td><th scope="row">{escape(row["label"])}'
        f"</th><td>{escape(', '.join(row['words']))}</td></tr>"
        for row in overview["topics"]
    )
    table = (
        "<table><thead><tr><th scope='col'>Share</th><th scope='col'>Topic</th>"
        f"<th scope='col'>Top words</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    report = overview["report"] or overview["search"]
    said = "".join(f"<p>{escape(line)}</p>" for line in (report["verdict"], *report["lines"]))
    size = f"{overview['documents']:,} documents, {overview['words']:,} words."
    return (
        f"<h1>{escape(overview['title'])}</h1><p>{size}</p>{table if rows else ''}{said}"
        "<noscript><p>Searching and reading documents here needs JavaScript, which is "
        "turned off.</p></noscript>"
    )


def write_export(explorer: Explorer, path: Path, words: int, documents: int) -> None:
    """The page as one file, whole or not at all."""
    text = export_page(explorer, words, documents)
    begun = path.with_name(f".{secrets.token_hex(8)}.html")
    try:
        begun.write_bytes(text.encode("utf-8", "replace"))
        begun.replace(path)
    except OSError as error:  # in the user's own words, not of a file that is gone again
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        begun.unlink(missing_ok=True)


def notebook_page(explorer: Explorer) -> str:
    """A frame that holds the whole page, shut off from the notebook around it."""
    page = escape(export_page(explorer, *NOTEBOOK)).encode("ascii", "xmlcharrefreplace").decode()
    return (
        f'<iframe title="{escape(explorer.title)}" width="100%" height="720" '
        'sandbox="allow-scripts allow-forms allow-downloads allow-popups" '
        f'style="border:1px solid #ccc;border-radius:8px" srcdoc="{page}"></iframe>'
    )
