"""Compiled loops: kept on disk where that is possible, compiled anew elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(*, fastmath: Any = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for a loop that runs without Python and without its lock.

    Where neither the package nor the home directory can be written to there is no place for a
    cache, and numba refuses; the loop is then compiled once in every process.
    """

    def decorate(loop: Callable[..., Any]) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, fastmath=fastmath)(loop)
        except RuntimeError:
            return numba.njit(nogil=True, fastmath=fastmath)(loop)

    return decorate
