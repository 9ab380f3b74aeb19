"""Compiled loops: kept on disk where that is possible, compiled anew elsewhere."""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

logger = logging.getLogger("thirdmoment")

_told = False


def compiled(
    *, fastmath: Any = False, inner: bool = False, writes: tuple[str, ...] = ("out",)
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for a loop that runs without Python and without its lock.

    Arrays that it does not write to are handed over read-only, whatever they are: the compiler
    takes read-only arrays for another type, and each loop would be compiled twice. ``inner`` loops
    are called by other compiled loops alone.

    Where neither the package nor the home directory can be written to there is no place for a
    cache, and numba refuses; the loop is then compiled once in every process.
    """

    def decorate(loop: Callable[..., Any]) -> Any:
        try:
            made = numba.njit(nogil=True, cache=True, fastmath=fastmath)(loop)
        except RuntimeError:
            made = numba.njit(nogil=True, fastmath=fastmath)(loop)
        if inner:
            return made
        frozen = [name not in writes for name in inspect.signature(loop).parameters]

        @functools.wraps(loop)
        def call(*args: Any) -> Any:
            _tell(made)
            return made(*(_read_only(a) if f else a for a, f in zip(args, frozen, strict=True)))

        return call

    return decorate


def _read_only(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _tell(made: Any) -> None:
    """Say once what the first fit of an installation waits for."""
    global _told
    if _told or made.signatures:
        return
    file = getattr(getattr(made._cache, "_cache_file", None), "_index_path", None)
    if file is not None and os.path.exists(file):
        return
    _told = True
    logger.warning(
        "thirdmoment compiles loops that this installation has not used before; this takes some "
        "seconds, once."
    )
