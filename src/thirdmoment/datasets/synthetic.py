"""Data drawn from every model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
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


class HMMSample(NamedTuple):
    """Sequences one after another, with the chain that made them."""

    X: np.ndarray  # (n, 1) symbols, or (n, d) vectors
    lengths: np.ndarray  # (n_sequences,)
    states: np.ndarray  # (n,)
    startprob: np.ndarray  # (k,)
    transmat: np.ndarray  # (k, k) rows sum to one
    emission: np.ndarray  # (k, d) distributions of the symbols, or means


def draw_states(
    startprob: np.ndarray,
    transmat: np.ndarray,
    n_sequences: int,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """States (n_sequences, length) of independent chains."""
    states = np.empty((n_sequences, length), dtype=np.int64)
    states[:, 0] = rng.choice(len(startprob), size=n_sequences, p=startprob)
    edges = np.cumsum(transmat, axis=1)
    for t in range(1, length):
        states[:, t] = _draw(edges, states[:, t - 1], rng)
    return states


def _draw(edges: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw of each row's distribution, given cumulated."""
    drawn = (rng.random(len(rows))[:, None] > edges[rows]).sum(axis=1)
    return drawn.clip(max=edges.shape[1] - 1)


def make_categorical_hmm(
    n_sequences: int = 100,
    length: int = 100,
    *,
    n_symbols: int = 10,
    n_components: int = 3,
    concentration: float = 0.3,
    persistence: float = 0.5,
    random_state: int | np.random.Generator = 0,
) -> HMMSample:
    """Sequences of symbols: Dirichlet emissions, transitions that stay with some probability.

    Examples
    --------
    >>> from thirdmoment.datasets import make_categorical_hmm
    >>> make_categorical_hmm(5, 20).X.shape
    (100, 1)
    """
    rng = np.random.default_rng(random_state)
    k = n_components
    emission = rng.dirichlet(np.full(n_symbols, concentration), size=k)
    transmat = (1 - persistence) * rng.dirichlet(np.ones(k), size=k) + persistence * np.eye(k)
    startprob = rng.dirichlet(3 * np.ones(k))
    states = draw_states(startprob, transmat, n_sequences, length, rng).ravel()
    X = np.empty(len(states), dtype=np.int64)
    for a in range(0, len(states), 100_000):
        X[a : a + 100_000] = _draw(np.cumsum(emission, axis=1), states[a : a + 100_000], rng)
    lengths = np.full(n_sequences, length)
    return HMMSample(X[:, None], lengths, states, startprob, transmat, emission)


def make_gaussian_hmm(
    n_sequences: int = 20,
    length: int = 200,
    *,
    n_features: int = 2,
    n_components: int = 3,
    separation: float = 2.0,
    persistence: float = 0.8,
    random_state: int | np.random.Generator = 0,
) -> HMMSample:
    """Sequences of vectors: means in random directions of norm separation·√2, variance one.

    Examples
    --------
    >>> from thirdmoment.datasets import make_gaussian_hmm
    >>> make_gaussian_hmm(5, 20, n_features=3).X.shape
    (100, 3)
    """
    rng = np.random.default_rng(random_state)
    k = n_components
    means = rng.standard_normal((k, n_features))
    means *= separation * np.sqrt(2) / np.linalg.norm(means, axis=1, keepdims=True)
    transmat = (1 - persistence) * rng.dirichlet(np.ones(k), size=k) + persistence * np.eye(k)
    startprob = rng.dirichlet(3 * np.ones(k))
    states = draw_states(startprob, transmat, n_sequences, length, rng).ravel()
    X = means[states] + rng.standard_normal((len(states), n_features))
    return HMMSample(X, np.full(n_sequences, length), states, startprob, transmat, means)


class ShapedMixture(NamedTuple):
    """Rows of three or more scalar views and the densities behind them."""

    X: np.ndarray  # (n, views)
    labels: np.ndarray  # (n,)
    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, views)
    scales: np.ndarray  # (k, views) standard deviations of the Gaussian components
    skewed: np.ndarray  # (k,) which components are shifted Gamma distributions
    shape: float  # of the Gamma distributions; their scale is one

    def density(self, x: np.ndarray, view: int) -> np.ndarray:
        """True densities (k, m) of one view at places (m,)."""
        x = np.asarray(x, dtype=float)
        found = []
        for mean, scale, skewed in zip(
            self.means[:, view], self.scales[:, view], self.skewed, strict=True
        ):
            if skewed:
                found.append(scipy.stats.gamma.pdf(x - (mean - self.shape), self.shape))
            else:
                found.append(scipy.stats.norm.pdf(x, mean, scale))
        return np.stack(found)


def make_shaped_mixture(
    n_samples: int = 1000,
    n_components: int = 3,
    *,
    n_views: int = 3,
    spacing: float = 2.5,
    skewed: bool = True,
    shape: float = 1.0,
    exchangeable: bool = False,
    random_state: int | np.random.Generator = 0,
) -> ShapedMixture:
    """Views whose components stand ``spacing`` apart, in another order in each view.

    Weights grow like 1, 2, ..., k. With ``skewed`` every second component is a shifted Gamma
    distribution (an exponential for shape 1), the others are Gaussian with standard deviations from
    0.6 to 1. With ``exchangeable`` all views have one distribution. The design of Song et al.
    (2014), section 8.1.

    Examples
    --------
    >>> from thirdmoment.datasets import make_shaped_mixture
    >>> data = make_shaped_mixture(100, 3)
    >>> data.X.shape, data.density([0.0, 1.0], view=0).shape
    ((100, 3), (3, 2))
    """
    rng = np.random.default_rng(random_state)
    k = n_components
    weights = np.arange(1, k + 1) / (k * (k + 1) / 2)
    labels = rng.choice(k, size=n_samples, p=weights)
    means = np.stack([rng.permutation(k) * spacing for _ in range(n_views)], axis=1)
    scales = rng.uniform(0.6, 1.0, (k, n_views))
    if exchangeable:
        means, scales = np.repeat(means[:, :1], n_views, 1), np.repeat(scales[:, :1], n_views, 1)
    second = (np.arange(k) % 2 == 1) & skewed
    normal = scales[labels] * rng.standard_normal((n_samples, n_views))
    gamma = rng.gamma(shape, 1.0, (n_samples, n_views)) - shape
    X = means[labels] + np.where(second[labels][:, None], gamma, normal)
    return ShapedMixture(X, labels, weights, means, scales, second, shape)
