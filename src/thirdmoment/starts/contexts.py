"""Starts from the company that symbols keep: classes of symbols with like neighbours.

Each symbol has a law of what stands before and after it. The leading singular vectors of these
laws, scaled for their noise, place symbols with like neighbours together; weighted k-means makes
them classes, and classes, softened, are states. It uses second moments only and is no consistent
estimate of a hidden Markov model, but where data is far from one it often starts EM in a better
place than third moments do (docs/decisions/markov.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from thirdmoment.moments.sequences import AdjacentCounts
from thirdmoment.recovery.markov import stochastic_rows
from thirdmoment.refinement.spread import k_means_labels, spread_centres

# A symbol keeps this share of its own class; the rest is spread over all.
OWN_SHARE = 0.5

# Counts are divided by this power of the frequencies of both symbols, for their noise.
POWER = 0.25

# Added to frequencies, so that symbols seen a few times do not decide.
LEAST_SEEN = 10.0


class ContextStart(NamedTuple):
    """A chain and its emissions, from classes of symbols."""

    start: np.ndarray  # (k,)
    T: np.ndarray  # (k, k)
    laws: np.ndarray  # (k, d)
    name: str


def context_starts(
    adjacent: AdjacentCounts, share: np.ndarray, k: int, rng: np.random.Generator
) -> list[ContextStart]:
    """One start, unless no symbol has a neighbour; ``share`` (d,) is how often each occurs."""
    if not adjacent.pairs.nnz:
        return []
    places = _places(adjacent.pairs, k)
    labels = k_means_labels(places, share, spread_centres(places, share, k, rng), rounds=30)
    return [_from_classes(adjacent, share, labels, k, "classes of symbols with like neighbours")]


def _places(pairs: Any, k: int) -> np.ndarray:
    """Directions (d, q) of the symbols: their laws of neighbours, scaled."""
    seen = (np.asarray(pairs.sum(axis=0)) + np.asarray(pairs.sum(axis=1))) / 2
    scale = (seen + LEAST_SEEN) ** -POWER
    S = sp.diags_array(scale)
    laws = sp.hstack([S @ pairs @ S, S @ pairs.T @ S]).tocsr()
    d = laws.shape[0]
    if d <= 3 * k + 2:
        U, s, _ = np.linalg.svd(laws.toarray(), full_matrices=False)
        U, s = U[:, :k], s[:k]
    else:
        first = np.random.default_rng(0).standard_normal(d)
        U, s, _ = scipy.sparse.linalg.svds(laws, k=k, v0=first)
    places = U * s * scale[:, None] * np.sqrt(max(float(seen.sum()), 1.0))
    return places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)


def _from_classes(
    adjacent: AdjacentCounts, share: np.ndarray, labels: np.ndarray, k: int, name: str
) -> ContextStart:
    member = np.eye(k)[labels]
    soft = OWN_SHARE * member + (1 - OWN_SHARE) / k
    T = stochastic_rows(member.T @ (adjacent.pairs @ member) + 1.0)
    first = member.T @ adjacent.first + 1.0
    return ContextStart(
        first / first.sum(),
        OWN_SHARE * T + (1 - OWN_SHARE) / k,
        stochastic_rows((soft * share[:, None]).T),
        name,
    )
