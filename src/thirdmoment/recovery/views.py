"""Means of all views and the weights from cross moments (MV-2 to MV-16, MV-27 to MV-29, SC-5).

Views are called left (0), right (1) and target (2). ``Core`` holds their moments in small
coordinates; all that is inverted is the k×k matrix S of left and right. Matrices are (q_v, k) here,
a column a component.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.optimize

from thirdmoment.decomposition import Decomposition, Status, decompose
from thirdmoment.decomposition.select import OPERATOR_SOLVERS
from thirdmoment.exceptions import ComplexSpectrum, RankDeficientView
from thirdmoment.linalg import project_to_simplex, symmetrise, whiten


class CoreMoments(Protocol):
    """Means, pairs and triples of three views (see ``moments.views.Core``)."""

    @property
    def means(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    @property
    def pairs(self) -> dict[tuple[int, int], np.ndarray]: ...
    @property
    def triple(self) -> np.ndarray: ...

    def projected(self, bases: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Any: ...


class ViewEstimate(NamedTuple):
    """Means of the three views in one order, before any projection."""

    means: tuple[np.ndarray, np.ndarray, np.ndarray]  # M_v (q_v, k)
    weights: np.ndarray  # (k,) non-negative, sum to one
    raw_weights: np.ndarray  # (k,) least squares without constraint
    decomposition: Decomposition
    singular_values: np.ndarray  # of the pair left, right that was inverted
    condition: float  # of the basis of left means the readout went through


def subspaces(
    core: CoreMoments, k: int, *, target: bool = True, rtol: float = 1e-10
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """U_v (q_v, k): leading left singular vectors of [P_vu]_{u != v} (MV-2).

    Raises `RankDeficientView` where a view shows fewer than k directions. The second result has
    the singular values, a row a view. With ``target=False`` the target, which need not have rank
    k (MV-8b), keeps all its coordinates.
    """
    bases, spectra = [], []
    for v in range(3):
        if v == 2 and not target:
            bases.append(np.eye(core.pairs[2, 0].shape[0]))
            break
        others = [u for u in range(3) if u != v]
        across = np.concatenate([core.pairs[v, u] for u in others], axis=1)
        U, s, _ = np.linalg.svd(across, full_matrices=False)
        floor = rtol * float(s.max(initial=0.0))
        if len(s) < k or not s[k - 1] > floor:
            raise RankDeficientView(view=v, k=k, spectrum=tuple(s.tolist()), floor=floor)
        bases.append(U[:, :k])
        spectra.append(s[:k])
    return tuple(bases), np.stack(spectra)  # type: ignore[return-value]


def recover_views(
    core: CoreMoments,
    k: int,
    solver: str,
    rng: np.random.Generator,
    *,
    probabilities: bool = False,
    allow_complex: bool = False,
) -> ViewEstimate:
    """All views' means by the named solver.

    ``"tensor"`` and ``"power"`` take the symmetric route (views mapped on the target, whitened,
    decomposed: MV-27 to MV-29), the others diagonalise the observable operators of the target
    (MV-8, SC-1). With ``probabilities`` columns are distributions, and each table is projected on
    the simplex before the next is read off it, as in the Schur paper. Raises `UnusableMoments`
    where a route is closed, `ComplexSpectrum` where no combination of the operators has a real
    spectrum (the joint solvers can go on from the least complex one with ``allow_complex``).
    """
    if solver in ("tensor", "power"):
        bases, _ = subspaces(core, k)
        unwhitener, found = symmetric_route(core, bases, k, solver, rng)
        target = unwhitener @ np.asarray(found.vectors) * np.asarray(found.eigenvalues)
        condition = float(np.linalg.cond(bases[2].T @ target))
        target = bases[2] @ (bases[2].T @ target)
        means, weights, raw = _other_views_by_pairs(core, target)
    else:
        bases, _ = subspaces(core, k, target=False)
        operators = observable_operators(core.projected(bases))
        found = OPERATOR_SOLVERS[solver](operators, rng)
        if found.status is Status.COMPLEX and not allow_complex:
            raise ComplexSpectrum(
                f"None of {found.draws} combinations of the observable operators has a real "
                f"spectrum: there is too little data for n_components={k}. Lower n_components, or "
                "give more samples."
            )
        condition = float(np.linalg.cond(found.vectors))
        target = np.asarray(found.eigenvalues)  # (q_3, k): the readout is M_3 itself
        means, weights, raw = _other_views(core, bases, target, found, solver, probabilities)
    inverted = np.linalg.svd(core.pairs[0, 1], compute_uv=False)
    return ViewEstimate(means, weights, raw, found, inverted, condition)


def _other_views(
    core: CoreMoments,
    bases: tuple[np.ndarray, np.ndarray, np.ndarray],
    target: np.ndarray,
    found: Decomposition,
    solver: str,
    probabilities: bool,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """Left and right views after the target was read off the operators."""
    k = target.shape[1]
    try:
        full, _ = subspaces(core, k)
    except RankDeficientView:
        if "schur" in solver:  # an orthogonal basis does not hold the left means
            raise
        return _other_views_by_basis(core, bases, target, np.asarray(found.vectors))
    if solver == "joint":
        return _other_views_by_pairs(core, full[2] @ (full[2].T @ target))
    return _other_views_by_similarity(core, full, target, probabilities)


def observable_operators(core: CoreMoments) -> np.ndarray:
    """B_c = G[:, :, c] S_12⁻¹ for every coordinate c of the target (MV-8, SC-1), (q_3, k, k)."""
    slices = np.moveaxis(core.triple, 2, 0)
    return np.linalg.solve(core.pairs[0, 1].T, slices.transpose(0, 2, 1)).transpose(0, 2, 1)


def symmetric_route(
    core: CoreMoments,
    bases: tuple[np.ndarray, np.ndarray, np.ndarray],
    k: int,
    solver: str,
    rng: np.random.Generator,
) -> tuple[np.ndarray, Decomposition]:
    """Views mapped on the target, whitened and decomposed in k dimensions (MV-29).

    Returns B (q_3, k) with v_i = B θ_i, which is √w_i mu_i of a mixture (times λ_i: its mean) and
    sd(h_i) o_i of independent factors, and the decomposition.
    """
    small = core.projected(bases)
    S = small.pairs
    K1 = np.linalg.solve(S[0, 1].T, S[2, 1].T).T  # S_32 S_12⁻¹
    K2 = np.linalg.solve(S[1, 0].T, S[2, 0].T).T  # S_31 S_21⁻¹
    pairs = K1 @ S[0, 1] @ K2.T
    triple = np.einsum("abc,ia,jb->ijc", small.triple, K1, K2, optimize=True)
    white = whiten((pairs + pairs.T) / 2, k)
    W = white.W
    T = symmetrise(np.einsum("abc,ai,bj,cl->ijl", triple, W, W, W, optimize=True))
    return bases[2] @ white.B, decompose(T, solver, rng)


def _other_views_by_pairs(
    core: CoreMoments, target: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """MV-16(a), MV-12, MV-16(b), MV-12: second moments only, lighter tails for small n."""
    weights, _ = mixture_weights([target], [core.means[2]])
    pseudo = np.linalg.pinv(target).T
    for _ in range(2):
        others = [core.pairs[v, 2] @ pseudo / np.maximum(weights, 1e-6) for v in (0, 1)]
        weights, raw = mixture_weights([*others, target], list(core.means))
    return (others[0], others[1], target), weights, raw


def _other_views_by_basis(
    core: CoreMoments,
    bases: tuple[np.ndarray, np.ndarray, np.ndarray],
    target: np.ndarray,
    R: np.ndarray,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """MV-8b: left and right views where the target has distinct columns but a smaller rank."""
    A = bases[0] @ R  # the left means up to the scale of each column
    pseudo = np.linalg.pinv(A)
    scale = pseudo @ core.means[0]
    scale = np.where(np.abs(scale) > 1e-12, scale, 1e-12)
    right = (pseudo @ core.pairs[0, 1] / scale[:, None]).T
    weights, raw = mixture_weights([right], [core.means[1]])
    left = A * (scale / np.maximum(weights, 1e-6))
    return (left, right, target), weights, raw


def _other_views_by_similarity(
    core: CoreMoments,
    bases: tuple[np.ndarray, np.ndarray, np.ndarray],
    target: np.ndarray,
    probabilities: bool,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """SC-5: left view from the target, then right view from the left, one finished before the next.

    The readout diag(A⁻¹ B_i A) needs no eigenproblem, so the order of components is kept.
    """
    feasible = _on_simplex if probabilities else lambda table: table
    left = _read_similar(core, bases, feasible(target), source=2, aim=0)
    right = _read_similar(core, bases, feasible(left), source=0, aim=1)
    means = (left, right, target)
    weights, raw = mixture_weights(list(means), list(core.means))
    return means, weights, raw


def _on_simplex(table: np.ndarray) -> np.ndarray:
    return project_to_simplex(table.T).T


def _read_similar(
    core: CoreMoments,
    bases: tuple[np.ndarray, np.ndarray, np.ndarray],
    known: np.ndarray,
    *,
    source: int,
    aim: int,
) -> np.ndarray:
    """M_aim[i, j] = [A⁻¹ B_i A]_jj with A = U_sᵀ M_s, the third view on the right (MV-15)."""
    partner = 3 - source - aim
    G = np.transpose(core.triple, (source, partner, aim))
    G = np.einsum("abc,ai,bj->cij", G, bases[source], bases[partner], optimize=True)
    S = bases[source].T @ core.pairs[source, partner] @ bases[partner]
    A = bases[source].T @ known
    B = np.linalg.solve(S.T, G.transpose(0, 2, 1)).transpose(0, 2, 1)
    readout = np.linalg.solve(A, B @ A)
    return np.diagonal(readout, axis1=1, axis2=2).copy()


def mixture_weights(
    means: list[np.ndarray], averages: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """w with Σ_j w_j M_v[:, j] = E[x_v] in all given views (MV-16b), w >= 0 and Σw = 1 (N-8).

    The second result is the unconstrained solution.
    """
    A, b = np.concatenate(means), np.concatenate(averages)
    raw = np.linalg.lstsq(A, b, rcond=None)[0]
    w = scipy.optimize.nnls(A, b)[0]
    total = w.sum()
    return (w / total if total > 0 else np.full(len(w), 1 / len(w))), raw


def means_from_pairs(
    pairs: np.ndarray, groups: list[np.ndarray], means: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """MV-12 of every view on all others stacked: M_v = P_v,rest (M_rest⁺)ᵀ diag(w)⁻¹.

    ``pairs`` (D, D) holds P_uv in its off-diagonal blocks, ``groups`` the columns of each view,
    ``means`` (D, k) the estimate at hand. Cost D² k + (views) k³.
    """
    product, gram = pairs @ means, means.T @ means
    out = np.zeros_like(means)  # columns of no view stay zero
    for columns in groups:
        own = means[columns]
        numerator = product[columns] - pairs[np.ix_(columns, columns)] @ own
        inverse = np.linalg.pinv(gram - own.T @ own, rcond=1e-10, hermitian=True)
        out[columns] = numerator @ inverse
    return out / np.maximum(weights, 1e-6)
