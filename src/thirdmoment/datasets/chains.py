"""Sequences from hidden Markov models with known truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class HMMSample(NamedTuple):
    """Sequences one after another, with the chain that made them."""

    X: np.ndarray  # (n, 1) symbols, or (n, d) vectors
    lengths: np.ndarray  # (n_sequences,)
    states: np.ndarray  # (n,)
    startprob: np.ndarray  # (k,)
    transmat: np.ndarray  # (k, k) rows sum to one
    emission: np.ndarray  # (k, d) laws of the symbols, or means


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
    """One draw of each row's law, given cumulated."""
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
