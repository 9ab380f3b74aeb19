"""Topics to start from without moments: documents that are far from each other."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def spread_topics(
    X: sp.csr_array,
    weights: np.ndarray,
    k: int,
    rng: np.random.Generator,
    topics: np.ndarray | None = None,
) -> np.ndarray:
    """k topics (k, d): ``topics`` (r, d) first, the rest documents mixed with the mean law."""
    lengths = np.maximum(X.sum(axis=1), 1e-300)
    roots = sp.csr_array((np.sqrt(X.data), X.indices, X.indptr), shape=X.shape)
    roots = sp.diags_array(1 / np.sqrt(lengths)) @ roots
    mean = np.asarray(weights @ (sp.diags_array(1 / lengths) @ X))
    mean = mean / mean.sum()
    chosen = [] if topics is None else list(topics)
    distance = np.full(X.shape[0], 1.0)
    for row in chosen:
        distance = np.minimum(distance, 1 - np.clip(roots @ np.sqrt(row), 0, 1))
    while len(chosen) < k:
        chance = weights * np.maximum(distance, 0) ** 2 * (lengths >= 1)
        total = chance.sum()
        chance = chance / total if total > 0 else weights / weights.sum()
        pick = int(rng.choice(len(chance), p=chance))
        document = X[[pick]].toarray()[0] / lengths[pick] if X[[pick]].nnz else mean
        chosen.append(0.7 * document + 0.3 * mean)
        distance = np.minimum(distance, 1 - np.clip(roots @ np.sqrt(document), 0, 1))
    return np.stack(chosen)
