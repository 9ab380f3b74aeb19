"""The moment start of the multi-view models: pairs -> groups -> core -> decompose -> recover."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from thirdmoment._array import like_one, to_numpy
from thirdmoment._constants import Choice, Work
from thirdmoment.decomposition import Decomposition
from thirdmoment.exceptions import RankDeficientView, UnusableMoments
from thirdmoment.linalg import operator_norm, top_eigenpairs
from thirdmoment.linalg.eigen import random_start
from thirdmoment.moments.views import Core, CoreSums, CrossProduct, PairSums, Sample
from thirdmoment.recovery.views import means_from_pairs, recover_views, subspaces
from thirdmoment.starts.start import TRUST, Settings, both_routes
from thirdmoment.streaming import Streamed, fold

# Up to this many columns E[x xᵀ] is formed; beyond, it is only applied to thin blocks.
FORMED_COLUMNS: Work[int] = 1000

# Views are kept in full in the triple tensor up to this many entries, else k-dimensional.
FULL_CORE: Work[int] = 20_000

# Random partitions of the columns into three groups that are compared (MV-21).
PARTITIONS: Choice[int] = 10


class ViewTable(NamedTuple):
    """Features of all views side by side, and which columns belong to which view."""

    chunks: Sequence[Sample] | Streamed
    views: list[np.ndarray]  # columns of each view, at least three views
    constant: int | None  # column of ones that every group may use (MV-20), or None
    names: list[int]  # numbers of the views as the user gave them, for messages
    observed: Sequence[Sample] | None = None  # one where a feature was seen, for missing cells
    probabilities: bool = False  # whether rows of a view's means sum to one
    noisy: bool = False  # most features are noise: triples keep k directions of each group


def width_of(chunks: Sequence[Sample] | Streamed) -> int:
    """Columns of the features."""
    return chunks.width if isinstance(chunks, Streamed) else chunks[0].rows.shape[1]


class PairFacts(NamedTuple):
    """What the pairs of groups showed before anything was decomposed."""

    spectrum: np.ndarray  # leading singular values of left and right
    noise: float  # of the same block, by split halves
    expected_noise: float  # of a pair of groups with unit variances, by formula
    partitions: int
    passes: int


class ViewEstimates(NamedTuple):
    """Means of all columns and what the moments showed."""

    means: np.ndarray  # (D, k), a column a component
    weights: np.ndarray  # (k,)
    raw_weights: np.ndarray  # (k,)
    decomposition: Decomposition
    solver: str
    groups: tuple[np.ndarray, ...]
    condition: float
    pairs: PairFacts

    def expecting(self, noise: float) -> ViewEstimates:
        """The same with the sampling error of the pairs by another formula."""
        return self._replace(pairs=self.pairs._replace(expected_noise=noise))


class Gathered(NamedTuple):
    """Moments of three groups of columns, ready for any solver."""

    core: Core  # left, right, target
    bases: tuple[np.ndarray, np.ndarray, np.ndarray]  # (D, q_v)
    groups: tuple[np.ndarray, ...]
    pairs: np.ndarray | None  # (D, D) where formed
    facts: PairFacts


def gather(
    table: ViewTable,
    k: int,
    settings: Settings,
    *,
    sums: PairSums | None = None,
    arrange: bool = True,
) -> Gathered:
    """One pass for the pairs, the best of several groupings, one pass for the triples.

    Left and right are the pair seen best, or with ``arrange=False`` the first two views as given.
    The triples keep all columns up to `FULL_CORE` entries, else k directions of each group.
    """
    D, n_threads = width_of(table.chunks), settings.n_threads
    if D > FORMED_COLUMNS:
        return _gather_implicit(table, k, settings, sums)
    if sums is None:
        sums = fold(lambda: PairSums(D), table.chunks, n_threads=n_threads)
    sums.second, sums.split = to_numpy(sums.second), to_numpy(sums.split)
    pairs, seen = sums.pairs, None
    if table.observed is not None:
        seen = fold(lambda: PairSums(D), table.observed, n_threads=n_threads)
        pairs = pairs * _coverage([seen.mean] * 2, seen.pairs)
    candidates = partitions(table, settings.rng)
    groups: tuple[np.ndarray, ...] = candidates[0]
    if arrange:
        scored = [_arrange(pairs, groups, k) for groups in candidates]
        _, groups = max(scored, key=lambda pair: pair[0])
    bases = _bases(pairs, sums.mean, groups, k, 0 if table.noisy else FULL_CORE)
    core = fold(lambda: CoreSums(bases), table.chunks, n_threads=n_threads).finish()
    if seen is not None:
        joint = None
        if core.triple.shape == tuple(len(group) for group in groups):
            every = fold(lambda: CoreSums(bases), table.observed or (), n_threads=n_threads)
            joint = _coverage([seen.mean[group] for group in groups], every.finish().triple)
        core = _with_coverage(core, pairs, bases, joint)
    noise = float(np.linalg.norm(sums.noise[np.ix_(groups[0], groups[1])], 2))
    across = np.linalg.svd(pairs[np.ix_(groups[0], groups[1])], compute_uv=False)[: 2 * k + 10]
    expected = _expected_noise(table, groups, sums.total)
    facts = PairFacts(across, noise, expected, len(candidates), 2)
    return Gathered(core, bases, groups, pairs, facts)


def _expected_noise(table: ViewTable, groups: Sequence[np.ndarray], total: float) -> float:
    """Sampling error of a pair of groups with unit variances; unknown where they have others."""
    if table.constant is None:
        return np.inf
    return float((np.sqrt(len(groups[0])) + np.sqrt(len(groups[1]))) / np.sqrt(total))


def _coverage(shares: Sequence[np.ndarray], joint: np.ndarray) -> np.ndarray:
    """Features were divided by their own share of seen cells; this makes it the joint share."""
    product = shares[0]
    for share in shares[1:]:
        product = product[..., None] * share
    return np.where(joint > 0, product / np.maximum(joint, 1e-300), 0.0)


def _with_coverage(
    core: Core, pairs: np.ndarray, bases: Sequence[np.ndarray], joint: np.ndarray | None
) -> Core:
    """Every block normalised by the rows in which all its columns were seen.

    Triples only where their views are kept in full; in k coordinates columns are mixed already.
    """
    blocks = {(u, v): bases[u].T @ pairs @ bases[v] for u, v in core.pairs}
    return Core(core.means, blocks, core.triple if joint is None else core.triple * joint)


def partitions(
    table: ViewTable, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Ways to form three groups of views, of about equal width each (MV-21)."""
    extra = [] if table.constant is None else [table.constant]
    if len(table.views) == 3:
        first, second, third = (np.append(v, extra).astype(int) for v in table.views)
        return [(first, second, third)]
    count = PARTITIONS if width_of(table.chunks) <= 300 else 2
    found = []
    for _ in range(count):
        parts: list[list[int]] = [[], [], []]
        for v in rng.permutation(len(table.views)):
            min(parts, key=len).extend(table.views[v].tolist())
        first, second, third = (np.array(sorted(part) + extra, dtype=int) for part in parts)
        found.append((first, second, third))
    return found


def _arrange(
    pairs: np.ndarray, groups: tuple[np.ndarray, ...], k: int
) -> tuple[float, tuple[np.ndarray, ...]]:
    """Smallest σ_k over its noise among the three pairs, and the best pair as left and right."""
    strength = {}
    for u, v in itertools.combinations(range(3), 2):
        s = np.linalg.svd(pairs[np.ix_(groups[u], groups[v])], compute_uv=False)
        scale = np.sqrt(len(groups[u])) + np.sqrt(len(groups[v]))
        strength[u, v] = float(s[k - 1]) / scale if len(s) >= k else 0.0
    left, right = max(strength, key=lambda pair: strength[pair])
    target = 3 - left - right
    least = min(strength.values())
    # the pair to be inverted breaks ties, where no pair or only one has rank k
    return least + 1e-3 * strength[left, right], (groups[left], groups[right], groups[target])


def _bases(
    pairs: np.ndarray, mean: np.ndarray, groups: tuple[np.ndarray, ...], k: int, full_core: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All columns of a group where the tensor stays small, else its k leading directions."""
    sizes = [len(group) for group in groups]
    if np.prod(sizes) <= full_core:
        small = [np.eye(size) for size in sizes]
    else:
        blocks = {
            (u, v): pairs[np.ix_(groups[u], groups[v])]
            for u, v in itertools.permutations(range(3), 2)
        }
        means = tuple(mean[group] for group in groups)
        small = list(subspaces(Core(means, blocks, np.empty(0)), k)[0])
    return _embedded(small, groups, len(pairs))


def _embedded(
    small: Sequence[np.ndarray], groups: tuple[np.ndarray, ...], D: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    out = []
    for U, group in zip(small, groups, strict=True):
        V = np.zeros((D, U.shape[1]))
        V[group] = U
        out.append(V)
    return tuple(out)  # type: ignore[return-value]


def _gather_implicit(
    table: ViewTable, k: int, settings: Settings, sums: PairSums | None
) -> Gathered:
    """The same for many columns: the range of each group from products with thin blocks (MV-2).

    Where the ``sums`` are there already, the products are theirs.
    """
    D = width_of(table.chunks)
    rng, n_threads = settings.rng, settings.n_threads
    groups: tuple[np.ndarray, ...] = partitions(table, rng)[0]
    passes = [0]

    def cross(columns: np.ndarray, Q: np.ndarray, others: np.ndarray) -> np.ndarray:
        block = np.zeros((D, Q.shape[1]))
        block[columns] = Q
        passes[0] += 1
        return _product(table, block, sums, n_threads=n_threads)[others]

    small = []
    for v in range(3):
        own, others = groups[v], np.concatenate([groups[u] for u in range(3) if u != v])

        def apply(Q: np.ndarray, own: np.ndarray = own, rest: np.ndarray = others) -> np.ndarray:
            return cross(rest, cross(own, Q, rest), own)

        rank = min(k, len(own))
        start = random_start(rng, len(own), rank, like=np.empty(0))
        eigen = top_eigenpairs(apply, start, rank, tol=1e-3)
        small.append(np.asarray(eigen.vectors)[:, : 2 * k])
    bases = _embedded(small, groups, D)
    core = fold(lambda: CoreSums(bases), table.chunks, n_threads=n_threads).finish()
    order = _best_pair(core, k)
    core, groups = core.arranged(order), tuple(groups[v] for v in order)
    bases = (bases[order[0]], bases[order[1]], bases[order[2]])
    noise, more, total = _split_half_noise(table, groups[0], groups[1], settings, sums)
    expected = _expected_noise(table, groups, total)
    made = 2 if sums is not None else passes[0] + more + 1
    facts = PairFacts(np.empty(0), noise, expected, 1, made)
    return Gathered(core, bases, groups, None, facts)


def _product(
    table: ViewTable,
    block: np.ndarray,
    sums: PairSums | None,
    *,
    halves: bool = False,
    n_threads: int,
) -> np.ndarray:
    """E[x xᵀ] times a block, or one half of the rows less the other."""
    if sums is not None:
        whole = sums.split if halves else sums.second
        return to_numpy(whole @ like_one(whole, block)) / sums.total
    new = partial(CrossProduct, block, halves=halves)
    return fold(new, table.chunks, n_threads=n_threads).finish()


def _split_half_noise(
    table: ViewTable,
    left: np.ndarray,
    right: np.ndarray,
    settings: Settings,
    sums: PairSums | None,
) -> tuple[float, int, float]:
    """‖(P_A - P_B)/2‖ of the pair of groups by products with thin blocks, the passes used, and the
    rows that there are.
    """
    D, m = width_of(table.chunks), len(left)
    if sums is None:
        parts = [(c.weights.sum(), c.halves().sum()) for c in table.chunks]
        total, tilt = (float(sum(part)) for part in zip(*parts, strict=True))
    else:
        total, tilt = sums.total, sums.tilt
    tilt /= total

    def apply(Q: np.ndarray) -> np.ndarray:
        """The symmetric operator with this block beside the diagonal."""
        q = Q.shape[1]
        block = np.zeros((D, 2 * q))
        block[left, :q], block[right, q:] = Q[:m], Q[m:]
        split, whole = (
            _product(table, block, sums, halves=halves, n_threads=settings.n_threads)
            for halves in (True, False)
        )
        noise = (split - tilt * whole) / max(1 - tilt**2, 1e-12)
        return np.concatenate([noise[left, q:], noise[right, :q]])

    start = random_start(settings.rng, m + len(right), 1, like=np.empty(0), oversampling=3)
    norm, products = operator_norm(apply, start)
    return norm, 2 * products, total


def _best_pair(core: Core, k: int) -> tuple[int, int, int]:
    """Left and right with the largest σ_k, the rest as the target."""
    strength = {}
    for u, v in itertools.combinations(range(3), 2):
        s = np.linalg.svd(core.pairs[u, v], compute_uv=False)
        strength[u, v] = float(s[k - 1]) if len(s) >= k else 0.0
    left, right = max(strength, key=lambda pair: strength[pair])
    return left, right, 3 - left - right


def estimate_means(
    gathered: Gathered,
    table: ViewTable,
    k: int,
    settings: Settings,
) -> ViewEstimates:
    """Means of all columns by one solver; weighted, every view is regressed on all others once."""
    solver = settings.solver
    try:
        estimate = recover_views(
            gathered.core, k, solver, settings.rng, probabilities=table.probabilities
        )
    except RankDeficientView as error:
        raise RankDeficientView(
            view=_group_name(gathered.groups[int(error.view)], table),
            k=k,
            spectrum=error.spectrum,
            floor=error.floor,
        ) from None
    except np.linalg.LinAlgError as error:
        raise UnusableMoments(
            f"The moments of the views are numerically singular ({error}) for n_components={k}. "
            "Lower n_components, or give more varied rows."
        ) from error
    D = gathered.bases[0].shape[0]
    means = np.zeros((D, k))
    for V, M in zip(gathered.bases, estimate.means, strict=True):
        rows = np.flatnonzero(np.any(V != 0, axis=1))
        means[rows] = (V @ M)[rows]
    if table.constant is not None:
        means[table.constant] = 1.0
    if settings.weighted and gathered.pairs is not None:
        sharper = means_from_pairs(gathered.pairs, table.views, means, estimate.weights)
        used = np.concatenate(table.views)
        means[used] = sharper[used]
    facts = gathered.facts
    if not len(facts.spectrum):
        facts = facts._replace(spectrum=estimate.singular_values)
    return ViewEstimates(
        means, estimate.weights, estimate.raw_weights, estimate.decomposition, solver,
        gathered.groups, estimate.condition, facts,
    )  # fmt: skip


def _group_name(group: np.ndarray, table: ViewTable) -> str:
    """A group of columns in the user's words: its view, or the views put together in it."""
    inside = [
        str(name)
        for name, view in zip(table.names, table.views, strict=True)
        if np.isin(view, group).any()
    ]
    return f"View {inside[0]}" if len(inside) == 1 else f"The group of views {', '.join(inside)}"


def view_starts(
    table: ViewTable,
    k: int,
    settings: Settings,
    *,
    sums: PairSums | None = None,
) -> list[ViewEstimates]:
    """Estimates to refine from, the recommended first.

    ``"auto"`` is the symmetric tensor route and, where that is closed (E_INDEF), non-orthogonal
    joint diagonalisation; with ``hedge`` both are returned unless the first fits well.
    """
    gathered = gather(table, k, settings, sums=sums)
    return both_routes(
        lambda one: estimate_means(gathered, table, k, one),
        settings,
        enough=lambda found: found.decomposition.residual < TRUST.residual,
    )
