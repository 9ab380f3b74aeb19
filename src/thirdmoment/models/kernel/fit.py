"""The way of a fit: views -> features -> moments -> weights of rows -> densities -> refinement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from thirdmoment.exceptions import InputWarning, UnusableMoments, warn
from thirdmoment.likelihood.mixture import Parameters, posteriors
from thirdmoment.refinement.bandwidths import BandwidthSearch
from thirdmoment.refinement.halves import Examined
from thirdmoment.refinement.race import STAGES, Refined, Start, race
from thirdmoment.refinement.smooth import FoldedData, SmoothProblem, SmoothTables, fold_sums
from thirdmoment.refinement.smooth_halves import examine_smooth
from thirdmoment.report import Finding, Judged, Report
from thirdmoment.report.build import refinement_report
from thirdmoment.report.findings import unusable
from thirdmoment.starts.kernel import embedding_starts, feature_table, weighted_rows
from thirdmoment.starts.kernel_data import counts_from, density_tables, folded_rows
from thirdmoment.starts.kernel_others import other_starts
from thirdmoment.starts.kernel_views import View
from thirdmoment.starts.propose import Candidate, propose

# Rows on which all bandwidths are compared, and how often they are chosen and EM goes on.
CV_ROWS = 5000
CV_ROUNDS = 2
CV_RANGE = 0.1, 4.0

# Gain of held-out log-likelihood of a row by half the bandwidths that is worth a note.
WORTH_SHARPER = 0.02


class Plan(NamedTuple):
    """The arguments of an estimator, resolved."""

    a0: float
    exchangeable: bool
    method: str
    rank: int
    solver: str
    weighted: bool
    refine: bool
    strict: bool  # raise where the moments are unusable
    cross_validate: bool
    advise: bool  # whether to look for better bandwidths
    max_steps: int
    tol: float
    n_starts: int | str
    n_threads: int
    rng: np.random.Generator
    log: Callable[..., None]


class Solution(NamedTuple):
    """What a fit found, components in no particular order."""

    family: SmoothTables
    weights: np.ndarray  # (k,)
    tables: np.ndarray  # (k, Σ G_v) densities of all rows
    counts: np.ndarray  # (k, Σ G_v)
    bandwidths: list[np.ndarray]  # (k, d_v) a view
    posterior: np.ndarray  # (n, k)
    shares: list[np.ndarray]  # (n, k) a view: what weights its rows
    held: np.ndarray  # (views,) share of the rows within reach of nodes
    refined: Refined
    chosen: Candidate
    candidates: list[Candidate]
    notes: list[Finding]
    refining: bool
    examined: Examined | None = None

    def left_out(self) -> np.ndarray:
        """Share (views,) of the rows that the density of a view does not hold."""
        return np.maximum(0.0, 1 - self.held)

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
            len(self.weights),
            self.chosen,
            self.refined,
            order=order if self.chosen.facts is not None else None,
            refining=self.refining,
            judged=Judged(examined, labels),
            notes=[*self.notes, *notes],
            candidates=self.candidates,
            details=details,
        )


class Moments(NamedTuple):
    """A candidate with the counts it was made of."""

    candidate: Candidate
    counts: np.ndarray
    effective: np.ndarray
    shares: list[np.ndarray]


def solve(X: np.ndarray, weights: np.ndarray, views: list[View], k: int, plan: Plan) -> Solution:
    """Moments, then refinement by held-out likelihood."""
    duplicates = _duplicates(X, views)
    tables = density_tables(X, weights, views, k, plan.rng, exchangeable=plan.exchangeable)
    family = SmoothTables(tables, k, shared=plan.exchangeable)
    data = folded_rows(X, weights, views, family)
    found: list[Moments] = []

    def moments() -> list[Candidate]:
        if k == 1:
            return []  # nothing to tell apart
        _enough_rows(float(weights.sum()), k)
        try:
            found.extend(_from_moments(X, weights, views, k, plan, family, data))
        except np.linalg.LinAlgError as error:
            raise UnusableMoments(f"The moments are numerically singular ({error}).") from error
        return [one.candidate for one in found]

    def others(count: int | None) -> list[Candidate]:
        shares = [_posterior(family, data, one.candidate.parameters) for one in found]
        groups = [view.columns for view in views]
        more = other_starts(
            X, weights, groups, shares, k, plan.rng, count=count, n_threads=plan.n_threads
        )
        return [
            Candidate(_from_shares(family, data, weights, share), name, None)
            for name, share in more
        ]

    candidates, reasons = propose(
        moments,
        others,
        trusted=lambda facts: facts.trusted(data.total),
        n_starts=plan.n_starts,
        refining=not plan.strict or k == 1,
    )
    notes = [*duplicates, *(unusable(reason) for reason in reasons)]
    if found and not plan.refine:
        return _unrefined(family, data, found[0], plan, notes)
    contest = SmoothProblem(family, data, plan.tol, plan.n_threads)
    starts = [Start(one.parameters, one.name) for one in candidates]
    plan.log("EM from %s", ", ".join(start.name for start in starts))
    stages = tuple(min(steps, plan.max_steps) for steps in STAGES)
    refined = race(contest, starts, max_steps=plan.max_steps, stages=stages, finalists=1)
    if plan.cross_validate:
        refined = _cross_validated(X, weights, views, family, data, refined, plan)
    solution = _finished(family, data, refined, candidates, notes, plan)
    rng = plan.rng.spawn(1)[0]
    examined = examine_smooth(family, data, refined, rng, n_threads=plan.n_threads)
    return solution._replace(examined=examined)


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
    X: np.ndarray,
    weights: np.ndarray,
    views: list[View],
    k: int,
    plan: Plan,
    family: SmoothTables,
    data: FoldedData,
) -> list[Moments]:
    features = feature_table(
        X,
        weights,
        views,
        k,
        plan.rng,
        method=plan.method,
        rank=plan.rank,
        exchangeable=plan.exchangeable,
    )
    plan.log("%d features of %d views", sum(map(len, features.table.views)), len(features.used))
    starts = embedding_starts(
        features,
        k,
        plan.solver,
        plan.rng,
        a0=plan.a0,
        exchangeable=plan.exchangeable,
        weighted=plan.weighted,
        hedge=plan.refine,
        n_threads=plan.n_threads,
    )
    found = []
    for start in starts:
        shares = weighted_rows(start, len(views), plan.a0, stacked=plan.weighted)
        counts, effective = counts_from(family, data, shares)
        mixed = np.maximum(start.start.weights, 1e-3 / k if plan.refine else 0.0)
        parameters = mixed / mixed.sum(), family.tables(counts, effective)
        candidate = Candidate(parameters, "moments of kernel features", start.facts())
        found.append(Moments(candidate, counts, effective, shares))
    return found


def _from_shares(
    family: SmoothTables, data: FoldedData, weights: np.ndarray, share: np.ndarray
) -> Parameters:
    """Densities from the share (n, k) of each component in each row."""
    counts, effective = counts_from(family, data, [share] * len(family.views))
    mass = np.maximum(weights @ share, 1e-12)
    return mass / mass.sum(), family.tables(counts, effective)


def _unrefined(
    family: SmoothTables, data: FoldedData, first: Moments, plan: Plan, notes: list[Finding]
) -> Solution:
    """The moment estimate as it is."""
    parameters = first.candidate.parameters
    value = fold_sums(family, data, parameters, n_threads=plan.n_threads)[1]
    total = first.counts.sum(axis=1)
    return Solution(
        family=family,
        weights=parameters[0],
        tables=family.tables(first.counts, first.effective, whole=True)[:, 0],
        counts=family.pooled(total),
        bandwidths=family.bandwidths(total, first.effective),
        posterior=_posterior(family, data, parameters),
        shares=first.shares,
        held=_held(family, data),
        refined=Refined(parameters, (value,), 0, True, 0, 0, ()),
        chosen=first.candidate,
        candidates=[first.candidate],
        notes=notes,
        refining=False,
    )


def _cross_validated(
    X: np.ndarray,
    weights: np.ndarray,
    views: list[View],
    family: SmoothTables,
    data: FoldedData,
    refined: Refined,
    plan: Plan,
) -> Refined:
    """Bandwidths by held-out likelihood and EM with them, twice."""
    rungs = [data]
    if len(X) > 2 * CV_ROWS:
        part = np.sort(plan.rng.choice(len(X), CV_ROWS, replace=False))
        rungs.insert(0, folded_rows(X[part], weights[part], views, family, numbers=part))
    problem = SmoothProblem(family, data, plan.tol, plan.n_threads)
    for _ in range(CV_ROUNDS):
        plan.log("bandwidths, held-out log-likelihood %.4f", refined.path[-1])
        search = BandwidthSearch(family, data, refined.parameters, plan.n_threads)
        family.multipliers = np.clip(family.multipliers * search.run(rungs), *CV_RANGE)
        more = problem.run(family.maximise(search.sums), plan.max_steps)
        refined = refined._replace(
            parameters=more.parameters,
            path=(*refined.path, *more.path),
            steps=refined.steps + more.steps,
            converged=more.converged,
        )
    return refined


def _finished(
    family: SmoothTables,
    data: FoldedData,
    refined: Refined,
    candidates: list[Candidate],
    notes: list[Finding],
    plan: Plan,
) -> Solution:
    """Densities of all rows from the posteriors of the best step."""
    posterior = _posterior(family, data, refined.parameters)
    counts, effective = counts_from(family, data, [posterior] * len(family.views))
    mass = sum(chunk.weights @ posterior[chunk.place] for chunk in data.chunks)
    total = counts.sum(axis=1)
    tables = family.tables(counts, effective, whole=True)[:, 0]
    value, sharper = _held_out(family, data, mass / mass.sum(), counts, effective, plan)
    if plan.advise and sharper - value > WORTH_SHARPER:
        text = (
            f"Half the bandwidths would raise the held-out log-likelihood of a row from "
            f"{value:.3f} to {sharper:.3f}: some components have edges or several humps."
        )
        notes = [*notes, Finding("too smooth", text, "Try bandwidth='cv'.")]
    return Solution(
        family=family,
        weights=mass / mass.sum(),
        tables=tables,
        counts=family.pooled(total),
        bandwidths=family.bandwidths(total, effective),
        posterior=posterior,
        shares=[posterior] * len(family.views),
        held=_held(family, data),
        refined=refined._replace(path=(*refined.path, value)),
        chosen=candidates[refined.chosen],
        candidates=candidates,
        notes=notes,
        refining=True,
    )


def _held_out(
    family: SmoothTables,
    data: FoldedData,
    weights: np.ndarray,
    counts: np.ndarray,
    effective: np.ndarray,
    plan: Plan,
) -> tuple[float, float]:
    """Held-out likelihood of a row with the bandwidths at hand, and with half of them."""
    values, multipliers = [], family.multipliers
    for share in (1.0, 0.5) if plan.advise else (1.0,):
        family.multipliers = share * multipliers
        parameters = weights, family.tables(counts, effective)
        values.append(fold_sums(family, data, parameters, n_threads=plan.n_threads)[1])
    family.multipliers = multipliers
    return values[0], values[-1]


def _held(family: SmoothTables, data: FoldedData) -> np.ndarray:
    """Share (views,) of the rows that are counted in the density of each view."""
    held = np.zeros(len(family.views))
    for chunk in data.chunks:
        held += [float(rows.add.weighted_sum(chunk.weights).sum()) for rows in chunk.views]
    return held / data.total


def _posterior(family: SmoothTables, data: FoldedData, parameters: Parameters) -> np.ndarray:
    """Posteriors (n, k) of all rows, in the order they were given."""
    n = sum(len(chunk.weights) for chunk in data.chunks)
    out = np.empty((n, len(parameters[0])))
    log_weights = np.log(np.maximum(parameters[0], 1e-300))[:, None]
    for chunk in data.chunks:
        joint = family.log_density(parameters, chunk) + log_weights
        out[chunk.place] = posteriors(joint)[0].T
    return out
