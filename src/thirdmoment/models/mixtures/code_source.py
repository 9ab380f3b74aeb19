"""Codes of a source: all distinct rows where they are few, else a sample and the sums of all."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import scrambled
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import CodeTable, WholeCodes, distinct_rows
from thirdmoment.models import tables
from thirdmoment.models.codes import checked_codes, sizes_from
from thirdmoment.models.tables import name_columns
from thirdmoment.streaming import Chunk, Source, Streamed, fold
from thirdmoment.streaming.sample import SampledRows

# Codes in distinct rows that are kept as they are; a table of more is sampled.
MOST_KEPT: Work[int] = 20_000_000


class CodeLook:
    """Counts of the codes of each column, the distinct rows while they are few, a sample."""

    def __init__(self, columns: int) -> None:
        self.n = 0.0
        self.seen = [np.zeros(1) for _ in range(columns)]  # how often each code occurs
        self.table: CodeTable | None = CodeTable(
            np.zeros((0, columns), dtype=np.int64), np.zeros(0), np.ones(columns, dtype=np.int64)
        )
        self.sample = SampledRows(tables.SAMPLED, tables.SAMPLED_NUMBERS)

    def update(self, chunk: Chunk) -> CodeLook:
        codes = chunk.rows
        self.n = float(len(codes))
        self.seen = [
            np.bincount(column[column >= 0], minlength=1).astype(float) for column in codes.T
        ]
        if len(codes):
            sizes = np.array([len(column) for column in self.seen])
            self.table = distinct_rows(codes, np.ones(len(codes)), sizes)
        keys = scrambled(chunk.start + np.arange(len(codes), dtype=np.uint64))
        few = np.argsort(keys, kind="stable")[: self.sample.most_rows]
        self.sample.add(keys[few], codes[few])
        return self

    def merge(self, other: CodeLook) -> CodeLook:
        self.n += other.n
        self.seen = [_longer(a, b) for a, b in zip(self.seen, other.seen, strict=True)]
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


def _longer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum of two counts of codes, the shorter one continued with zeros."""
    out = np.zeros(max(len(a), len(b)))
    out[: len(a)] += a
    out[: len(b)] += b
    return out


def read_code_source(model: Any, source: Source) -> tuple[CodeTable, Streamed]:
    """Distinct rows of a source and how often each occurs, or a sample; and the passes made."""
    source = copy.copy(source)
    source.allow_nan = True
    rows = Streamed(source, _codes, source.width, tell=model._log)
    look = fold(partial(CodeLook, source.width), rows, n_threads=model._threads())
    if not look.n:
        raise InvalidInput(f"{source.name} has no cell that is not missing.")
    name_columns(model, source)
    rows.passes[0] = rows.passes[0]._replace(bytes=8 * int(look.n) * source.width)
    found = np.array([len(column) for column in look.seen])
    observed = np.array([column.sum() for column in look.seen])
    share = float(np.mean(observed / look.n))
    sizes = sizes_from(found, share, model.n_categories)
    if look.table is not None:
        table = look.table
        if np.any(table.sizes != sizes):  # in the order of these sizes
            table = distinct_rows(table.codes, table.counts, sizes)
        return table, rows
    categories = np.concatenate([_longer(seen, np.zeros(d)) for seen, d in
                                 zip(look.seen, sizes, strict=True)])  # fmt: skip
    sample = look.sample.rows()
    part = distinct_rows(sample, np.ones(len(sample)), sizes)
    stream = Streamed(source, partial(_distinct, sizes), source.width,
                      8 * int(look.n) * source.width, model._log, rows.passes)  # fmt: skip
    return part._replace(whole=WholeCodes(stream, look.n, categories, observed)), stream


def _codes(chunk: Chunk) -> Chunk:
    """Codes of the rows that have any."""
    rows = chunk.rows.toarray() if sp.issparse(chunk.rows) else chunk.rows
    codes = checked_codes(rows, allow_nan=True)
    return chunk._replace(rows=codes[np.any(codes >= 0, axis=1)])


def _distinct(sizes: np.ndarray, chunk: Chunk) -> CodeTable:
    codes = _codes(chunk).rows
    return distinct_rows(codes, np.ones(len(codes)), sizes)
