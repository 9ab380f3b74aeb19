"""What one pass sees of codes: how often each occurs, the distinct rows, a sample."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import scrambled
from thirdmoment._constants import Work
from thirdmoment.likelihood.categories import CodeTable, distinct_rows
from thirdmoment.models import tables
from thirdmoment.streaming import Chunk
from thirdmoment.streaming.sample import SampledRows

# Codes in distinct rows that are kept as they are; a table of more is sampled.
MOST_KEPT: Work[int] = 20_000_000


class CodeLook:
    """Counts of the codes of each column, the distinct rows while they are few, a sample."""

    def __init__(self, columns: int, *, sampled: bool = True) -> None:
        self.n = 0.0
        self.seen = [np.zeros(1) for _ in range(columns)]  # how often each code occurs
        self.table: CodeTable | None = CodeTable(
            np.zeros((0, columns), dtype=np.int64), np.zeros(0), np.ones(columns, dtype=np.int64)
        )
        self.sampled = sampled
        self.sample = SampledRows(tables.SAMPLED, tables.SAMPLED_NUMBERS)

    def update(self, chunk: Chunk) -> CodeLook:
        if self.n:
            return self.merge(CodeLook(len(self.seen), sampled=self.sampled).update(chunk))
        codes = chunk.rows
        self.n = float(len(codes))
        self.seen = [
            np.bincount(column[column >= 0], minlength=1).astype(float) for column in codes.T
        ]
        if len(codes):
            sizes = np.array([len(column) for column in self.seen])
            self.table = distinct_rows(codes, np.ones(len(codes)), sizes)
        if not self.sampled:
            return self
        keys = scrambled(chunk.start + np.arange(len(codes), dtype=np.uint64))
        few = np.argsort(keys, kind="stable")[: self.sample.most_rows]
        self.sample.add(keys[few], codes[few])
        return self

    def merge(self, other: CodeLook) -> CodeLook:
        self.n += other.n
        self.seen = [padded_sum(a, b) for a, b in zip(self.seen, other.seen, strict=True)]
        self.sample.merge(other.sample)
        if self.table is None or other.table is None:
            self.table = None
            return self
        sizes = np.array([len(column) for column in self.seen])
        codes = np.concatenate([self.table.codes, other.table.codes])
        counts = np.concatenate([self.table.counts, other.table.counts])
        self.table = distinct_rows(codes, counts, sizes)
        if self.table.codes.size > MOST_KEPT:
            self.table = None
        return self


def padded_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum of two counts of codes, the shorter one continued with zeros."""
    out = np.zeros(max(len(a), len(b)))
    out[: len(a)] += a
    out[: len(b)] += b
    return out
