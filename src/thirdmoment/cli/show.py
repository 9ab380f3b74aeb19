"""What commands share: reading with progress, fitting, tables on the screen and in files."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import secrets
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import typer
from rich import markup, progress
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table

import thirdmoment as tm
from thirdmoment.datasets import LabelledCorpus, load_bag_of_words
from thirdmoment.exceptions import InvalidInput
from thirdmoment.recovery.order import leading_columns
from thirdmoment.report.labels import shown

console, messages = Console(emoji=False), Console(stderr=True, emoji=False)

OPTIONS = {"(text=": "(--text", "n_components=": "-k ", "n_components": "-k",
           "stop_words=": "--stop-words ", "encoding=": "--encoding ", "text=": "--text ",
           "group=": "--group ", "time=": "--time ", "id=": "--id "}  # fmt: skip
TABLES = {".csv": "to_csv", ".json": "to_json", ".parquet": "to_parquet"}


def escape(text: str) -> str:
    """Text for the console as it is: neither markup nor control characters act."""
    return markup.escape("\n".join(map(shown, text.split("\n"))))


def in_options(text: str) -> str:
    """Advice in the words of the command line."""
    for said, option in OPTIONS.items():
        text = text.replace(said, option)
    return re.sub(r"(--[a-z-]+) +(?=[).,])", r"\1", re.sub(r"(--[a-z-]+)  +", r"\1 ", text))


untold: list[list[Any]] = []  # warnings of the command that runs, until they are told


def tell_warnings() -> None:
    """Say what the command has been warned of so far, each once."""
    found = untold[-1] if untold else []
    for text in dict.fromkeys(in_options(str(one.message)) for one in found):
        messages.print(f"[yellow]{escape(text)}[/yellow]", highlight=False)
    found.clear()


def number_of(n: int, one: str) -> str:
    return f"{n:,} {one}" + ("" if n == 1 else "s")


# reading -------------------------------------------------------------------------------------


def read(
    source: str, vocabulary: Path | None, *, like: Any = None, stream: bool = False, **roles: Any
) -> Any:
    """A corpus of texts, or counts with their words."""
    name = Path(source).name.lower().removesuffix(".gz")
    whole = name.endswith((".mtx", ".mm", ".npz")) or name.startswith("docword")
    pairs = name.endswith((".svmlight", ".svm", ".libsvm", ".ldac", ".lda-c"))
    if whole or pairs or vocabulary is not None:
        given = {**roles, "stream": stream}
        unused = ", ".join(f"--{n.replace('_', '-')}" for n, value in given.items() if value)
        if unused:
            raise InvalidInput(f"{source} holds counts, not texts: {unused} is for texts.")
        with console.status(f"Reading {escape(source)} ..."):
            if whole:
                return load_bag_of_words(Path(source), vocabulary=vocabulary)
            found = tm.source(source, vocabulary=vocabulary)
            return found.gather(), found.words
    with _reading(source) as tell:
        corpus = tm.text.read(source, like=like, stream=stream, progress=tell, **roles)
    n, d = corpus.shape
    messages.print(f"{number_of(n, 'document')}, {number_of(d, 'word')}.", highlight=False)
    return corpus


@contextmanager
def _reading(source: str) -> Iterator[Any]:
    """Documents a second and time left, on the error stream of a terminal."""
    bar = progress.Progress(
        progress.TextColumn("Reading {task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[documents]:,} documents, {task.fields[rate]:,} a second"),
        progress.TimeRemainingColumn(),
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    )
    task = bar.add_task(escape(source), total=None, documents=0, rate=0)
    start = time.perf_counter()

    def tell(documents: int, share: float | None) -> None:
        rate = round(documents / max(time.perf_counter() - start, 1e-9))
        place = {} if share is None else {"total": 1.0, "completed": share}
        bar.update(task, documents=documents, rate=rate, **place)

    with bar:
        yield tell


def is_texts(corpus: Any) -> bool:
    return hasattr(corpus, "texts_at")


def in_columns_of(model: Any, corpus: Any) -> Any:
    """Counts with the columns of a model, by the names of the words where both have names."""
    X, words = corpus
    known = model.words_
    if words is None or not isinstance(known[0], str):
        return X
    place = {word: j for j, word in enumerate(words)}
    if not any(word in place for word in known):
        raise InvalidInput("The counts have none of the words of the model.")
    empty = sp.csc_array((X.shape[0], 1))
    X = sp.hstack([sp.csc_array(X), empty], format="csc")  # the last is for words that are missing
    return sp.csr_array(X[:, [place.get(word, len(words)) for word in known]])


def counts_of(corpus: Any) -> tuple[Any, Any]:
    """Counts and the words of their columns, None where they have no names."""
    return (corpus.X, corpus.words) if is_texts(corpus) else (corpus[0], corpus[1])


# fitting -------------------------------------------------------------------------------------


class _Sweeps(logging.Handler):
    """Shows how far a fit is."""

    def __init__(self, status: Any, text: str, most: int) -> None:
        super().__init__()
        self.status, self.text, self.most = status, text, most
        self.begun = time.perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        done = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if str(record.msg).startswith("sweep") and isinstance(done, int):
            left = (time.perf_counter() - self.begun) / done * (self.most - done)
            self.status.update(
                f"{self.text} sweep {done} of at most {self.most}, at most {left:.0f} s left"
            )


def fit(
    X: object, names: Any, topics: int, verbose: bool, seeds: Any = None
) -> tuple[tm.LatentDirichletAllocation, float]:
    """A fitted model and the seconds it took."""
    if verbose:
        logging.basicConfig(
            level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=messages)]
        )
    start, logger = time.perf_counter(), logging.getLogger("thirdmoment")
    model = tm.LatentDirichletAllocation(topics, verbose=1)
    text = f"Learning {topics} topics ..."
    with messages.status(text) as status:
        handler = _Sweeps(status, text, model.max_refine_iter)
        logger.addHandler(handler)
        try:
            model.fit(X, feature_names=names, seeds=seeds)
        finally:
            logger.removeHandler(handler)
    return model, time.perf_counter() - start


def read_seeds(given: list[str] | None) -> dict[str, list[str]] | None:
    """``name=word,word`` as the seeds of a fit."""
    if not given:
        return None
    found: dict[str, list[str]] = {}
    for one in given:
        name, sign, words = one.partition("=")
        if not sign or not name.strip() or not words.strip():
            raise InvalidInput(f"--seed {one} is not of the form name=word,word.")
        found[name.strip()] = [*found.get(name.strip(), []), *words_of(words)]
    return found


def words_of(given: str | None) -> list[str]:
    """Words that are parted by commas."""
    return [word.strip() for word in (given or "").split(",") if word.strip()]


def best_labels(model: tm.LatentDirichletAllocation, corpus: LabelledCorpus) -> list[str]:
    """For each topic the label whose documents it fills most beyond its overall share."""
    H = model.transform(corpus.X)
    labels, place, size = np.unique(corpus.labels, return_inverse=True, return_counts=True)
    share = np.zeros((len(labels), H.shape[1]))
    np.add.at(share, place, H)
    lift = share / (size + 10.0)[:, None]
    return [str(labels[j]) for j in np.argmax(lift, axis=0)]


# showing and writing -------------------------------------------------------------------------


def show_topics(
    model: tm.LatentDirichletAllocation, names: Any, words: int, labels: list[str] | None
) -> None:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("topic", justify="right")
    table.add_column("weight", justify="right")
    table.add_column("top words", overflow="fold")
    if labels is not None:
        table.add_column("matches best", no_wrap=True)
    named = getattr(model, "_names", {})
    for j, row in enumerate(model.top_words(words, names)):
        name = f"[bold]{escape(named[j])}:[/bold] " if j in named else ""
        cells = [str(j), f"{model.weights_[j]:.1%}", name + escape(" ".join(map(str, row)))]
        table.add_row(*cells, *([escape(labels[j])] if labels is not None else []))
    console.print(table)


Typical = list[list[tuple[float, str]]]


def typical_documents(model: tm.LatentDirichletAllocation, corpus: Any, n: int) -> Typical:
    """Shares and texts of the typical documents of every topic; texts are read once."""
    shares = model.transform(corpus)
    rows = leading_columns(shares.T, n)  # (k, n)
    texts = iter(corpus.texts_at(rows.ravel()))
    return [[(float(shares[i, j]), next(texts)) for i in own] for j, own in enumerate(rows)]


def show_documents(model: tm.LatentDirichletAllocation, typical: Typical) -> None:
    for label, documents in zip(model.topic_labels_, typical, strict=True):
        console.print(f"\n[bold]{escape(label)}[/bold]")
        for share, text in documents:
            start = textwrap.shorten(text, 160, placeholder=" ...")
            console.print(f"  {share:.0%}  {escape(start)}", highlight=False)


def show_averages(name: str, frame: Any) -> None:
    """Mean shares, a row a topic and a column a group or year."""
    key = frame.columns[0]
    wide = frame.pivot_table(index=["topic", "label"], columns=key, values="share", sort=False)
    shown_table = Table(title=name.replace("_", " "), show_edge=False, pad_edge=False)
    for column in ("topic", *map(str, wide.columns)):
        shown_table.add_column(escape(column), justify="left" if column == "topic" else "right")
    for (_, label), row in wide.iterrows():
        shown_table.add_row(escape(str(label)), *(f"{value:.0%}" for value in row))
    console.print(shown_table)


def finish(
    model: tm.LatentDirichletAllocation, names: Any, seconds: float, picture: Path | None
) -> None:
    console.print()
    console.print(escape(in_options(str(model.report_))), highlight=False)
    console.print(f"Fitted in {seconds:.1f} s.")
    if picture is None:
        return
    figure = model.plot_topics(names, spectrum=True)
    figure.savefig(picture, dpi=110)
    console.print(f"Picture: {escape(str(picture.resolve()))}")


def check_table(path: Path | None) -> None:
    """Refuse before the fit what could not be written after it."""
    if path is None:
        return
    if path.suffix.lower() not in TABLES:
        raise InvalidInput(f"{path.name} must end in one of {', '.join(TABLES)}.")
    if path.suffix.lower() == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InvalidInput("Parquet files are written by pyarrow: pip install 'thirdmoment[text]'.")
    check_place(path)


def check_place(path: Path | None) -> None:
    if path is None:
        return
    folder = path.absolute().parent
    if (path.exists() and not path.is_file()) or not folder.is_dir():
        raise InvalidInput(f"{path} is no place for a file: its folder must exist.")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{folder} cannot be written to.")


def write(table: Any, path: Path) -> None:
    """A table as a file, whole or not at all."""
    kind = path.suffix.lower()
    options: dict[str, dict[str, Any]] = {
        ".csv": {"index": table.index.name is not None},
        ".json": {"orient": "records"},
    }
    frame = table.reset_index() if kind == ".json" and table.index.name else table
    mixed = {name for name in frame if len({type(one) for one in frame[name]} - {type(None)}) > 1}
    frame = frame.astype(dict.fromkeys(mixed - set(frame.select_dtypes("number")), str))
    begun = path.with_name(f".{secrets.token_hex(8)}{kind}")
    try:
        getattr(frame, TABLES[kind])(begun, **options.get(kind, {}))
        begun.replace(path)
    except OSError as error:  # in the user's own words, not of a file that is gone again
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        begun.unlink(missing_ok=True)


# searching -----------------------------------------------------------------------------------


def search(
    corpus: Any, X: Any, names: Any, hints: list[str], topics: int, words: int, documents: int = 0
) -> None:
    """The topics of some words, as a table."""
    start = time.perf_counter()
    prepared = tm.TopicSearch(topics).fit(X, feature_names=names)
    console.print(f"\nPrepared for searches in {time.perf_counter() - start:.2f} s.")
    table = Table(show_edge=False, pad_edge=False)
    for column in ("word", "its topic", "trust", "time"):
        table.add_column(column, overflow="fold")
    answered = 0
    for hint in hints:
        start = time.perf_counter()
        try:
            found = prepared.search(hint)
        except InvalidInput as error:
            table.add_row(escape(hint), f"[red]{escape(str(error))}[/red]", "", "")
            continue
        seconds, answered = time.perf_counter() - start, answered + 1
        trust = "clear" if found.informative else _doubt(found.report)
        table.add_row(escape(hint), escape(" ".join(map(str, found.top_words(words)))), trust,
                      f"{seconds * 1e3:.1f} ms")  # fmt: skip
        if documents and is_texts(corpus):
            for text in corpus.texts_at(found.documents(documents)):
                short = textwrap.shorten(text, 160, placeholder=" ...")
                table.add_row("", f"[dim]{escape(short)}[/dim]", "", "")
    console.print(table)
    if not answered:
        raise typer.Exit(2)


def _doubt(report: tm.search.SearchReport) -> str:
    """In a few words why a hint is not informative."""
    first = report.warnings[0].split(":")[0].split(" (")[0]
    return first[0].lower() + first[1:]
