"""Is the topic found in text one clear theme, and that of the word? Limits chosen by readers.

Where the model does not hold, gaps and scales say little: what a reader calls one clear theme is
told by the words themselves, and by how many documents they come from. The limits were chosen on
120 answers that two readers judged, and measured on others; that of documents on halves of five
corpora (docs/decisions/search.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thirdmoment._constants import Wording
from thirdmoment.metrics.topics import coherence_of
from thirdmoment.recovery.order import leading
from thirdmoment.search.component import Limits
from thirdmoment.starts.topic_index import TopicIndex

TOP: Wording[int] = 10  # words that a reader sees

# The shared diagnostics of a search, as far as they tell clear themes from others.
TEXT_LIMITS = Limits(
    gap_snr=0.5,
    stability=0.0,
    consistency=(-math.inf, math.inf),
    alignment=0.9,
    weight=math.inf,
    label_score=1.2,
)


class ThemeLimits(NamedTuple):
    """Where the words of an answer become a reason against it."""

    coherence: tuple[float, float] = (0.15, 0.6)  # mean NPMI of the top words
    lift: float = 1.7  # mean log of how much more frequent they are than in the corpus
    overlap: float = 0.5  # top words kept under half and twice the concentration
    documents: int = 15  # that hold a word of the hint


LIMITS = ThemeLimits()


class Theme(NamedTuple):
    """What the words of an answer say of it."""

    coherence: float
    lift: float
    rank: int  # best rank of a word of the hint, from one
    overlap: float
    documents: float = math.inf  # that hold a word of the hint


def top_places(law: np.ndarray) -> np.ndarray:
    """Columns of the top words of a distribution (d,)."""
    return leading(law, TOP)


def read_theme(
    law: np.ndarray, index: TopicIndex, hint: list[int], alternatives: list[np.ndarray]
) -> Theme:
    """Coherence and lift of the top words, and how they stand to the hint and to other laws."""
    top = top_places(law)
    ratio = np.maximum(law[top], 1e-300) / np.maximum(index.mean[top], 1e-300)
    kept = [len(np.intersect1d(top, top_places(other))) / len(top) for other in alternatives]
    return Theme(
        float(coherence_of(law[None, top], index.present(top), n_words=TOP)[0]),
        float(np.log(ratio).mean()),
        1 + min((int(np.sum(law > law[j])) for j in hint), default=0),
        min(kept, default=1.0),
        len(index.documents_with(hint, [])) if hint else math.inf,
    )


def theme_doubts(theme: Theme, limits: ThemeLimits = LIMITS) -> list[str]:
    """Reasons why the answer is no clear theme of the word."""
    found, (low, high) = [], limits.coherence
    if theme.documents < limits.documents:
        found.append(
            f"Only {theme.documents} documents hold it ({limits.documents} wanted): others would "
            "give other words."
        )
    if theme.rank > TOP:
        found.append(
            f"The hint comes only {theme.rank}th among the words of the topic: it is a topic of "
            "documents that hold it, not its own."
        )
    if not theme.coherence >= low:
        found.append(
            f"The top words do not occur together more than others (mean NPMI "
            f"{theme.coherence:.3g}, {low} wanted): there is no clear theme."
        )
    elif theme.coherence > high:
        found.append(
            f"The top words nearly always occur together (mean NPMI {theme.coherence:.3g}, at most "
            f"{high} wanted): this looks like a text that many documents repeat."
        )
    if not theme.lift >= limits.lift:
        found.append(
            f"The top words are common everywhere (mean log lift {theme.lift:.3g}, {limits.lift} "
            "wanted): the word has no theme of its own."
        )
    if not theme.overlap >= limits.overlap:
        found.append(
            f"Only {theme.overlap:.0%} of the top words stay under half or twice the concentration "
            f"({limits.overlap:.0%} wanted), and the corpus does not show which is right."
        )
    return found
