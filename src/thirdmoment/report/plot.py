"""Pictures of spectra, topics and densities; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.report.labels import drawn

INK, ACCENT, PALE = "#1f3a5f", "#d1495b", "#b8c4d6"


def plot_spectrum(spectrum: np.ndarray, k: int, noise: float, *, ax: Any = None) -> Any:
    """Eigenvalues of the second moment, the k in use, and the noise level."""
    ax = ax if ax is not None else new_axes()
    s = np.asarray(spectrum)
    positive = s > 0
    index = np.arange(1, len(s) + 1)
    used = index <= k
    ax.semilogy(index[used & positive], s[used & positive], "o", color=INK, label="used")
    if np.any(~used & positive):
        ax.semilogy(index[~used & positive], s[~used & positive], "o", color=PALE, label="left out")
    if not len(s):
        ax.text(0.5, 0.5, "no moments were used", ha="center", transform=ax.transAxes)
        return ax
    if noise > 0:
        ax.axhline(noise, color=ACCENT, linestyle="--", label="sampling noise")
    ax.set(xlabel="component", ylabel="eigenvalue", title="Spectrum of the second moment")
    ax.legend(frameon=False)
    return ax


def plot_topics(
    top_words: Sequence[Sequence[str]],
    probabilities: np.ndarray,
    weights: np.ndarray,
    *,
    n_columns: int = 5,
    report: Any = None,
    figure: Any = None,
) -> Any:
    """Bars of the top words of each topic, titled with its weight; a report adds its spectrum."""
    from matplotlib.figure import Figure

    k, n_words = len(top_words), max(len(row) for row in top_words)
    n_columns = min(n_columns, k)
    n_rows = -(-k // n_columns)
    height = (0.16 * n_words + 0.55) * n_rows
    below = 2.8 if report is not None else 0.0
    if figure is None:
        figure = Figure(figsize=(2.7 * n_columns, height + below), layout="constrained")
    upper: Any = figure
    if report is not None:
        parts: Any = figure.subfigures(2, 1, height_ratios=[height, below])
        upper, lower = parts
        plot_spectrum(report.spectrum, report.n_components, report.noise, ax=lower.subplots())
    axes = np.atleast_1d(upper.subplots(n_rows, n_columns)).ravel()
    for j, ax in enumerate(axes):
        if j >= k:
            ax.set_axis_off()
            continue
        _draw_topic(ax, top_words[j], probabilities[j], f"topic {j} · {weights[j]:.1%}")
    return figure


def _draw_topic(ax: Any, words: Sequence[str], probability: np.ndarray, title: str) -> None:
    place = np.arange(len(words))
    ax.barh(place, probability, color=INK, height=0.72)
    ax.set_yticks(place, [drawn(word) for word in words], fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.set_title(title, fontsize=9, loc="left")


def new_axes(size: tuple[float, float] = (5, 3.6)) -> Any:
    """Axes of a figure of their own."""
    from matplotlib import pyplot as plt  # so that plt.show() and notebooks show it

    return plt.subplots(figsize=size, layout="constrained")[1]


COLOURS = (INK, "#d1495b", "#2e8b6f", "#e0a03a", "#7b5ea7", "#4aa3c2", "#8c6d46", "#c26a9b")

# Bars of a histogram.
BARS: Wording[int] = 40

# A contour holds this share of a component.
HELD: Wording[tuple[float, ...]] = (0.5, 0.9)


class Curves(NamedTuple):
    """One smooth column: densities (k, g) at places (g,), rows counted at places (m,)."""

    label: str
    x: np.ndarray
    density: np.ndarray
    where: np.ndarray
    counts: np.ndarray  # (k, m)


class Bars(NamedTuple):
    """Values compared by equality: probabilities (k, g)."""

    label: str
    names: list[str]
    probability: np.ndarray


class Contours(NamedTuple):
    """Two smooth columns: densities and counts (k, g, m) on a lattice."""

    label: tuple[str, str]
    x: np.ndarray
    y: np.ndarray
    density: np.ndarray
    counts: np.ndarray


Panel = Curves | Bars | Contours


def plot_densities(
    panels: Sequence[Panel], weights: np.ndarray, *, figure: Any = None, n_columns: int = 3
) -> Any:
    """Every panel on its own axes; returns the figure."""
    if len(panels) == 4:
        n_columns = 2
    if figure is None:
        from matplotlib import pyplot as plt  # so that plt.show() and notebooks show it

        n_columns = min(n_columns, len(panels))
        n_rows = -(-len(panels) // n_columns)
        size = (3.6 * n_columns, 2.7 * n_rows + 0.4)
        figure = plt.figure(figsize=size, layout="constrained")
    n_columns = min(n_columns, len(panels))
    axes = np.atleast_1d(figure.subplots(-(-len(panels) // n_columns), n_columns)).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        plot_panel(ax, panel, weights)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    handles = [
        axes[0].plot([], [], color=colour(h), label=f"component {h} · {w:.0%}")[0]
        for h, w in enumerate(weights)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def plot_panel(ax: Any, panel: Panel, weights: np.ndarray) -> Any:
    """One panel on axes, which are returned."""
    if isinstance(panel, Curves):
        _curves(ax, panel, weights)
    elif isinstance(panel, Bars):
        _bars(ax, panel, weights)
    else:
        _contours(ax, panel, weights)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_tree(tree: np.ndarray, labels: Sequence[str], *, figure: Any = None) -> Any:
    """A hierarchy of topics: the earlier two branches meet, the more words they share."""
    from matplotlib.figure import Figure
    from scipy.cluster.hierarchy import dendrogram

    if figure is None:
        figure = Figure(figsize=(7.0, 1.0 + 0.24 * len(labels)), layout="constrained")
    ax = figure.subplots()
    dendrogram(
        tree, orientation="left", labels=[drawn(label) for label in labels], ax=ax,
        color_threshold=0, above_threshold_color=INK, leaf_font_size=8,
    )  # fmt: skip
    ax.set_xlabel("distance (Hellinger): 1 without a common word", fontsize=8)
    ax.set_xlim(left=1.0, right=0.0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return figure


def colour(h: int) -> str:
    """Of a component, wherever it is drawn."""
    return COLOURS[h % len(COLOURS)]


def _central(places: np.ndarray, counts: np.ndarray, share: float = 0.004) -> tuple[float, float]:
    """Where all but a small share of the rows are."""
    total = np.maximum(counts, 0.0).sum(axis=0)
    order = np.argsort(places)
    mass = np.cumsum(total[order]) / max(total.sum(), 1e-300)
    low, high = np.searchsorted(mass, [share, 1 - share])
    a, b = places[order[low]], places[order[min(high, len(order) - 1)]]
    room = 0.05 * max(b - a, 1e-12)
    return float(a - room), float(b + room)


def _curves(ax: Any, panel: Curves, weights: np.ndarray) -> None:
    low, high = _central(panel.where, panel.counts)
    edges = np.linspace(low, high, BARS + 1)
    width = edges[1] - edges[0]
    for h, w in enumerate(weights):
        count = np.histogram(panel.where, edges, weights=np.maximum(panel.counts[h], 0.0))[0]
        share = count / max(float(np.maximum(panel.counts[h], 0.0).sum()), 1e-300)
        ax.stairs(w * share / width, edges, fill=True, color=colour(h), alpha=0.22, linewidth=0)
    inside = (panel.x >= low) & (panel.x <= high)
    for h, w in enumerate(weights):
        ax.plot(panel.x[inside], w * panel.density[h, inside], color=colour(h), linewidth=1.6)
    ax.set(xlabel=drawn(panel.label), xlim=(low, high), yticks=[])
    ax.set_ylim(bottom=0)


def _bars(ax: Any, panel: Bars, weights: np.ndarray) -> None:
    k, width = len(weights), 0.8 / len(weights)
    place = np.arange(len(panel.names))
    for h in range(k):
        shift = (h - (k - 1) / 2) * width
        ax.bar(place + shift, weights[h] * panel.probability[h], width, color=colour(h))
    ax.set_xticks(place, panel.names, fontsize=8)
    ax.set(xlabel=drawn(panel.label), yticks=[])


def _contours(ax: Any, panel: Contours, weights: np.ndarray) -> None:
    total = np.maximum(panel.counts, 0.0).sum(axis=0)
    x = _central(panel.x, total.sum(axis=1)[None])
    y = _central(panel.y, total.sum(axis=0)[None])
    from matplotlib.colors import LinearSegmentedColormap

    i = np.repeat(panel.x, len(panel.y))
    j = np.tile(panel.y, len(panel.x))
    image, a, b = np.histogram2d(i, j, bins=60, range=[x, y], weights=total.ravel())
    shades = LinearSegmentedColormap.from_list("rows", ["#ffffff", PALE])
    top = np.quantile(image[image > 0], 0.95) if np.any(image > 0) else 1.0
    ax.pcolormesh(a, b, image.T, cmap=shades, vmax=top, rasterized=True)
    for h in range(len(weights)):
        density = panel.density[h]
        ordered = np.sort(density.ravel())[::-1]
        mass = np.cumsum(ordered) / max(float(ordered.sum()), 1e-300)
        levels = sorted({float(ordered[np.searchsorted(mass, share)]) for share in HELD})
        levels = [level for level in levels if level > 0]
        if levels:
            ax.contour(panel.x, panel.y, density.T, levels=levels, colors=colour(h))
    ax.set(xlabel=drawn(panel.label[0]), ylabel=drawn(panel.label[1]), xlim=x, ylim=y)
