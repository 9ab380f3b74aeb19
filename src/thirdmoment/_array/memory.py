"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None


def give_back() -> None:
    """Return what the allocator keeps for later; passes over data leave it full of small holes."""
    trim = _trim()
    if trim is not None:
        trim(0)
