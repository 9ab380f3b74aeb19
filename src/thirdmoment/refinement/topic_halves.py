"""How far the words of a topic hold with other documents of the same source.

Three things that a fit knows anyway, or nearly, tell how many of a topic's ten top words come back
when everything is fitted to a bootstrap sample: how many it shares with the topics that each half
of the documents makes of it in five sweeps, how many with the topics of the other ranks that were
fitted, and how well the words go together (NPMI). The weights are those of a regression on five
corpora, rounded; on four others the rank correlation with the bootstrap is in
docs/benchmarks/trust.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    as_rows,
    is_tensors,
    row_keys,
    scrambled,
    shifted,
)
from thirdmoment._constants import Wording
from thirdmoment.metrics.alignment import align
from thirdmoment.metrics.topics import coherence_of, word_presence
from thirdmoment.recovery.order import leading_columns
from thirdmoment.refinement.collapsed import sweeper_of, topics_from

SWEEPS: Wording[int] = 5  # of either half of the documents
TOP: Wording[int] = 10  # words of a topic that are compared

# Documents for each topic from which on halves are swept.
LEAST_DOCUMENTS: Wording[int] = 10

# Documents for each topic of which more tell nothing new.
ENOUGH_DOCUMENTS: Wording[int] = 10_000

# Weights of halves, ranks and coherence.
HALVES, RANKS, COHERENCE = 0.375, 0.25, 0.625


def word_overlap(first: Array, second: Array) -> np.ndarray:
    """Share (k,) of the top words of each row that the same row of ``second`` has too."""
    n = min(TOP, first.shape[1])
    a, b = (leading_columns(part, n) for part in (first, second))
    return np.array([np.isin(one, other).mean() for one, other in zip(a, b, strict=True)])


def two_parts(X: Any, k: int) -> tuple[Array, Array]:
    """Masks (n,) of two halves of the documents, by a hash of their content; copies together.

    Of very many documents a half, a quarter and so on has enough for k topics.
    """
    keys = scrambled(row_keys(X if is_tensors(X) else as_rows(X)))
    halved = max((X.shape[0] // (ENOUGH_DOCUMENTS * k)).bit_length() - 1, 0)
    first, kept = shifted(keys, 20) % 2 == 0, shifted(keys, 21) % 2**halved == 0
    return first & kept, ~first & kept


def halves_of(X: sp.csr_array, weights: np.ndarray, k: int) -> tuple[Array, Array] | None:
    """Masks (n,) of two halves; None where there are too few documents to tell."""
    parts = two_parts(X, k)
    few = min(int(part.sum()) for part in parts) < k
    return None if float(weights.sum()) < LEAST_DOCUMENTS * k or few else parts


def topic_trust(
    X: sp.csr_array,
    weights: np.ndarray,
    topics: Array,
    alpha: np.ndarray,
    *,
    eta: float,
    rivals: Sequence[Array] = (),
    n_threads: int = 1,
) -> np.ndarray:
    """Expected share (k,) of the top words of topics (k, d) that come back with other documents.

    NaN where there are too few documents to tell. ``rivals`` are the topics of other ranks.
    """
    k = len(topics)
    if k == 1:
        return np.ones(1)
    both = halves_of(X, weights, k)
    if both is None:
        return np.full(k, np.nan)
    parts = []
    for half in both:  # one after the other: a copy of the documents may be large
        sweeper = sweeper_of(X[half], weights[half], eta=eta, n_threads=n_threads)
        counts = sweeper.start(topics, alpha)
        for _ in range(SWEEPS):
            counts = sweeper.sweep(counts, alpha)
        parts.append(topics_from(counts.words, 1e-9))
        del sweeper, counts
    halves = word_overlap(*parts)
    others = [word_overlap(topics, rival[align(rival, topics)]) for rival in rivals]
    ranks = np.mean(others, axis=0) if others else halves
    present = X if is_tensors(X) else word_presence(X)
    coherence = coherence_of(topics, present, n_words=TOP)
    return np.clip(HALVES * halves + RANKS * ranks + COHERENCE * coherence, 0.0, 1.0)
