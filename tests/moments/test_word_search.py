"""Queries of topic searches equal the full third moment of words."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment.linalg import whiten
from thirdmoment.moments.word_search import direction_moment, search_matrix, word_moment
from thirdmoment.recovery.search import whitened_search


def documents(seed=0, n=30, d=6):
    rng = np.random.default_rng(seed)
    C = rng.poisson(0.9, (n, d)).astype(float)
    C[:, 0] += 3  # at least three words
    L = C.sum(axis=1)
    return C, 1 / (n * L * (L - 1) * (L - 2)), rng


def full_third(C, omega, v):
    """E3(v) of SR-13, a loop over all ordered triples of distinct positions."""
    d = C.shape[1]
    total = np.zeros((d, d))
    for counts, weight in zip(C, omega, strict=True):
        words = np.repeat(np.arange(d), counts.astype(int))
        for i, j, t in itertools.permutations(range(len(words)), 3):
            total[words[i], words[j]] += weight * v[words[t]]
    return total


@pytest.mark.parametrize("x", [0, 2, 5])
def test_a_word_needs_only_the_documents_that_contain_it(x):
    C, omega, rng = documents()
    W = rng.standard_normal((6, 3))
    own = np.flatnonzero(C[:, x])
    signs = rng.choice([-1, 1], len(C))
    q = omega[own] * C[own, x]
    found = word_moment(sp.csr_array(C[own]), C[own] @ W, q, signs[own], x, W)
    v = np.eye(6)[x]
    np.testing.assert_allclose(found.whole, W.T @ full_third(C, omega, v) @ W, atol=1e-12)
    halved = W.T @ full_third(C, omega * signs, v) @ W
    np.testing.assert_allclose(found.difference, halved, atol=1e-12)


def test_any_direction_equals_the_full_moment():
    C, omega, rng = documents(1)
    W, v = rng.standard_normal((6, 3)), rng.standard_normal(6)
    signs = rng.choice([-1, 1], len(C))
    found = direction_moment(sp.csr_array(C), C @ W, omega, signs, v, W)
    np.testing.assert_allclose(found.whole, W.T @ full_third(C, omega, v) @ W, atol=1e-12)
    halved = W.T @ full_third(C, omega * signs, v) @ W
    np.testing.assert_allclose(found.difference, halved, atol=1e-12)


@pytest.mark.parametrize("a0", [0.0, 0.5, 3.0])
def test_exact_moments_of_topics_give_the_searched_topic_back(a0):
    rng = np.random.default_rng(2)
    d, k = 7, 3
    topics = rng.dirichlet(np.full(d, 0.5), size=k).T
    w = rng.dirichlet(np.full(k, 4.0))
    v = rng.standard_normal(d)
    s = topics.T @ v
    m = topics @ w
    # population moments of words, from A and B of SR-14 solved for E2 and E3(v)
    A = (topics * w) @ topics.T
    B = (topics * (w * s)) @ topics.T
    E2 = (A + a0 * np.outer(m, m)) / (a0 + 1)
    r = m @ v
    mixed = r * E2 + np.outer(E2 @ v, m) + np.outer(m, E2 @ v)
    E3 = B + a0 * (a0 + 1) / 2 * mixed - a0**2 * r * np.outer(m, m)
    E3 = E3 / ((a0 + 1) * (a0 + 2) / 2)
    white = whiten(A, k)
    W, up = np.asarray(white.W), np.asarray(white.B)
    M = search_matrix(W.T @ E3 @ W, W.T @ m, up.T @ v, r, a0)
    np.testing.assert_allclose(M, W.T @ B @ W, atol=1e-8)
    found = whitened_search(M, W.T @ m, up, up.T @ v)
    np.testing.assert_allclose(found.component, topics[:, np.argmax(s)], atol=1e-8)
    assert found.component.sum() == pytest.approx(1)
