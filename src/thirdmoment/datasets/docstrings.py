"""A real, labelled corpus that needs no download: docstrings of the installed packages.

Docstrings of public functions, classes and methods of NumPy, SciPy and scikit-learn, at least 200
characters long, each text once. The label is the first two levels of the module. The corpus is
cached under the user's cache folder, keyed by the versions of the packages.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import io
import json
import os
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Limit

PACKAGES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
SHORTEST: Limit[int] = 200  # characters
FORMAT: Limit[int] = 1  # raise when what the cache file holds changes


class LabelledCorpus(NamedTuple):
    """Counts with their words, and what each document is about."""

    X: sp.csr_array  # (n, d) counts
    feature_names: np.ndarray  # (d,) words
    labels: np.ndarray  # (n,) e.g. "scipy.stats"
    names: np.ndarray  # (n,) e.g. "scipy.stats.norm"


def load_docstrings(*, min_tokens: int = 10, cache: bool = True) -> LabelledCorpus:
    """Docstrings of the installed NumPy, SciPy and scikit-learn as word counts.

    Parameters
    ----------
    min_tokens : int
        Documents with fewer words of the vocabulary are dropped.
    cache : bool
        Read and write the texts in the cache folder (``THIRDMOMENT_CACHE``, else
        ``XDG_CACHE_HOME/thirdmoment``, else ``~/.cache/thirdmoment``).

    Returns
    -------
    LabelledCorpus
        About 6,000 documents over 4,000 words: ``X``, ``feature_names``, ``labels``, ``names``.

    Examples
    --------
    >>> from thirdmoment.datasets import load_docstrings
    >>> corpus = load_docstrings()
    >>> corpus.X.shape[0] == len(corpus.labels) and corpus.X.shape[0] > 3000
    True
    """
    from sklearn.feature_extraction.text import CountVectorizer

    texts = _read_or_collect(_cache_file() if cache else None)
    vectorizer = CountVectorizer(
        stop_words="english", min_df=10, max_df=0.3, token_pattern=r"(?u)\b[a-z_]{3,}\b"
    )
    X = sp.csr_array(vectorizer.fit_transform([text for _, text in texts]))
    keep = X.sum(axis=1) >= min_tokens
    labels = np.array([_label(name) for name, _ in texts])[keep]
    names = np.array([name.replace(":", ".") for name, _ in texts])[keep]
    return LabelledCorpus(X[keep], vectorizer.get_feature_names_out(), labels, names)


def docstring_texts(*, cache: bool = True) -> list[dict[str, str]]:
    """The docstrings of `load_docstrings` themselves, for `text.read`.

    Parameters
    ----------
    cache : bool
        As in `load_docstrings`.

    Returns
    -------
    list of dict
        Of each docstring the ``text``, the ``group`` (its package) and the ``id`` (its name).

    Examples
    --------
    >>> import thirdmoment as tm
    >>> rows = tm.datasets.docstring_texts()
    >>> tm.text.read(lambda: rows, text="text", group="group", id="id").shape[0] == len(rows)
    True
    """
    texts = _read_or_collect(_cache_file() if cache else None)
    return [
        {"text": text, "group": _label(name), "id": name.replace(":", ".")} for name, text in texts
    ]


def _label(name: str) -> str:
    """The first two levels of the module of ``module:name``."""
    return ".".join(name.split(":")[0].split(".")[:2])


def cache_folder() -> Path:
    """Folder for files the library can always make again."""
    if folder := os.environ.get("THIRDMOMENT_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "thirdmoment"


def _cache_file() -> Path:
    versions = "-".join(
        f"{name}{importlib.metadata.version(project)}" for name, project in PACKAGES.items()
    )
    return cache_folder() / f"docstrings-{FORMAT}-{versions}.json"


def _read_or_collect(path: Path | None) -> list[tuple[str, str]]:
    if path is not None and path.exists():
        try:
            return [(name, text) for name, text in json.loads(path.read_text("utf-8"))]
        except (OSError, ValueError):
            pass  # a damaged cache is made again
    texts = _collect()
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(texts), "utf-8")
            part.replace(path)
        except OSError:
            pass  # a folder that cannot be written only costs time
    return texts


def _collect() -> list[tuple[str, str]]:
    """("module:name", docstring) of every public object, each text once, in order of name."""
    seen: dict[str, str] = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for package in PACKAGES:
            for module in _modules(importlib.import_module(package)):
                for name, text in _docstrings(module, package):
                    if len(text) >= SHORTEST and (text not in seen or name < seen[text]):
                        seen[text] = name
    return sorted((name, text) for text, name in seen.items())


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """The package and its modules; tests, vendored code and build tools are left out."""
    yield package
    skip = {
        *("tests", "conftest", "setup", "testing", "f2py", "distutils", "__main__"),
        *("externals", "_external", "array_api_compat", "array_api_extra", "_build_utils"),
        *("_lib", "_precompute", "_examples", "_core", "_pyinstaller", "_typing", "ccallback"),
    }
    for info in pkgutil.walk_packages(
        package.__path__, package.__name__ + ".", onerror=lambda _: None
    ):
        parts = info.name.split(".")
        if skip & set(parts):
            continue
        module = sys.modules.get(info.name)
        if module is None:
            try:
                module = importlib.import_module(info.name)
            except Exception:  # an optional dependency of that module is missing
                continue
        yield module


def _docstrings(module: ModuleType, package: str) -> Iterator[tuple[str, str]]:
    for name in sorted(vars(module)):
        value = vars(module)[name]
        home = _home(value)
        if name.startswith("_") or home.split(".")[0] != package:
            continue
        yield f"{home}:{name}", inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for method, member in sorted(vars(value).items()):
                if not method.startswith("_") and (
                    callable(member) or isinstance(member, property)
                ):
                    yield f"{home}:{name}.{method}", inspect.getdoc(member) or ""


def _home(value: Any) -> str:
    """Module that defines a class, a function, or an object with a docstring of its own."""
    if isinstance(value, np.ufunc):
        return "scipy.special" if value.__name__ not in vars(np) else "numpy"
    if inspect.isclass(value) or inspect.isroutine(value):
        return str(getattr(value, "__module__", None) or "")
    if inspect.ismodule(value) or value.__doc__ == type(value).__doc__:
        return ""
    return type(value).__module__
