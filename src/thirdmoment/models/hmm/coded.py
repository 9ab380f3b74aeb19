"""Hidden Markov models whose observations are integer codes: symbols, or rows of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from thirdmoment._array import add_rows, if_room, sent_index, sent_rows
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import Categories, CodedRows, one_hot, row_keys
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.likelihood.packed import Sequences, sequences
from thirdmoment.likelihood.tensor_chains import TensorSequences
from thirdmoment.models.base import check_positive
from thirdmoment.models.code_look import CodeLook
from thirdmoment.models.hmm.base import HiddenMarkovModel
from thirdmoment.models.hmm.sequences import SmallProblem, Training
from thirdmoment.models.hmm.source import SequenceChunk, SequenceLook, WholeSequences
from thirdmoment.moments.sequences import Symbols
from thirdmoment.refinement.chains import Observations, row_counts
from thirdmoment.refinement.em import Logarithms
from thirdmoment.starts.coded_chains import (
    CodedData,
    WholeCodes,
    moment_starts,
    other_starts,
)
from thirdmoment.starts.start import Settings, Start
from thirdmoment.starts.symbols import MOST_CODES, SymbolData, frequent
from thirdmoment.streaming import row_ranges


class CodedHMM(HiddenMarkovModel):
    """Base of the models with codes; columns are independent given the state."""

    def _check_own(self) -> None:
        check_positive("prior_count", self.prior_count, zero=True)

    def _fitted_family(self) -> Categories:
        return Categories(self._sizes_fitted, float(self.prior_count))

    def _row_look(self, width: int) -> Any:
        return partial(CodeLook, width, sampled=False)

    def _source_observations(
        self, family: Any, whole: WholeSequences, X: np.ndarray, lengths: np.ndarray
    ) -> Observations:
        """With the distinct rows of all sequences, where these are told apart."""
        rows = _told_apart(whole.look, family.sizes)
        if rows is None:
            return self._observations(family, X, lengths)
        code = _numbers(rows, family.sizes, X)
        chunks = [CodedRows(one_hot(rows, family.sizes), np.ones(len(rows)))]
        return Observations(chunks, code, sequences(lengths))

    def _observations(self, family: Any, X: np.ndarray, lengths: np.ndarray) -> Observations:
        rows, code = distinct(X, family.sizes)
        ranges = row_ranges(len(rows), size=16_384)
        ones = np.ones(len(rows))
        chunks = [CodedRows(one_hot(rows[a:b], family.sizes), ones[a:b]) for a, b in ranges]
        where = sequences(lengths)
        return Observations(chunks, code, where, there=self._there(where, code, len(rows)))

    def _there(self, where: Sequences, code: np.ndarray, symbols: int) -> TensorSequences | None:
        """The same on the device of a fit, if that has room."""

        def sent() -> TensorSequences | None:
            like = sent_rows(np.empty(1), self._device)
            return TensorSequences(where, like, sent_index(code, self._device), symbols)

        return if_room(sent, lambda: None) if self._runs_there(where.n) else None

    def _chart(self, parameters: Parameters) -> Logarithms | None:
        """One column: all arrays are laws. Several: tables are laws side by side."""
        return Logarithms(parameters) if len(self._sizes) == 1 else None

    def _small_problem(
        self, family: Categories, X: np.ndarray, lengths: np.ndarray, starts: list[Parameters]
    ) -> SmallProblem:
        """With very many symbols the race takes all rare ones together: few data, few laws."""
        d = int(family.sizes[0])
        if len(family.sizes) > 1 or d <= MOST_CODES:
            return super()._small_problem(family, X, lengths, starts)
        group = frequent(np.bincount(X[:, 0], minlength=d))
        size = int(group.max()) + 1
        fewer = Categories(np.array([size]), float(self.prior_count))
        data = self._observations(fewer, group[X], lengths)
        runners: list[Parameters] = [
            (first, T, add_rows(tables.T, group, size).T) for first, T, tables in starts
        ]
        seen = np.bincount(X[:, 0], minlength=d) + 0.1
        within = seen / np.bincount(group, weights=seen)[group]

        def back(parameters: Parameters) -> Parameters:
            return *parameters[:2], parameters[2][:, group] * within

        return SmallProblem(self._problem(fewer, data), runners, back)

    def _coded(self, data: Training) -> CodedData:
        m = sum(len(chunk.weights) for chunk in data.rows.chunks)
        share = row_counts(data.rows, m) / len(data.X)
        whole = None
        if data.whole is not None:
            look, chunks, sizes = data.whole.look, data.whole.chunks, data.family.sizes
            rows, symbols = _told_apart(look, sizes), None
            if rows is not None:
                share = _shares(look, sizes, len(rows))
                coded = chunks.mapped(partial(_symbols, rows, sizes))
                symbols = SymbolData(coded, look.longest, share)
            whole = WholeCodes(chunks, symbols)
        return CodedData(data.X, m, data.rows, data.family, share, self._threads(), whole)

    def _one_state(self, data: Training) -> Start:
        coded, one = self._coded(data), np.ones(1)
        table = coded.tables(coded.share[None])
        return Start((one, one[None], table), "shares of all rows")

    def _moment_starts(self, data: Training, k: int, settings: Settings) -> list[Start]:
        return moment_starts(self._coded(data), k, settings)

    def _other_starts(
        self, data: Training, k: int, rng: np.random.Generator, count: int | None
    ) -> list[Start]:
        return other_starts(self._coded(data), k, rng, count)

    def _drawn(self, rows: np.ndarray, column: Any) -> tuple[np.ndarray, str]:
        """Symbols, or which of several columns are on."""
        rows = rows.reshape(len(rows), -1)
        return (rows[:, 0], "symbol") if rows.shape[1] == 1 else (rows, "column")

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if self._emission()[0].shape[1] != int(np.sum(self._sizes_fitted)):
            raise InvalidInput("its emissions are not those of its codes")

    @property
    def _sizes_fitted(self) -> np.ndarray:
        """Codes of each column, also of a model whose parameters were set by hand."""
        if hasattr(self, "n_categories_"):
            return self.n_categories_
        return self._sizes_of(self.emissionprob_)


def _told_apart(look: SequenceLook, sizes: np.ndarray) -> np.ndarray | None:
    """Distinct rows of all sequences, None where they are too many to be symbols."""
    if len(sizes) == 1:
        return np.arange(int(sizes[0]))[:, None]
    table = look.table.table
    return None if table is None or len(table.codes) > MOST_CODES else table.codes


def _shares(look: SequenceLook, sizes: np.ndarray, m: int) -> np.ndarray:
    if len(sizes) > 1:
        return look.table.table.counts / look.n
    counts = np.zeros(m)
    counts[: len(look.table.seen[0])] = look.table.seen[0]
    return counts / look.n


def _numbers(rows: np.ndarray, sizes: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Which of the distinct rows, in their order, each row is."""
    if len(sizes) == 1:
        return np.ascontiguousarray(X[:, 0])
    known, own = row_keys(rows, sizes), row_keys(X, sizes)
    if known is None or own is None:  # numbers that no integer holds: rows as bytes
        both = (np.ascontiguousarray(a).view(f"V{8 * len(sizes)}")[:, 0] for a in (rows, X))
        place = {row.tobytes(): j for j, row in enumerate(next(both))}
        return np.array([place[row.tobytes()] for row in next(both)])
    return np.searchsorted(known[0], own[0])


def _symbols(rows: np.ndarray, sizes: np.ndarray, chunk: SequenceChunk) -> Symbols:
    return Symbols(_numbers(rows, sizes, chunk.X), chunk.offsets, chunk.start)


def distinct(X: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of codes (m, l), and which one each row is (n,).

    One column has all its possible codes, so that symbols keep their numbers.
    """
    if X.shape[1] == 1:
        return np.arange(int(sizes[0]))[:, None], np.ascontiguousarray(X[:, 0])
    keyed = row_keys(X, sizes)
    if keyed is None:
        rows, code = np.unique(X, axis=0, return_inverse=True)
        return rows, code.reshape(-1)
    key, steps, cells = keyed
    if cells <= max(len(X), 100_000):
        keys = np.flatnonzero(np.bincount(key, minlength=cells))
        number = np.zeros(cells, dtype=np.int64)
        number[keys] = np.arange(len(keys))
        code = number[key]
    else:
        keys, code = np.unique(key, return_inverse=True)
    return (keys[:, None] // steps) % sizes, code
