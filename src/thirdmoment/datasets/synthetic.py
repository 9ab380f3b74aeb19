"""Corpora drawn from the models themselves, with the parameters that made them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class TopicCorpus(NamedTuple):
    """A synthetic corpus and its truth."""

    X: sp.csr_array  # (n, d) counts
    topics: np.ndarray  # (k, d) rows sum to one
    concentration: np.ndarray  # (k,) Dirichlet parameters, or weights for single topics
    proportions: np.ndarray  # (n, k) topic proportions of each document
    topic_counts: sp.csr_array | np.ndarray  # (k, d) words counted with their true topics


def make_lda_corpus(
    n_documents: int = 1000,
    n_words: int = 500,
    n_topics: int = 5,
    *,
    mean_length: float = 100,
    concentration: float | np.ndarray = 1.0,
    random_state: int | np.random.Generator = 0,
) -> TopicCorpus:
    """Documents of latent Dirichlet allocation with Zipf-like, sparse topics.

    Parameters
    ----------
    n_documents, n_words, n_topics : int
        Sizes n, d, k.
    mean_length : float
        Mean of the Poisson document lengths (at least three words each).
    concentration : float or array of shape (n_topics,)
        Dirichlet parameters; a scalar is their sum alpha0, spread as linspace(0.5, 1.5).

    Returns
    -------
    TopicCorpus
        Counts, true topics, Dirichlet parameters, proportions, and the words counted with their
        true topics (the label-knowing oracle is that table normalised).

    Examples
    --------
    >>> from thirdmoment.datasets import make_lda_corpus
    >>> corpus = make_lda_corpus(100, 50, 3)
    >>> corpus.X.shape, corpus.topics.shape
    ((100, 50), (3, 50))
    """
    rng = np.random.default_rng(random_state)
    topics = _zipf_topics(rng, n_topics, n_words)
    alpha = np.asarray(concentration, dtype=float)
    if alpha.ndim == 0:
        alpha = np.linspace(0.5, 1.5, n_topics) * float(alpha) / n_topics
    theta = rng.dirichlet(alpha, size=n_documents)
    lengths = rng.poisson(mean_length, size=n_documents).clip(3)
    counts = np.stack([rng.multinomial(m, p) for m, p in zip(lengths, theta, strict=True)])
    X, table = _draw_words(rng, counts, topics)
    return TopicCorpus(X, topics, alpha, theta, table)


def make_single_topic_corpus(
    n_documents: int = 1000,
    n_words: int = 500,
    n_topics: int = 5,
    *,
    mean_length: float = 20,
    random_state: int | np.random.Generator = 0,
) -> TopicCorpus:
    """Documents with one topic each: a mixture of multinomials.

    Examples
    --------
    >>> from thirdmoment.datasets import make_single_topic_corpus
    >>> make_single_topic_corpus(100, 50, 3).proportions.sum(axis=1).max()
    np.float64(1.0)
    """
    rng = np.random.default_rng(random_state)
    topics = _zipf_topics(rng, n_topics, n_words)
    weights = rng.dirichlet(np.full(n_topics, 5.0))
    labels = rng.choice(n_topics, size=n_documents, p=weights)
    lengths = rng.poisson(mean_length, size=n_documents).clip(3)
    theta = np.eye(n_topics)[labels]
    X, table = _draw_words(rng, (theta * lengths[:, None]).astype(int), topics)
    return TopicCorpus(X, topics, weights, theta, table)


def _zipf_topics(rng: np.random.Generator, k: int, d: int) -> np.ndarray:
    base = 1 / np.arange(1, d + 1) ** 0.9
    base /= base.sum()
    topics = np.clip(rng.dirichlet(base * d * 0.05, size=k), 1e-12, None)
    return topics / topics.sum(axis=1, keepdims=True)


def _draw_words(
    rng: np.random.Generator, counts: np.ndarray, topics: np.ndarray
) -> tuple[sp.csr_array, np.ndarray]:
    """Words of every document from its counts of topics (n, k); and words by true topic."""
    n, (k, d) = counts.shape[0], topics.shape
    rows, columns = [], []
    table = np.zeros((k, d))
    for j in range(k):
        word = np.searchsorted(np.cumsum(topics[j]), rng.random(counts[:, j].sum()))
        word = word.clip(max=d - 1)
        rows.append(np.repeat(np.arange(n), counts[:, j]))
        columns.append(word)
        table[j] = np.bincount(word, minlength=d)
    place = np.concatenate(rows), np.concatenate(columns)
    X = sp.coo_array((np.ones(len(place[0])), place), shape=(n, d)).tocsr()
    X.sum_duplicates()
    return X, table


class MixtureSample(NamedTuple):
    """Rows of a mixture and their truth."""

    X: np.ndarray  # (n, d) rows, or integer codes
    labels: np.ndarray  # (n,)
    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, d); for codes, the tables of all columns side by side


def make_gaussian_mixture(
    n_samples: int = 1000,
    n_features: int = 10,
    n_components: int = 3,
    *,
    separation: float = 2.0,
    random_state: int | np.random.Generator = 0,
) -> MixtureSample:
    """Spherical Gaussian mixture: means in random directions of norm separation·√2, variance one.

    Examples
    --------
    >>> from thirdmoment.datasets import make_gaussian_mixture
    >>> make_gaussian_mixture(100, 5, 3).means.shape
    (3, 5)
    """
    rng = np.random.default_rng(random_state)
    means = rng.standard_normal((n_components, n_features))
    means *= separation * np.sqrt(2) / np.linalg.norm(means, axis=1, keepdims=True)
    weights = rng.dirichlet(np.full(n_components, 10.0))
    labels = rng.choice(n_components, size=n_samples, p=weights)
    X = means[labels] + rng.standard_normal((n_samples, n_features))
    return MixtureSample(X, labels, weights, means)


def make_categorical_mixture(
    n_samples: int = 1000,
    n_categories: int = 10,
    n_components: int = 3,
    *,
    n_columns: int = 3,
    concentration: float = 0.5,
    random_state: int | np.random.Generator = 0,
) -> MixtureSample:
    """Columns of integer codes, independent given the component.

    Examples
    --------
    >>> from thirdmoment.datasets import make_categorical_mixture
    >>> make_categorical_mixture(100, 4, 2).X.shape
    (100, 3)
    """
    rng = np.random.default_rng(random_state)
    shape = (n_columns, n_components)
    tables = rng.dirichlet(np.full(n_categories, concentration), size=shape)
    weights = rng.dirichlet(np.full(n_components, 5.0))
    labels = rng.choice(n_components, size=n_samples, p=weights)
    uniform = rng.random((n_samples, n_columns))
    edges = np.cumsum(tables, axis=2)[:, labels, :]  # (columns, n, categories)
    X = (uniform.T[:, :, None] > edges).sum(axis=2).T.clip(max=n_categories - 1)
    return MixtureSample(X, labels, weights, np.concatenate(list(tables), axis=1))
