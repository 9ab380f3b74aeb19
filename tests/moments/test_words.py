"""Moments of words: brute force, exhaustive unbiasedness, merge law, backends."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from tests.exact.words import (
    all_documents,
    counts_of,
    document_probability,
    population,
    random_model,
)
from thirdmoment.linalg import contract
from thirdmoment.moments.word_triples import TriplesProduct
from thirdmoment.moments.words import (
    PairsProduct,
    PairSums,
    TripleSums,
    WordSums,
    adjusted_moments,
    change_basis,
    dirichlet_corrections,
    document_weights,
)
from thirdmoment.starts.word_components import both_halves
from thirdmoment.streaming import corpus, documents, fold

EYE3 = np.eye(3)


def raw_moments(X, *, W=None, half_length=0.0, weights=None):
    """mu, P2, P3 (contracted with W, the identity by default) through the accumulators."""
    chunk = documents(sp.csr_array(X), weights)
    W = np.eye(X.shape[1]) if W is None else W
    sums = WordSums(X.shape[1], half_length).update(chunk)
    return TripleSums(W, half_length).update(chunk).finish(sums), sums


def brute_force(X):
    """All ordered pairs and triples of distinct positions, document by document."""
    n, d = X.shape
    P2, P3 = np.zeros((d, d)), np.zeros((d, d, d))
    for row in X.astype(int):
        words = np.repeat(np.arange(d), row)
        pairs = list(itertools.permutations(range(len(words)), 2))
        triples = list(itertools.permutations(range(len(words)), 3))
        for p, q in pairs:
            P2[words[p], words[q]] += 1 / (n * len(pairs))
        for p, q, r in triples:
            P3[words[p], words[q], words[r]] += 1 / (n * len(triples))
    return P2, P3


def small_corpus(n=6, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.5, size=(n, d)).astype(float)
    X[:, 0] += 3  # at least three words each
    return X


def test_moments_are_averages_over_ordered_distinct_positions():
    X = small_corpus()
    raw, sums = raw_moments(X)
    P2, P3 = brute_force(X)
    np.testing.assert_allclose(raw.A2, P2, atol=1e-14)
    np.testing.assert_allclose(raw.A3, P3, atol=1e-14)
    np.testing.assert_allclose(raw.m, (X / X.sum(axis=1, keepdims=True)).mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(sums.mean, raw.m, atol=1e-15)


@pytest.mark.parametrize("length", [3, 4])
def test_moments_are_unbiased_over_every_possible_document(length):
    topics, alpha = random_model(2, 3, seed=1)
    mu, P2, P3 = population(topics, alpha)
    mean = [0.0, 0.0, 0.0]
    total = 0.0
    for words in all_documents(3, length):
        p = document_probability(words, topics, alpha)
        raw, _ = raw_moments(counts_of(words, 3)[None, :])
        mean = [a + p * b for a, b in zip(mean, raw, strict=True)]
        total += p
    assert total == pytest.approx(1, abs=1e-12)
    for estimate, exact in zip(mean, (mu, P2, P3), strict=True):
        np.testing.assert_allclose(estimate, exact, atol=1e-14)


def test_length_weights_leave_the_moments_unbiased():
    """Documents of lengths 3 and 4 mixed: any weight of the length keeps the expectation."""
    topics, alpha = random_model(2, 2, seed=2)
    mu, P2, P3 = population(topics, alpha)
    short, long = all_documents(2, 3), all_documents(2, 4)
    mean = [0.0, 0.0, 0.0]
    for a in short:
        for b in long:
            p = document_probability(a, topics, alpha) * document_probability(b, topics, alpha)
            X = np.stack([counts_of(a, 2), counts_of(b, 2)])
            raw, _ = raw_moments(X, half_length=7.0)
            mean = [x + p * y for x, y in zip(mean, raw, strict=True)]
    for estimate, exact in zip(mean, (mu, P2, P3), strict=True):
        np.testing.assert_allclose(estimate, exact, atol=1e-14)


def test_document_weights_are_worked_out_by_hand():
    chunk = documents(np.array([[2.0, 0.0], [3.0, 1.0], [0.0, 0.0], [1.0, 0.0]]), np.full(4, 2.0))
    w = document_weights(chunk, 4.0)
    np.testing.assert_allclose(w.single, [2 * (2 / 6) / 2, 2 * (4 / 8) / 4, 0, 2 * (1 / 5)])
    np.testing.assert_allclose(w.pair, [2 * (2 / 6) / 2, 2 * (4 / 8) / 12, 0, 0])
    np.testing.assert_allclose(w.triple, [0, 2 * (4 / 8) / 24, 0, 0])


def test_short_documents_count_only_where_they_can():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 0.0]])
    _, sums = raw_moments(X)
    np.testing.assert_array_equal(sums.documents, [3, 2, 1])
    np.testing.assert_allclose(sums.totals, [3, 2, 1])


def test_adjusted_moments_are_those_of_the_model():
    topics, alpha = random_model(3, 5)
    a0 = alpha.sum()
    mu, P2, P3 = population(topics, alpha)
    from thirdmoment.moments.words import RawMoments

    pairs, triples = adjusted_moments(RawMoments(mu, P2, P3), dirichlet_corrections(a0))
    c2, c3 = alpha / (a0 * (a0 + 1)), 2 * alpha / (a0 * (a0 + 1) * (a0 + 2))
    np.testing.assert_allclose(pairs, np.einsum("i,ia,ib->ab", c2, topics, topics), atol=1e-15)
    np.testing.assert_allclose(
        triples, np.einsum("i,ia,ib,ic->abc", c3, topics, topics, topics), atol=1e-15
    )


def test_single_topic_needs_no_correction():
    assert dirichlet_corrections(0.0) == (0.0, 0.0, 0.0)


def test_contracted_moments_equal_the_contraction_of_full_ones():
    X = small_corpus(n=20, d=6)
    W = np.random.default_rng(0).standard_normal((6, 3))
    full, _ = raw_moments(X)
    thin, _ = raw_moments(X, W=W)
    np.testing.assert_allclose(thin.A3, contract(full.A3, W, W, W), atol=1e-13)
    np.testing.assert_allclose(thin.A2, W.T @ full.A2 @ W, atol=1e-13)
    moved = change_basis(full, W)
    np.testing.assert_allclose(moved.A3, thin.A3, atol=1e-13)


def test_implicit_pairs_equal_the_explicit_matrix():
    X = small_corpus(n=20, d=6)
    Q = np.random.default_rng(0).standard_normal((6, 2))
    raw, sums = raw_moments(X)
    chunk = documents(X)
    found = PairsProduct(Q).update(chunk).pairs(sums, b2=0.4)
    expected = (raw.A2 - 0.4 * np.outer(raw.m, raw.m)) @ Q
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_matrix_free_triples_equal_the_explicit_tensor():
    X = small_corpus(n=20, d=6)
    U = np.random.default_rng(0).standard_normal((6, 4))
    b = dirichlet_corrections(1.7)
    raw, sums = raw_moments(X)
    found = TriplesProduct(U).update(documents(X)).triples(sums, b)
    _, triples = adjusted_moments(raw, b)
    np.testing.assert_allclose(found, np.einsum("abc,bq,cq->aq", triples, U, U), atol=1e-13)


@pytest.mark.parametrize("alpha0", [1.0, 10.0])
def test_split_halves_estimate_the_sampling_error_of_pairs(alpha0):
    """N-11: ‖Pairs_A - Pairs_B‖/2 over many corpora has the size of the error of Pairs."""
    topics, alpha = random_model(3, 6, seed=5, alpha0=alpha0)
    mu, P2, _ = population(topics, alpha)
    b2 = dirichlet_corrections(alpha0).b2
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(30):
        H = rng.dirichlet(alpha, size=1000)
        X = np.stack([rng.multinomial(8, p) for p in H @ topics]).astype(float)
        raw, sums = raw_moments(X)
        product = PairsProduct(np.eye(6), tilt=sums.pair_tilt).update(documents(X))
        split = product.split_difference(sums, b2)
        error = raw.A2 - P2 - b2 * (np.outer(raw.m, raw.m) - np.outer(mu, mu))
        ratios.append(np.linalg.norm(split, 2) / np.linalg.norm(error, 2))
    # mean of 30 ratios with a spread of a third each: within four standard errors of one
    assert 0.75 < np.mean(ratios) < 1.25


def test_split_halves_are_the_difference_of_two_fits():
    X = small_corpus(n=41, d=5)
    signs = documents(X).signs
    _, sums = raw_moments(X)
    product = PairsProduct(np.eye(5), tilt=sums.pair_tilt).update(documents(X))
    (a, _), (b, _) = raw_moments(X[signs > 0]), raw_moments(X[signs < 0])
    expected = (a.A2 - b.A2) / 2
    np.testing.assert_allclose(product.split_difference(sums, 0.0), expected, atol=1e-14)
    np.testing.assert_allclose(sums.split_mean, (a.m - b.m) / 2, atol=1e-14)


def test_the_halves_of_the_triples_are_two_fits():
    X = small_corpus(n=41, d=5)
    chunk = documents(X)
    whole, sums = raw_moments(X)
    halved = TripleSums(np.eye(5), halves=True).update(chunk)
    for found, expected in zip(halved.finish(sums), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    halves = [halved.half(sums, i) for i in (0, 1)]
    for ours, theirs in zip(both_halves(halves, sums), halved.finish(sums), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)
    for half, sign in zip(halves, (1, -1), strict=True):
        alone, _ = raw_moments(X[chunk.signs == sign])
        for found, expected in zip(half, alone, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-14)


def test_pairs_alone_are_those_of_the_triples():
    X = small_corpus(n=30, d=6)
    W = np.random.default_rng(0).standard_normal((6, 3))
    raw, sums = raw_moments(X, W=W)
    np.testing.assert_allclose(PairSums(W).update(documents(X)).finish(sums), raw.A2, atol=1e-14)


class TestMergeLaw:
    """Any split of the documents gives the same moments."""

    X = sp.csr_array(np.random.default_rng(3).poisson(0.7, size=(50, 9)).astype(float))
    weights = np.random.default_rng(4).random(50)
    signs = documents(X).signs

    @pytest.mark.parametrize(
        "new",
        [
            lambda: WordSums(9, 5.0),
            lambda: PairsProduct(np.eye(9)[:, :4], 5.0, tilt=0.1),
            lambda: PairSums(np.eye(9)[:, :4], 5.0),
            lambda: TripleSums(np.eye(9)[:, :4], 5.0, block=7),
            lambda: TripleSums(np.eye(9)[:, :4], 5.0, halves=True, block=7),
            lambda: TriplesProduct(np.eye(9)[:, :4], 5.0),
        ],
    )
    @pytest.mark.parametrize("edges", [[0, 50], [0, 1, 50], [0, 13, 14, 37, 50]])
    def test_any_cut_gives_the_same_sums(self, new, edges):
        whole = new().update(documents(self.X, self.weights))
        parts = [
            documents(self.X[a:b], self.weights[a:b], signs=self.signs[a:b])
            for a, b in itertools.pairwise(edges)
        ]
        merged = fold(new, parts, n_threads=2)
        for name, value in vars(whole).items():
            if isinstance(value, np.ndarray | float | int):
                np.testing.assert_allclose(getattr(merged, name), value, atol=1e-13)

    def test_the_number_of_threads_changes_nothing(self):
        X = sp.random_array((4000, 100), density=0.3, rng=np.random.default_rng(0), format="csr")
        X.data = np.ceil(3 * X.data)
        data = corpus(X)
        assert len(data.chunks) > 1
        results = [
            fold(lambda: TripleSums(np.eye(100)[:, :5]), data, n_threads=t).cube for t in (1, 2, 3)
        ]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])


def test_sample_weight_equals_repetition():
    X = small_corpus(n=8)
    times = np.array([1, 2, 0, 3, 1, 1, 2, 4])
    weighted, _ = raw_moments(X, weights=times.astype(float))
    repeated, _ = raw_moments(np.repeat(X, times, axis=0))
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)


@pytest.mark.parametrize("backend", ["torch", "float32"])
def test_backends_agree_with_numpy_float64(backend):
    X = small_corpus(n=40, d=8)
    W = np.random.default_rng(0).standard_normal((8, 3))
    expected, sums = raw_moments(X, W=W)
    if backend == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        chunk, thin = documents(torch.as_tensor(X)), torch.as_tensor(W)
        tolerance = 1e-12
    else:
        chunk = documents(X)
        chunk, thin = chunk._replace(rows=chunk.rows.astype("float32")), W.astype(np.float32)
        tolerance = 1e-4  # a few hundred float32 roundings of numbers of size one
    found = TripleSums(thin).update(chunk).finish(sums)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == thin.dtype
        np.testing.assert_allclose(np.asarray(a), b, atol=tolerance)
    product = PairsProduct(thin).update(chunk).pairs(sums, 0.3)
    free = TriplesProduct(thin).update(chunk).triples(sums, dirichlet_corrections(0.5))
    reference = PairsProduct(W).update(documents(X)).pairs(sums, 0.3)
    free_reference = (
        TriplesProduct(W).update(documents(X)).triples(sums, dirichlet_corrections(0.5))
    )
    np.testing.assert_allclose(np.asarray(product), reference, atol=tolerance)
    np.testing.assert_allclose(np.asarray(free), free_reference, atol=tolerance)


def test_scaled_pairs_are_pairs_between_scales():
    X = small_corpus(n=41, d=6)
    chunk, rng = documents(X), np.random.default_rng(1)
    sums = WordSums(6).update(chunk)
    Q, s = rng.normal(size=(6, 3)), rng.random(6) + 0.5
    plain = PairsProduct(s[:, None] * Q).update(chunk).pairs(sums, 0.4)
    scaled = PairsProduct(Q, scale=s).update(chunk).pairs(sums, 0.4)
    np.testing.assert_allclose(scaled, s[:, None] * plain, atol=1e-14)
    tilt = sums.pair_tilt
    plain = PairsProduct(s[:, None] * Q, tilt=tilt).update(chunk).split_difference(sums, 0.4)
    scaled = PairsProduct(Q, tilt=tilt, scale=s).update(chunk).split_difference(sums, 0.4)
    np.testing.assert_allclose(scaled, s[:, None] * plain, atol=1e-14)
