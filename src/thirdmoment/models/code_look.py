"""What one pass sees of codes: how often each occurs, the distinct rows, a sample."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import scrambled
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import CodeTable, distinct_rows
from thirdmoment.models import tables
from thirdmoment.models.codes import MOST_CATEGORIES
from thirdmoment.streaming import Chunk
from thirdmoment.streaming.sample import SampledRows

# Codes in distinct rows that are kept as they are; a table of more is sampled.
MOST_KEPT: Work[int] = 20_000_000

# So many rows wait before they are made distinct.
FEW_ROWS: Work[int] = 10_000


class CodeLook:
    """Counts of the codes of each column, the distinct rows while they are few, a sample."""

    def __init__(self, columns: int, *, sampled: bool = True) -> None:
        self.n = 0.0
        self.seen = [np.zeros(1) for _ in range(columns)]  # how often each code occurs
        self.parts: list[CodeTable] | None = []  # None once there are too many
        self.rows = self.merged = 0  # in all parts, and in the first, whose rows are distinct
        self.sampled = sampled
        self.sample = SampledRows(tables.SAMPLED, tables.SAMPLED_NUMBERS)

    def update(self, chunk: Chunk) -> CodeLook:
        codes = chunk.rows
        if not len(codes):
            return self
        if int(codes.max()) >= MOST_CATEGORIES:
            raise InvalidInput(
                f"{int(codes.max())} is a code, and more than {MOST_CATEGORIES} categories are "
                "taken for a mistake; codes should count up from 0."
            )
        own = [np.bincount(one[one >= 0], minlength=1).astype(float) for one in codes.T]
        self.n += float(len(codes))
        self.seen = [padded_sum(a, b) for a, b in zip(self.seen, own, strict=True)]
        self._add(CodeTable(codes, np.ones(len(codes)), np.array([len(one) for one in own])))
        if self.sampled:
            keys = scrambled(chunk.start + np.arange(len(codes), dtype=np.uint64))
            few = np.argsort(keys, kind="stable")[: self.sample.most_rows]
            self.sample.add(keys[few], codes[few])
        return self

    def merge(self, other: CodeLook) -> CodeLook:
        self.n += other.n
        self.seen = [padded_sum(a, b) for a, b in zip(self.seen, other.seen, strict=True)]
        self.sample.merge(other.sample)
        if other.parts is None:
            self.parts = None
        for part in other.parts or ():
            self._add(part)
        return self

    def _add(self, part: CodeTable) -> None:
        """More rows; they are made distinct when they have doubled: each is sorted seldom."""
        if self.parts is None:
            return
        self.parts.append(part)
        self.rows += len(part.codes)
        if self.rows > 2 * self.merged + FEW_ROWS:
            self._merge()

    def _merge(self) -> None:
        sizes = np.array([len(column) for column in self.seen])
        done = bool(self.parts) and self.merged == self.rows  # one part, of these sizes
        if not self.parts or (done and np.array_equal(self.parts[0].sizes, sizes)):
            return
        codes = np.concatenate([part.codes for part in self.parts])
        counts = np.concatenate([part.counts for part in self.parts])
        found = distinct_rows(codes, counts, sizes)
        self.parts, self.rows, self.merged = [found], len(found.codes), len(found.codes)
        if found.codes.size > MOST_KEPT:
            self.parts = None

    @property
    def table(self) -> CodeTable | None:
        """The distinct rows and how often each occurs; None where they are too many."""
        self._merge()
        return self.parts[0] if self.parts else None


def padded_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum of two counts of codes, the shorter one continued with zeros."""
    out = np.zeros(max(len(a), len(b)))
    out[: len(a)] += a
    out[: len(b)] += b
    return out
