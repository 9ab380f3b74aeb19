"""Sparse matrices from npz files, their sizes checked before anything is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse
from thirdmoment.io.entries import check_promise, check_shape

# Deflate, which packs npz files, makes nothing smaller than this.
MOST_PACKED = 1100


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
