"""Exact populations give the searched component back to 1e-8, end to end, in all four models."""

import itertools

import numpy as np
import pytest

from tests.exact.search import gaussian_rows, lda_documents, regression_rows, subspace_rows
from thirdmoment import GaussianSearch, RegressionSearch, SubspaceSearch, TopicSearch
from thirdmoment.linalg import whiten
from thirdmoment.moments.gaussian import SubspaceWhitening, directed_subspace
from thirdmoment.moments.word_search import search_matrix


@pytest.mark.parametrize("target", range(3))
def test_a_topic_from_a_word_documents_or_a_direction(target):
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(5, 0.6), size=3)
    alpha = np.array([0.9, 0.5, 0.3])
    X, probability = lda_documents(topics, alpha)
    search = TopicSearch(3, concentration=alpha.sum(), weighting="none")
    search.fit(X, sample_weight=probability * 1e6)
    dual = np.linalg.pinv(topics)[:, target]
    hints = [{"vector": dual}, {"documents": 100 * topics[[target]]}]
    telling = [x for x in range(5) if topics[:, x].argmax() == target]
    hints += [{"words": x} for x in telling]
    assert telling
    for hint in hints:
        found = search.search(**hint)
        np.testing.assert_allclose(found.parameters, topics[target], atol=1e-8)
        assert found.weight == pytest.approx(alpha[target] / alpha.sum(), abs=1e-8)
        assert found.report.consistency == pytest.approx(1, abs=1e-6)
    found = search.search(telling[0])
    np.testing.assert_allclose(found.report.scores, np.sort(topics[:, telling[0]])[::-1], atol=1e-8)


@pytest.mark.parametrize("target", range(3))
def test_a_gaussian_component_from_rows_or_a_direction(target):
    rng = np.random.default_rng(4)
    means = rng.standard_normal((3, 5))
    means[1] = 3 * means[0] + 0.5  # its inner products outweigh those of the first
    weights, variances = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.1])
    X, mass = gaussian_rows(means, weights, variances)
    search = GaussianSearch(3).fit(X, sample_weight=mass * 1e3)
    assert search.noise_variance_ == pytest.approx(weights @ variances, abs=1e-10)
    scores = np.linalg.pinv(means) @ np.eye(3)[target]
    for hint in ({"samples": means[target]}, {"direction": scores}):
        found = search.search(**hint)
        np.testing.assert_allclose(found.parameters, means[target], atol=1e-8)
        assert found.weight == pytest.approx(weights[target], abs=1e-8)
        assert found.report.details["variance"] == pytest.approx(variances[target], abs=1e-8)
    assert search.search(means[target]).alignment == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("target", range(3))
def test_a_regression_from_rows_or_a_direction(target):
    rng = np.random.default_rng(5)
    coefs, intercepts = rng.standard_normal((3, 4)), np.array([0.5, -1.0, 2.0])
    weights, mean = np.array([0.5, 0.3, 0.2]), rng.standard_normal(4)
    root = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    X, y, mass = regression_rows(coefs, intercepts, weights, 0.3, mean, root)
    search = RegressionSearch(3).fit(X, y, sample_weight=mass * 1e6)
    rows = mean + 100 * rng.standard_normal((50, 4))
    labels = (rows, rows @ coefs[target] + intercepts[target])
    # v with inner product one with the slopes of the target and zero with the others
    standard = coefs @ np.linalg.inv(search._standard.root.T)
    dual = search._standard.slopes(np.linalg.pinv(standard)[:, target][None])[0]
    for found in (search.search(*labels), search.search(direction=dual)):
        np.testing.assert_allclose(found.parameters, coefs[target], atol=1e-8)
        assert found.weight == pytest.approx(weights[target], abs=1e-8)
        assert found.report.details["intercept"] == pytest.approx(intercepts[target], abs=1e-7)


@pytest.mark.parametrize("target", range(2))
def test_a_subspace_from_rows_or_a_direction(target):
    rng = np.random.default_rng(6)
    bases = [np.linalg.qr(rng.standard_normal((6, 2)))[0] for _ in range(2)]
    weights = np.array([0.6, 0.4])
    X, mass = subspace_rows(bases, weights, 0.3)
    search = SubspaceSearch(2, 2).fit(X, sample_weight=mass * 1e6)
    assert search.noise_variance_ == pytest.approx(0.09, abs=1e-10)
    labels = rng.standard_normal((5, 2)) @ bases[target].T
    inside = bases[target] @ bases[target].T
    for found in (search.search(labels), search.search(labels[0])):
        P = found.parameters @ found.parameters.T
        np.testing.assert_allclose(P, inside, atol=1e-8)
        assert found.weight == pytest.approx(weights[target], abs=1e-8)
        assert found.report.details["variance"] == pytest.approx(1, abs=1e-6)
        assert found.alignment == pytest.approx(1, abs=1e-6)


def test_the_printed_subspace_moment_is_wrong():
    """sigma⁴(‖v‖² I + vvᵀ) lacks a factor 2: corrected and printed forms on exact moments."""
    rng = np.random.default_rng(7)
    bases = [np.linalg.qr(rng.standard_normal((5, 2)))[0] for _ in range(2)]
    weights, sigma = np.array([0.6, 0.4]), 0.7
    X, mass = subspace_rows(bases, weights, sigma)
    P = [U @ U.T for U in bases]
    A = (X * mass[:, None]).T @ X - sigma**2 * np.eye(5)
    v = rng.standard_normal(5)
    S = np.outer(v, v)
    raw = (X * (mass * (X @ v) ** 2)[:, None]).T @ X
    common = raw - sigma**2 * (v @ A @ v) * np.eye(5) - sigma**2 * (v @ v) * A
    common = common - 2 * sigma**2 * (A @ S + S @ A)
    right = common - sigma**4 * ((v @ v) * np.eye(5) + 2 * S)
    printed = common - sigma**4 * ((v @ v) * np.eye(5) + S)
    truth = sum(w * ((v @ p @ v) * p + 2 * p @ S @ p) for w, p in zip(weights, P, strict=True))
    np.testing.assert_allclose(right, truth, atol=1e-10)
    assert np.abs(printed - truth).max() > 0.1
    # and the whitened form is the dense one between W and W
    values, vectors = np.linalg.eigh(A)
    white = SubspaceWhitening(vectors[:, 1:], values[1:], sigma**2, values)
    Y = X @ white.W
    found = directed_subspace((Y * (mass * (X @ v) ** 2)[:, None]).T @ Y, white, v[:, None])
    np.testing.assert_allclose(found, white.W.T @ truth @ white.W, atol=1e-8)


def test_the_printed_topic_moment_is_wrong():
    """The B of the main text has E[<x3,v> m mᵀ] twice; that of SR-14 is right (EK-R6)."""
    rng = np.random.default_rng(8)
    topics, alpha = rng.dirichlet(np.full(4, 0.7), size=2), np.array([0.8, 0.5])
    a0, w = alpha.sum(), alpha / alpha.sum()
    X, probability = lda_documents(topics, alpha)
    v = rng.standard_normal(4)
    m = probability @ X / 3
    E2 = np.zeros((4, 4))
    E3 = np.zeros((4, 4))
    for counts, share in zip(X, probability, strict=True):
        words = np.repeat(np.arange(4), counts.astype(int))
        for i, j, t in itertools.permutations(range(3)):
            E2[words[i], words[j]] += share / 6
            E3[words[i], words[j]] += share / 6 * v[words[t]]
    mixed = (m @ v) * E2 + np.outer(E2 @ v, m) + np.outer(m, E2 @ v)
    square = (m @ v) * np.outer(m, m)
    both = (a0 + 1) * (a0 + 2) / 2 * E3
    right = both - a0 * (a0 + 1) / 2 * mixed + a0**2 * square
    truth = (topics.T * (w * (topics @ v))) @ topics
    np.testing.assert_allclose(right, truth, atol=1e-10)
    # and the library's whitened form is the right one between W and W
    white = whiten((topics.T * w) @ topics, 2)
    W, up = np.asarray(white.W), np.asarray(white.B)
    M = search_matrix(W.T @ E3 @ W, W.T @ m, up.T @ v, m @ v, a0)
    np.testing.assert_allclose(M, W.T @ right @ W, atol=1e-8)
    twice = (m @ v) * E2 + np.outer(m, E2 @ v) + 2 * square
    assert np.abs(both - a0 * (a0 + 1) / 2 * twice - truth).max() > 0.01
