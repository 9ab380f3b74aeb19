"""What to draw of each view, from its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.refinement.smooth import Tables
from thirdmoment.report.densities import Bars, Contours, Curves, Panel

# Places at which the marginal densities of wide views are drawn.
PLACES = 200


def view_panels(
    view: Tables, table: np.ndarray, counts: np.ndarray, labels: Sequence[str]
) -> list[Panel]:
    """Panels of one view from its densities and counts (k, G)."""
    if isinstance(view, Centres):
        return [_centre_panel(view, table, counts, j, label) for j, label in enumerate(labels)]
    assert isinstance(view, Lattice)
    panels: list[Panel] = []
    k = len(table)
    grid, rows = table.reshape(k, *view.shape), counts.reshape(k, *view.shape)
    bars: list[Panel] = []
    if view.values is not None:
        over = tuple(range(2, grid.ndim))
        names = [" ".join(f"{x:g}" for x in value) for value in view.values.values]
        label = ", ".join(name for name, exact in zip(labels, view.exact, strict=True) if exact)
        if len(names) > 1:
            bars.append(Bars(label, names, grid.sum(axis=over) * view.cell))
        grid, rows = grid.sum(axis=1), rows.sum(axis=1)
    smooth = [name for name, exact in zip(labels, view.exact, strict=True) if not exact]
    if view.d == 1:
        x = view.axes[0].nodes
        panels.append(Curves(smooth[0], x, grid, x, rows))
    elif view.d == 2:
        first, second = (axis.nodes for axis in view.axes)
        panels.append(Contours((smooth[0], smooth[1]), first, second, grid, rows))
    return [*bars, *panels] if view.exact[0] else [*panels, *bars]


def _centre_panel(
    view: Centres, table: np.ndarray, counts: np.ndarray, j: int, label: str
) -> Panel:
    """Marginal of one column: a Gaussian at every centre."""
    where, width = view.points[:, j], view.scale[j]
    x = np.linspace(where.min() - 3 * width, where.max() + 3 * width, PLACES)
    kernel = np.exp(-0.5 * ((x - where[:, None]) / width) ** 2) / (np.sqrt(2 * np.pi) * width)
    return Curves(label, x, table @ kernel, where, counts)
