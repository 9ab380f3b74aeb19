"""The way of a fit: views -> features -> moments -> weights of rows -> densities -> refinement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import posterior_of
from thirdmoment._constants import Choice, Wording
from thirdmoment.exceptions import InputWarning, UnusableMoments, warn
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.refinement.bandwidths import BandwidthSearch
from thirdmoment.refinement.halves import Examined
from thirdmoment.refinement.race import STAGES, Refined, ended_on_all, race
from thirdmoment.refinement.smooth import (
    FoldedData,
    SmoothProblem,
    SmoothTables,
    StreamedFolds,
    fold_sums,
)
from thirdmoment.refinement.smooth_halves import examine_smooth
from thirdmoment.report import Finding, Judged, Report
from thirdmoment.report.build import Proposed, refinement_report
from thirdmoment.report.findings import unusable
from thirdmoment.sizes import LOOK
from thirdmoment.starts.kernel import (
    FeatureOptions,
    embeddings,
    feature_table,
    weighted_rows,
)
from thirdmoment.starts.kernel_rows import (
    KernelRows,
    View,
    counts_from,
    density_tables,
    folded_chunk,
    folded_rows,
    other_shares,
)
from thirdmoment.starts.propose import propose
from thirdmoment.starts.start import Settings, Start
from thirdmoment.streaming import Streamed, kept

# How often bandwidths are chosen and EM goes on, and the multiples of the rule that they may be.
CV_ROUNDS: Choice[int] = 2
CV_RANGE: Choice[tuple[float, float]] = 0.1, 4.0

# Gain of held-out log-likelihood of a row by half the bandwidths that is worth a note.
WORTH_SHARPER: Wording[float] = 0.02


class Climb(NamedTuple):
    """How the refinement goes."""

    max_steps: int  # zero: the moments alone
    tol: float
    n_starts: int | str
    strict: bool  # raise where the moments are unusable
    bandwidths: str  # "fixed", "advise" on better ones, or choose them by "cv"


class Plan(NamedTuple):
    """The arguments of an estimator, resolved."""

    settings: Settings
    features: FeatureOptions
    a0: float
    climb: Climb
    log: Callable[..., None]


class Densities(NamedTuple):
    """A fitted mixture, components in no particular order."""

    family: SmoothTables
    weights: np.ndarray  # (k,)
    tables: np.ndarray  # (k, Σ G_v) densities of all rows
    counts: np.ndarray  # (k, Σ G_v)
    bandwidths: list[np.ndarray]  # (k, d_v) a view
    posterior: np.ndarray  # (n, k)
    shares: list[np.ndarray]  # (n, k) a view: what weights its rows
    left_out: np.ndarray  # (views,) share of the rows that the density of a view does not hold


class Solution(NamedTuple):
    """What a fit found, and how."""

    found: Densities
    refined: Refined
    chosen: Start
    starts: list[Start]
    notes: list[Finding]
    refining: bool
    examined: Examined | None = None

    def report(
        self,
        order: np.ndarray,
        labels: tuple[str, ...],
        notes: Sequence[Finding],
        details: dict[str, Any],
    ) -> Report:
        examined = self.examined
        if examined is not None:
            examined = examined._replace(trust=examined.trust[order])
        return refinement_report(
            self.refined,
            Proposed(self.chosen, self.starts, order if self.chosen.facts is not None else None),
            Judged(examined, labels),
            refining=self.refining,
            notes=[*self.notes, *notes],
            details=details,
        )


class StreamedRows(NamedTuple):
    """All rows of a source."""

    rows: Streamed
    total: float


class WeightedRows(NamedTuple):
    """A start from moments with the counts it was made of."""

    start: Start
    counts: np.ndarray
    effective: np.ndarray
    shares: list[np.ndarray]


def fit_densities(
    rows: KernelRows, k: int, plan: Plan, whole: StreamedRows | None = None
) -> Solution:
    """Moments, then refinement by held-out likelihood.

    With ``whole`` the rows are a sample of a source, and the refinement ends on all of it.
    """
    settings, climb = plan.settings, plan.climb
    duplicates = _duplicates(rows.X, rows.views)
    tables = density_tables(rows, k, settings.rng)
    family = SmoothTables(tables, k, shared=rows.exchangeable)
    data = folded_rows(rows, family)
    found: list[WeightedRows] = []

    def moments() -> list[Start]:
        if k == 1:
            return []  # nothing to tell apart
        _enough_rows(float(rows.weights.sum()), k)
        try:
            found.extend(_from_moments(rows, k, plan, family, data))
        except np.linalg.LinAlgError as error:
            raise UnusableMoments(f"The moments are numerically singular ({error}).") from error
        return [one.start for one in found]

    def others(count: int | None) -> list[Start]:
        shares = [_posterior(family, data, one.start.parameters) for one in found]
        more = other_shares(rows, shares, k, settings, count=count)
        return [
            Start(_from_shares(family, data, rows.weights, share), name) for name, share in more
        ]

    starts, reasons = propose(
        moments,
        others,
        rows=data.total,
        n_starts=climb.n_starts,
        refining=not climb.strict or k == 1,
    )
    notes = [*duplicates, *(unusable(reason) for reason in reasons)]
    if found and not climb.max_steps:
        return _unrefined(family, data, found[0], settings.n_threads)._replace(notes=notes)
    contest = SmoothProblem(family, data, climb.tol, settings.n_threads)
    plan.log("EM from %s", ", ".join(one.name for one in starts))
    refined = race(
        contest,
        [one.parameters for one in starts],
        max_steps=climb.max_steps,
        stages=tuple(min(steps, climb.max_steps) for steps in STAGES),
        finalists=1,
    )
    if climb.bandwidths == "cv":
        family, refined = _cross_validated(rows, family, data, refined, plan)
    refined, everything = _on_all(rows, family, refined, plan, whole)
    densities, value, sharper = _finished(family, data, refined, plan, everything)
    refined = refined._replace(path=(*refined.path, value))
    if sharper - value > WORTH_SHARPER:
        text = (
            f"Half the bandwidths would raise the held-out log-likelihood of a row from "
            f"{value:.3f} to {sharper:.3f}: some components have edges or several humps."
        )
        notes.append(Finding("too smooth", text, "Try bandwidth='cv'."))
    rng = settings.rng.spawn(1)[0]
    examined = examine_smooth(family, data, refined, rng, n_threads=settings.n_threads)
    return Solution(densities, refined, starts[refined.chosen], starts, notes, True, examined)


def _on_all(
    rows: KernelRows,
    family: SmoothTables,
    refined: Refined,
    plan: Plan,
    whole: StreamedRows | None,
) -> tuple[Refined, StreamedFolds | FoldedData | None]:
    """What a sample showed, taken to all rows of a source, and these rows."""
    if whole is None:
        return refined, None
    chunks = whole.rows.mapped(partial(folded_chunk, family, rows.views))
    everything: StreamedFolds | FoldedData = StreamedFolds(chunks, whole.total)
    parts = kept(chunks)
    if isinstance(parts, tuple):  # read once
        everything = FoldedData([one for part in parts for one in part], whole.total)
    problem = SmoothProblem(family, everything, plan.climb.tol, plan.settings.n_threads)
    ended = ended_on_all(problem, refined, plan.climb.max_steps, resident=chunks.resident)
    return ended, everything


def _enough_rows(n: float, k: int) -> None:
    if n < 3 * k:
        raise UnusableMoments(
            f"There are {n:g} rows for n_components={k}; third moments need at least three rows "
            f"for each component ({3 * k}). Lower n_components, or give more rows."
        )


def _duplicates(X: np.ndarray, views: Sequence[View]) -> list[Finding]:
    """Columns of different views that are equal cannot be independent given the component."""
    owner = np.full(X.shape[1], -1)
    for v, view in enumerate(views):
        owner[view.columns] = v
    seen: dict[bytes, int] = {}
    for column in np.flatnonzero((X.min(axis=0) < X.max(axis=0)) & (owner >= 0)):
        first = seen.setdefault(X[:, column].tobytes(), int(column))
        if owner[first] != owner[column]:
            text = (
                f"Columns {first} and {column} are equal, but stand in different views, which the "
                "model takes to be independent given the component."
            )
            found = Finding("equal columns", text, "Leave one out.", "care")
            warn(str(found), InputWarning)
            return [found]
    return []


def _from_moments(
    rows: KernelRows, k: int, plan: Plan, family: SmoothTables, data: FoldedData
) -> list[WeightedRows]:
    settings, refined = plan.settings, plan.climb.max_steps > 0
    features = feature_table(rows, k, plan.features, settings.rng)
    plan.log("%d features of %d views", sum(map(len, features.table.views)), len(features.used))
    found = []
    for one in embeddings(features, k, settings, a0=plan.a0, exchangeable=rows.exchangeable):
        shares = weighted_rows(one, len(rows.views), plan.a0, stacked=settings.weighted)
        counts, effective = counts_from(family, data, shares)
        mixed = np.maximum(one.views.weights, 1e-3 / k if refined else 0.0)
        parameters = mixed / mixed.sum(), family.tables(counts, effective)
        start = Start(parameters, "moments of kernel features", one.facts())
        found.append(WeightedRows(start, counts, effective, shares))
    return found


def _from_shares(
    family: SmoothTables, data: FoldedData, weights: np.ndarray, share: np.ndarray
) -> Parameters:
    """Densities from the share (n, k) of each component in each row."""
    counts, effective = counts_from(family, data, [share] * len(family.views))
    mass = np.maximum(weights @ share, 1e-12)
    return mass / mass.sum(), family.tables(counts, effective)


def _unrefined(
    family: SmoothTables, data: FoldedData, first: WeightedRows, n_threads: int
) -> Solution:
    """The moment estimate as it is."""
    parameters = first.start.parameters
    value = fold_sums(family, data, parameters, n_threads=n_threads)[1]
    total = first.counts.sum(axis=1)
    found = Densities(
        family=family,
        weights=parameters[0],
        tables=family.tables(first.counts, first.effective, whole=True)[:, 0],
        counts=family.pooled(total),
        bandwidths=family.bandwidths(total, first.effective),
        posterior=_posterior(family, data, parameters),
        shares=first.shares,
        left_out=_left_out(family, data),
    )
    return Solution(found, Refined(parameters, (value,)), first.start, [first.start], [], False)


def _cross_validated(
    rows: KernelRows, family: SmoothTables, data: FoldedData, refined: Refined, plan: Plan
) -> tuple[SmoothTables, Refined]:
    """Bandwidths by held-out likelihood and EM with them, twice."""
    rungs, n_threads = [data], plan.settings.n_threads
    if len(rows.X) > 2 * LOOK:
        part = np.sort(plan.settings.rng.choice(len(rows.X), LOOK, replace=False))
        rungs.insert(0, folded_rows(rows, family, part))
    for _ in range(CV_ROUNDS):
        plan.log("bandwidths, held-out log-likelihood %.4f", refined.path[-1])
        search = BandwidthSearch(family, data, refined.parameters, n_threads)
        family = family.tuned(np.clip(family.multipliers * search.run(rungs), *CV_RANGE))
        problem = SmoothProblem(family, data, plan.climb.tol, n_threads)
        more = problem.run(family.maximise(search.sums), plan.climb.max_steps)
        refined = refined._replace(
            parameters=more.parameters,
            path=(*refined.path, *more.path),
            steps=refined.steps + more.steps,
            converged=more.converged,
        )
    return family, refined


def _finished(
    family: SmoothTables,
    data: FoldedData,
    refined: Refined,
    plan: Plan,
    everything: StreamedFolds | FoldedData | None,
) -> tuple[Densities, float, float]:
    """Densities of all rows from the posteriors of the best step.

    And the held-out likelihood of a row, with these bandwidths and, to advise, with half of them.
    """
    posterior = _posterior(family, data, refined.parameters)
    if everything is None:
        counts, effective = counts_from(family, data, [posterior] * len(family.views))
        mass = sum(chunk.weights @ posterior[chunk.place] for chunk in data.chunks)
    else:
        sums, _ = fold_sums(
            family, everything, refined.parameters, n_threads=plan.settings.n_threads
        )
        mass, squares, counts = sums
        effective = family.effective(mass, squares)
    weights, total = mass / mass.sum(), counts.sum(axis=1)
    values = []
    for share in (1.0, 0.5) if plan.climb.bandwidths == "advise" else (1.0,):
        tuned = family.tuned(share * family.multipliers)
        parameters = weights, tuned.tables(counts, effective)
        values.append(fold_sums(tuned, data, parameters, n_threads=plan.settings.n_threads)[1])
    found = Densities(
        family=family,
        weights=weights,
        tables=family.tables(counts, effective, whole=True)[:, 0],
        counts=family.pooled(total),
        bandwidths=family.bandwidths(total, effective),
        posterior=posterior,
        shares=[posterior] * len(family.views),
        left_out=_left_out(family, data),
    )
    return found, values[0], values[-1]


def _left_out(family: SmoothTables, data: FoldedData) -> np.ndarray:
    """Share (views,) of the rows that are not counted in the density of each view."""
    held = np.zeros(len(family.views))
    for chunk in data.chunks:
        held += [float(rows.add.weighted_sum(chunk.weights).sum()) for rows in chunk.views]
    return np.maximum(0.0, 1 - held / data.total)


def _posterior(family: SmoothTables, data: FoldedData, parameters: Parameters) -> np.ndarray:
    """Posteriors (n, k) of all rows, in the order they were given."""
    n = sum(len(chunk.weights) for chunk in data.chunks)
    out = np.empty((n, len(parameters[0])))
    log_weights = np.log(np.maximum(parameters[0], 1e-300))[:, None]
    for chunk in data.chunks:
        joint = family.log_density(parameters, chunk) + log_weights
        out[chunk.place] = posterior_of(joint)[0].T
    return out
