"""Count matrices from Matrix Market and SciPy npz files, checked as they are read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse
from thirdmoment._constants import Limit
from thirdmoment.io.entries import (
    check_promise,
    check_shape,
    from_entries,
    open_text,
    read_table,
    short_line,
)


def read_matrix_market(path: Path) -> sp.csr_array:
    """Counts (n, d); fields and symmetries that counts do not have are refused."""
    with open_text(path) as file:
        kind, field, symmetry = _banner(short_line(file))
        line = short_line(file)
        while line.startswith("%") or not line.strip():
            line = short_line(file)
        sizes = [int(part) for part in line.split()]
        number = np.float64 if field in ("real", "double") else np.int64
        if kind == "array":
            n, d = sizes
            check_shape(n, d, n * d)
            values = read_table(file, n * d, 1, number)
            return sp.csr_array(values.reshape(d, n).T, dtype=np.float64)
        n, d, entries = sizes
        check_promise(n, d, entries)
        table = read_table(file, entries, 2 if field == "pattern" else 3, number)
    values = np.ones(entries) if field == "pattern" else table[:, 2]
    place = np.clip(np.nan_to_num(table[:, :2]), -1, 2**53).astype(np.int64)
    if not np.array_equal(place, table[:, :2]):
        raise ValueError("its rows and columns are not numbers 1, 2, 3, ...")
    X = from_entries(n, d, place[:, 0], place[:, 1], values)
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
    """The matrix that ``scipy.sparse.save_npz`` wrote."""
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
    return sp.csr_array(loaded, dtype=np.float64)


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """The header of an array must announce the bytes that are there."""
    if entry.file_size > MOST_PACKED * (entry.compress_size + 1):
        raise ValueError(f"its array {entry.filename} cannot be as large as it says")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"its array {entry.filename} is of the unknown version {version}")
        shape, _, dtype = read(file)
        announced = dtype.itemsize * int(np.prod([int(size) for size in shape], dtype=object))
        if announced != entry.file_size - file.tell():
            raise ValueError(
                f"its array {entry.filename} announces {announced} bytes and has "
                f"{entry.file_size - file.tell()}"
            )
