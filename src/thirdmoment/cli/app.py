"""Commands: the demo on docstrings, and topics of a file of word counts."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import markup
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table

import thirdmoment as tm
from thirdmoment.datasets import LabelledCorpus, load_bag_of_words, load_docstrings
from thirdmoment.exceptions import InvalidInput
from thirdmoment.report.labels import shown

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Topics by moments.")
console = Console()

# What the demo searches for.
DEMO_WORDS = ("eigenvalues", "integral", "clustering")


def _version(asked: bool) -> None:
    if asked:
        console.print(f"thirdmoment {tm.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Topics by moments."""


def escape(text: str) -> str:
    """Text for the console as it is: neither markup nor control characters act."""
    return markup.escape("\n".join(map(shown, text.split("\n"))))


def _picture_path(path: Path) -> Path:
    """Refuse before the fit what could not be written after it."""
    from matplotlib.figure import Figure

    known = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix.lower().removeprefix(".") not in known:
        raise typer.BadParameter(f"{path.name} must end in one of .{', .'.join(known)}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"{path} is no place for a file: its folder must exist.")
    return path


Topics = Annotated[int, typer.Option("--topics", "-k", min=1, help="Number of topics.")]
Words = Annotated[int, typer.Option(min=1, help="Words shown for each topic.")]
Picture = Annotated[
    Path, typer.Option(help="Where the picture is written.", callback=_picture_path)
]
Search = Annotated[list[str] | None, typer.Option("--search", help="Words to search topics of.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log the progress of the fit.")]


@app.command()
def demo(
    topics: Topics = 20,
    words: Words = 8,
    picture: Picture = Path("thirdmoment-demo.png"),
    search: Search = None,
    verbose: Verbose = False,
) -> None:
    """Learn the topics of the docstrings of NumPy, SciPy and scikit-learn, and search for three."""
    with console.status("Reading the docstrings of NumPy, SciPy and scikit-learn ..."):
        corpus = load_docstrings()
    n, d = corpus.X.shape
    console.print(f"{n:,} docstrings, {d:,} words, {int(corpus.X.sum()):,} tokens.")
    model, seconds = _fit(corpus.X, corpus.feature_names, topics, verbose)
    _show(model, corpus.feature_names, words, best_labels(model, corpus))
    _finish(model, corpus.feature_names, seconds, picture)
    try:
        _search(corpus.X, corpus.feature_names, search or list(DEMO_WORDS), topics, words)
    except ValueError as error:
        console.print(f"[red]{escape(str(error))}[/red]")
        raise typer.Exit(1) from error


@app.command("search")
def search_file(
    counts: Annotated[Path, typer.Argument(help="docword.*.txt[.gz], .mtx or .npz")],
    hints: Annotated[list[str], typer.Argument(help="Words to search topics of.")],
    vocabulary: Annotated[Path, typer.Option(help="One word a line.")],
    topics: Topics = 50,
    words: Words = 8,
) -> None:
    """Find the topics of some words in a file of word counts."""
    try:
        X, names = load_bag_of_words(counts, vocabulary=vocabulary)
        _search(X, names, hints, topics, words)
    except (ValueError, FileNotFoundError) as error:
        console.print(f"[red]{escape(str(error))}[/red]")
        raise typer.Exit(1) from error


@app.command("topics")
def topics_of_file(
    counts: Annotated[Path, typer.Argument(help="docword.*.txt[.gz], .mtx or .npz")],
    vocabulary: Annotated[Path | None, typer.Option(help="One word a line.")] = None,
    topics: Topics = 20,
    words: Words = 8,
    picture: Picture = Path("thirdmoment-topics.png"),
    verbose: Verbose = False,
) -> None:
    """Learn the topics of a file of word counts."""
    try:
        X, names = load_bag_of_words(counts, vocabulary=vocabulary)
        names = np.arange(X.shape[1]).astype(str) if names is None else names
        model, seconds = _fit(X, names, topics, verbose)
    except (ValueError, FileNotFoundError) as error:
        console.print(f"[red]{escape(str(error))}[/red]")
        raise typer.Exit(1) from error
    _show(model, names, words, None)
    _finish(model, names, seconds, picture)


def _search(X: object, names: Any, hints: list[str], topics: int, words: int) -> None:
    start = time.perf_counter()
    search = tm.TopicSearch(topics).fit(X, feature_names=names)
    console.print(f"\nPrepared for searches in {time.perf_counter() - start:.2f} s.")
    table = Table(show_edge=False, pad_edge=False)
    for column in ("word", "its topic", "trust", "time"):
        table.add_column(column, overflow="fold")
    answered = 0
    for hint in hints:
        start = time.perf_counter()
        try:
            found = search.search(hint)
        except InvalidInput as error:
            table.add_row(escape(hint), f"[red]{escape(str(error))}[/red]", "", "")
            continue
        seconds, answered = time.perf_counter() - start, answered + 1
        trust = "clear" if found.informative else _doubt(found.report)
        table.add_row(escape(hint), escape(" ".join(map(str, found.top_words(words)))), trust,
                      f"{seconds * 1e3:.1f} ms")  # fmt: skip
    console.print(table)
    if not answered:
        raise typer.Exit(1)


def _doubt(report: tm.search.SearchReport) -> str:
    """In a few words why a hint is not informative."""
    first = report.warnings[0].split(":")[0].split(" (")[0]
    return first[0].lower() + first[1:]


def best_labels(model: tm.LatentDirichletAllocation, corpus: LabelledCorpus) -> list[str]:
    """For each topic the label whose documents it fills most beyond its overall share."""
    H = model.transform(corpus.X)
    labels, place, size = np.unique(corpus.labels, return_inverse=True, return_counts=True)
    share = np.zeros((len(labels), H.shape[1]))
    np.add.at(share, place, H)
    lift = share / (size + 10.0)[:, None]
    return [str(labels[j]) for j in np.argmax(lift, axis=0)]


def _fit(
    X: object, names: Any, topics: int, verbose: bool
) -> tuple[tm.LatentDirichletAllocation, float]:
    if verbose:
        logging.basicConfig(
            level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=console)]
        )
    start = time.perf_counter()
    with console.status(f"Learning {topics} topics ..."):
        model = tm.LatentDirichletAllocation(topics, verbose=int(verbose)).fit(
            X, feature_names=names
        )
    return model, time.perf_counter() - start


def _show(
    model: tm.LatentDirichletAllocation, names: np.ndarray, words: int, labels: list[str] | None
) -> None:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("topic", justify="right")
    table.add_column("weight", justify="right")
    table.add_column("top words", overflow="fold")
    if labels is not None:
        table.add_column("matches best", no_wrap=True)
    for j, row in enumerate(model.top_words(words, names)):
        cells = [str(j), f"{model.weights_[j]:.1%}", escape(" ".join(map(str, row)))]
        table.add_row(*cells, *([escape(labels[j])] if labels is not None else []))
    console.print(table)


def _finish(
    model: tm.LatentDirichletAllocation, names: np.ndarray, seconds: float, picture: Path
) -> None:
    console.print()
    console.print(escape(str(model.report_)), highlight=False)
    console.print(f"Fitted in {seconds:.1f} s.")
    figure = model.plot_topics(names, spectrum=True)
    figure.savefig(picture, dpi=110)
    console.print(f"Picture: {escape(str(picture.resolve()))}")
