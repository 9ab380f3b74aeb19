"""Likelihoods of the topic models as pure functions of arrays.

The likelihood of a document is that of its words in the order they stand, so there is no
multinomial coefficient.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from thirdmoment.moments.words import Documents
from thirdmoment.streaming import Corpus, fold

# Prior count of every word in every topic of a refined mixture: no word is impossible.
SMOOTHING = 0.05


def log_joint(chunk: Documents, topics: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """log Pr(document, topic) (m, k) of a mixture of multinomials."""
    with np.errstate(divide="ignore"):
        return chunk.rows.dot(np.log(topics).T) + np.log(weights)


class MixtureStatistics:
    """Expected counts of the E-step, mergeable over chunks."""

    def __init__(self, topics: np.ndarray, weights: np.ndarray) -> None:
        self.topics, self.weights = topics, weights
        self.words = np.zeros_like(topics)  # (k, d)
        self.documents = np.zeros_like(weights)  # (k,)
        self.log_likelihood = 0.0

    def update(self, chunk: Documents) -> MixtureStatistics:
        joint = log_joint(chunk, self.topics, self.weights)
        each = logsumexp(joint, axis=1)
        posterior = np.exp(joint - each[:, None])
        self.words += chunk.rows.tdot(chunk.weights, posterior).T
        self.documents += chunk.weights @ posterior
        self.log_likelihood += float(chunk.weights @ each)
        return self

    def merge(self, other: MixtureStatistics) -> MixtureStatistics:
        self.words += other.words
        self.documents += other.documents
        self.log_likelihood += other.log_likelihood
        return self


def mixture_em_step(
    corpus: Corpus, parameters: tuple[np.ndarray, ...], *, n_threads: int
) -> tuple[tuple[np.ndarray, ...], float]:
    """One MAP-EM step of a mixture of multinomials and the objective before it."""
    topics, weights = parameters
    found = fold(lambda: MixtureStatistics(topics, weights), corpus, n_threads=n_threads)
    new_topics = found.words + SMOOTHING
    new_topics /= new_topics.sum(axis=1, keepdims=True)
    new_weights = found.documents + 1e-3
    new_weights /= new_weights.sum()
    prior = SMOOTHING * float(np.log(topics).sum()) + 1e-3 * float(np.log(weights).sum())
    return (new_topics, new_weights), found.log_likelihood + prior


def valid_mixture(parameters: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Nearest valid parameters to an extrapolated point: clipped and normalised."""
    topics, weights = parameters
    topics = np.maximum(topics, 1e-10)
    weights = np.maximum(weights, 1e-6)
    return topics / topics.sum(axis=1, keepdims=True), weights / weights.sum()


def draw_documents(laws: np.ndarray, length: float, rng: np.random.Generator) -> sp.csr_array:
    """Word counts (n, d) of documents with Poisson lengths, words drawn from the rows of laws."""
    laws = laws.astype(np.float64)
    laws = laws / laws.sum(axis=1, keepdims=True)
    lengths = rng.poisson(length, size=len(laws))
    rows = [rng.multinomial(m, law) for m, law in zip(lengths, laws, strict=True)]
    return sp.csr_array(sp.vstack([sp.csr_array(row[None, :].astype(np.float64)) for row in rows]))
