"""Methods that take data of any array library and answer in the same."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from thirdmoment._array import as_given, is_array, is_foreign, on_host, to_numpy

# What the first argument of a method is called where it is data.
DATA = ("X", "corpus")


def follow_library(cls: type) -> None:
    """Let all public methods of a class that take data take it of any array library.

    Methods that ``_reads_tensors`` names get it as it is, all others on the host; results come back
    in the library and on the device of the data.
    """
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        if hasattr(method, "follows_library") or not _takes_data(method):
            continue
        setattr(cls, name, _following(method, name))


def _takes_data(method: Callable[..., Any]) -> bool:
    names = list(inspect.signature(method).parameters)
    return len(names) > 1 and names[1] in DATA


def _following(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    first = list(inspect.signature(method).parameters)[1]

    @functools.wraps(method)
    def found(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get(first)
        if name not in self._reads_tensors:
            args = tuple(on_host(value) for value in args)
            kwargs = {key: on_host(value) for key, value in kwargs.items()}
        result = method(self, *args, **kwargs)
        if is_foreign(X):
            return as_given(result, X)
        return to_numpy(result) if is_array(result) else result

    found.follows_library = True  # type: ignore[attr-defined]
    return found
