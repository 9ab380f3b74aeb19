"""Scores of topics on text: coherence, diversity, held-out perplexity."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import check_sparse, is_tensors
from thirdmoment.recovery.order import leading_columns


def npmi_coherence(topics: np.ndarray, X: Any, *, n_words: int = 10) -> np.ndarray:
    """Normalised pointwise mutual information of each topic's top words.

    Parameters
    ----------
    topics : (k, d)
        Word probabilities in rows.
    X : (n, d) counts
        Reference corpus; two words co-occur when one document has both.

    Returns
    -------
    (k,) array
        Mean over pairs of top words of log(p_ab/(p_a p_b))/(-log p_ab), -1 for a pair that never
        co-occurs. From -1 to 1; higher reads better.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import npmi_coherence
    >>> X = np.array([[1, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]])
    >>> npmi_coherence(np.array([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]]), X, n_words=2)
    array([ 1., -1.])
    """
    return coherence_of(np.asarray(topics), word_presence(X), n_words=n_words)


def word_presence(X: Any) -> sp.csc_array:
    """Which document has which word, by columns; made once for many coherence scores."""
    check_sparse(X)
    X = sp.csc_array(X, copy=True)
    X.eliminate_zeros()
    return sp.csc_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)


def coherence_of(topics: np.ndarray, present: Any, *, n_words: int = 10) -> np.ndarray:
    """`npmi_coherence` from presences (n, d), or from counts that are tensors."""
    top = leading_columns(topics, n_words)
    a, b = np.triu_indices(top.shape[1], 1)
    if not len(a):
        return np.zeros(len(topics))
    joint = _joint(present, top) / present.shape[0]
    each = np.diagonal(joint, axis1=1, axis2=2)
    return _npmi(joint[:, a, b], each[:, a], each[:, b]).mean(axis=1)


def _joint(present: Any, top: np.ndarray) -> np.ndarray:
    """How many documents have each two words of each group (k, t): (k, t, t)."""
    if is_tensors(present):
        return present.joint_presence(top)
    words, place = np.unique(top, return_inverse=True)
    block = present[:, words]
    place = place.reshape(top.shape)
    return (block.T @ block).toarray()[place[:, :, None], place[:, None, :]]


def _npmi(together: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    value = np.full(together.shape, -1.0)
    always, seen = together >= 1, together > 0
    value[always] = 1.0
    use = seen & ~always
    p = together[use]
    value[use] = np.log(p / (first[use] * second[use])) / -np.log(p)
    return value


def topic_diversity(topics: np.ndarray, *, n_words: int = 25) -> float:
    """Share of distinct words among the top words of all topics, 1/k to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import topic_diversity
    >>> topic_diversity(np.array([[0.6, 0.4, 0], [0.5, 0.1, 0.4]]), n_words=2)
    0.75
    """
    topics = np.asarray(topics)
    n_words = min(n_words, topics.shape[1])
    top = leading_columns(topics, n_words)
    return len(np.unique(top)) / top.size


def perplexity(
    topics: np.ndarray,
    X: Any,
    *,
    concentration: float | np.ndarray | None = None,
    n_steps: int = 50,
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
) -> float:
    """Held-out perplexity by document completion; lower is better.

    Each count of a test document is split in two halves; its topic proportions are folded in on
    the first half and the words of the second are predicted. The split is random but hangs on the
    document's content alone, so that the order of documents does not matter.

    Parameters
    ----------
    topics : (k, d)
        Word probabilities in rows; clipped at 1e-8 so that no word is impossible.
    X : (n, d) counts
        Documents that were not used for the fit.
    concentration : float or (k,), default 1/k
        Added to the expected topic counts in each folding-in step.
    n_steps : int
        Folding-in steps.
    random_state : int, Generator, RandomState or None
        Seed of the split, or what draws one.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import perplexity
    >>> X = np.array([[4, 4, 0, 0], [0, 0, 4, 4]])
    >>> sharp = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    >>> perplexity(sharp, X) < perplexity(np.full((2, 4), 0.25), X)
    True
    """
    from thirdmoment.likelihood.documents import completed

    check_sparse(X)
    k = len(topics)
    alpha = np.broadcast_to(1 / k if concentration is None else concentration, (k,))
    scores, words = completed(topics, alpha, X, _seed(random_state), n_steps=n_steps)
    if words == 0:
        raise ValueError(
            "X has no words left to predict: its documents are empty, or every count fell in the "
            "first half."
        )
    return float(np.exp(-float(scores.sum()) / words))


def _seed(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    """The seed given, or one drawn."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**31 - 1))
