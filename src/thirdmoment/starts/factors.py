"""Independent factors seen through several noisy views (TF-18 to TF-21, MV-27).

With centred views the pairs are P_uv = O_u diag(var h) O_vᵀ and the triples (quadruples, less the
pairings) Σ cumulant_i o_i⊗..., so the views are mapped on one of them, whitened and decomposed
as for mixtures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment._constants import Choice
from thirdmoment.decomposition.tensor import jacobi_fourth, symmetrise_fourth
from thirdmoment.exceptions import RankDeficientView, UnusableMoments, without_frames
from thirdmoment.linalg import whiten
from thirdmoment.moments.factors import QuadrupleSums, pairings
from thirdmoment.moments.views import PairSums
from thirdmoment.recovery.views import subspaces, symmetric_route
from thirdmoment.starts.start import Settings
from thirdmoment.starts.views import ViewTable, gather
from thirdmoment.streaming import fold

# Skewness this many times its sampling error is enough: lower moments have lighter tails.
CLEAR_SKEWNESS: Choice[float] = 10.0
BARELY_CLEAR: Choice[float] = 4.0

# components, skewness, kurtosis, order, spectrum, noise, residual, weakest
Estimate = tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, float, float, float]


def factors_of_views(
    table: ViewTable, sums: PairSums, k: int, settings: Settings, *, order: Any
) -> Estimate:
    """Mixing vectors of all columns by the third order, or the fourth where that shows more."""
    found: dict[int, Estimate] = {}
    problems: list[UnusableMoments] = []
    for wanted in (3, 4):
        if order not in ("auto", wanted) or (wanted == 4 and len(table.views) < 4):
            continue
        try:
            if wanted == 3:
                found[3] = _third_order(table, sums, k, settings)
            else:
                found[4] = _fourth_order(table, sums, k, settings.n_threads)
        except UnusableMoments as error:
            problems.append(without_frames(error))
    if not found:
        raise problems.pop(0)
    return found[preferred_order({number: estimate[-1] for number, estimate in found.items()})]


def preferred_order(weak: dict[int, float], strong: dict[int, float] | None = None) -> int:
    """Order 3 where its weakest cumulants are clear of their error, else the clearer order.

    ``weak`` has the second weakest cumulant of each order over its error; where none is clear at
    all the strongest decide (``strong``): what can be identified then is one factor.
    """
    if weak.get(3, 0.0) > CLEAR_SKEWNESS:
        return 3
    scores = strong if strong is not None and max(weak.values()) < BARELY_CLEAR else weak
    return max(scores, key=lambda number: scores[number])


def _third_order(table: ViewTable, sums: PairSums, k: int, settings: Settings) -> Estimate:
    gathered = gather(table, k, settings, sums=sums)
    bases, _ = subspaces(gathered.core, k)
    name = settings.solver if settings.solver in ("tensor", "power") else "tensor"
    B, found = symmetric_route(gathered.core, bases, k, name, settings.rng)
    target = gathered.bases[2] @ (B @ np.asarray(found.vectors))
    components = _all_columns(gathered.pairs, sums, gathered.groups, target, k)
    skewness = np.asarray(found.eigenvalues)
    weakest = float(np.sort(skewness)[min(1, k - 1)] / np.sqrt(6 / sums.total))
    spectrum = np.linalg.svd(gathered.core.pairs[0, 1], compute_uv=False)
    nothing = np.full(k, np.nan)
    return components, skewness, nothing, 3, spectrum, gathered.facts.noise, found.residual, weakest


def _all_columns(
    pairs: np.ndarray | None,
    sums: PairSums,
    groups: tuple[np.ndarray, ...],
    target: np.ndarray,
    k: int,
) -> np.ndarray:
    """Mixing vectors (k, D) of every group: C_{3→v} = P_vu (P_3u)⁺ at rank k, u the third group."""
    P = sums.pairs if pairs is None else pairs
    out = target.copy()
    for v in (0, 1):
        u = 1 - v
        through = _rank_inverse(P[np.ix_(groups[2], groups[u])], k)
        out[groups[v]] = P[np.ix_(groups[v], groups[u])] @ through @ target[groups[2]]
    return out.T


def _rank_inverse(block: np.ndarray, k: int) -> np.ndarray:
    """Pseudo-inverse at rank k: the full one would invert noise (MV-27)."""
    U, s, Vh = np.linalg.svd(block, full_matrices=False)
    return (Vh[:k].T / s[:k]) @ U[:, :k].T


def _fourth_order(table: ViewTable, sums: PairSums, k: int, n_threads: int) -> Estimate:
    """Four groups of views, the last one the target (TF-20, TF-21)."""
    views = table.views
    groups = [np.concatenate(views[v::4]) for v in range(4)]
    P, D = sums.pairs, len(sums.mean)
    bases = []
    for v in range(4):
        rest = np.concatenate([groups[u] for u in range(4) if u != v])
        U, s, _ = np.linalg.svd(P[np.ix_(groups[v], rest)], full_matrices=False)
        if len(s) < k or not s[k - 1] > 1e-10 * s[0]:
            raise RankDeficientView(
                view=f"The group of views {', '.join(map(str, range(v, len(views), 4)))}",
                k=k,
                spectrum=tuple(s.tolist()),
                floor=1e-10 * float(s[0]),
            )
        V = np.zeros((D, k))
        V[groups[v]] = U[:, :k]
        bases.append(V)
    S = [[bases[u].T @ P @ bases[v] for v in range(4)] for u in range(4)]
    maps = []
    for v in range(3):  # onto the last view through a third one
        u = (v + 1) % 3
        maps.append(np.linalg.solve(S[v][u].T, S[3][u].T).T)
    raw = fold(lambda: QuadrupleSums(bases, sums.mean), table.chunks, n_threads=n_threads).finish()
    raw = np.einsum("abcd,ia,jb,lc->ijld", raw, *maps, optimize=True)
    pair = maps[0] @ S[0][1] @ maps[1].T
    pair = (pair + pair.T) / 2
    white = whiten(pair, k)
    W = white.W
    Q = symmetrise_fourth(np.einsum("abcd,ai,bj,cl,dm->ijlm", raw, W, W, W, W, optimize=True))
    found = jacobi_fourth(Q - pairings(np.eye(k)))
    kurtosis = np.asarray(found.eigenvalues)
    target = bases[3] @ (white.B @ np.asarray(found.vectors))
    arranged = (groups[0], groups[1], groups[3])
    components = _all_columns(P, sums, arranged, target, k)
    through = _rank_inverse(P[np.ix_(groups[3], groups[0])], k)
    components[:, groups[2]] = (P[np.ix_(groups[2], groups[0])] @ through @ target[groups[3]]).T
    weakest = float(np.sort(np.abs(kurtosis))[min(1, k - 1)] / np.sqrt(24 / sums.total))
    noise = float(np.linalg.norm(sums.noise[np.ix_(groups[0], groups[1])], 2))
    spectrum = np.linalg.svd(P[np.ix_(groups[0], groups[1])], compute_uv=False)
    skewness = np.full(k, np.nan)
    return components, skewness, kurtosis, 4, spectrum, noise, found.residual, weakest
