"""Documents of files: tables, JSON lines, Parquet, MALLET lines, folders of texts."""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from thirdmoment._constants import Limit, Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.text.records import Columns, Problems, Record, checked

SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
TEXTS = (".txt", ".md", ".rst")

# One field of a table may be a whole book, not more.
LONGEST_FIELD: Limit[int] = 2**27

# Lines between two looks at the place in a file.
LOOK: Work[int] = 256


def paths_of(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.is_file() and _reader_of(p) is not None)
        if not found:
            raise InvalidInput(
                f"The folder {path} has no files that are read: {', '.join(TEXTS)}, .csv, .tsv, "
                ".jsonl, .mallet or .parquet."
            )
        return found
    if not path.exists() and any(sign in str(source) for sign in "*?["):
        base = Path(path.anchor) if path.is_absolute() else Path()
        named = base.glob(str(path.relative_to(path.anchor) if path.anchor else path))
        found = sorted(p for p in named if p.is_file() and _reader_of(p) is not None)
        if not found:
            raise InvalidInput(f"No file that can be read is called {source}.")
        return found
    if not path.exists():
        raise FileNotFoundError(2, "No such file or folder", str(path))
    if _reader_of(path) is None:
        raise InvalidInput(
            f"{path.name} is of no kind that is read: {', '.join(TEXTS)}, .csv, .tsv, .jsonl, "
            ".mallet or .parquet, also with .gz behind it. A list of texts or a frame is fine, too."
        )
    return [path]


def readable(path: Path) -> bool:
    """Whether files of this name are read."""
    return _reader_of(path) is not None


Reader = Callable[[Path, Columns, Problems, str | None], Iterator[Record]]


def _reader_of(path: Path) -> Reader | None:
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    suffix = suffix.lower()
    if suffix in TEXTS:
        return _text_file
    if suffix in SUFFIXES:
        return _table
    if suffix in (".jsonl", ".ndjson"):
        return _json_lines
    if suffix == ".mallet":
        return _mallet
    return _parquet if suffix in (".parquet", ".pq") else None


def read_files(
    paths: list[Path], columns: Columns, problems: Problems, encoding: str | None
) -> Iterator[Record]:
    sizes = [path.stat().st_size for path in paths]
    total, done = max(sum(sizes), 1), 0
    for path, size in zip(paths, sizes, strict=True):
        reader = _reader_of(path)
        assert reader is not None
        problems.files = (done, total)
        yield from reader(path, columns, problems, encoding)
        done += size


def _decoded(path: Path, encoding: str | None, problems: Problems | None = None) -> Iterator[str]:
    """Lines of a text file, line ends kept; those that are not UTF-8 are told."""
    chosen, strict = _encoding(path, encoding), "strict" if encoding else "surrogateescape"
    try:
        with _opener(path)(path, "rt", encoding=chosen, errors=strict, newline="") as file:
            raw = file.buffer.fileobj if path.suffix == ".gz" else file.buffer.raw
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_FIELD), "")):
                if len(line) == LONGEST_FIELD:
                    raise InvalidInput(f"{path} has a line of more than {LONGEST_FIELD:,} letters.")
                if problems is not None and number % LOOK == 0:
                    problems.at(raw.tell())
                if encoding is None and not line.isascii():
                    line = _mended(line, f"{path}:{number + 1}", problems)
                yield line
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not {encoding} (byte {error.start}). Give its encoding=, or save it as "
            "UTF-8."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput(f"{path} is cut off or no gzip file ({error}).") from error


def _mended(line: str, place: str, problems: Problems | None) -> str:
    """A line that is not UTF-8, as Windows-1252; the lines around it may well be UTF-8."""
    try:
        line.encode()
        return line
    except UnicodeEncodeError:
        if problems is not None:
            problems.add("lines that are not UTF-8 and were read as Windows-1252", place)
    raw = line.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("cp1252")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _encoding(path: Path, given: str | None) -> str:
    """The encoding that is given, UTF-16 where a mark says so, else UTF-8; no binary files."""
    if given is not None:
        try:
            known = codecs.lookup(given).name
            "".encode(given)  # codecs such as base64 are none of text
        except LookupError as error:
            raise InvalidInput(f"encoding={given!r} is none that Python knows.") from error
        return "utf-8-sig" if known == "utf-8" else given
    try:
        with _opener(path)(path, "rb") as file:
            start = file.read(2**16)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput(f"{path} is cut off or no gzip file ({error}).") from error
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if b"\0" in start:
        raise InvalidInput(
            f"{path} is a binary file, not text. (If it is text of two bytes a letter, give "
            "encoding='utf-16'.)"
        )
    return "utf-8-sig"


def _opener(path: Path) -> Any:
    return gzip.open if path.suffix == ".gz" else open


def _text_file(
    path: Path, columns: Columns, problems: Problems, encoding: str | None
) -> Iterator[Record]:
    """A file is a document, named after it; its folder is its group."""
    text = "".join(_decoded(path, encoding, problems))
    if text.strip():
        yield Record(text, path.parent.name, None, str(path))
    else:
        problems.add("empty files", str(path))


def _table(
    path: Path, columns: Columns, problems: Problems, encoding: str | None
) -> Iterator[Record]:
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    csv.field_size_limit(LONGEST_FIELD)
    lines = csv.reader(_decoded(path, encoding, problems), delimiter=SUFFIXES[suffix.lower()])
    names = next((row for row in lines if row), None)  # blank lines may come first
    if names and len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        sign = max(";\t|", key=names[0].count)
        problems.forget()
        lines = csv.reader(_decoded(path, encoding, problems), delimiter=sign)
        names = next((row for row in lines if row), None)
    if not names:
        raise InvalidInput(f"{path} is empty: a table needs a line with the names of its columns.")
    if len(set(names)) < len(names):
        raise InvalidInput(f"{path} has two columns of one name: {', '.join(map(repr, names))}.")
    roles = columns.found_in(names, str(path))
    place = {role: names.index(name) for role, name in roles._asdict().items() if name is not None}
    try:
        before, spread = lines.line_num, 0
        for number, row in enumerate(lines):
            spread, before = lines.line_num - before, lines.line_num
            if len(row) != len(names):
                if row:
                    problems.add(f"rows without {len(names)} fields", f"{path}:{lines.line_num}")
                continue
            values = {"id": number, **{role: row[j] for role, j in place.items()}}
            yield from checked(values, problems, f"{path}:{lines.line_num}")
        if spread > 1 and _is_open(path, encoding, before - spread, lines.dialect.delimiter):
            raise InvalidInput(
                f"{path}:{before - spread + 1} has a quote that is never closed, so that the rest "
                "of the file is one field. Close it, or double quotes inside of texts."
            )
    except csv.Error as error:
        raise InvalidInput(f"{path}:{lines.line_num} is no line of a table ({error}).") from error


def _is_open(path: Path, encoding: str | None, line: int, delimiter: str) -> bool:
    """Whether a file ends within a quoted field that begins on a line."""
    rest = itertools.islice(_decoded(path, encoding), line, None)
    row: list[str] = []
    for row in csv.reader(itertools.chain(rest, ["end"]), delimiter=delimiter):
        pass
    return row != ["end"]  # the line that was added has become part of a field


def _json_lines(
    path: Path, columns: Columns, problems: Problems, encoding: str | None
) -> Iterator[Record]:
    roles: Columns | None = None
    seen: dict[str, None] = {}
    for number, line in enumerate(_decoded(path, encoding, problems), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            problems.add("lines that are no JSON object", f"{path}:{number}")
            continue
        if roles is None:  # later rows may have keys that the first has not
            named = [name for name in columns if name is not None]
            roles = columns.found_in([*row, *named[columns.text is not None :]], f"{path}:{number}")
        seen.update(dict.fromkeys(row))
        wanted = {role: name for role, name in roles._asdict().items() if name is not None}
        values = {"id": number - 1, **{role: row.get(name) for role, name in wanted.items()}}
        yield from checked(values, problems, f"{path}:{number}")
    if seen:
        columns.found_in(list(seen), str(path))  # a name that no row has is a mistake


def _mallet(
    path: Path, columns: Columns, problems: Problems, encoding: str | None
) -> Iterator[Record]:
    """A name, a label and a text on every line, as MALLET imports them."""
    for number, line in enumerate(_decoded(path, encoding, problems), start=1):
        name, label, text = [*line.split(None, 2), "", "", ""][:3]
        if name:
            values = {"id": name, "group": label or None, "text": text.strip()}
            yield from checked(values, problems, f"{path}:{number}")


def _parquet(
    path: Path, columns: Columns, problems: Problems, encoding: str | None
) -> Iterator[Record]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InvalidInput(
            "Parquet files are read by pyarrow: pip install 'thirdmoment[text]'."
        ) from error
    try:
        file = pyarrow.parquet.ParquetFile(path)
        roles = columns.found_in(file.schema_arrow.names, str(path))
        wanted = {role: name for role, name in roles._asdict().items() if name is not None}
        number = 0
        size, rows = path.stat().st_size, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(columns=list(dict.fromkeys(wanted.values()))):
            problems.at(size * number // rows)
            held = {role: batch.column(name).to_pylist() for role, name in wanted.items()}
            for i in range(batch.num_rows):
                number += 1
                values = {"id": number - 1, **{role: held[role][i] for role in wanted}}
                yield from checked(values, problems, f"{path}, row {number}")
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise InvalidInput(f"{path} is no Parquet file, or it is damaged ({error}).") from error
