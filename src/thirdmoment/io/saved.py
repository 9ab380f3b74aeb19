"""The saved format: a zip of plain arrays and one JSON header, nothing that can run code.

``header.json`` has the format's number, the release, the class and a tree of values; arrays stand
in ``arrays/0.npy`` and so on, not compressed, so that they can be mapped into memory. Classes are
named, and only those in `KNOWN` are made, without calling anything of theirs but ``_make`` and
``__setstate__``. Every entry has the checksum of the zip format, which is compared before any of
its bytes is used.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse
from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.io.entries import start_of

FORMAT: Limit[int] = 1  # raise where older releases could not read what is written

# A header is text of names and numbers; longer ones are no work of ours.
LONGEST_HEADER: Limit[int] = 64 * 2**20

HEADER = "header.json"
KINDS = "biufcU"  # of arrays: numbers and text, no objects

# Classes that a file may name, and where they are.
KNOWN = {
    **dict.fromkeys(("CategoricalMixture", "GaussianMixture", "MultiViewMixture"),
                    "models.mixtures"),
    **dict.fromkeys(("BernoulliHMM", "CategoricalHMM", "GaussianHMM"), "models.hmm"),
    **dict.fromkeys(("LatentDirichletAllocation", "PoissonTopicModel", "SingleTopicModel"),
                    "models.topics"),
    "IndependentFactors": "models.factors",
    "KernelMixture": "models.kernel",
    "MixedLinearRegression": "models.regression",
    "SubspaceClustering": "models.subspace",
    "GaussianSearch": "search.gaussian",
    "RegressionSearch": "search.regression",
    "SubspaceSearch": "search.subspace",
    "TopicSearch": "search.topics",
    "About": "report.findings",
    "Finding": "report.findings",
    "Report": "report.report",
    "Gain": "refinement.halves",
    "Units": "models.units",
    "KeptRows": "models.kernel.describe",
    "Axis": "refinement.axis",
    "Values": "refinement.axis",
    "Centres": "refinement.centres",
    "Lattice": "refinement.lattice",
    "SmoothTables": "refinement.smooth",
    "ConcentrationProfile": "recovery.dirichlet",
    "Whitening": "linalg.whiten",
    "SphericalWhitening": "moments.gaussian",
    "SubspaceWhitening": "moments.gaussian",
    "RegressionSums": "moments.regression",
    "Standardisation": "moments.regression",
    "TopicIndex": "starts.topic_index",
    "TrainingRows": "search.rows",
    "WhitenedRows": "search.rows",
    "WordCounter": "text.words",
    "Explorer": "app.explorer",
    "Documents": "app.documents",
    "Texts": "app.texts",
}  # fmt: skip


def known_class(name: Any) -> Any:
    """The class of this name, if files may hold it."""
    if not isinstance(name, str) or name not in KNOWN:
        raise InvalidInput(f"it names a class {name!r}, which no saved model has")
    return getattr(importlib.import_module(f"thirdmoment.{KNOWN[name]}"), name)


# writing -------------------------------------------------------------------------------------


def save(thing: Any, path: str | Path, version: str) -> None:
    """Write an object of a known class to one file, or nothing at all."""
    arrays: list[np.ndarray] = []
    tree = _encoded(thing, arrays, type(thing).__name__)
    header = {"format": FORMAT, "thirdmoment": version, "arrays": len(arrays), "model": tree}
    text = json.dumps(header, allow_nan=False).encode()
    path = Path(path)
    # never into a file that may be mapped, never half written; a link keeps pointing where it does
    goal = Path(os.path.realpath(path))
    if goal.exists() and not goal.is_file() and not goal.is_dir():
        raise InvalidInput(f"{path} is a device, no place for a file.")
    written = goal.with_name(f".{secrets.token_hex(12)}")
    try:
        with zipfile.ZipFile(written, "x", zipfile.ZIP_STORED) as file:
            file.writestr(HEADER, text)
            for number, array in enumerate(arrays):
                place = _aligned(f"arrays/{number}.npy", file.start_dir)
                with file.open(place, "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
        os.replace(written, goal)
    except OSError as error:  # in the user's own words, not of a file that is gone again
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        written.unlink(missing_ok=True)


def _aligned(name: str, position: int) -> zipfile.ZipInfo:
    """An entry whose bytes will begin at a multiple of 64, where mapped arrays are read fastest."""
    info = zipfile.ZipInfo(name)
    header = 30 + len(name) + 20 + 4  # local header, sizes of 64 bits, and the padding's own head
    padding = -(position + header) % 64
    info.extra = struct.pack("<HH", 0xD935, padding) + bytes(padding)
    return info


def _encoded(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """A value as JSON, its arrays apart."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        arrays.append(np.ascontiguousarray(value) if value.ndim else value)
        return {"array": len(arrays) - 1}
    if isinstance(value, np.ndarray) and all(isinstance(one, str) for one in value.ravel()):
        return {"strings": value.ravel().tolist(), "shape": list(value.shape)}
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        arrays.append(np.asarray(value))
        return {"scalar": len(arrays) - 1}
    if isinstance(value, np.dtype | type) and _dtype_name(value):
        return {"dtype": _dtype_name(value)}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if sp.issparse(value) and value.format == "csr":
        parts = [
            _encoded(part, arrays, where) for part in (value.data, value.indices, value.indptr)
        ]
        return {"csr": parts, "shape": list(value.shape), "array": isinstance(value, sp.sparray)}
    if type(value).__module__ == "torch" and type(value).__name__ == "device":
        return str(value)
    if isinstance(value, np.random.RandomState):
        return {"random": _encoded(list(value.get_state()), arrays, where)}
    return _encoded_many(value, arrays, where)


def _encoded_many(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """Lists, tuples, dictionaries and objects of known classes."""

    def each(items: Any) -> list[Any]:
        return [_encoded(one, arrays, f"{where}[{i}]") for i, one in enumerate(items)]

    name = type(value).__name__
    if type(value) is list:
        return each(value)
    if type(value) is tuple:
        return {"tuple": each(value)}
    if type(value) is dict:
        return {"dict": [each(pair) for pair in value.items()]}
    if name in KNOWN and known_class(name) is type(value):
        if hasattr(value, "_fields"):
            state = value._asdict()
        else:
            state = value.__getstate__() if hasattr(value, "fit") else vars(value)
            left_out = getattr(value, "_unsaved", ())
            state = {key: one for key, one in state.items() if key not in left_out}
        fields = {key: _encoded(one, arrays, f"{where}.{key}") for key, one in state.items()}
        return {"class": name, "fields": fields}
    raise InvalidInput(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which a file of plain "
        "arrays cannot hold. Set the argument otherwise, or keep the model with pickle or joblib."
    )


def _dtype_name(value: Any) -> str:
    try:
        name = np.dtype(value).str
    except TypeError:
        return ""
    return name if np.dtype(value).kind in "biufc" else ""


# reading -------------------------------------------------------------------------------------


def load(path: str | Path, *, mapped: Callable[[str], bool], version: str) -> Any:
    """The object that a file holds; ``mapped`` says of which classes arrays stay on disk."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            return _Reader(file, path, mapped, version).read()
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except InvalidInput as error:
        text = str(error)
        raise InvalidInput(f"{path} is no saved model: {text}.") from error
    except Exception as error:  # whatever strange bytes make the readers of zip, JSON or npy say
        raise InvalidInput(
            f"{path} is no saved model, or it is damaged ({type(error).__name__}: {error})."
        ) from error


class _Reader:
    """One open file."""

    def __init__(
        self, file: zipfile.ZipFile, path: Path, mapped: Callable[[str], bool], version: str
    ) -> None:
        self.file, self.path, self.mapped, self.version = file, path, mapped, version

    def read(self) -> Any:
        entries = {entry.filename: entry for entry in self.file.infolist()}
        if len(entries) != len(self.file.infolist()) or HEADER not in entries:
            raise InvalidInput("its entries are not those of a model")
        if any(e.compress_type != zipfile.ZIP_STORED or e.flag_bits & 1 for e in entries.values()):
            raise InvalidInput("its entries are compressed or encrypted, which ours never are")
        if sum(entry.file_size for entry in entries.values()) > os.path.getsize(self.path):
            raise InvalidInput("its entries are larger than the file, so they overlap")
        if entries[HEADER].file_size > LONGEST_HEADER:
            raise InvalidInput("its header is too long")
        header = json.loads(self.file.read(HEADER), parse_constant=_refuse)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            found = header.get("format") if isinstance(header, dict) else None
            raise InvalidInput(
                f"it has format {found!r}, and this release of thirdmoment ({self.version}) reads "
                f"format {FORMAT}. Load it with the release that saved it, or fit again"
            )
        count = len(entries) - 1
        names = {HEADER, *(f"arrays/{i}.npy" for i in range(count))}
        if header["arrays"] != count or set(entries) != names:
            raise InvalidInput("its entries are not those that its header names")
        self.entries, self.tree = entries, header["model"]
        on_disk = self.mapped(str(self.tree.get("class")))
        self.arrays = [self._array(f"arrays/{i}.npy", on_disk) for i in range(count)]
        self.used: set[int] = set()
        found = self._decoded(self.tree)
        if len(self.used) != len(self.arrays):
            raise InvalidInput("it has arrays that nothing names")
        return found

    def _array(self, name: str, on_disk: bool) -> np.ndarray:
        entry = self.entries[name]
        whole: Any
        if on_disk:
            with self.path.open("rb") as raw:
                begin = start_of(raw, entry)
            mapped = np.memmap(self.path, np.uint8, "r", begin, shape=(entry.file_size,))
            whole = np.asarray(mapped)  # the same bytes; a memmap takes long to slice
            if zlib.crc32(whole.data) != entry.CRC:
                raise InvalidInput(f"{name} does not have its checksum")
        else:
            whole = np.frombuffer(bytearray(self.file.read(entry)), np.uint8)  # checks it, too
        first = io.BytesIO(bytes(whole[:4096]))
        if np.lib.format.read_magic(first) != (1, 0):
            raise InvalidInput(f"{name} is no array of ours")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(first)
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        if dtype.kind not in KINDS or not dtype.itemsize or min(shape, default=0) < 0:
            raise InvalidInput(f"{name} is no array of ours")
        if fortran or entry.file_size != first.tell() + size:
            raise InvalidInput(f"{name} is not the array that it says it is")
        return whole[first.tell() :].view(dtype).reshape(shape)

    def _decoded(self, node: Any) -> Any:
        if node is None or isinstance(node, bool | str | int | float):
            return node
        if isinstance(node, list):
            return [self._decoded(one) for one in node]
        if "class" in node:
            return self._object(node)
        if "csr" in node:
            return self._sparse(node)
        if "strings" in node:
            return np.array(node["strings"], dtype=object).reshape(node["shape"])
        ((kind, value),) = node.items()
        return getattr(self, f"_as_{kind}")(value)

    def _as_array(self, number: Any) -> np.ndarray:
        if type(number) is not int or number in self.used or number < 0:
            raise InvalidInput(f"it names array {number!r} twice, or there is none")
        self.used.add(number)
        return self.arrays[number]

    def _as_scalar(self, number: Any) -> Any:
        return self._as_array(number)[()]

    def _as_float(self, text: Any) -> float:
        return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[text]

    def _as_dtype(self, name: Any) -> np.dtype:
        found = np.dtype(str(name))
        if found.kind not in "biufc":
            raise InvalidInput(f"it names a type {name!r}")
        return found

    def _as_slice(self, parts: Any) -> slice:
        start, stop, step = parts
        return slice(start, stop, step)

    def _as_range(self, parts: Any) -> range:
        start, stop, step = parts
        return range(start, stop, step)

    def _as_tuple(self, items: Any) -> tuple:
        return tuple(self._decoded(one) for one in items)

    def _as_dict(self, pairs: Any) -> dict:
        return {self._decoded(key): self._decoded(value) for key, value in pairs}

    def _as_random(self, state: Any) -> np.random.RandomState:
        name, key, place, has, cached = self._decoded(state)
        sound = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (624,)
        if name != "MT19937" or not sound or not 0 <= int(place) <= 624 or has not in (0, 1):
            raise InvalidInput("its random state is none")
        found = np.random.RandomState()
        found.set_state((name, key, int(place), int(has), float(cached)))
        return found

    def _sparse(self, node: dict) -> Any:
        data, indices, indptr = (self._decoded(part) for part in node["csr"])
        kind = sp.csr_array if node["array"] else sp.csr_matrix
        found = kind(tuple(node["shape"]), dtype=data.dtype)
        found.data, found.indices, found.indptr = data, indices, indptr  # as they are: on disk
        check_sparse(found)
        return found

    def _object(self, node: dict) -> Any:
        cls = known_class(node["class"])
        state = {key: self._decoded(value) for key, value in node["fields"].items()}
        if hasattr(cls, "_fields"):
            if tuple(state) != cls._fields:
                raise InvalidInput(f"its {cls.__name__} is that of another release")
            return cls(**state)
        found = cls.__new__(cls)
        if hasattr(cls, "fit"):
            found.__setstate__(state)
            if set(found._get_param_names()) - set(vars(found)):
                raise InvalidInput(f"its {cls.__name__} lacks arguments")
        else:
            vars(found).update(state)
        return found


def _refuse(name: str) -> None:
    raise InvalidInput(f"its header has {name}, which is no JSON")
