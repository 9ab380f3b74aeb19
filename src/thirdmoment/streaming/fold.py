"""The fold: every moment of every data source is this one function.

Each chunk is summed into an accumulator of its own, side by side on threads, and the accumulators
are merged in chunk order, so the result depends on the chunks but not on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from thirdmoment._array import map_in_order


class Accumulator(Protocol):
    """A monoid of moments: unnormalised sums that can be merged."""

    def update(self, chunk: Any) -> Any: ...
    def merge(self, other: Any) -> Any: ...


Monoid = TypeVar("Monoid", bound=Accumulator)


def fold(new: Callable[[], Monoid], chunks: Iterable[Any], *, n_threads: int = 1) -> Monoid:
    """Sum of ``new()`` accumulators updated with each chunk, merged in order."""
    total: Monoid | None = None
    for part in map_in_order(lambda chunk: new().update(chunk), chunks, n_threads=n_threads):
        total = part if total is None else total.merge(part)
    return new() if total is None else total
