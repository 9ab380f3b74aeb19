"""Hidden Markov models whose observations are integer codes: symbols, or rows of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment.exceptions import UnusableMoments
from thirdmoment.models.base import check_positive
from thirdmoment.models.candidates import Candidate, warn_unusable
from thirdmoment.models.codes import one_hot
from thirdmoment.models.hmm.base import HiddenMarkovModel
from thirdmoment.models.hmm.em import Observations, family_statistics
from thirdmoment.models.hmm.facts import window_facts
from thirdmoment.models.hmm.sequences import sequences
from thirdmoment.models.hmm.symbol_start import SymbolMoments, symbol_starts
from thirdmoment.models.hmm.vector_start import vector_starts
from thirdmoment.refinement.anderson import Logarithms
from thirdmoment.refinement.categories import Categories, CodedRows
from thirdmoment.refinement.em import Parameters
from thirdmoment.streaming import row_ranges

# Distinct rows of several columns are symbols up to this many; beyond, columns are features.
MOST_SYMBOLS = 1000

# Starts without moments that race against them.
RANDOM_STARTS = 4


class CodedHMM(HiddenMarkovModel):
    """Base of the models with codes; columns are independent given the state."""

    def _check_own(self) -> None:
        check_positive("prior_count", self.prior_count, zero=True)

    def _fitted_family(self) -> Categories:
        return Categories(self.n_categories_, float(self.prior_count))

    def _observations(self, family: Any, X: np.ndarray, lengths: np.ndarray) -> Observations:
        rows, code = distinct(X, family.sizes)
        ranges = row_ranges(len(rows), size=16_384)
        ones = np.ones(len(rows))
        chunks = [CodedRows(one_hot(rows[a:b], family.sizes), ones[a:b]) for a, b in ranges]
        return Observations(chunks, code, sequences(lengths))

    def _chart(self, parameters: Parameters) -> Logarithms | None:
        """One column: all arrays are laws. Several: tables are laws side by side."""
        return Logarithms(parameters) if len(self._sizes) == 1 else None

    def _candidates(
        self, family: Categories, X: np.ndarray, lengths: np.ndarray, k: int
    ) -> tuple[list[Candidate], list[str]]:
        refining, rng = self.refine != "none", self._rng()
        rows, code = distinct(X, family.sizes)
        data = self._observations(family, X, lengths)
        share = np.bincount(code, minlength=len(rows)) / len(code)
        if k == 1:
            table = self._tables(family, data, share[None])
            one = np.ones(1)
            return [Candidate((one, one[None], table), "shares of all rows", None)], []
        found: list[Candidate] = []
        notes: list[str] = []
        options: dict[str, Any] = {"weighted": self.weighting == "auto", "hedge": refining}
        try:
            found = self._moment_candidates(family, data, X, code, len(rows), k, rng, options)
        except UnusableMoments as error:
            if not refining:
                raise
            notes.append(f"The moments were not usable: {error} The fit started otherwise.")
            warn_unusable(str(error), instead="from random laws", stacklevel=6)
        if refining and len(found) != 1:
            for i in range(RANDOM_STARTS):
                laws = share * rng.gamma(1.0, size=(k, len(share)))
                tables = self._tables(family, data, laws / laws.sum(axis=1, keepdims=True))
                T = rng.dirichlet(np.ones(k), size=k)
                found.append(Candidate((np.full(k, 1 / k), T, tables), f"random laws {i}", None))
        return found, notes

    def _moment_candidates(
        self,
        family: Categories,
        data: Observations,
        X: np.ndarray,
        code: np.ndarray,
        m: int,
        k: int,
        rng: np.random.Generator,
        options: dict[str, Any],
    ) -> list[Candidate]:
        offsets = data.where.offsets
        if X.shape[1] == 1 or m <= MOST_SYMBOLS:
            moments = SymbolMoments(code, offsets, m, self._threads())
            starts = symbol_starts(moments, k, self.solver, rng, **options)
            return [
                Candidate(
                    (s.start, s.T, self._tables(family, data, s.laws)),
                    s.name,
                    window_facts(s.view, s.clipped),
                )
                for s in starts
            ]
        features = np.asarray(one_hot(X, family.sizes).toarray())
        found = vector_starts(
            features, offsets, k, self.solver, rng, n_threads=self._threads(), **options
        )
        return [
            Candidate(
                (v.start, v.T, family.normalised(np.maximum(v.means, 1e-6))),
                v.name,
                window_facts(v.view, np.zeros(k)),
            )
            for v in found
        ]

    def _tables(self, family: Categories, data: Observations, laws: np.ndarray) -> np.ndarray:
        """Tables of the columns (k, Σ d_v) from laws of the distinct rows (k, m)."""
        return family.normalised(family_statistics(family, data, laws.T)[1])


def distinct(X: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of codes (m, l), and which one each row is (n,).

    One column has all its possible codes, so that symbols keep their numbers.
    """
    if X.shape[1] == 1:
        return np.arange(int(sizes[0]))[:, None], np.ascontiguousarray(X[:, 0])
    radix = sizes.astype(object)
    cells = int(np.prod(radix))
    if cells >= 2**62:
        rows, code = np.unique(X, axis=0, return_inverse=True)
        return rows, code.reshape(-1)
    steps = np.concatenate([np.cumprod(radix[::-1])[-2::-1], [1]]).astype(np.int64)
    key = X @ steps
    if cells <= max(len(X), 100_000):
        keys = np.flatnonzero(np.bincount(key, minlength=cells))
        number = np.zeros(cells, dtype=np.int64)
        number[keys] = np.arange(len(keys))
        code = number[key]
    else:
        keys, code = np.unique(key, return_inverse=True)
    return (keys[:, None] // steps) % sizes, code
