"""Population moments of small LDA models, by closed form and by enumeration."""

import itertools

import numpy as np


def random_model(k, d, seed=0, alpha0=None):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.5), size=k)
    alpha = rng.uniform(0.3, 1.5, size=k)
    return topics, alpha if alpha0 is None else alpha * alpha0 / alpha.sum()


def proportion_moments(alpha):
    """E[h], E[h⊗h], E[h⊗h⊗h] of a Dirichlet."""
    a0, k = alpha.sum(), len(alpha)
    eye = np.eye(k)
    second = (np.outer(alpha, alpha) + np.diag(alpha)) / (a0 * (a0 + 1))
    third = np.einsum("i,j,l->ijl", alpha, alpha, alpha)
    for pattern in ("ij,i,l->ijl", "il,i,j->ijl", "jl,j,i->ijl"):
        third += np.einsum(pattern, eye, alpha, alpha)
    third += 2 * np.einsum("ij,il,i->ijl", eye, eye, alpha)
    return alpha / a0, second, third / (a0 * (a0 + 1) * (a0 + 2))


def population(topics, alpha):
    """mu (d,), P2 (d,d), P3 (d,d,d) of three distinct words."""
    h, hh, hhh = proportion_moments(alpha)
    return (
        topics.T @ h,
        topics.T @ hh @ topics,
        np.einsum("ijl,ia,jb,lc->abc", hhh, topics, topics, topics),
    )


def all_documents(d, length):
    """Every document of ``length`` words over d words, as word sequences."""
    return list(itertools.product(range(d), repeat=length))


def document_probability(words, topics, alpha, n_grid=None):
    """Pr(words) under LDA: Σ over topic assignments of Dirichlet-multinomial × word laws."""
    total, a0 = 0.0, alpha.sum()
    for z in itertools.product(range(len(alpha)), repeat=len(words)):
        p = 1.0
        counts = np.zeros(len(alpha))
        for t, (topic, word) in enumerate(zip(z, words, strict=True)):
            p *= (alpha[topic] + counts[topic]) / (a0 + t) * topics[topic, word]
            counts[topic] += 1
        total += p
    return total


def counts_of(words, d):
    return np.bincount(words, minlength=d).astype(float)
