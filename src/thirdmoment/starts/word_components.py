"""Components of the whitened third moment of words, and whether they explain it.

Everything happens in k dimensions on moments gathered once: alpha0 is profiled, and the residual is
held against the sampling noise of two halves of the documents (docs/decisions/concentration.md).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from thirdmoment._array import (
    Array,
    array_namespace,
    like_one,
    map_in_order,
    to_numpy,
)
from thirdmoment._constants import Choice, Floor
from thirdmoment.decomposition import Decomposition, decompose
from thirdmoment.decomposition.result import tensor_residual
from thirdmoment.decomposition.tensor import jacobi
from thirdmoment.exceptions import RankDeficientMoment
from thirdmoment.linalg import whitening_from
from thirdmoment.moments.words import (
    RawMoments,
    TripleSums,
    WordSums,
    adjusted_moments,
    change_basis,
    dirichlet_corrections,
)
from thirdmoment.recovery.dirichlet import (
    ConcentrationProfile,
    estimate_concentration,
    sampling_residual,
)
from thirdmoment.starts.start import Settings

# The moments are trusted where the residual is at most this many times what sampling noise alone
# leaves. Elsewhere the data is far from the model, and a small concentration is the safe one
# (docs/decisions/concentration.md).
EXPLAINED: Choice[float] = 1.25
UNTRUSTED_ALPHA0: Choice[float] = 0.5

# A residual of rounding: noise-free data that the model explains.
EXACT: Floor[float] = 1e-6

# Fewer documents of three words do not tell their noise by halves.
ENOUGH_DOCUMENTS: Choice[int] = 200


class Solved(NamedTuple):
    """Decompositions of one whitened third moment."""

    alpha0: float
    pieces: list[tuple[Decomposition, Array]]  # one for each rank, with its un-whitener
    profile: ConcentrationProfile | None = None
    unexplained: float = np.inf  # residual over what sampling noise leaves; infinite: not known

    @property
    def trusted(self) -> bool:
        """Whether k components explain the third moment up to its sampling noise."""
        return self.unexplained <= EXPLAINED


def solve(
    raw: RawMoments,
    halves: tuple[RawMoments, RawMoments] | None,
    alpha0: float | None,
    rng: np.random.Generator,
    solver: str,
) -> Solved:
    """Rank k alone: at the alpha0 given, at that of the profile where noise explains the rest."""

    def at(value: float) -> Solved:
        piece = decompose_at((raw, rng), value, solver)
        return Solved(value, [piece], None, _unexplained(raw, halves, value, piece[0]))

    if alpha0 is not None:
        return at(alpha0)
    profile = estimate_concentration(partial(_try, raw))
    if profile.bounded:
        found = at(profile.alpha0)
        if found.trusted:
            return found._replace(profile=profile)
    return at(UNTRUSTED_ALPHA0)._replace(profile=profile, unexplained=np.inf)


def solve_ranks(
    raw: RawMoments,
    ranks: list[int],
    alpha0: float,
    settings: Settings,
) -> Solved:
    """The leading coordinates of several ranks, side by side."""
    seeds = settings.rng.spawn(len(ranks))
    tasks = zip((leading(raw, r) for r in ranks), seeds, strict=True)
    one = partial(decompose_at, alpha0=alpha0, solver=settings.solver)
    return Solved(alpha0, list(map_in_order(one, tasks, n_threads=settings.n_threads)))


def two_halves(
    sums: TripleSums, words: WordSums, *, n_threads: int = 1
) -> tuple[RawMoments, RawMoments] | None:
    """Moments of the two halves, None where there are too few documents."""
    if words.documents[2] < ENOUGH_DOCUMENTS or not np.all(words.part_totals > 0):
        return None
    found = map_in_order(lambda i: in_memory(sums.half(words, i)), (0, 1), n_threads=n_threads)
    first, second = found
    return first, second


def both_halves(halves: tuple[RawMoments, RawMoments], words: WordSums) -> RawMoments:
    """Moments of all documents from those of the two halves."""
    shares = words.part_totals / words.part_totals.sum(axis=0)  # (2, order)
    parts = zip(*halves, strict=True)
    return RawMoments(*(shares[0, i] * a + shares[1, i] * b for i, (a, b) in enumerate(parts)))


def _unexplained(
    raw: RawMoments,
    halves: tuple[RawMoments, RawMoments] | None,
    alpha0: float,
    found: Decomposition,
) -> float:
    """Residual of an orthogonal decomposition over that of the sampling noise."""
    if halves is None:
        return np.inf
    b = dirichlet_corrections(alpha0)
    T, _, C = _whitened(raw, alpha0)
    V = like_one(T, found.vectors)
    if not np.allclose(to_numpy(V.T @ V), np.eye(len(V)), atol=1e-6):
        V = jacobi(T, tol=1e-6).vectors  # the solver was not an orthogonal one
    (P, A), (Q, B) = (adjusted_moments(change_basis(half, C), b) for half in halves)
    residual = tensor_residual(T, V)
    if residual < EXACT:  # both numbers are rounding, and so would be their ratio
        return 0.0
    noise = sampling_residual(T, V, (A - B) / 2, (P - Q) / 2)
    return residual / noise if noise > 0 else np.inf


def in_memory(raw: RawMoments) -> RawMoments:
    """The small moments in double precision, where they are."""
    xp = array_namespace(raw.A3)
    return RawMoments(*(xp.astype(part, xp.float64) for part in raw))


def leading(raw: RawMoments, r: int) -> RawMoments:
    """Moments in the first r coordinates: whitenings of falling rank are nested."""
    return RawMoments(raw.m[:r], raw.A2[:r, :r], raw.A3[:r, :r, :r])


def _whitened(raw: RawMoments, alpha0: float) -> tuple[Array, Array, Array]:
    """Whitened tensor at alpha0, the un-whitener of the k dimensions, and the whitener.

    The symmetric root keeps the coordinates of neighbouring alpha0 close, so that one's components
    start the next.
    """
    b = dirichlet_corrections(alpha0)
    pairs, _ = adjusted_moments(raw, b)
    values, E = np.linalg.eigh(to_numpy(pairs + pairs.T) / 2)  # small: the host is quicker
    values, E = (like_one(pairs, part[..., ::-1].copy()) for part in (values, E))
    white = whitening_from(values, E)
    C = white.W @ E.T
    return adjusted_moments(change_basis(raw, C), b)[1], white.B @ E.T, C


def _try(raw: RawMoments, alpha0: float, basis: np.ndarray | None) -> Decomposition | None:
    """Decomposition at one alpha0 of the profile, None where Pairs is not positive there."""
    try:
        T = _whitened(raw, alpha0)[0]
    except RankDeficientMoment:
        return None
    found = jacobi(T, start=basis, tol=1e-6)
    return found._replace(eigenvalues=to_numpy(found.eigenvalues), vectors=to_numpy(found.vectors))


def decompose_at(
    task: tuple[RawMoments, np.random.Generator], alpha0: float, solver: str
) -> tuple[Decomposition, Array]:
    """Components of the moments at alpha0, and the un-whitener; a generator for each rank."""
    raw, rng = task
    T, B, _ = _whitened(raw, alpha0)
    return decompose(T, solver, rng), B
