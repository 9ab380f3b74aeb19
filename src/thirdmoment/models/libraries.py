"""Methods that take data of any array library and answer in the same."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from thirdmoment._array import (
    as_given,
    holds_tensors,
    is_array,
    is_foreign,
    on_host,
    to_numpy,
    told_memory,
)
from thirdmoment.report.findings import memory_note

# What the first argument of a method is called where it is data.
DATA = ("X", "corpus")


def follow_library(cls: type) -> None:
    """Let all public methods of a class that take data take it of any array library.

    Methods that ``_reads_tensors`` names get tensors of torch and arrays of CuPy as they are; all
    else comes on the host. Results go back in the library and to the device of the data. A device
    that is full is told in a sentence, and in the report where a fit went on in smaller blocks.
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
        kept = X if name in self._reads_tensors and holds_tensors(X) else on_host(X)
        beside = {key: kept if key == first else on_host(value) for key, value in kwargs.items()}
        with told_memory() as room:
            result = method(self, *(kept, *map(on_host, args[1:]))[: len(args)], **beside)
        if name == "fit" and room.halvings and hasattr(self, "report_"):
            findings = (*self.report_.findings, *memory_note(room))
            self.report_ = replace(self.report_, findings=findings)
            self._learned["report_"] = id(self.report_)  # it was not set by hand
        if is_foreign(X):
            return as_given(result, X)
        return to_numpy(result) if is_array(result) else result

    found.follows_library = True  # type: ignore[attr-defined]
    return found
