"""Pictures from plain arrays; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
        ax.semilogy(
            index[~used & positive], s[~used & positive], "o", color=PALE, label="left out"
        )
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
    figure: Any = None,
) -> Any:
    """A bar chart of the top words of each topic, titled with its weight."""
    from matplotlib.figure import Figure

    k = len(top_words)
    n_rows = -(-k // n_columns)
    figure = figure if figure is not None else Figure(
        figsize=(2.6 * n_columns, 2.1 * n_rows), layout="constrained"
    )
    axes = np.atleast_1d(figure.subplots(n_rows, n_columns)).ravel()
    for j, ax in enumerate(axes):
        if j >= k:
            ax.set_axis_off()
            continue
        place = np.arange(len(top_words[j]))
        ax.barh(place, probabilities[j], color=INK, height=0.72)
        ax.set_yticks(place, top_words[j], fontsize=8)
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        ax.set_title(f"topic {j} · {weights[j]:.1%}", fontsize=9, loc="left")
    return figure


def _new_axes() -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(5, 3.2), layout="constrained").subplots()
