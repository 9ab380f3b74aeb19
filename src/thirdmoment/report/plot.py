"""Pictures from plain arrays; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thirdmoment.report.words import drawn

INK, ACCENT, PALE = "#1f3a5f", "#d1495b", "#b8c4d6"


def plot_spectrum(spectrum: np.ndarray, k: int, noise: float, *, ax: Any = None) -> Any:
    """Eigenvalues of the second moment, the k in use, and the noise level."""
    ax = ax if ax is not None else _new_axes()
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


def _new_axes() -> Any:
    from matplotlib import pyplot as plt  # so that plt.show() and notebooks show it

    return plt.subplots(figsize=(5, 3.2), layout="constrained")[1]
