"""Codes of a source: all distinct rows where they are few, else a sample and the sums of all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import CodeTable, WholeCodes, distinct_rows
from thirdmoment.models.code_look import CodeLook, padded_sum
from thirdmoment.models.codes import checked_codes, sizes_from
from thirdmoment.models.tables import name_columns
from thirdmoment.streaming import Chunk, Source, Streamed, fold


def read_code_source(model: Any, source: Source) -> tuple[CodeTable, Streamed]:
    """Distinct rows of a source and how often each occurs, or a sample; and the passes made."""
    source = source.with_missing()
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
    categories = np.concatenate([padded_sum(seen, np.zeros(d)) for seen, d in
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
