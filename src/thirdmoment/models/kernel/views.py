"""Views of a kernel mixture as the user gives them, and repeated measurements as panels."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thirdmoment._constants import Choice, Wording
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_positive
from thirdmoment.models.read import check_views
from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.refinement.smooth import Tables
from thirdmoment.report.plot import Bars, Contours, Curves, Panel
from thirdmoment.starts.kernel_rows import View, fast_rule

# Places at which the marginal densities of wide views are drawn.
PLACES: Wording[int] = 200


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


KERNELS = ("rbf", "laplace", "linear", "delta")

# Up to this many columns each is a view of its own with views="auto".
SINGLE_COLUMNS: Choice[int] = 8

# With bandwidth="wide" this multiple serves moments and densities (docs/decisions/kernel.md).
WIDE: Choice[float] = 3.0


def read_views(
    X: np.ndarray,
    weights: np.ndarray,
    views: Any,
    kernel: Any,
    bandwidth: Any,
    rng: np.random.Generator,
    names: Any = None,
    *,
    exchangeable: bool = False,
    one_bandwidth: bool = False,
) -> list[View]:
    """Views of X (n, d). Columns of one value say nothing and leave their view.

    A view of nothing but these stays, as one exact value, and takes no part in the moments. With
    ``one_bandwidth`` given numbers serve the moments too, as in the paper.
    """
    groups = _groups(views, X.shape[1], rng, names)
    kernels = _per_view("kernel", kernel, len(groups), _is_kernel)
    widths = _per_view("bandwidth", bandwidth, len(groups), _is_bandwidth)
    if exchangeable:
        _check_alike(groups, kernels, widths)
    constant = _constant(X, groups, exchangeable)
    found = []
    for v, (columns, one) in enumerate(zip(groups, kernels, strict=True)):
        parts = _columns_of(v, one, len(columns))
        width = None if isinstance(widths[v], str) else _widths(v, widths[v], len(columns))
        varying = ~constant[v]
        if not varying.any():
            found.append(View(columns, (), ~varying, None, columns))
            continue
        kept = columns[varying]
        if callable(parts[0]):
            exact, seen = np.zeros(len(kept), dtype=bool), columns
        else:
            parts = tuple(part for part, here in zip(parts, varying, strict=True) if here)
            exact, seen = np.array([part == "delta" for part in parts]), kept
        smooth = np.flatnonzero(~exact)
        both = one_bandwidth
        if width is not None:
            width = width[varying][smooth]
            _check_resolved(v, width, X[:, kept[smooth]])
        elif widths[v] == "wide":
            both = True
            mates = [group[varying][smooth] for group in groups] if exchangeable else [kept[smooth]]
            width = WIDE * _rules(X, weights, mates)
        found.append(View(kept, parts, exact, width, seen, width if both else None))
        if exact.any() and len(smooth) > 2:
            raise InvalidInput(
                f"View {v} mixes columns of kernel 'delta' with {len(smooth)} smooth ones; give "
                "the former a view of their own."
            )
    return found


def _check_alike(groups: list[np.ndarray], kernels: list[Any], widths: list[Any]) -> None:
    """Views of one distribution have as many columns, one kernel and one bandwidth."""
    alike = [len({len(group) for group in groups}) == 1]
    alike += [all(repr(one) == repr(many[0]) for one in many) for many in (kernels, widths)]
    if not all(alike):
        raise InvalidInput(
            "exchangeable=True needs views with the same number of columns, the same kernel and "
            "the same bandwidth."
        )


def _check_resolved(v: int, width: np.ndarray, X: np.ndarray) -> None:
    """Given bandwidths must not be lost in the rounding of their columns."""
    least = 1e-12 * np.abs(X).max(axis=0)
    if np.any(width < least):
        raise InvalidInput(
            f"bandwidth of view {v} is {width.min():.3g}, below what values as large as "
            f"{np.abs(X).max():.3g} resolve ({least.max():.3g})."
        )


def _constant(X: np.ndarray, groups: list[np.ndarray], exchangeable: bool) -> list[np.ndarray]:
    """Which columns of each view have one value; together where the views have one distribution."""
    low, high = X.min(axis=0), X.max(axis=0)
    if exchangeable:
        same = np.min([low[g] for g in groups], axis=0) == np.max([high[g] for g in groups], axis=0)
        return [same] * len(groups)
    return [low[group] == high[group] for group in groups]


def _rules(X: np.ndarray, weights: np.ndarray, mates: list[np.ndarray]) -> np.ndarray:
    """K-15 of all rows for each column, of views that share their distribution together."""
    repeated = np.tile(weights, len(mates))
    blocks = np.concatenate([X[:, columns] for columns in mates])
    return np.array([fast_rule(column, repeated, blocks.shape[1]) for column in blocks.T])


def _groups(views: Any, width: int, rng: np.random.Generator, names: Any) -> list[np.ndarray]:
    if not isinstance(views, str):
        return check_views(views, width, rng, names)
    if views != "auto":
        raise InvalidInput(f"views={views!r} must be 'auto', an integer or a list of columns.")
    if width <= SINGLE_COLUMNS:
        return [np.array([column]) for column in range(width)]
    return check_views(3, width, rng, names)


def _is_kernel(value: Any) -> bool:
    return isinstance(value, str) or callable(value)


def _is_bandwidth(value: Any) -> bool:
    return isinstance(value, (str, numbers.Real))


def _per_view(name: str, value: Any, count: int, single: Callable[[Any], bool]) -> list[Any]:
    """One value for all views, or a sequence with one for each."""
    if single(value):
        return [value] * count
    try:
        values = list(value)
    except TypeError:
        values = []
    if len(values) != count:
        raise InvalidInput(
            f"{name}={value!r} must be one value for all views or a list with one for each of the "
            f"{count} views."
        )
    return values


def _columns_of(v: int, kernel: Any, width: int) -> tuple[Any, ...]:
    """Kernel of every column of view v, or the callable that takes all of them."""
    if callable(kernel):
        return (kernel,)
    parts = (kernel,) * width
    if not isinstance(kernel, str):
        parts = tuple(kernel) if hasattr(kernel, "__iter__") else (kernel,)
    unknown = [part for part in parts if not isinstance(part, str) or part not in KERNELS]
    if unknown or len(parts) != width:
        names = ", ".join(repr(name) for name in KERNELS)
        raise InvalidInput(
            f"kernel of view {v} is {kernel!r}; give one of {names}, a list of these with one for "
            f"each of its {width} columns, or a function of two blocks of rows."
        )
    return parts


def _widths(v: int, value: Any, width: int) -> np.ndarray:
    """Positive bandwidths of the columns of a view."""
    values = list(np.ravel(value)) if np.ndim(value) else [value] * width
    if len(values) != width:
        raise InvalidInput(
            f"bandwidth of view {v} has {len(values)} entries for {width} columns; give one number "
            "or one for each column."
        )
    return np.array([check_positive("bandwidth", number) for number in values])


def check_bandwidth(bandwidth: Any) -> None:
    """Errors in the argument before any work."""
    if isinstance(bandwidth, str):
        if bandwidth not in ("auto", "cv", "wide"):
            raise InvalidInput(
                f"bandwidth={bandwidth!r} must be 'auto', 'cv', 'wide', a positive number or a "
                "list with one for each view."
            )
    elif isinstance(bandwidth, numbers.Real):
        check_positive("bandwidth", bandwidth)
    elif isinstance(bandwidth, (list, tuple)):
        wrong = [one for one in bandwidth if isinstance(one, str) and one not in ("auto", "wide")]
        if wrong:
            raise InvalidInput(
                f"bandwidth has {wrong[0]!r} for one view; in a list give numbers, 'auto' or "
                "'wide' ('cv' is for all views at once)."
            )
