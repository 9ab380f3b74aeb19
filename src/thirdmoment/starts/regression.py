"""Starts of mixed regressions: standardised rows, moments, lines through few rows, chance."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import DenseRows, row_signs
from thirdmoment._constants import Choice
from thirdmoment.decomposition import choose_solver, decompose
from thirdmoment.exceptions import InputWarning, warn
from thirdmoment.likelihood.mixture import MixtureData, Parameters, from_labels
from thirdmoment.likelihood.regressions import LinearRows, Regressions
from thirdmoment.linalg import whiten
from thirdmoment.moments.regression import (
    RegressionRows,
    RegressionSums,
    RegressionTriples,
    Standardisation,
    constant_columns,
    root_of_inverse,
)
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.recovery.regression import recover_regressions
from thirdmoment.refinement.spread import DRAWS, covering_labels, draw_rows, weight_quantiles
from thirdmoment.sizes import LOOK
from thirdmoment.starts.start import MomentFacts, Settings
from thirdmoment.streaming import Chunk, Streamed, fold, row_ranges


class RegressionData(NamedTuple):
    """Standardised rows with a constant, targets of unit variance and weights."""

    Z: np.ndarray  # (n, r + 1), the last column is one
    y: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)
    standard: Standardisation
    whole: WholeRegression | None = None  # of what the rows are a sample, None where they are all

    @property
    def total(self) -> float:
        """Rows that the table is worth."""
        return float(self.weights.sum()) if self.whole is None else self.whole.total

    def chunks(self) -> MixtureData:
        """Rows for EM."""
        return MixtureData(
            [
                LinearRows(self.Z[a:b], self.y[a:b], self.weights[a:b])
                for a, b in row_ranges(len(self.y))
            ]
        )

    def samples(self) -> list[RegressionRows] | Streamed:
        """All rows for the moments."""
        if self.whole is not None:
            return self.whole.rows.mapped(partial(_regression_rows, self.standard))
        return [
            RegressionRows(self.Z[a:b, :-1], self.y[a:b], self.weights[a:b], row_signs(a, b))
            for a, b in row_ranges(len(self.y))
        ]

    def part(self, place: np.ndarray, weights: np.ndarray) -> RegressionData:
        """Some of the rows, with other weights."""
        return self._replace(Z=self.Z[place], y=self.y[place], weights=weights)

    def thinned(self, most: int) -> RegressionData:
        """At most so many rows, spread over all by weight."""
        if len(self.y) <= most:
            return self
        rows = weight_quantiles(self.weights, most)
        return RegressionData(self.Z[rows], self.y[rows], np.ones(len(rows)), self.standard)


class WholeRegression(NamedTuple):
    """All rows of a source, targets in their last column, and what was seen of its columns."""

    rows: Streamed
    total: float
    mean: np.ndarray  # (d + 1,)
    deviation: np.ndarray  # (d + 1,)
    largest: np.ndarray  # (d + 1,)

    def chunks(self, standard: Standardisation) -> MixtureData:
        """All rows for EM."""
        return MixtureData(self.rows.mapped(partial(_linear_rows, standard)), self.total)


def standard_rows(standard: Standardisation, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows and targets of a table with targets in its last column."""
    Z = (table[:, :-1] - standard.mean) @ standard.root
    return Z, (table[:, -1] - standard.y_mean) / standard.y_scale


def _regression_rows(standard: Standardisation, chunk: Chunk) -> RegressionRows:
    Z, y = standard_rows(standard, chunk.rows)
    signs = row_signs(chunk.start, chunk.start + len(y))
    return RegressionRows(Z, y, np.ones(len(y)), signs)


def _linear_rows(standard: Standardisation, chunk: Chunk) -> LinearRows:
    Z, y = standard_rows(standard, chunk.rows)
    return LinearRows(np.concatenate([Z, np.ones((len(y), 1))], axis=1), y, np.ones(len(y)))


def _centred(mean: np.ndarray, chunk: Chunk) -> Sample:
    rows = chunk.rows[:, :-1] - mean
    return Sample(DenseRows(rows), np.ones(len(rows)), chunk.start)


def standardised(
    X: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    *,
    n_threads: int,
    whole: WholeRegression | None = None,
) -> RegressionData:
    """Rows of positive weight, standardised; redundant columns are left out with a warning."""
    chunks: Any
    if whole is None:
        mean, location = (w @ X) / w.sum(), float(w @ y / w.sum())
        centred, target = X - mean, y - location
        scale = float(np.sqrt(w @ (target / max(np.abs(target).max(), 1e-300)) ** 2 / w.sum()))
        scale, size, top = scale * np.abs(target).max(), np.abs(X).max(axis=0), np.abs(y).max()
        chunks = [Sample(DenseRows(centred[a:b]), w[a:b], a) for a, b in row_ranges(len(X))]
    else:
        mean, location = whole.mean[:-1], float(whole.mean[-1])
        centred, target, scale = X - mean, y - location, whole.deviation[-1]
        size, top = whole.largest[:-1], whole.largest[-1]
        chunks = whole.rows.mapped(partial(_centred, mean), width=X.shape[1])
    scale = float(scale)
    if scale <= 1e-12 * float(top):  # rounding of a constant
        target, scale = np.zeros_like(y), 1.0
    sums = fold(lambda: PairSums(X.shape[1]), chunks, n_threads=n_threads)
    root = root_of_inverse(sums.pairs, size)
    if root.shape[1] < X.shape[1]:
        warn(
            f"The {X.shape[1]} columns of X span {root.shape[1]} dimensions only: some are "
            "constant or combinations of others. Of all coefficients that fit equally, small ones "
            "are returned; drop the redundant columns to have them unique.",
            InputWarning,
        )
    Z = np.concatenate([centred @ root, np.ones((len(X), 1))], axis=1)
    return RegressionData(Z, target / scale, w, Standardisation(mean, root, location, scale), whole)


# Lines through so few rows are tried one by one; with more coefficients rows are split by chance.
MOST_COEFFICIENTS: Choice[int] = 4

# Largest departure of a column from the skewness 0 and the kurtosis 3 of a Gaussian.
SKEWNESS: Choice[float] = 0.4
KURTOSIS: Choice[float] = 0.6

# Smallest weight of a component at the start, in units of an even share.
LEAST_SHARE: Choice[float] = 0.1


def why_not_moments(X: np.ndarray, data: RegressionData, k: int) -> str | None:
    """Why the moments do not apply to these rows, or None."""
    r, total = data.Z.shape[1] - 1, data.total
    if k > r:
        return (
            f"{r} independent column(s) of X can show at most {r} regressions, fewer than "
            f"n_components={k}."
        )
    if total < r * r:
        return f"{total:.6g} rows cannot show the {r}² entries of a second moment."
    return _not_gaussian(X, data.weights)


def _not_gaussian(X: np.ndarray, weights: np.ndarray) -> str | None:
    """Which column is furthest from Gaussian, if any is far beyond what chance makes."""
    w = weights / weights.sum()
    centred = X - w @ X
    scale = np.sqrt(w @ centred**2)
    used = np.flatnonzero(~constant_columns(scale, np.abs(X).max(axis=0)))
    unit = centred[:, used] / scale[used]
    chance = 5 / np.sqrt(weights.sum())
    skew, kurtosis = w @ unit**3, w @ unit**4 - 3
    excess = np.maximum(
        np.abs(skew) / (SKEWNESS + np.sqrt(6) * chance),
        np.abs(kurtosis) / (KURTOSIS + np.sqrt(24) * chance),
    )
    worst = int(np.argmax(excess)) if len(excess) else 0
    if not len(excess) or excess[worst] <= 1:
        return None
    return (
        f"Column {used[worst]} of X is not Gaussian (skewness {skew[worst]:.2g}, excess kurtosis "
        f"{kurtosis[worst]:.2g}), and these moments of regressions need Gaussian x."
    )


def moment_start(
    data: RegressionData, k: int, settings: Settings
) -> tuple[Parameters, MomentFacts]:
    """(weights, beta, variances) by the whitened tensor (SR-19, SR-20)."""
    samples, r, n_threads = data.samples(), data.Z.shape[1] - 1, settings.n_threads
    solver = choose_solver(settings.solver)
    sums = fold(lambda: RegressionSums(r), samples, n_threads=n_threads)
    white = whiten(sums.pairs, k)
    triples = fold(lambda: RegressionTriples(white.W), samples, n_threads=n_threads)
    found = decompose(triples.finish(sums), solver, settings.rng)
    estimate = recover_regressions(found, white.B, sums.second_x, sums.variance)
    total = data.total
    facts = MomentFacts(
        np.linalg.eigvalsh(sums.pairs)[::-1],
        float(np.linalg.norm(sums.noise, 2)),
        found.residual,
        estimate.raw_weights,
        np.zeros(k),
        solver,
        {
            "passes": 3,
            "noise_variance": estimate.noise_variance,
            "decomposition": found.status.value,
        },
        sums.variance * float(np.sqrt(3 * r / total)),
    )
    beta = np.column_stack([estimate.slopes, estimate.intercepts])
    return (estimate.weights, beta, np.full(k, estimate.noise_variance)), facts


def as_start(parameters: Parameters) -> Parameters:
    """A moment estimate as a start of EM: no component empty, none too narrow, none far off."""
    weights, beta, noise = parameters
    weights = np.maximum(weights, LEAST_SHARE / len(weights))
    constant = np.clip(beta[:, -1:], -3, 3)  # y has unit variance
    own = np.clip(noise, 0.02, 1.0)
    return weights / weights.sum(), np.concatenate([beta[:, :-1], constant], axis=1), own


def other_start(
    family: Regressions, data: RegressionData, k: int, rng: np.random.Generator, *, by_chance: bool
) -> tuple[Parameters, str]:
    """Rows split by chance, or lines through few rows where there are few coefficients."""
    part = data.thinned(LOOK)
    table, q = np.column_stack([part.Z, part.y]), part.Z.shape[1]
    if by_chance or q > MOST_COEFFICIENTS:  # by their values, so that equal rows go together
        mixed = table @ rng.standard_normal(q + 1) * 1e3
        labels = np.minimum((mixed - np.floor(mixed)) * k, k - 1).astype(int)
        return from_labels(family, part.chunks(), labels, k), "rows split by chance"
    rows = draw_rows(part.weights, (DRAWS, q), rng)
    lines = np.stack([np.linalg.lstsq(part.Z[few], part.y[few], rcond=None)[0] for few in rows])
    residual = (part.y - lines @ part.Z.T) ** 2
    labels = covering_labels(residual, part.weights, k)
    return from_labels(family, part.chunks(), labels, k), "lines through few rows"
