"""Commands: the demo on docstrings, topics of texts, searches, and shares of new texts."""

from __future__ import annotations

import functools
import json
import logging
import textwrap
import time
import warnings
from collections.abc import Callable
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
from thirdmoment.exceptions import InvalidInput, ThirdMomentWarning
from thirdmoment.report.labels import shown

app = typer.Typer(no_args_is_help=True, help="Topics by moments.")
console, messages = Console(), Console(stderr=True)

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


def said_in_one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are a sentence and exit code 2, never a traceback."""

    @functools.wraps(command)
    def told(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always", ThirdMomentWarning)
                command(*args, **kwargs)
        except (ValueError, OSError) as error:
            messages.print(f"[red]{escape(str(error))}[/red]", highlight=False)
            raise typer.Exit(2) from error
        finally:
            for text in dict.fromkeys(str(one.message) for one in found):
                messages.print(f"[yellow]{escape(text)}[/yellow]", highlight=False)

    return told


def escape(text: str) -> str:
    """Text for the console as it is: neither markup nor control characters act."""
    return markup.escape("\n".join(map(shown, text.split("\n"))))


def _picture_path(path: Path | None) -> Path | None:
    """Refuse before the fit what could not be written after it."""
    if path is None:
        return None
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
@said_in_one_sentence
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
    _search(corpus, corpus.X, corpus.feature_names, search or list(DEMO_WORDS), topics, words)


Source = Annotated[
    str,
    typer.Argument(
        help="Texts (.csv, .tsv, .jsonl, .parquet, .txt, a folder, a pattern), or word counts "
        "(docword.*.txt, .mtx, .npz)."
    ),
]
Vocabulary = Annotated[Path | None, typer.Option(help="Words of counts, one a line.")]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column that holds the texts.")]
GroupColumn = Annotated[str | None, typer.Option("--group", help="Column of groups.")]
TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of dates.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Out = Annotated[Path | None, typer.Option(help="Write the table: .csv, .json or .parquet.")]


@app.command("search")
@said_in_one_sentence
def search_file(
    source: Source,
    hints: Annotated[list[str], typer.Argument(help="Words to search topics of.")],
    text: TextColumn = None,
    vocabulary: Vocabulary = None,
    documents: Annotated[int, typer.Option(min=0, help="Documents shown for each word.")] = 0,
    topics: Topics = 50,
    words: Words = 8,
) -> None:
    """Find the topics of some words in texts or word counts."""
    corpus = _read(source, vocabulary, text)
    X, names = _counts(corpus)
    if names is None:
        raise InvalidInput("Give the words of the counts: --vocabulary FILE, one word a line.")
    _search(corpus, X, names, hints, topics, words, documents)


@app.command("topics")
@said_in_one_sentence
def topics_of_file(
    source: Source,
    text: TextColumn = None,
    group: GroupColumn = None,
    time: TimeColumn = None,
    vocabulary: Vocabulary = None,
    topics: Topics = 20,
    words: Words = 8,
    documents: Annotated[int, typer.Option(min=0, help="Typical documents of each topic.")] = 0,
    out: Out = None,
    save: Annotated[Path | None, typer.Option(help="Keep the model in this file.")] = None,
    as_json: Json = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the topics there.", callback=_picture_path)
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Learn the topics of texts or word counts."""
    _check_table(out)
    if save is not None and (save.is_dir() or not save.absolute().parent.is_dir()):
        raise InvalidInput(f"{save} is no place for a file: its folder must exist.")
    corpus = _read(source, vocabulary, text, group, time)
    X, names = _counts(corpus)
    names = np.arange(X.shape[1]).astype(str) if names is None else names
    fitted = corpus if isinstance(corpus, tm.text.TextCorpus) else X
    model, seconds = _fit(fitted, names, topics, verbose)
    table = model.topics_frame(corpus if fitted is corpus else X, n_words=words)
    texts = isinstance(corpus, tm.text.TextCorpus)
    if documents and texts:
        table["documents"] = [
            list(model.typical_documents(j, corpus, n=documents)["text"]) for j in table.index
        ]
    more = {}
    if group is not None and texts:
        more["by_group"] = model.by_group(corpus)
    if time is not None and texts:
        more["over_time"] = model.over_time(corpus)
    if save is not None:
        model.save(save)
    written = [save] if save is not None else []
    if out is not None:
        for name, frame in {"": table, **more}.items():
            path = out.with_stem(f"{out.stem}_{name}") if name else out
            _write(frame, path)
            written.append(path)
    if as_json:
        rows = json.loads(table.reset_index().to_json(orient="records"))
        others = {name: json.loads(frame.to_json(orient="records")) for name, frame in more.items()}
        console.print_json(data={"topics": rows, **others})
        if picture is not None:
            model.plot_topics(names, spectrum=True).savefig(picture, dpi=110)
        return
    _show(model, names, words, None)
    if documents and texts:
        for j in range(len(model.components_)):
            console.print(f"\n[bold]{escape(model.topic_labels_[j])}[/bold]")
            for one in model.typical_documents(j, corpus, n=documents).itertuples():
                start = textwrap.shorten(one.text, 160, placeholder=" ...")
                console.print(f"  {one.share:.0%}  {escape(start)}", highlight=False)
    for name, frame in more.items():
        _show_averages(name, frame)
    _finish(model, names, seconds, picture)
    for path in written:
        console.print(f"Written: {escape(str(path))}")


@app.command()
@said_in_one_sentence
def transform(
    model: Annotated[Path, typer.Argument(help="A model kept with --save.")],
    source: Source,
    out: Annotated[Path, typer.Option(help="Where the table goes: .csv, .json or .parquet.")],
    text: TextColumn = None,
    vocabulary: Vocabulary = None,
) -> None:
    """Topic shares of new documents, by a model that was kept."""
    _check_table(out)
    fitted = tm.load(model)
    if not hasattr(fitted, "documents_frame"):
        raise InvalidInput(f"{model} holds a {type(fitted).__name__}, which has no topics.")
    corpus = _read(source, vocabulary, text, like=fitted)
    table = fitted.documents_frame(corpus if hasattr(corpus, "__counts__") else _counts(corpus)[0])
    _write(table, out)
    console.print(f"{len(table):,} documents written to {escape(str(out))}.", highlight=False)


def _show_averages(name: str, frame: Any) -> None:
    """Mean shares, a row a topic and a column a group or year."""
    key = frame.columns[0]
    wide = frame.pivot_table(index="label", columns=key, values="share", sort=False)
    shown_table = Table(title=name.replace("_", " "), show_edge=False, pad_edge=False)
    for column in ("topic", *map(str, wide.columns)):
        shown_table.add_column(escape(column), justify="left" if column == "topic" else "right")
    for label, row in wide.iterrows():
        shown_table.add_row(escape(str(label)), *(f"{value:.0%}" for value in row))
    console.print(shown_table)


def _is_counts(source: str) -> bool:
    """Whether a file holds counts of words and not texts."""
    name = Path(source).name.lower().removesuffix(".gz")
    return name.endswith((".mtx", ".mm", ".npz")) or name.startswith("docword")


def _read(
    source: str,
    vocabulary: Path | None,
    text: str | None,
    group: str | None = None,
    time: str | None = None,
    *,
    like: Any = None,
) -> Any:
    """A corpus of texts, or counts with their words."""
    with console.status(f"Reading {escape(source)} ..."):
        if _is_counts(source) or vocabulary is not None:
            return load_bag_of_words(Path(source), vocabulary=vocabulary)
        corpus = tm.text.read(source, text=text, group=group, time=time, like=like)
    n, d = corpus.shape
    messages.print(f"{n:,} documents, {d:,} words.", highlight=False)
    return corpus


def _counts(corpus: Any) -> tuple[Any, Any]:
    if isinstance(corpus, tm.text.TextCorpus):
        return corpus.X, corpus.words
    X, names = corpus
    return X, names


TABLES = {".csv": "to_csv", ".json": "to_json", ".parquet": "to_parquet"}


def _check_table(path: Path | None) -> None:
    """Refuse before the fit what could not be written after it."""
    if path is None:
        return
    if path.suffix.lower() not in TABLES:
        raise InvalidInput(f"{path.name} must end in one of {', '.join(TABLES)}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidInput(f"{path} is no place for a file: its folder must exist.")


def _write(table: Any, path: Path) -> None:
    kind = path.suffix.lower()
    options: dict[str, dict[str, Any]] = {
        ".csv": {"index": table.index.name is not None},
        ".json": {"orient": "records"},
    }
    frame = table.reset_index() if kind == ".json" and table.index.name else table
    getattr(frame, TABLES[kind])(path, **options.get(kind, {}))


def _search(
    corpus: Any, X: Any, names: Any, hints: list[str], topics: int, words: int, documents: int = 0
) -> None:
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
        for i in found.documents(documents) if documents and hasattr(corpus, "texts") else ():
            table.add_row(
                "",
                f"[dim]{escape(textwrap.shorten(corpus.texts[i], 160, placeholder=' ...'))}[/dim]",
                "",
                "",
            )
    console.print(table)
    if not answered:
        raise typer.Exit(2)


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
            level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=messages)]
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
    model: tm.LatentDirichletAllocation, names: np.ndarray, seconds: float, picture: Path | None
) -> None:
    console.print()
    console.print(escape(str(model.report_)), highlight=False)
    console.print(f"Fitted in {seconds:.1f} s.")
    if picture is None:
        return
    figure = model.plot_topics(names, spectrum=True)
    figure.savefig(picture, dpi=110)
    console.print(f"Picture: {escape(str(picture.resolve()))}")
