"""Folding in, collapsed sweeps and EM against plain references and invariances."""

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment.datasets import make_lda_corpus
from thirdmoment.likelihood.documents import (
    completion_scores,
    fold_in,
    split_counts,
    word_log_likelihood,
)
from thirdmoment.refinement import collapsed
from thirdmoment.refinement.collapsed import Sweeper, topics_from
from thirdmoment.refinement.em import accelerated_em


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(120, 60, 4, mean_length=30, random_state=2)


def plain_fold_in(topics, alpha, X, steps):
    C = np.clip(topics, 1e-8, None)
    C = C / C.sum(axis=1, keepdims=True)
    H = np.full((X.shape[0], len(C)), 1 / len(C))
    for _ in range(steps):
        R = X / (H @ C)
        H = H * (R @ C.T) + alpha
        H /= H.sum(axis=1, keepdims=True)
    return H


def test_fold_in_agrees_with_the_plain_reference(corpus):
    X, alpha = corpus.X.toarray(), np.full(4, 0.25)
    found = fold_in(corpus.topics, alpha, corpus.X, n_steps=7)
    np.testing.assert_allclose(found, plain_fold_in(corpus.topics, alpha, X, 7), atol=1e-12)
    C = np.clip(corpus.topics, 1e-8, None)
    C /= C.sum(axis=1, keepdims=True)
    expected = (X * np.log(found @ C)).sum(axis=1)
    np.testing.assert_allclose(
        word_log_likelihood(corpus.topics, found, corpus.X), expected, rtol=1e-12
    )


def test_empty_documents_get_the_prior():
    H = fold_in(np.eye(3), np.array([1.0, 2.0, 1.0]), np.zeros((2, 3)))
    np.testing.assert_allclose(H, [[0.25, 0.5, 0.25]] * 2)


def test_halves_add_up_to_the_counts(corpus):
    first, second = split_counts(corpus.X, 0)
    np.testing.assert_array_equal((first + second).toarray(), corpus.X.toarray())
    total = corpus.X.sum()
    assert abs(first.sum() - total / 2) < 4 * np.sqrt(total / 4)  # four standard deviations


def test_true_topics_complete_documents_better_than_wrong_ones(corpus):
    first, second = split_counts(corpus.X, 0)
    alpha = corpus.concentration
    true = completion_scores(corpus.topics, alpha, first, second)
    wrong = completion_scores(corpus.topics[:, ::-1], alpha, first, second)
    assert true.sum() > wrong.sum()


def test_a_split_hangs_on_the_document_and_the_seed_alone(corpus):
    first, _ = split_counts(corpus.X, 0)
    order = np.random.default_rng(0).permutation(120)[:50]
    again, _ = split_counts(corpus.X[order], 0)
    np.testing.assert_array_equal(again.toarray(), first[order].toarray())
    other, _ = split_counts(corpus.X, 1)
    assert (other != first).nnz > 0


@pytest.mark.parametrize("count", [1, 2, 5, 40, 5000])
def test_halves_of_equal_counts_follow_the_binomial_law(count):
    """20,000 different documents with the same count of their first word."""
    numbers = np.arange(1.0, 20_001)
    X = np.column_stack([np.full(20_000, float(count)), numbers])
    part = split_counts(X, 0)[0][:, [0]].toarray().ravel()
    assert abs(part.mean() - count / 2) < 4 * np.sqrt(count / 4 / 20_000)
    spread = np.sqrt(2 / 20_000) + 1e-12  # relative error of a variance, roughly
    assert abs(part.var() / (count / 4) - 1) < 5 * spread


def plain_sweep(X, weights, N, words, alpha, eta):
    """Reference: one synchronous collapsed sweep, word by word."""
    d = X.shape[1]
    scale = 1 / (words.sum(axis=0) + d * eta)
    new_N, new_words = np.zeros_like(N), np.zeros_like(words)
    for a, w in zip(*np.nonzero(X), strict=True):
        h = N[a] + alpha
        own = h * (words[w] + eta) * scale
        own /= own.sum()
        g = np.maximum(h - own, 1e-12) * np.maximum(words[w] - own + eta, 1e-12) * scale
        g *= X[a, w] / g.sum()
        new_N[a] += g
        new_words[w] += weights[a] * g
    return new_N, new_words


@pytest.mark.parametrize(("dtype", "limit"), [("float64", 10**9), ("float32", 0)])
def test_compiled_sweep_agrees_with_the_plain_reference(corpus, monkeypatch, dtype, limit):
    monkeypatch.setattr(collapsed, "SINGLE_PRECISION_FROM", limit)
    weights, alpha = np.linspace(0, 2, 120), np.full(4, 0.3)
    sweeper = Sweeper(corpus.X, weights, eta=0.5, n_threads=2)
    counts = sweeper.start(corpus.topics, alpha)
    expected = plain_sweep(
        corpus.X.toarray(),
        weights,
        counts.documents.astype(float),
        counts.words.astype(float),
        alpha,
        0.5,
    )
    found = sweeper.sweep(counts, alpha)
    assert found.words.dtype == dtype
    # a few hundred roundings of counts of size ten
    tolerance = 1000 * np.finfo(dtype).eps
    np.testing.assert_allclose(found.documents, expected[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.words, expected[1], rtol=tolerance, atol=tolerance)


def run(X, weights, topics, *, n_threads=1, sweeps=5):
    sweeper = Sweeper(sp.csr_array(X), weights, eta=0.5, n_threads=n_threads)
    counts = sweeper.start(topics, np.full(4, 0.25))
    for _ in range(sweeps):
        counts = sweeper.sweep(counts, np.full(4, 0.25))
    return counts


def test_sweeps_do_not_depend_on_the_order_of_documents(corpus):
    order = np.random.default_rng(0).permutation(120)
    a = run(corpus.X, np.ones(120), corpus.topics)
    b = run(corpus.X[order], np.ones(120), corpus.topics)
    np.testing.assert_allclose(a.words, b.words, rtol=1e-4, atol=1e-3)


def test_sweeps_do_not_depend_on_the_number_of_threads():
    data = make_lda_corpus(3000, 200, 4, mean_length=60, random_state=0)
    results = [run(data.X, np.ones(3000), data.topics, n_threads=t).words for t in (1, 2, 3)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_document_of_weight_two_is_two_documents(corpus):
    times = np.tile([1, 2, 0], 40)
    weighted = run(corpus.X, times.astype(float), corpus.topics)
    repeated = run(
        sp.csr_array(np.repeat(corpus.X.toarray(), times, axis=0)),
        np.ones(times.sum()),
        corpus.topics,
    )
    np.testing.assert_allclose(weighted.words, repeated.words, rtol=2e-4, atol=1e-2)


def test_sweeps_conserve_words(corpus):
    counts = run(corpus.X, np.ones(120), corpus.topics)
    np.testing.assert_allclose(counts.documents.sum(axis=1), corpus.X.sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(counts.words.sum(axis=1), corpus.X.sum(axis=0), rtol=1e-4)


def test_smoothed_topics_have_no_zero():
    topics = topics_from(np.array([[3.0, 0.0], [0.0, 0.0]]), 0.5)
    np.testing.assert_allclose(topics, [[3.5 / 4, 0.5 / 4], [0.5, 0.5]])


class TestAcceleratedEM:
    """Mixture of two coins with three tosses each: a tiny EM with known behaviour."""

    rng = np.random.default_rng(0)
    heads = np.where(rng.random(500) < 0.4, rng.binomial(10, 0.8, 500), rng.binomial(10, 0.3, 500))

    def step(self, parameters):
        w, p = parameters
        joint = (
            np.log(w) + np.outer(self.heads, np.log(p)) + np.outer(10 - self.heads, np.log1p(-p))
        )
        top = joint.max(axis=1, keepdims=True)
        each = top[:, 0] + np.log(np.exp(joint - top).sum(axis=1))
        r = np.exp(joint - each[:, None])
        return (r.mean(axis=0), r.T @ self.heads / (10 * r.sum(axis=0))), float(each.sum())

    @staticmethod
    def project(parameters):
        w, p = parameters
        w = np.clip(w, 1e-6, None)
        return w / w.sum(), np.clip(p, 1e-6, 1 - 1e-6)

    start = (np.array([0.5, 0.5]), np.array([0.45, 0.55]))

    def test_the_objective_never_falls(self):
        found = accelerated_em(self.step, self.start, self.project, tol=0, max_steps=60)
        assert np.all(np.diff(found.path) >= -1e-9 * abs(found.path[0]))

    def test_it_ends_where_plain_em_ends_in_fewer_steps(self):
        x = self.start
        for _ in range(3000):
            x, _ = self.step(x)
        found = accelerated_em(self.step, self.start, self.project, tol=1e-12, max_steps=300)
        np.testing.assert_allclose(np.sort(found.parameters[1]), np.sort(x[1]), atol=1e-4)
        assert found.converged
        assert found.steps < 150

    def test_the_limit_of_steps_is_respected(self):
        found = accelerated_em(self.step, self.start, self.project, tol=0, max_steps=10)
        assert found.steps <= 12  # a cycle is finished once begun
        assert not found.converged
