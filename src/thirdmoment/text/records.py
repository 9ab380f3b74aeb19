"""Documents with their groups, times and names, from frames, lists and callables.

Nothing is dropped in silence: rows that cannot be read are counted by reason, with the first place
of each, and a missing column is an error that lists those there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from thirdmoment.exceptions import InvalidInput


class Columns(NamedTuple):
    """Which column of a table holds what."""

    text: str | None = None
    group: str | None = None
    time: str | None = None
    id: str | None = None

    def found_in(self, names: Sequence[str], where: str) -> Columns:
        """The same, with the text column guessed where there is one candidate only."""
        for role, name in self._asdict().items():
            if name is not None and not isinstance(name, str) and hasattr(name, "__len__"):
                raise InvalidInput(f"{role}= is the name of a column of {where}, not its values.")
            if name is not None and name not in names:
                raise InvalidInput(
                    f"{where} has no column {name!r} ({role}=). Its columns are "
                    f"{', '.join(map(repr, names))}."
                )
        if self.text is not None:
            return self
        usual = [name for name in names if str(name).lower() in ("text", "body", "content")]
        candidates = list(names) if len(names) == 1 else usual
        if len(candidates) != 1:
            raise InvalidInput(
                f"Which column of {where} holds the texts? Give text=, one of "
                f"{', '.join(map(repr, names))}."
            )
        return self._replace(text=candidates[0])


class Record(NamedTuple):
    """One document."""

    text: str
    group: Any
    time: Any
    id: Any


class Problems:
    """Rows that could not be used, by reason, each with the first place; and how far reading is."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, str] = {}
        self.files = (0, 1)  # bytes of the files before this one, and of all
        self.share: float | None = None  # of all bytes that were read, None where it is not known

    def at(self, place: int) -> None:
        """So many bytes of the present file were read."""
        before, total = self.files
        self.share = min((before + place) / total, 1.0)

    def add(self, reason: str, place: str) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self.first.setdefault(reason, place)

    def forget(self) -> None:
        """Begin again, where a file is read from its start once more."""
        self.counts, self.first = {}, {}

    def told(self) -> str:
        """One sentence for all, empty where there are none."""
        told = self.counts.items()
        return "; ".join(f"{n:,} {why} (first: {self.first[why]})" for why, n in told)


def of_frame(frame: Any, columns: Columns, problems: Problems) -> Iterator[Record]:
    """pandas and polars frames: both give columns by name, and lists of them."""
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise InvalidInput(f"The frame has two columns of one name: {names}.")
    roles = columns.found_in(names, "the frame")
    wanted = {role: name for role, name in roles._asdict().items() if name is not None}
    held = {role: list(frame[name]) for role, name in wanted.items()}
    numbers = list(frame.index) if hasattr(frame, "index") else list(range(len(held["text"])))
    for i, number in enumerate(numbers):
        values = {"id": number, **{role: column[i] for role, column in held.items()}}
        yield from checked(values, problems, f"row {number}")


def of_callable(source: Any, columns: Columns, problems: Problems) -> Iterator[Record]:
    """Texts, rows or batches that a callable gives anew each time."""
    items = source()
    if not hasattr(items, "__iter__"):
        raise InvalidInput(
            f"The callable returned a {type(items).__name__}, not an iterator of texts."
        )
    return of_items(items, columns, problems)


def of_items(items: Any, columns: Columns, problems: Problems) -> Iterator[Record]:
    """Texts, rows or batches of them."""
    roles = None
    for number, item in enumerate(_flat(items)):
        if isinstance(item, str) or missing(item):
            values: dict[str, Any] = {"text": item}
        elif isinstance(item, Mapping):
            roles = roles or columns.found_in(list(item), "the first row")
            wanted = {role: name for role, name in roles._asdict().items() if name is not None}
            values = {role: item.get(name) for role, name in wanted.items()}
        else:
            raise InvalidInput(f"Text {number} is a {type(item).__name__}, not a string or a dict.")
        yield from checked({"id": number, **values}, problems, f"text {number}")


def _flat(items: Any) -> Iterator[Any]:
    """Texts and rows one by one; lists and dicts of columns are batches of them."""
    for item in items:
        if isinstance(item, list | tuple):
            yield from item
        elif hasattr(item, "columns") and not isinstance(item, Mapping):  # a frame
            yield from _rows({name: list(item[name]) for name in item.columns})
        elif isinstance(item, Mapping) and item and all(map(_is_column, item.values())):
            yield from _rows({name: list(values) for name, values in item.items()})
        else:
            yield item


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes | Mapping)


def _rows(columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Rows of a dict of columns."""
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidInput(f"The columns of a batch differ in length: {sizes}.")
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def of_list(source: Any, columns: Columns, problems: Problems) -> Iterator[Record]:
    """Texts, with groups, times and ids as lists beside them."""
    if isinstance(source, bytes) or not hasattr(source, "__iter__"):
        raise InvalidInput(
            f"A {type(source).__name__} holds no texts; give a list of strings, a frame, a file or "
            "a folder."
        )
    beside: dict[str, list[Any]] = {}
    for role, values in columns._asdict().items():
        if isinstance(values, str) or (role == "text" and values is not None):
            raise InvalidInput(
                f"{role}={values!r} names a column, and a list of texts has none. Give {role}= a "
                "list as long as the texts, or a frame with columns."
            )
        if values is not None:
            beside[role] = list(values)
            if len(beside[role]) != len(source):
                raise InvalidInput(
                    f"{role}= has {len(beside[role])} entries for {len(source)} texts."
                )
    for i, text in enumerate(source):
        if not isinstance(text, str) and not missing(text):
            raise InvalidInput(f"Text {i} is of type {type(text).__name__}, not a string.")
        own = {role: values[i] for role, values in beside.items()}
        yield from checked({"text": text, "id": i, **own}, problems, f"text {i}")


def checked(values: dict[str, Any], problems: Problems, place: str) -> Iterator[Record]:
    """The document of a row, unless it has no text."""
    text = values.get("text")
    if missing(text):
        problems.add("rows without text", place)
        return
    if "group" in values and (missing(values["group"]) or values["group"] == ""):
        problems.add("rows without a group", place)
        values["group"] = None
    if "time" in values and (missing(values["time"]) or values["time"] == ""):
        problems.add("rows without a time", place)
        values["time"] = None
    if not isinstance(text, str):
        problems.add("rows whose text is no string", place)
        return
    if not text.strip():
        problems.add("rows with an empty text", place)
        return
    yield Record(text, *(values.get(role) for role in ("group", "time", "id")))


def missing(value: Any) -> bool:
    """None, NaN and the like of other libraries, which are not equal to themselves."""
    if value is None or isinstance(value, str):
        return value is None
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA
        return True
