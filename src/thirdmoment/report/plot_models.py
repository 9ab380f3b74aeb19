"""Pictures of fitted models, each on one pair of axes; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.report.labels import drawn, size
from thirdmoment.report.plot import HELD, INK, colour, new_axes

# Rows that are drawn; of more, evenly spaced ones.
ROWS: Wording[int] = 4_000

# Names below an axis, and numbers in the cells of a square; with more of them neither can be read.
NAMED: Wording[int] = 40
NUMBERED: Wording[int] = 12

# A transition is drawn from this probability on, and the most probable one of each state.
DRAWN: Wording[float] = 0.03


def some(n: int) -> np.ndarray:
    """Numbers of the rows to draw."""
    return np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(int)) if n else np.arange(0)


def _bare(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _named(ax: Any, names: Sequence[str]) -> None:
    """Names of columns below the axis, numbers where there are too many."""
    if len(names) <= NAMED:
        long = max(map(len, names)) * len(names) > 40
        ax.set_xticks(
            range(len(names)), [drawn(name) for name in names],
            rotation=60 if long else 0, ha="right" if long else "center", fontsize=8,
        )  # fmt: skip
    else:
        ax.set_xlabel("column")


def legend(ax: Any, weights: np.ndarray, what: str, marker: str = "o", alpha: float = 1) -> None:
    """Colours and sizes of the components beside the axes, where they hide nothing."""
    if len(weights) > NUMBERED:
        return
    handles = [
        ax.plot([], [], marker, color=colour(h), alpha=alpha, label=f"{h} · {size(w)}")[0]
        for h, w in enumerate(weights)
    ]
    ax.legend(
        handles=handles, title=what, title_fontsize=8, fontsize=8, frameon=False, handlelength=1,
        handletextpad=0.4, borderaxespad=0, loc="upper left", bbox_to_anchor=(1.02, 1),
    )  # fmt: skip


# clouds --------------------------------------------------------------------------------------


class Clouds(NamedTuple):
    """Gaussian components in one or two columns."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, p)
    covariances: np.ndarray  # (k, p, p)
    names: list[str]  # (p,)


def plot_clouds(
    clouds: Clouds, rows: np.ndarray | None, labels: np.ndarray | None, *, ax: Any = None
) -> Any:
    """Ellipses around half and nine tenths of each component, over rows (n, p) and their labels."""
    ax = _bare(new_axes() if ax is None else ax)
    if len(clouds.names) == 1:
        return _hills(ax, clouds, rows)
    if rows is not None and labels is not None:
        shown = some(len(rows))
        c = [colour(h) for h in labels[shown]]
        ax.scatter(rows[shown, 0], rows[shown, 1], s=6, c=c, alpha=0.35, linewidths=0)
    circle = np.linspace(0, 2 * np.pi, 100)
    around = np.stack([np.cos(circle), np.sin(circle)])
    for h, (mean, covariance) in enumerate(zip(clouds.means, clouds.covariances, strict=True)):
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        for share in HELD:
            x, y = mean[:, None] + np.sqrt(-2 * np.log(1 - share)) * (root @ around)
            ax.plot(x, y, color=colour(h), linewidth=1.4)
        ax.plot(*mean, "+", color=colour(h), markersize=9, markeredgewidth=2)
    ax.set(xlabel=drawn(clouds.names[0]), ylabel=drawn(clouds.names[1]))
    legend(ax, clouds.weights, "component")
    return ax


def _hills(ax: Any, clouds: Clouds, rows: np.ndarray | None) -> Any:
    """One column: each component's part of the density, over the histogram of the rows."""
    mean, spread = clouds.means[:, 0], np.sqrt(clouds.covariances[:, 0, 0])
    x = np.linspace((mean - 4 * spread).min(), (mean + 4 * spread).max(), 500)
    if rows is not None:
        ax.hist(rows[:, 0], bins="auto", density=True, color="#b8c4d6", linewidth=0)
    square = ((x - mean[:, None]) / spread[:, None]) ** 2
    part = (clouds.weights / spread / np.sqrt(2 * np.pi))[:, None] * np.exp(-square / 2)
    for h, y in enumerate(part):
        ax.plot(x, y, color=colour(h))
    ax.plot(x, part.sum(axis=0), color="0.3", linestyle=":")
    ax.set(xlabel=drawn(clouds.names[0]), ylabel="density")
    ax.set_ylim(bottom=0)
    legend(ax, clouds.weights, "component")
    return ax


# profiles ------------------------------------------------------------------------------------


def plot_profiles(
    means: np.ndarray, spreads: np.ndarray, weights: np.ndarray, names: Sequence[str], *,
    ax: Any = None,
) -> Any:  # fmt: skip
    """Means (k, d) and spreads (k, d) of components, in standard deviations of all rows."""
    ax = _bare(new_axes() if ax is None else ax)
    w = weights / weights.sum()
    middle = w @ means
    scale = np.sqrt(w @ (spreads**2 + (means - middle) ** 2))
    scale = np.where(scale > 0, scale, 1.0)
    k, place = len(weights), np.arange(means.shape[1])
    for h in range(k):
        aside = 0.3 * ((h + 0.5) / k - 0.5)
        ax.errorbar(
            place + aside, (means[h] - middle) / scale, spreads[h] / scale, fmt="o-", capsize=0,
            color=colour(h), markersize=4, linewidth=1.2, elinewidth=0.8,
        )  # fmt: skip
    ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    ax.set_ylabel("mean ± spread, in spreads of all rows")
    _named(ax, names)
    legend(ax, weights, "component")
    return ax


def plot_classes(
    tables: Sequence[np.ndarray], weights: np.ndarray, names: Sequence[str], *, ax: Any = None
) -> Any:
    """Answers (k, d_v) of latent classes to each item.

    Items of two categories: the probability of the second, a line a class. Else a bar a class and
    item, its categories one above the other, the first one darkest.
    """
    ax = _bare(new_axes() if ax is None else ax)
    k, place = len(weights), np.arange(len(tables))
    if all(table.shape[1] == 2 for table in tables):
        for h in range(k):
            ax.plot(place, [table[h, 1] for table in tables], "o-", color=colour(h), markersize=4)
        ax.set_ylabel("probability of 1")
    else:
        width = 0.8 / k
        for v, table in enumerate(tables):
            _stacks(ax, table, v + (np.arange(k) - (k - 1) / 2) * width, 0.9 * width)
        ax.set_ylabel("share of each category, 0 darkest")
    ax.set_ylim(0, 1.02)
    _named(ax, names)
    legend(ax, weights, "class")
    return ax


def _stacks(ax: Any, table: np.ndarray, place: np.ndarray, width: float) -> None:
    bottom, size_ = np.zeros(len(table)), table.shape[1]
    for j in range(size_):
        shade = 1 - 0.85 * j / max(size_ - 1, 1)
        colours = [(*_rgb(colour(h)), shade) for h in range(len(table))]
        ax.bar(place, table[:, j], width, bottom, color=colours, edgecolor="white", linewidth=0.3)
        bottom = bottom + table[:, j]


def _rgb(name: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(name)


def plot_weights(weights: np.ndarray, labels: Sequence[str], *, ax: Any = None) -> Any:
    """How large the topics are, the largest on top."""
    ax = _bare(new_axes((5, max(3.6, 0.17 * len(weights)))) if ax is None else ax)
    order = np.argsort(-weights, kind="stable")
    place = np.arange(len(order))
    ax.barh(place, 100 * weights[order], color=INK, height=0.72)
    ax.set_yticks(place, [drawn(labels[j]) for j in order], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("share in per cent")
    return ax


# squares of numbers --------------------------------------------------------------------------


def plot_loadings(components: np.ndarray, names: Sequence[str], *, ax: Any = None) -> Any:
    """Factors (k, d): what each does to each column, red up, blue down."""
    ax = new_axes((5, max(3.6, 0.2 * len(components)))) if ax is None else ax
    most = float(np.abs(components).max()) or 1.0
    image = ax.imshow(components, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="size of one spread of the factor", shrink=0.8)
    ax.set_yticks(range(len(components)), [f"factor {h}" for h in range(len(components))])
    _named(ax, names)
    return ax


def plot_angles(bases: Sequence[np.ndarray], weights: np.ndarray, *, ax: Any = None) -> Any:
    """Smallest angle in degrees between each two subspaces, given by orthonormal bases (d, p)."""
    ax = new_axes() if ax is None else ax
    k = len(bases)
    degrees = np.array([[smallest_angle(a, b) for b in bases] for a in bases])
    image = ax.imshow(degrees, cmap="Blues_r", vmin=0, vmax=90)
    ax.figure.colorbar(image, ax=ax, label="smallest angle, degrees", shrink=0.8)
    for i, j in np.ndindex(k, k) if k <= NUMBERED else ():
        dark = degrees[i, j] < 45
        ax.text(j, i, f"{degrees[i, j]:.0f}", ha="center", va="center", fontsize=8,
                color="white" if dark else "black")  # fmt: skip
    if k <= NAMED // 2:
        ax.set_xticks(range(k), range(k))
        ax.set_yticks(range(k), [f"subspace {j} · {size(w)}" for j, w in enumerate(weights)])
    return ax


def smallest_angle(a: np.ndarray, b: np.ndarray) -> float:
    """The smallest principal angle in degrees between the spans of orthonormal columns."""
    cosine = np.linalg.svd(a.T @ b, compute_uv=False).max(initial=0.0)
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


# chains --------------------------------------------------------------------------------------


def plot_path(
    path: np.ndarray, values: np.ndarray, weights: np.ndarray, *, label: str, ax: Any = None
) -> Any:
    """Observations (T,), or which of columns (T, d) are on, over bands of the states (T,)."""
    from matplotlib.colors import ListedColormap

    ax = _bare(new_axes((8, 3)) if ax is None else ax)
    k, time = len(weights), np.arange(len(path))
    if values.ndim == 2:
        at, height = np.nonzero(values)
        low, high = -0.5, values.shape[1] - 0.5
    else:
        at, height = time, values
        room = 0.05 * (np.ptp(values) or 1.0)
        low, high = values.min() - room, values.max() + room
    bands = ListedColormap([colour(h) for h in range(k)])
    ax.imshow(
        path[None], cmap=bands, vmin=-0.5, vmax=k - 0.5, alpha=0.3, aspect="auto",
        interpolation="nearest", extent=(-0.5, len(path) - 0.5, low, high),
    )  # fmt: skip
    ax.plot(at, height, ".", color="0.15", markersize=3)
    ax.set(xlabel="observation", ylabel=drawn(label), xlim=(-0.5, len(path) - 0.5))
    legend(ax, weights, "state", "s", 0.5)
    return ax


def plot_transitions(T: np.ndarray, weights: np.ndarray, *, ax: Any = None) -> Any:
    """States on a circle, as large as they are frequent; arrows as wide as they are probable.

    The number in a state is the probability to stay.
    """
    ax = new_axes((5, 5)) if ax is None else ax
    k = len(T)
    turn = np.pi / 2 - 2 * np.pi * np.arange(k) / k
    place = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    radius = 0.09 + 0.16 * np.sqrt(weights / weights.max()) * min(1.0, 4 / k)
    for i, j in np.ndindex(k, k):
        most = T[i, j] == np.delete(T[i], i).max(initial=0.0)
        if i != j and (T[i, j] >= DRAWN or (most and T[i, j] > 0)):
            _arrow(
                ax, place[i], place[j], radius[[i, j]], float(T[i, j]), numbered=k <= NUMBERED // 2
            )
    from matplotlib.patches import Circle

    for h in range(k):
        ax.add_patch(Circle(place[h], radius[h], color=colour(h), zorder=3))
        ax.text(*place[h], f"{h}\n{T[h, h]:.2f}", ha="center", va="center", color="white",
                fontsize=8, zorder=4)  # fmt: skip
    ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    ax.set_axis_off()
    return ax


def _arrow(
    ax: Any, a: np.ndarray, b: np.ndarray, radius: np.ndarray, p: float, *, numbered: bool
) -> None:
    """A bent arrow from state a to state b, with its probability."""
    from matplotlib.patches import FancyArrowPatch

    along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-12)
    start, end = a + along * radius[0], b - along * (radius[1] + 0.02)
    ax.add_patch(FancyArrowPatch(
        tuple(start), tuple(end), connectionstyle="arc3,rad=0.18", arrowstyle="-|>",
        mutation_scale=11, linewidth=0.5 + 5 * p, color="0.45", alpha=0.85, shrinkA=0, shrinkB=0,
    ))  # fmt: skip
    if numbered:
        bend = 0.12 * np.linalg.norm(end - start) * np.array([along[1], -along[0]])
        where = start + 0.4 * (end - start) + bend
        ax.text(*where, f"{p:.2f}", fontsize=8, ha="center", va="center", zorder=5,
                bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.6})  # fmt: skip


# lines ---------------------------------------------------------------------------------------


class Line(NamedTuple):
    """Rows beside the regression that most probably made each."""

    x: np.ndarray  # (n,) the column that is drawn
    y: np.ndarray  # (n,) without what the other columns do
    label: np.ndarray  # (n,)
    slope: np.ndarray  # (k,)
    intercept: np.ndarray  # (k,)


def plot_lines(line: Line, weights: np.ndarray, names: tuple[str, str], *, ax: Any = None) -> Any:
    """Rows in the colour of their regression, and the line of each."""
    ax = _bare(new_axes() if ax is None else ax)
    shown = some(len(line.x))
    c = [colour(h) for h in line.label[shown]]
    ax.scatter(line.x[shown], line.y[shown], s=8, c=c, alpha=0.45, linewidths=0)
    ends = np.array([line.x.min(), line.x.max()])
    for h, (slope, intercept) in enumerate(zip(line.slope, line.intercept, strict=True)):
        ax.plot(ends, intercept + slope * ends, color="white", linewidth=3.5)
        ax.plot(ends, intercept + slope * ends, color=colour(h), linewidth=1.8)
    ax.set(xlabel=drawn(names[0]), ylabel=drawn(names[1]))
    legend(ax, weights, "regression")
    return ax
