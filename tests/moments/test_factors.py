"""Cumulants of independent factors, exact and by brute force."""

import itertools

import numpy as np
import pytest

from thirdmoment._array import DenseRows
from thirdmoment.decomposition.tensor import jacobi_fourth, symmetrise_fourth
from thirdmoment.moments.factors import CumulantSums, QuadrupleSums, pairings
from thirdmoment.moments.views import Sample
from thirdmoment.moments.words import (
    FACTOR_CORRECTIONS,
    TripleSums,
    WordSums,
    adjusted_moments,
)
from thirdmoment.streaming import documents


def all_sign_rows(k):
    """Every combination of k independent two-point factors with mean 0 and variance 1."""
    p = np.linspace(0.2, 0.5, k)  # the last one is symmetric
    rows, weights = [], []
    for signs in itertools.product([0, 1], repeat=k):
        s = np.array(signs)
        value = np.where(s, (1 - p), -p) / np.sqrt(p * (1 - p))
        rows.append(value)
        weights.append(np.prod(np.where(s, p, 1 - p)))
    return np.array(rows), np.array(weights), p


def test_exact_cumulants_are_diagonal_with_skewness_and_kurtosis():
    H, w, p = all_sign_rows(4)
    skew = (1 - 2 * p) / np.sqrt(p * (1 - p))
    kurtosis = (1 - 6 * p * (1 - p)) / (p * (1 - p))
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    sums = CumulantSums(np.eye(4), np.zeros(4), fourth=True, block=5)
    sums.update(Sample(DenseRows(H @ Q.T), w))
    third = np.einsum("i,ai,bi,ci->abc", skew, Q, Q, Q)
    np.testing.assert_allclose(sums.third(), third, atol=1e-12)
    fourth = np.einsum("i,ai,bi,ci,di->abcd", kurtosis, Q, Q, Q, Q)
    np.testing.assert_allclose(sums.fourth(), fourth, atol=1e-12)
    found = jacobi_fourth(sums.fourth())
    overlap = np.abs(found.vectors.T @ Q)
    order = overlap.argmax(axis=0)
    np.testing.assert_allclose(overlap[order, np.arange(4)], 1.0, atol=1e-8)
    np.testing.assert_allclose(found.eigenvalues[order], kurtosis, atol=1e-8)
    assert found.eigenvalues.min() < 0 < found.eigenvalues.max()  # signs are kept (E-A2)


def test_pairings_are_the_fourth_moment_of_a_gaussian():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((3, 3))
    P = A @ A.T
    expected = np.zeros((3, 3, 3, 3))
    for i, j, m, n in itertools.product(range(3), repeat=4):
        expected[i, j, m, n] = P[i, j] * P[m, n] + P[i, m] * P[j, n] + P[i, n] * P[j, m]
    np.testing.assert_allclose(pairings(P), expected, atol=1e-12)


def test_symmetrised_tensor_is_the_mean_over_all_permutations():
    Q = np.random.default_rng(2).standard_normal((2, 2, 2, 2))
    mean = sum(np.transpose(Q, axes) for axes in itertools.permutations(range(4))) / 24
    np.testing.assert_allclose(symmetrise_fourth(Q), mean, atol=1e-12)


def test_quadruples_equal_naive_sums_and_merge():
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((30, 8)), rng.uniform(0.5, 2, size=30)
    bases = []
    for v in range(4):
        V = np.zeros((8, 2))
        V[2 * v : 2 * v + 2] = rng.standard_normal((2, 2))
        bases.append(V)
    mean = rng.standard_normal(8)
    one = QuadrupleSums(bases, mean, block=7).update(Sample(DenseRows(X), w))
    z = [(X - mean) @ V for V in bases]
    np.testing.assert_allclose(
        one.finish(), np.einsum("n,na,nb,nc,nd->abcd", w / w.sum(), *z), atol=1e-12
    )
    two = QuadrupleSums(bases, mean).update(Sample(DenseRows(X[:11]), w[:11]))
    two.merge(QuadrupleSums(bases, mean).update(Sample(DenseRows(X[11:]), w[11:])))
    np.testing.assert_allclose(two.finish(), one.finish(), atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_factorial_moments_of_poisson_counts_are_those_of_the_rates(seed):
    # Rates on two points, Poisson counts enumerated up to a tail of 1e-13.
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.ones(2), size=2)
    levels, chance = np.array([[0.2, 1.0], [0.3, 0.7]]), np.array([0.6, 0.4])
    counts = np.array(list(itertools.product(range(25), repeat=2)), dtype=float)
    log_factorial = np.cumsum(np.log(np.maximum(np.arange(25), 1)))
    weights = np.zeros(len(counts))
    rates, mass = [], []
    for a, b in itertools.product(range(2), repeat=2):
        h = np.array([levels[0, a], levels[1, b]])
        mean = h @ topics
        log_p = counts @ np.log(mean) - mean.sum() - log_factorial[counts.astype(int)].sum(axis=1)
        weights += chance[a] * chance[b] * np.exp(log_p)
        rates.append(h)
        mass.append(chance[a] * chance[b])
    chunk = documents(counts, weights)
    sums = WordSums(2, None).update(chunk)
    triples = TripleSums(np.eye(2), None).update(chunk)
    pairs, third = adjusted_moments(triples.finish(sums), FACTOR_CORRECTIONS)
    h, mass = np.array(rates), np.array(mass)
    centred = (h - mass @ h) @ topics
    np.testing.assert_allclose(sums.mean, mass @ h @ topics, atol=1e-9)
    np.testing.assert_allclose(pairs, np.einsum("n,na,nb->ab", mass, centred, centred), atol=1e-9)
    np.testing.assert_allclose(
        third, np.einsum("n,na,nb,nc->abc", mass, centred, centred, centred), atol=1e-9
    )
