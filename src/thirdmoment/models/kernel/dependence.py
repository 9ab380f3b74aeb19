"""Are the views independent given the component, as the model says?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from thirdmoment.report import Finding

# Correlations of ranks within a component above this are worth a warning, if they are no chance.
STRONG = 0.3
CHANCE = 4.0


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
