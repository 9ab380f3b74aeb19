"""Starts of categorical mixtures: moments of columns or of averaged labels, rows far apart.

A group of columns is one view. Its features are the one-hot codes side by side; where each row
answers few of many alike columns (crowd labels) the mean of the one-hot codes that are present.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from thirdmoment._array import DenseRows, if_room, regular_rows, sent_index, sent_rows, to_numpy
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.categories import (
    SPARSE_SHARE,
    Categories,
    CodedRows,
    CodeTable,
    WholeCodes,
    first_columns,
    one_hot,
    seen_cells,
    standardised,
)
from thirdmoment.likelihood.mixture import (
    MixtureData,
    Parameters,
    from_labels,
    from_posteriors,
)
from thirdmoment.linalg import project_to_simplex
from thirdmoment.moments.views import Sample
from thirdmoment.refinement.spread import k_means_labels, spread_centres
from thirdmoment.starts.propose import SPREAD_STARTS
from thirdmoment.starts.start import MomentFacts, Settings, Start
from thirdmoment.starts.view_facts import view_facts
from thirdmoment.starts.views import ViewTable, view_starts
from thirdmoment.streaming import row_ranges

# The start from spread-out rows looks at no more numbers than this, and where a table has more
# categories than SPREAD_COLUMNS at random projections of them, which keep distances.
SPREAD_SIZE: Work[int] = 20_000_000
SPREAD_COLUMNS: Choice[int] = 100


def coded_stream(whole: WholeCodes, device: Any = None) -> MixtureData:
    """All rows of a source as EM reads them, on a device where one is given."""
    if device is None:
        return MixtureData(whole.rows.mapped(_coded_rows), whole.total)
    rows = whole.rows.mapped(partial(coded_tensors, device=device))
    return MixtureData(replace(rows, device=device), whole.total)


def _coded_rows(table: CodeTable) -> CodedRows:
    return CodedRows(one_hot(table.codes, table.sizes), table.counts)


def coded_chunks(table: CodeTable, device: Any = None) -> MixtureData:
    """The distinct rows as EM reads them, in fixed blocks, or as one on a device with room."""
    if device is not None:
        there = if_room(lambda: coded_tensors(table, device), lambda: None)
        if there is not None:
            return MixtureData([there], float(table.counts.sum()))
    ranges = row_ranges(len(table.codes), size=16_384)
    return MixtureData(
        [CodedRows(one_hot(table.codes[a:b], table.sizes), table.counts[a:b]) for a, b in ranges]
    )


def coded_tensors(table: CodeTable, device: Any) -> CodedRows:
    """The same rows on a device; missing cells are entries of zero."""
    starts = first_columns(table.sizes)
    place = sent_index(np.maximum(table.codes, 0) + starts, device)
    seen = sent_rows((table.codes >= 0).astype(np.float64), device)
    counts = sent_rows(np.asarray(table.counts, np.float64), device)
    return CodedRows(regular_rows(place, seen, int(table.sizes.sum())), counts)


def moment_starts(table: CodeTable, family: Categories, k: int, settings: Settings) -> list[Start]:
    """Starts from the moments in the form that the table allows."""
    informative = _informative(table)
    if len(informative) < 3:
        raise UnusableMoments(
            f"{len(informative)} columns vary, and fewer than three do not identify a mixture."
        )
    sizes = table.sizes[informative]
    if table.share < SPARSE_SHARE and len(set(sizes.tolist())) == 1 and sizes[0] >= 2:
        found = _averaged(table, informative, k, settings)
        return [Start(family.project(p), "moments of averaged labels", facts) for p, facts in found]
    starts = _column_starts(table, informative, k, settings)
    return [Start(parameters, "moments", facts) for parameters, facts in starts]


def _informative(table: CodeTable) -> np.ndarray:
    """Columns in which more than one category occurs."""
    if table.whole is not None:
        used = np.add.reduceat(table.whole.categories > 0, first_columns(table.sizes), dtype=int)
        return np.flatnonzero(used > 1)
    low = np.where(table.codes >= 0, table.codes, np.iinfo(np.int64).max).min(axis=0)
    return np.flatnonzero(table.codes.max(axis=0) > low)


def _column_starts(
    table: CodeTable,
    informative: np.ndarray,
    k: int,
    settings: Settings,
) -> list[tuple[Parameters, MomentFacts]]:
    """Every column a view of its own, three groups of them chosen by the pairs."""
    starts, weighted = first_columns(table.sizes), settings.weighted
    columns = [starts[c] + np.arange(table.sizes[c]) for c in informative]
    mean, share = _marginals(table)
    complete = bool(np.all(share == 1))
    plain = not weighted and complete
    scale, constant = np.ones(len(mean)), None if plain else len(mean)
    if not plain:
        scale = 1 / np.sqrt(np.maximum(mean, 1e-12)) if weighted else np.ones(len(mean))
        scale = np.where(mean > 0, scale / np.repeat(share, table.sizes), 0.0)
    make = partial(_features_of, scale, None if plain else mean)
    chunks: Any = [make(settings.rng.spawn(1)[0], table)]  # the groups of views must not hang on it
    observed: Any = None if plain or complete else [_observed_of(table)]
    if table.whole is not None:
        width = len(mean) + (not plain)
        chunks = table.whole.rows.mapped(partial(make, None), width=width)
        observed = observed and table.whole.rows.mapped(_observed_of, width=width)
    views = ViewTable(
        chunks, columns, constant, informative.tolist(), observed, probabilities=plain
    )
    out: list[tuple[Parameters, MomentFacts]] = []
    for found in view_starts(views, k, settings):
        raw = found.means[: len(mean)].T
        if not plain:
            unit = np.where(scale > 0, scale * np.repeat(share, table.sizes), 1.0)
            raw = mean + raw / unit
        tables, clipped = _valid_tables(raw, mean, table.sizes, informative)
        out.append(((found.weights, tables), view_facts(found, tables.T, clipped)))
    return out


def _features_of(
    scale: np.ndarray, mean: np.ndarray | None, rng: np.random.Generator | None, table: CodeTable
) -> Sample:
    """One-hot codes: as they are, the papers' form, or with a ``mean`` standardised.

    Each distinct row falls into both halves, as its single occurrences would.
    """
    codes, counts, sizes = table.codes, table.counts, table.sizes
    rows = one_hot(codes, sizes) if mean is None else standardised(codes, sizes, scale, mean)
    rng = rng or np.random.default_rng(len(codes))  # for the noise of a source
    split = np.sqrt(counts) * rng.standard_normal(len(counts))
    return Sample(rows, counts, 0, np.clip(split, -counts, counts))


def _observed_of(table: CodeTable) -> Sample:
    return Sample(seen_cells(table.codes, table.sizes), table.counts)


def _marginals(table: CodeTable) -> tuple[np.ndarray, np.ndarray]:
    """Share of each category among observed cells (Σ d_v,), share of observed cells (l,)."""
    if table.whole is not None:
        total, observed = table.whole.categories, table.whole.observed
    else:
        total = to_numpy(one_hot(table.codes, table.sizes).weighted_sum(table.counts))
        observed = table.counts @ (table.codes >= 0)
    mean = total / np.maximum(np.repeat(observed, table.sizes), 1e-300)
    return mean, np.maximum(observed / table.total, 1e-300)


def _valid_tables(
    raw: np.ndarray, mean: np.ndarray, sizes: np.ndarray, informative: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tables (k, Σ d_v) on the simplex per column, and the largest negative mass of a component.

    Columns with one category only keep their marginal distribution.
    """
    tables = np.tile(mean, (len(raw), 1))
    clipped = np.zeros(len(raw))
    starts = first_columns(sizes)
    for c in informative:
        place = slice(starts[c], starts[c] + sizes[c])
        part = raw[:, place]
        clipped = np.maximum(clipped, -np.minimum(part, 0.0).sum(axis=1))
        tables[:, place] = to_numpy(project_to_simplex(part))
    return tables, clipped


def _averaged(
    table: CodeTable, informative: np.ndarray, k: int, settings: Settings
) -> list[tuple[Parameters, MomentFacts]]:
    """Three groups of alike columns, each the mean of its labels; rows without all three dropped.

    Every column starts with the table of its group.
    """
    classes = int(table.sizes[informative[0]])
    parts = np.array_split(settings.rng.permutation(informative), 3)
    label = np.eye(classes)
    views, present = [], np.ones(len(table.codes), dtype=bool)
    for part in parts:
        codes = table.codes[:, part]
        mass = sum(np.where((c >= 0)[:, None], label[c], 0.0) for c in codes.T)
        count = np.sum(codes >= 0, axis=1)
        present &= count > 0
        views.append(mass / np.maximum(count, 1)[:, None])
    features = np.concatenate(views, axis=1)[present]
    if len(features) <= 3 * classes:
        raise UnusableMoments(
            f"Only {len(features)} rows have labels in all three groups of columns."
        )
    columns = [v * classes + np.arange(classes) for v in range(3)]
    chunk = Sample(DenseRows(features), table.counts[present])
    grouped = ViewTable([chunk], columns, None, [0, 1, 2])
    out: list[tuple[Parameters, MomentFacts]] = []
    for start in view_starts(grouped, k, settings._replace(weighted=False)):
        tables = np.zeros((k, int(table.sizes.sum())))
        first = first_columns(table.sizes)
        for v, part in enumerate(parts):
            law = to_numpy(project_to_simplex(start.means[columns[v]].T))
            for c in part:
                tables[:, first[c] : first[c] + classes] = law
        parameters = (np.maximum(start.weights, 0.05 / k), tables)
        out.append((parameters, view_facts(start, start.means)))
    return out


def other_starts(
    table: CodeTable, family: Categories, k: int, rng: np.random.Generator, count: int | None
) -> list[Start]:
    """Starts without moments: for alike columns with k categories their votes, spread-out rows.

    With ``count`` so many, else twelve from spread-out rows.
    """
    data = coded_chunks(table)
    votes = _votes(table, family, data, k)
    more = SPREAD_STARTS if count is None else count - len(votes)
    found = votes if count is None else votes[:count]
    width = min(int(table.sizes.sum()), SPREAD_COLUMNS)
    stride = max(1, len(table.codes) * width // SPREAD_SIZE)
    part = CodeTable(table.codes[::stride], table.counts[::stride], table.sizes)
    rows = _points(part, rng)
    whole = data if stride == 1 else coded_chunks(part)
    for _ in range(more):
        labels = k_means_labels(rows, part.counts, spread_centres(rows, part.counts, k, rng))
        start = from_labels(family, whole, labels, k)
        found.append(Start(family.project(start), "spread-out rows and k-means"))
    return found


def _votes(table: CodeTable, family: Categories, data: MixtureData, k: int) -> list[Start]:
    """Classes by the majority of the columns, where these have k categories that are the same."""
    labels = np.unique(table.codes[table.codes >= 0])
    if len(set(table.sizes.tolist())) > 1 or len(labels) != k:
        return []
    votes = np.stack([(table.codes == label).sum(axis=1) for label in labels], axis=1)
    votes = (votes + 1e-3) / (votes + 1e-3).sum(axis=1, keepdims=True)
    return [Start(from_posteriors(family, data, votes), "majority vote of the columns")]


def _points(table: CodeTable, rng: np.random.Generator) -> np.ndarray:
    """One-hot codes with missing cells at the marginal law, scaled to even noise, for k-means."""
    mean, _ = _marginals(table)
    scale = 1 / np.sqrt(np.maximum(mean, 1e-3))
    rows, D = standardised(table.codes, table.sizes, scale, mean), len(mean)
    if D <= SPREAD_COLUMNS:
        return to_numpy(rows.toarray())[:, :-1]
    signs = rng.choice([-1.0, 1.0], size=(D + 1, SPREAD_COLUMNS)) / np.sqrt(SPREAD_COLUMNS)
    signs[-1] = 0.0  # the column of ones
    return to_numpy(rows.dot(signs))
