"""Starts from the company that symbols keep: classes of symbols with like neighbours.

Each symbol has a distribution of what stands before and after it. The leading singular vectors of
these distributions, scaled for their noise, place symbols with like neighbours together; weighted
k-means makes them classes, and classes, softened, are states. It uses second moments only and is no
consistent estimate of a hidden Markov model, but where data is far from one it often starts EM in a
better place than third moments do (docs/decisions/markov.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from thirdmoment._constants import Choice
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.moments.sequences import AdjacentCounts
from thirdmoment.recovery.markov import stochastic_rows
from thirdmoment.refinement.spread import k_means_labels, spread_centres

# A symbol keeps this share of its own class; the rest is spread over all.
OWN_SHARE: Choice[float] = 0.5

# Counts are divided by this power of the frequencies of both symbols, for their noise.
POWER: Choice[float] = 0.25

# Added to frequencies, so that symbols seen a few times do not decide.
LEAST_SEEN: Choice[float] = 10.0


def context_chain(
    adjacent: AdjacentCounts, share: np.ndarray, k: int, rng: np.random.Generator
) -> Parameters | None:
    """Start, transitions and laws (k, d) of symbols, or None where no symbol has a neighbour.

    ``share`` (d,) is how often each symbol occurs.
    """
    if not adjacent.pairs.nnz:
        return None
    places = _places(adjacent.pairs, k, rng)
    labels = k_means_labels(places, share, spread_centres(places, share, k, rng), rounds=30)
    member = np.eye(k)[labels]
    soft = OWN_SHARE * member + (1 - OWN_SHARE) / k
    T = stochastic_rows(member.T @ (adjacent.pairs @ member) + 1.0)
    first = member.T @ adjacent.first + 1.0
    return (
        first / first.sum(),
        OWN_SHARE * T + (1 - OWN_SHARE) / k,
        stochastic_rows((soft * share[:, None]).T),
    )


def _places(pairs: Any, k: int, rng: np.random.Generator) -> np.ndarray:
    """Directions (d, q) of the symbols: their distributions of neighbours, scaled."""
    seen = (np.asarray(pairs.sum(axis=0)) + np.asarray(pairs.sum(axis=1))) / 2
    scale = (seen + LEAST_SEEN) ** -POWER
    S = sp.diags_array(scale)
    laws = sp.hstack([S @ pairs @ S, S @ pairs.T @ S]).tocsr()
    d = laws.shape[0]
    if d <= 3 * k + 2:
        U, s, _ = np.linalg.svd(laws.toarray(), full_matrices=False)
        U, s = U[:, :k], s[:k]
    else:
        U, s, _ = scipy.sparse.linalg.svds(laws, k=k, v0=rng.standard_normal(d))
    places = U * s * scale[:, None] * np.sqrt(max(float(seen.sum()), 1.0))
    return places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)
