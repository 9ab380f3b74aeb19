"""Rows that are a tensor of a device: a source whose chunks stay where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from thirdmoment._array import Array, array_namespace
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.streaming.source import Chunk, Source

# Numbers of a chunk on a device.
CHUNK: Work[int] = 32_000_000


class TensorSource(Source):
    """Dense rows (n, d) in chunks that share their memory.

    Attributes
    ----------
    device : where the rows are
    """

    def __init__(self, X: Array, *, words: Sequence[Any] | None = None) -> None:
        n, d = X.shape
        super().__init__(lambda: iter(()), width=int(d), n_rows=int(n), name="X", words=words)
        self.rows, self.device = X, X.device
        self.given_chunks, self.named = False, words is not None

    def __iter__(self) -> Iterator[Chunk]:
        n, d = self.rows.shape
        step = max(1, CHUNK // max(1, d))
        for a in range(0, n, step):
            rows = self.rows[a : min(a + step, n), :]
            if self._seen is None:
                self._check(rows)
            yield Chunk(rows, a)
        self._seen = []  # the rows do not change between two passes of a fit

    def _check(self, rows: Array) -> None:
        """Refuse NaN and infinity."""
        xp = array_namespace(rows)
        if xp.isdtype(rows.dtype, "real floating") and not bool(xp.all(xp.isfinite(rows))):
            raise InvalidInput("Input X contains NaN or infinity.")
