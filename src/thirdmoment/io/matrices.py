"""Count matrices from Matrix Market and SciPy npz files, checked as they are read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse
from thirdmoment._constants import Limit
from thirdmoment.io.entries import (
    EXACT,
    check_promise,
    check_shape,
    from_entries,
    open_text,
    read_table,
    short_line,
    start_of,
    tables,
)


class Header(NamedTuple):
    """The first lines of a Matrix Market file."""

    kind: str
    field: str
    symmetry: str
    sizes: list[int]


def market_header(file: BinaryIO) -> Header:
    """Kind and sizes; the entries follow in ``file``."""
    kind, field, symmetry = _banner(short_line(file))
    line = short_line(file)
    while line.startswith("%") or not line.strip():
        line = short_line(file)
    sizes = [int(part) for part in line.split()]
    if len(sizes) != (2 if kind == "array" else 3):
        raise ValueError(f"its sizes are {len(sizes)} numbers")
    return Header(kind, field, symmetry, sizes)


def market_table(file: BinaryIO, entries: int, field: str) -> Iterator[np.ndarray]:
    """Row, column and value of the entries, block by block."""
    number = np.float64 if field in ("real", "double") else np.int64
    for table in tables(file, entries, 2 if field == "pattern" else 3, number):
        place = table[:, :2]
        if not np.all((place == np.rint(place)) & (abs(place) < EXACT)):
            raise ValueError("its rows and columns are not numbers 1, 2, 3, ...")
        ones = np.ones((len(table), 1), dtype=table.dtype)
        yield np.concatenate([table, ones], axis=1) if field == "pattern" else table


def read_matrix_market(path: Path) -> sp.csr_array:
    """Counts (n, d); fields and symmetries that counts do not have are refused."""
    with open_text(path) as file:
        kind, field, symmetry, sizes = market_header(file)
        if kind == "array":
            n, d = sizes
            check_shape(n, d, n * d)
            values = read_table(file, n * d, 1, np.float64)
            return sp.csr_array(values.reshape(d, n).T, dtype=np.float64)
        n, d, entries = sizes
        check_promise(n, d, entries)
        found = list(market_table(file, entries, field))
    table = np.concatenate(found) if found else np.empty((0, 3))
    place = table[:, :2].astype(np.int64)
    X = from_entries(n, d, place[:, 0], place[:, 1], table[:, 2])
    if symmetry == "symmetric":
        X = (X + X.T - sp.diags_array(X.diagonal())).tocsr()
    return X


def _banner(line: str) -> tuple[str, str, str]:
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("its first line is not that of a Matrix Market file")
    kind, field, symmetry = words[2:]
    if kind not in ("coordinate", "array"):
        raise ValueError(f"its format is {kind!r}, not 'coordinate' or 'array'")
    if field not in ("real", "integer", "pattern", "double", "unsigned-integer"):
        raise ValueError(f"its values are {field!r}, and counts are real numbers")
    if symmetry not in ("general", "symmetric") or (symmetry != "general" and kind == "array"):
        raise ValueError(f"it is {symmetry!r}, and a table of counts is 'general'")
    return kind, field, symmetry


# Deflate, which packs npz files, makes nothing smaller than this.
MOST_PACKED: Limit[int] = 1100


def read_npz(path: Path) -> sp.csr_array:
    """The matrix that ``scipy.sparse.save_npz`` wrote, in single precision if it is."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            _check_entry(archive, entry)
    loaded = sp.load_npz(path)
    if np.issubdtype(loaded.dtype, np.complexfloating):
        raise ValueError("its values are complex, and counts are real numbers")
    check_sparse(loaded)
    n, d = loaded.shape
    check_promise(n, d, loaded.nnz)
    check_shape(n, d, loaded.data.size)
    return sp.csr_array(loaded, dtype=np.float32 if loaded.dtype == np.float32 else np.float64)


def mapped_npz(path: Path, *, checked: bool = False) -> sp.csr_array | None:
    """The same matrix in the memory of the file, not copied; None where it is packed.

    With ``checked`` its checksums are compared and its structure is looked at.
    """
    parts = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        names = {entry.filename: entry for entry in archive.infolist()}
        kind = [names.get(f"{name}.npy") for name in ("data", "indices", "indptr", "format")]
        if None in kind or any(e.compress_type != zipfile.ZIP_STORED for e in names.values()):
            return None
        if np.load(archive.open("format.npy"), allow_pickle=False).item() not in (b"csr", "csr"):
            return None
        shape = np.load(archive.open("shape.npy"), allow_pickle=False)
        for name in ("data", "indices", "indptr"):
            entry = names[f"{name}.npy"]
            _check_entry(archive, entry)
            start = start_of(raw, entry)
            raw.seek(start)
            size, dtype = _announced(raw, entry.filename)
            if len(size) != 1 or dtype.kind not in "fiu" or not size[0]:
                return None
            parts[name] = np.memmap(path, dtype, "r", raw.tell(), size)
            if checked:
                whole = np.memmap(path, np.uint8, "r", start, (entry.file_size,))
                if zlib.crc32(whole.data) != entry.CRC:
                    raise ValueError(f"its array {name} does not have its checksum")
    if parts["data"].dtype not in (np.float32, np.float64):
        return None
    arrays = tuple(np.asarray(parts[name]) for name in ("data", "indices", "indptr"))
    found = sp.csr_array(arrays, shape=tuple(shape.tolist()), copy=False)
    if checked:
        check_sparse(found)
        n, d = found.shape
        check_promise(n, d, found.nnz)
        check_shape(n, d, found.data.size)
    return found


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """The header of an array must announce the bytes that are there."""
    if entry.file_size > MOST_PACKED * (entry.compress_size + 1):
        raise ValueError(f"its array {entry.filename} cannot be as large as it says")
    with archive.open(entry) as file:
        shape, dtype = _announced(file, entry.filename)
        announced = dtype.itemsize * int(np.prod([int(size) for size in shape], dtype=object))
        if announced != entry.file_size - file.tell():
            raise ValueError(
                f"its array {entry.filename} announces {announced} bytes and has "
                f"{entry.file_size - file.tell()}"
            )


def _announced(file: Any, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type that the head of an array announces; the file then stands behind it."""
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"its array {name} is of the unknown version {version}")
    shape, _, dtype = read(file)
    return shape, dtype
