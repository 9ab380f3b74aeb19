"""The command that opens a page: what is shown, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import thirdmoment as tm
from thirdmoment._constants import Wording
from thirdmoment.app import Explorer, explore
from thirdmoment.cli import show
from thirdmoment.cli.show import console, escape, messages
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.tables import TopicTables

TOPICS: Wording[int] = 20

# The demo: topics, and words in more docstrings than this say how one is written, not what it is
# about.
DEMO: Wording[tuple[int, float]] = (30, 0.12)
DEMO_TITLE = "Docstrings of NumPy, SciPy and scikit-learn"


class Given(NamedTuple):
    """What the command line said about the data."""

    source: str | None
    vocabulary: Path | None
    roles: dict[str, Any]
    topics: int | None
    model: Path | None
    title: str | None
    verbose: bool


def is_saved(source: str) -> bool:
    return source.lower().endswith(".tm")


class Page(NamedTuple):
    """What is shown, and the file that changes go to, if any."""

    explorer: Explorer
    kept: Path | None = None


def page(given: Given) -> Page:
    """Everything the page shows, from a file that was kept or from texts."""
    if given.source is None:
        raise InvalidInput("Give texts, or a file that was kept; or try --demo.")
    if is_saved(given.source):
        return _loaded(given, Path(given.source))
    model = _topics(given.model) if given.model is not None else None
    if model is not None and given.topics is not None:
        raise InvalidInput("-k is for new topics; --model has its own.")
    corpus = show.read(given.source, given.vocabulary, like=model, **given.roles)
    title = given.title or Path(given.source).name or given.source
    if show.is_texts(corpus):
        data, names = corpus, corpus.words
    else:
        data, names = show.counts_of(corpus)
        data = data if model is None else show.in_columns_of(model, corpus)
    if model is None:
        model = _fitted(data, names, given)
    return Page(_prepared(model, data, title))


def demo(given: Given) -> Page:
    """The docstrings that are on every machine."""
    if given.source is not None:
        raise InvalidInput(f"--demo has its own texts; leave out {given.source}.")
    topics, share = DEMO
    with messages.status("Reading the docstrings of NumPy, SciPy and scikit-learn ..."):
        rows = tm.datasets.docstring_texts()
        corpus = tm.text.read(lambda: rows, text="text", group="group", id="id", max_share=share)
    model = _fitted(corpus, corpus.words, given._replace(topics=given.topics or topics))
    return Page(_prepared(model, corpus, given.title or DEMO_TITLE))


def _fitted(data: Any, names: Any, given: Given) -> Any:
    model, seconds = show.fit(data, names, given.topics or TOPICS, given.verbose)
    found = show.number_of(len(model.components_), "topic")
    messages.print(f"{found} in {seconds:.1f} s.", highlight=False)
    return model


def _prepared(model: Any, data: Any, title: str) -> Explorer:
    with messages.status("Preparing the page ..."):
        return explore(model, data, title=title)


def _topics(path: Path) -> Any:
    found = tm.load(path)
    found = found.model if isinstance(found, Explorer) else found
    if not isinstance(found, TopicTables):
        raise InvalidInput(f"{path} holds no topics.")
    return found


def _loaded(given: Given, path: Path) -> Page:
    unused = [name for name, value in given.roles.items() if value]
    unused += [
        name for name in ("vocabulary", "topics", "model") if getattr(given, name) is not None
    ]
    if unused:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
        raise InvalidInput(f"{path} was kept as it is: {names} is for texts.")
    found = tm.load(path)
    if not isinstance(found, Explorer):  # a model: the file stays as it is
        return Page(explore(found, title=given.title or path.stem))
    if given.title is not None:
        found.title = given.title
    return Page(found, path)


# out -----------------------------------------------------------------------------------------


def check_kept(path: Path | None) -> None:
    """Refuse before the fit a name that could not be opened again."""
    if path is not None and not is_saved(path.name):
        raise InvalidInput(f"{path.name} must end in .tm.")
    show.check_place(path)


def check_export(path: Path | None) -> None:
    """Refuse before the fit what could not be written after it."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{path.name} must end in .html.")
    show.check_place(path)


def export(explorer: Explorer, path: Path) -> None:
    with messages.status(f"Writing {escape(str(path))} ..."):
        explorer.to_html(path)
    console.print(f"Page: {escape(path.resolve().as_uri())}", highlight=False, soft_wrap=True)


def serve(explorer: Explorer, *, host: str, port: int, browser: bool, kept: Path | None) -> None:
    """The live page until Ctrl-C; what was changed in it goes to the file that was kept."""
    server = explorer.serve(host=host, port=port, browser=False, block=False)
    if port and server.port != port:
        messages.print(f"Port {port} is in use; the page is at {server.port}.", highlight=False)
    console.print(f"Page: {server.url}", highlight=False, soft_wrap=True)
    if server.token is not None:
        messages.print(
            "Other machines reach it. Whoever has this address may read all documents and "
            "change names."
        )
    messages.print("Press Ctrl-C to end.")
    if browser:
        server.open()
    server.wait()
    if not explorer.past:
        return
    if kept is None:
        messages.print("The names and merged topics are gone now; --save FILE keeps them.")
    else:
        explorer.save(kept)
        console.print(f"Names and merged topics are kept in {escape(str(kept))}.", highlight=False)
