"""How far an answer stands: what either half of the data makes of it, and what the other says.

Each half refines the answer by a few steps of its own. A component is stable where both agree on
which observations are its own, by the Jaccard overlap of their posteriors: one for equal and zero
for disjoint ones. Hennig (2007) calls a cluster dissolved below one half. A solution of another
start that the data cannot tell from the answer (Vuong 1989) is held against it in the same way.

What one half learned is scored on the other, next to simpler models of the same half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.optimize

from thirdmoment._array import like_one, posterior_of, to_numpy
from thirdmoment._constants import Choice, Wording, Work
from thirdmoment.likelihood.mixture import Family, MixtureData, Parameters, log_joint
from thirdmoment.refinement.mixture import mixture_em

# EM steps of a half: with three components that drift look stable, more than ten say no more.
STEPS: Wording[int] = 10

# Rows of a half at most; a component should have some of them.
MOST_ROWS: Wording[int] = 10_000
ROWS_OF_THE_LEAST: Wording[int] = 200
MOST_CELLS: Work[int] = 20_000_000

# Rows for each component from which on halves are fitted: fifteen each.
LEAST_ROWS: Wording[int] = 30

# Standard errors by which one model is clearly better than another.
CLEARLY: Choice[float] = 2.0


class Gain(NamedTuple):
    """Held-out log-likelihood of a unit of data over that of a simpler model."""

    against: str  # "by a single component"
    unit: str  # "row"
    value: float
    error: float  # standard error

    @property
    def clear(self) -> bool:
        return self.value > CLEARLY * self.error


class Explained(NamedTuple):
    """What a model makes of some data."""

    posterior: np.ndarray  # (n, k), rows times their weights
    scores: np.ndarray  # (m,) log-likelihoods of independent pieces


class Pieces(NamedTuple):
    """Independent pieces of data."""

    counts: np.ndarray  # (m,) how many there are of each
    sizes: np.ndarray  # (m,) units of data in each

    def mean_gain(self, rise: np.ndarray, *, against: str = "", unit: str = "") -> Gain:
        """Mean of the rises (m,) over all units, and its standard error."""
        total = float(self.counts @ self.sizes)
        mean = float(self.counts @ rise) / total
        error = float(np.sqrt(self.counts @ (rise - mean * self.sizes) ** 2)) / total
        return Gain(against, unit, mean, error)


class Part(Protocol):
    """Half of the data of a fit."""

    @property
    def pieces(self) -> Pieces: ...

    def run(self, parameters: Parameters) -> Parameters:
        """A few steps of refinement on this part alone."""

    def explain(self, parameters: Parameters) -> Explained:
        """Posteriors and scores of this part."""

    def simpler(self, parameters: Parameters) -> dict[str, Parameters]:
        """Simpler models of this part, by name."""


class Examined(NamedTuple):
    """How far an answer stands."""

    trust: np.ndarray  # (k,) share of its observations that a component keeps, 0 to 1
    gains: tuple[Gain, ...]


def examine(
    parts: Sequence[Part], parameters: Parameters, *, unit: str, rival: Parameters | None = None
) -> Examined:
    """Trust in each component of ``parameters`` (in their order), and gains over simpler models."""
    halves = [part.run(parameters) for part in parts]
    found = [[part.explain(half) for half in halves] for part in parts]
    first, second = (np.concatenate([part[i].posterior for part in found]) for i in (0, 1))
    trust = overlap(first, second)
    if rival is not None:
        trust = np.minimum(trust, _against(parts, parameters, rival))
    simpler = [part.simpler(half) for part, half in zip(parts, halves, strict=True)]
    gains = []
    for name in simpler[0]:
        rise = [
            found[i][1 - i].scores - parts[i].explain(simpler[1 - i][name]).scores for i in (0, 1)
        ]
        gains.append(_pieces(parts).mean_gain(np.concatenate(rise), against=name, unit=unit))
    return Examined(trust, tuple(gains))


def overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Jaccard overlap (k,) of the columns of two non-negative arrays (n, k)."""
    shared, either = np.minimum(first, second).sum(axis=0), np.maximum(first, second).sum(axis=0)
    return shared / np.maximum(either, 1e-300)


def _pieces(parts: Sequence[Part]) -> Pieces:
    """Those of all parts."""
    return Pieces(
        np.concatenate([part.pieces.counts for part in parts]),
        np.concatenate([part.pieces.sizes for part in parts]),
    )


def _against(parts: Sequence[Part], parameters: Parameters, rival: Parameters) -> np.ndarray:
    """Overlap with a rival where the data do not clearly prefer the answer, else ones."""
    mine, theirs = ([part.explain(p) for part in parts] for p in (parameters, rival))
    rise = np.concatenate([a.scores - b.scores for a, b in zip(mine, theirs, strict=True)])
    if _pieces(parts).mean_gain(rise).clear:
        return np.ones(mine[0].posterior.shape[1])
    first, second = (np.concatenate([one.posterior for one in both]) for both in (mine, theirs))
    return matched_overlap(first, second)


def matched_overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Overlap (k,) of each column of ``first`` with its partner in ``second``."""
    k = first.shape[1]
    table = np.stack([overlap(first[:, [i]], second) for i in range(k)])
    rows, partner = scipy.optimize.linear_sum_assignment(-table)
    return table[rows, partner]


def two_halves(
    weights: np.ndarray,
    k: int,
    rng: np.random.Generator,
    *,
    least_weight: float = 1.0,
    cells: int = 1,
) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Rows and weights of two disjoint halves; None where there are too few rows to tell.

    A row that stands for several is shared out as those would be. Much data is thinned to
    `MOST_ROWS` rows a half, or more where a component of the least weight needs them, but to no
    more than `MOST_CELLS` numbers where a row has so many ``cells``.
    """
    if weights.sum() < LEAST_ROWS * k:
        return None
    first = shares_of_first(weights, rng)
    most = max(MOST_ROWS, round(ROWS_OF_THE_LEAST / max(least_weight, 1e-6)))
    most = max(1, min(most, MOST_CELLS // cells))
    out = []
    for share in (first, 1 - first):
        place = np.flatnonzero(share > 0)
        if len(place) > most:
            place = np.sort(rng.choice(place, most, replace=False))
        out.append((place, (weights * share)[place]))
    return out


def shares_of_first(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Share (n,) of each row in the first half: all or nothing, or as its copies fall."""
    counts = np.maximum(np.rint(weights), 1.0).astype(np.int64)
    if counts.max() > 1:
        return rng.binomial(counts, 0.5) / counts
    first = np.zeros(len(weights))
    first[rng.permutation(len(weights))[: len(weights) // 2]] = 1.0
    return first


class MixturePart:
    """Half of the rows of a mixture."""

    def __init__(
        self,
        family: Family,
        data: MixtureData,
        tol: float,
        n_threads: int,
        simple: str = "by a single component",
    ) -> None:
        self.simple = simple
        self.family, self.data, self.tol, self.n_threads = family, data, tol, n_threads
        counts = np.concatenate([to_numpy(chunk.weights) for chunk in data.chunks])
        self.pieces = Pieces(counts, np.ones(len(counts)))

    def run(self, parameters: Parameters) -> Parameters:
        return mixture_em(
            self.family,
            self.data,
            parameters,
            tol=self.tol,
            max_steps=STEPS,
            n_threads=self.n_threads,
        ).parameters

    def explain(self, parameters: Parameters) -> Explained:
        found = [self._explain(parameters, chunk) for chunk in self.data.chunks]
        shares, scores = zip(*found, strict=True)
        return Explained(np.concatenate(shares), np.concatenate(scores))

    def _explain(self, parameters: Parameters, chunk: Any) -> tuple[np.ndarray, np.ndarray]:
        posterior, value = posterior_of(log_joint(self.family, parameters, chunk))
        return to_numpy(posterior * like_one(posterior, chunk.weights)).T, to_numpy(value)

    def simpler(self, parameters: Parameters) -> dict[str, Parameters]:
        sums = None
        for chunk in self.data.chunks:
            part = self.family.statistics(chunk, chunk.weights[None, :])
            part = tuple(map(to_numpy, part))
            sums = part if sums is None else tuple(a + b for a, b in zip(sums, part, strict=True))
        assert sums is not None
        return {self.simple: self.family.maximise(sums)}


def examine_mixture(
    part: Callable[[np.ndarray, np.ndarray], tuple[Family, MixtureData]],
    weights: np.ndarray,
    parameters: Parameters,
    *,
    rng: np.random.Generator,
    tol: float,
    n_threads: int,
    rival: Parameters | None = None,
    cells: int = 1,
    simple: str = "by a single component",
) -> Examined | None:
    """`examine` for a mixture; ``part`` gives rows with other weights to a family of their own."""
    k = len(parameters[0])
    halves = two_halves(weights, k, rng, least_weight=float(np.min(parameters[0])), cells=cells)
    if k == 1 or halves is None:
        return None
    parts = [MixturePart(*part(place, w), tol, n_threads, simple) for place, w in halves]
    return examine(parts, parameters, unit="row", rival=rival)
