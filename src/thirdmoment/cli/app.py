"""Commands: the demo on docstrings, topics of texts, searches, and shares of new texts."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import thirdmoment as tm
from thirdmoment.cli import show
from thirdmoment.cli.show import console, escape, messages
from thirdmoment.datasets import load_docstrings
from thirdmoment.exceptions import InvalidInput, ThirdMomentWarning

app = typer.Typer(no_args_is_help=True, help="Topics by moments.")

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
        failed = None
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always", ThirdMomentWarning)
            show.untold.append(found)
            try:
                command(*args, **kwargs)
            except (ValueError, OSError, MemoryError) as error:
                failed = error
            except ImportError as error:
                failed = InvalidInput(f"{error}: pip install 'thirdmoment[text,plot,app]'.")
            finally:
                show.tell_warnings()
                show.untold.pop()
        if failed is not None:
            text = show.in_options(_sentence(failed))
            messages.print(f"[red]{escape(text)}[/red]", highlight=False)
            raise typer.Exit(2) from failed

    return told


def _sentence(error: Exception) -> str:
    """An error in words; those of files without their number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return str(error)


def _picture_path(path: Path | None) -> Path | None:
    """Refuse before the fit what could not be written after it."""
    if path is None:
        return None
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise typer.BadParameter(
            "Pictures are drawn by matplotlib: pip install 'thirdmoment[plot]'."
        ) from error
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
Source = Annotated[
    str,
    typer.Argument(
        help="Texts (.csv, .tsv, .jsonl, .parquet, .txt, .mallet, a folder, a pattern), or word "
        "counts (docword.*.txt, .mtx, .npz, .svmlight, .ldac)."
    ),
]
Vocabulary = Annotated[Path | None, typer.Option(help="Words of counts, one a line.")]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column that holds the texts.")]
GroupColumn = Annotated[str | None, typer.Option("--group", help="Column of groups.")]
TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of dates.")]
NameColumn = Annotated[str | None, typer.Option("--id", help="Column of names of documents.")]
StopWords = Annotated[
    str | None, typer.Option("--stop-words", help="More words to leave out, parted by commas.")
]
Encoding = Annotated[str | None, typer.Option(help="Of text files; UTF-8 by default.")]
Stream = Annotated[bool, typer.Option("--stream", help="Hold texts on disk, not in memory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Out = Annotated[Path | None, typer.Option(help="Write the table: .csv, .json or .parquet.")]


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
    model, seconds = show.fit(corpus.X, corpus.feature_names, topics, verbose)
    show.show_topics(model, corpus.feature_names, words, show.best_labels(model, corpus))
    show.finish(model, corpus.feature_names, seconds, picture)
    hints = search or list(DEMO_WORDS)
    show.search(corpus, corpus.X, corpus.feature_names, hints, topics, words)


@app.command("search")
@said_in_one_sentence
def search_file(
    source: Source,
    hints: Annotated[list[str], typer.Argument(help="Words to search topics of.")],
    text: TextColumn = None,
    vocabulary: Vocabulary = None,
    documents: Annotated[int, typer.Option(min=0, help="Documents shown for each word.")] = 0,
    stop_words: StopWords = None,
    encoding: Encoding = None,
    stream: Stream = False,
    topics: Topics = 50,
    words: Words = 8,
) -> None:
    """Find the topics of some words in texts or word counts.

    For example: thirdmoment search reviews.csv battery glare --text body --documents 3
    """
    left_out = show.words_of(stop_words)
    corpus = show.read(
        source, vocabulary, text=text, stop_words=left_out, encoding=encoding, stream=stream
    )
    X, names = show.counts_of(corpus)
    if names is None:
        raise InvalidInput("Give the words of the counts: --vocabulary FILE, one word a line.")
    show.search(corpus, X, names, hints, topics, words, documents)


@app.command("topics")
@said_in_one_sentence
def topics_of_file(
    source: Source,
    text: TextColumn = None,
    group: GroupColumn = None,
    time: TimeColumn = None,
    id: NameColumn = None,
    vocabulary: Vocabulary = None,
    topics: Topics = 20,
    seed: Annotated[
        list[str] | None,
        typer.Option(help="A topic to find, by name: --seed sport=game,team. May be repeated."),
    ] = None,
    words: Words = 8,
    documents: Annotated[int, typer.Option(min=0, help="Typical documents of each topic.")] = 0,
    stop_words: StopWords = None,
    encoding: Encoding = None,
    stream: Stream = False,
    out: Out = None,
    save: Annotated[Path | None, typer.Option(help="Keep the model in this file.")] = None,
    as_json: Json = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the topics there.", callback=_picture_path)
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Learn the topics of texts or word counts.

    For example: thirdmoment topics reviews.csv --text body -k 30 --documents 2 --out topics.csv
    """
    show.check_table(out)
    show.check_place(save)
    seeds = show.read_seeds(seed)
    roles = {"text": text, "group": group, "time": time, "id": id, "encoding": encoding}
    left_out = show.words_of(stop_words)
    corpus = show.read(source, vocabulary, **roles, stop_words=left_out, stream=stream)
    texts = show.is_texts(corpus)
    if texts:
        data, names = corpus, corpus.words
    else:
        data, names = show.counts_of(corpus)
        names = np.arange(data.shape[1]).astype(str) if names is None else names
    model, seconds = show.fit(data, names, topics, verbose, seeds)
    table = model.topics_frame(data, n_words=words)
    typical = show.typical_documents(model, corpus, documents) if documents and texts else []
    if typical:
        table["documents"] = [[text for _, text in own] for own in typical]
    more = {}
    if group is not None and texts:
        more["by_group"] = model.by_group(corpus)
    if time is not None and texts:
        more["over_time"] = model.over_time(corpus)
    written = []
    if save is not None:
        model.save(save)
        written.append(save)
    if out is not None:
        for name, frame in {"": table, **more}.items():
            path = out.with_stem(f"{out.stem}_{name}") if name else out
            show.write(frame, path)
            written.append(path)
    if as_json:
        rows = json.loads(table.reset_index().to_json(orient="records"))
        others = {name: json.loads(frame.to_json(orient="records")) for name, frame in more.items()}
        console.print_json(data={"topics": rows, **others})
        if picture is not None:
            model.plot_topics(names, spectrum=True).savefig(picture, dpi=110)
        return
    show.show_topics(model, names, words, None)
    if typical:
        show.show_documents(model, typical)
    for name, frame in more.items():
        show.show_averages(name, frame)
    show.finish(model, names, seconds, picture)
    for path in written:
        console.print(f"Written: {escape(str(path))}")


@app.command()
@said_in_one_sentence
def explore(
    source: Annotated[
        str | None,
        typer.Argument(help="Texts or word counts as for topics, or what --save kept (.tm)."),
    ] = None,
    text: TextColumn = None,
    group: GroupColumn = None,
    time: TimeColumn = None,
    id: NameColumn = None,
    vocabulary: Vocabulary = None,
    topics: Annotated[
        int | None, typer.Option("--topics", "-k", min=1, help="Number of topics; 20 by default.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Topics that were kept, instead of new ones.")
    ] = None,
    stop_words: StopWords = None,
    encoding: Encoding = None,
    stream: Stream = False,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep topics, documents, search and names in this file.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write the page as one .html file, and open none.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; others need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="If in use, the next.")] = 8642,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    demo: Annotated[
        bool, typer.Option("--demo", help="The docstrings of NumPy, SciPy and scikit-learn.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Open a page to look around in: topics, documents, and a search that answers at once.

    For example: thirdmoment explore reviews.csv --text body --group stars --time date
    """
    from thirdmoment.cli import explore as page

    page.check_kept(save)
    page.check_export(export)
    roles = {"text": text, "group": group, "time": time, "id": id, "encoding": encoding,
             "stop_words": show.words_of(stop_words), "stream": stream}  # fmt: skip
    given = page.Given(source, vocabulary, roles, topics, model, title, verbose)
    explorer, kept = page.demo(given) if demo else page.page(given)
    if save is not None:
        explorer.save(save)
        console.print(f"Written: {escape(str(save))}", highlight=False)
    if export is not None:
        show.tell_warnings()
        page.export(explorer, export)
        return
    show.tell_warnings()
    page.serve(explorer, host=host, port=port, browser=browser, kept=save or kept)


@app.command()
@said_in_one_sentence
def transform(
    model: Annotated[Path, typer.Argument(help="A model kept with --save.")],
    source: Source,
    out: Annotated[Path, typer.Option(help="Where the table goes: .csv, .json or .parquet.")],
    text: TextColumn = None,
    id: NameColumn = None,
    vocabulary: Vocabulary = None,
    encoding: Encoding = None,
) -> None:
    """Topic shares of new documents, by a model that was kept.

    For example: thirdmoment transform reviews.tm new.csv --text body --out shares.parquet
    """
    show.check_table(out)
    fitted = tm.load(model)
    if not hasattr(fitted, "documents_frame"):
        raise InvalidInput(f"{model} holds a {type(fitted).__name__}, which has no topics.")
    corpus = show.read(source, vocabulary, text=text, id=id, encoding=encoding, like=fitted)
    counts = corpus if show.is_texts(corpus) else show.in_columns_of(fitted, corpus)
    table = fitted.documents_frame(counts)
    show.write(table, out)
    console.print(f"{len(table):,} documents written to {escape(str(out))}.", highlight=False)
