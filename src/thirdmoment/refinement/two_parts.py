"""One topic against the rest of its corpus: a likelihood step on the documents that matter.

Each of these documents is taken for a mixture of the topic and of what the corpus is without it,
in a share of its own. One step of EM gives the topic the words it explains; more steps draw it to
whatever the documents have in common (docs/decisions/search.md).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

SHARE_STEPS = 3  # folding-in steps for the share of a document
LEAST_BACKGROUND = 0.05  # of the mean law, for words that the topic holds nearly all of


def two_part_step(
    X: sp.csr_array, weights: np.ndarray, topic: np.ndarray, share: float, mean: np.ndarray
) -> np.ndarray:
    """The topic (d,) after one step over the documents X (m, d), each with its weight (m,).

    ``share`` is that of the topic in the corpus, ``mean`` (d,) the word law of the corpus.
    """
    from thirdmoment.refinement import _compiled

    background = np.maximum(mean - share * topic, LEAST_BACKGROUND * mean)
    background = np.maximum(background / background.sum(), 1e-300)
    counts = np.zeros(len(topic))
    _compiled.two_part_rows(
        weights.astype(np.float64),
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data,
        topic.astype(np.float64),
        background,
        SHARE_STEPS,
        counts,
    )
    return counts / counts.sum() if counts.sum() > 0 else topic
