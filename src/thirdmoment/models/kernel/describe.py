"""What a kernel mixture says of its fit: views that depend, resolution, the rows it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from thirdmoment._constants import Wording
from thirdmoment.models.kernel.fit import Densities
from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.report import Finding
from thirdmoment.sizes import PART
from thirdmoment.starts.kernel_rows import KernelRows

# Correlations of ranks within a component above this are worth a warning, if they are no chance.
STRONG: Wording[float] = 0.3
CHANCE: Wording[float] = 4.0


class Dependence(NamedTuple):
    """Largest correlation of ranks between two views within a component."""

    correlation: np.ndarray  # (k, views, views)
    largest: float
    where: tuple[int, int, int] | None  # component, view, view


def conditional_dependence(
    X: np.ndarray, weights: np.ndarray, posterior: np.ndarray, views: Sequence[np.ndarray]
) -> Dependence:
    """Correlations of ranks of columns of different views, rows weighted by posteriors (n, k).

    Components with too few rows to tell are left out of ``largest``.
    """
    ranks = np.apply_along_axis(rankdata, 0, X)
    k, count = posterior.shape[1], len(views)
    found = np.zeros((k, count, count))
    best: tuple[float, tuple[int, int, int] | None] = (0.0, None)
    for h in range(k):
        w = posterior[:, h] * weights
        mass = max(float(w.sum()), 1e-300)
        centred = ranks - w @ ranks / mass
        cov = (centred * (w / mass)[:, None]).T @ centred
        sd = np.sqrt(np.maximum(np.diag(cov), 1e-12 * len(X) ** 2))
        corr = np.abs(cov / np.outer(sd, sd))
        rows = mass**2 / max(float(np.sum(posterior[:, h] ** 2 * weights)), 1e-300)
        for u in range(count):
            for v in range(u):
                value = float(corr[np.ix_(views[u], views[v])].max())
                found[h, u, v] = found[h, v, u] = value
                if value > best[0] and value > CHANCE / np.sqrt(max(rows, 1.0)):
                    best = value, (h, v, u)
    return Dependence(found, *best)


def dependence_note(
    found: Dependence, views: Sequence[np.ndarray], names: Sequence[str]
) -> list[Finding]:
    """A warning where the views are clearly dependent within a component."""
    if found.where is None or found.largest <= STRONG:
        return []
    h, u, v = found.where
    first, second = (_listed([names[j] for j in views[i]]) for i in (u, v))
    text = (
        f"{first} and {second} depend on each other within component {h}: rank correlation "
        f"{found.largest:.2f}, at most {STRONG} expected. The model takes views {u} and {v} as "
        "independent there, so densities and the components of rows may be wrong."
    )
    action = f"Put {first} and {second} into one view (views=...)."
    if len(views) <= 3:  # two do not identify a mixture
        action = "Use GaussianMixture(covariance_type='full'), where columns may depend."
    return [Finding("dependent views", text, action, "care")]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


# Rows without nodes worth a note, as a share.
MANY_LEFT_OUT: Wording[float] = 0.01


class KeptRows(NamedTuple):
    """Rows of one view with their weights in each component."""

    X: np.ndarray  # (m, d_v)
    weights: np.ndarray  # (m, k)


def kept_rows(
    found: Densities, rows: KernelRows, order: np.ndarray, rng: np.random.Generator
) -> dict[int, KeptRows]:
    """Rows of the views whose tables are too coarse for expectations."""
    wide = [v for v, view in enumerate(found.family.views) if isinstance(view, Centres)]
    if not wide:
        return {}
    X, weights, views, _ = rows
    part = np.arange(len(X))
    if len(X) > PART:
        part = np.sort(rng.choice(len(X), PART, replace=False))
    return {
        v: KeptRows(
            X[np.ix_(part, views[v].columns)], found.shares[v][part][:, order] * weights[part, None]
        )
        for v in wide
    }


def resolution_notes(found: Densities) -> list[Finding]:
    """Where the densities are coarser than asked for, or do not hold all rows."""
    notes = []
    for v, view in enumerate(found.family.views):
        if not isinstance(view, Lattice):
            continue
        steps = np.array([axis.step for axis in view.axes])
        if view.fixed is not None and np.any(steps > view.fixed):
            j = int(np.argmax(steps / view.fixed))
            text = (
                f"The bandwidth {view.fixed[j]:.3g} of view {v} is finer than its density can "
                f"show ({steps[j]:.3g}): there are too many distinct places for it."
            )
            notes.append(Finding("bandwidth", text, f"Take {steps[j]:.3g} or more."))
        if found.left_out[v] > MANY_LEFT_OUT:
            text = (
                f"{found.left_out[v]:.1%} of the rows are too far from all others in view {v} to "
                "be counted in its density; they are placed by their other views."
            )
            notes.append(Finding("far rows", text))
    return notes
