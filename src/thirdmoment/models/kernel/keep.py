"""What a fitted model keeps of the rows, and what it says about its resolution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment.models.kernel.fit import Densities
from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.report import Finding
from thirdmoment.starts.kernel import KernelRows

# Rows kept for expectations over views of three and more columns.
KEPT_ROWS = 20_000

# Rows without nodes worth a note, as a share.
MANY_LEFT_OUT = 0.01


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
    if len(X) > KEPT_ROWS:
        part = np.sort(rng.choice(len(X), KEPT_ROWS, replace=False))
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
