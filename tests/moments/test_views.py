"""Cross moments: brute force, merging, and the second identifiability example of the paper."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.exact.views import match, population_core, random_views
from thirdmoment._array import DenseRows, as_rows
from thirdmoment.linalg import symmetrise, tensors
from thirdmoment.moments import views
from thirdmoment.moments.gaussian import SphericalTriples, spherical_whitening
from thirdmoment.moments.views import CoreSums, CrossProduct, PairSums, Sample, ScoreSums
from thirdmoment.recovery.covariance import (
    conditional_covariances,
    linear_scores,
    printed_second_moments,
)
from thirdmoment.recovery.spherical import component_variances, recover_spherical
from thirdmoment.recovery.views import recover_views


def table(rng, n=60, D=7):
    return rng.standard_normal((n, D)), rng.uniform(0.5, 2.0, size=n)


def bases(D=7):
    rng = np.random.default_rng(9)
    out = []
    for columns in ([0, 1], [2, 3, 4], [5, 6]):
        V = np.zeros((D, len(columns)))
        V[columns] = rng.standard_normal((len(columns), len(columns)))
        out.append(V)
    return tuple(out)


LIBRARIES = ["numpy", "torch", "array_api_strict"]


def array_of(library, X):
    if library == "numpy":
        return X
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    return xp.asarray(X)


@pytest.mark.parametrize("library", LIBRARIES)
def test_core_moments_equal_naive_sums(library, monkeypatch):
    monkeypatch.setattr(tensors, "BLOCK", 7)
    X, w = table(np.random.default_rng(0))
    V = bases()
    core = CoreSums(V).update(Sample(DenseRows(array_of(library, X)), w)).finish()
    z = [X @ U for U in V]
    p = w / w.sum()
    np.testing.assert_allclose(core.triple, np.einsum("n,na,nb,nc->abc", p, *z), atol=1e-12)
    np.testing.assert_allclose(
        core.pairs[0, 2], np.einsum("n,na,nb->ab", p, z[0], z[2]), atol=1e-12
    )
    np.testing.assert_allclose(core.means[1], p @ z[1], atol=1e-12)


@pytest.mark.parametrize("cut", [1, 13, 59])
def test_any_split_of_the_rows_gives_the_same_moments(cut):
    X, w = table(np.random.default_rng(1))
    whole, parts = Sample(DenseRows(X), w), (
        Sample(DenseRows(X[:cut]), w[:cut]),
        Sample(DenseRows(X[cut:]), w[cut:], cut),
    )  # fmt: skip
    for new in (lambda: PairSums(7), lambda: CoreSums(bases()), lambda: CrossProduct(bases()[1])):
        one = new().update(whole)
        two = new().update(parts[0]).merge(new().update(parts[1]))
        for name, value in vars(one).items():
            if isinstance(value, (np.ndarray, float)):
                np.testing.assert_allclose(getattr(two, name), value, atol=1e-10)


def test_sparse_dense_and_applied_pairs_agree():
    rng = np.random.default_rng(2)
    X = (rng.random((40, 7)) < 0.3) * rng.standard_normal((40, 7))
    w = rng.uniform(0.5, 2.0, size=40)
    dense = PairSums(7).update(Sample(DenseRows(X), w))
    sparse = PairSums(7).update(Sample(as_rows(sp.csr_array(X)), w))
    np.testing.assert_allclose(dense.pairs, sparse.pairs, atol=1e-12)
    Q = rng.standard_normal((7, 2))
    applied = CrossProduct(Q).update(Sample(as_rows(sp.csr_array(X)), w)).finish()
    np.testing.assert_allclose(applied, dense.pairs @ Q, atol=1e-12)


def test_the_noise_gauge_is_the_size_of_the_sampling_error():
    errors, gauges = [], []
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((2000, 8))
        sums = PairSums(8).update(Sample(DenseRows(X), np.ones(2000)))
        errors.append(np.linalg.norm(sums.pairs - np.eye(8), 2))
        gauges.append(np.linalg.norm(sums.noise, 2))
    assert 0.8 < np.mean(gauges) / np.mean(errors) < 1.25


def test_models_with_equal_pairs_and_different_triples_are_told_apart():
    # Appendix G: rotate M diag(√w) by an orthogonal matrix that fixes √w: same means and pairs.
    M = np.array([[0.75, 0.25, 0.5], [0.15, 0.65, 0.2], [0.10, 0.10, 0.3]])
    w = np.array([0.5, 0.3, 0.2])
    root = np.sqrt(w)
    axis = np.cross(root, [1.0, 0.0, 0.0])
    axis /= np.linalg.norm(axis)
    other = np.cross(root, axis)
    c, s = np.cos(0.3), np.sin(0.3)
    basis = np.stack([root, axis, other], axis=1)
    Q = basis @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ basis.T
    twin = (M * root) @ Q
    v = root @ Q  # still √w: the weights are unchanged, so the twin's columns sum to one
    twin = twin / v
    np.testing.assert_allclose((M * w) @ M.T, (twin * v**2) @ twin.T, atol=1e-12)
    for means, weights in ((M, w), (twin, v**2)):
        core = population_core([means] * 3, weights)
        found = recover_views(core, 3, "tensor", np.random.default_rng(0))
        order, error = match(found.means, [means] * 3)
        assert error < 1e-8
        np.testing.assert_allclose(found.weights[order], weights, atol=1e-8)
    assert np.abs(M - twin).max() > 0.05


def spherical_population(rng, d=6, k=4):
    means, w = rng.standard_normal((k, d)), rng.dirichlet(np.full(k, 5.0))
    return means, w, rng.uniform(0.5, 1.5, size=k)


class Population(PairSums):
    """First two moments set by hand."""

    def __init__(self, mean, pairs):
        super().__init__(len(mean))
        self.total, self.first, self.second = 1.0, mean, pairs


@pytest.mark.parametrize("seed", range(3))
def test_exact_spherical_moments_give_the_mixture_back(seed):
    rng = np.random.default_rng(seed)
    means, w, variances = spherical_population(rng)
    k, d = means.shape
    m = w @ means
    pairs = np.einsum("i,ia,ib->ab", w, means, means) + (w @ variances) * np.eye(d)
    white = spherical_whitening(Population(m, pairs), k)
    assert white.sigma2 == pytest.approx(w @ variances, abs=1e-12)
    # E[y⊗y⊗y] of y = (Wᵀ(x-m), 1): signal plus S3 of the noise, by hand
    triples = SphericalTriples(white)
    y = np.concatenate([(means - m) @ triples.W, np.ones((k, 1))], axis=1)
    J = np.diag(np.append(1 / white.eta, 0.0))
    t = (w * variances) @ y
    cube = np.einsum("i,ia,ib,ic->abc", w, y, y, y)
    cube += 3 * symmetrise(np.einsum("ab,c->abc", J, t))
    triples.total, triples.cube = 1.0, cube
    triples.noise = (d - k + 1) * t
    T, found_t = triples.finish()
    np.testing.assert_allclose(found_t, t, atol=1e-12)
    np.testing.assert_allclose(T, np.einsum("i,ia,ib,ic->abc", w, y, y, y), atol=1e-10)
    from thirdmoment.decomposition import decompose

    estimate = recover_spherical(decompose(T, "tensor", rng), white.mean, white.E, white.eta)
    order, error = match([estimate.means.T], [means.T])
    assert error < 1e-8
    np.testing.assert_allclose(estimate.weights[order], w, atol=1e-8)
    whitened = np.concatenate(
        [(estimate.means - m) @ white.E / np.sqrt(white.eta), np.ones((k, 1))], axis=1
    )
    own = component_variances(estimate.weights, whitened, found_t, white.sigma2)
    np.testing.assert_allclose(own[order], variances, atol=1e-7)


@pytest.mark.parametrize("library", LIBRARIES)
def test_spherical_sums_equal_naive_ones(library, monkeypatch):
    monkeypatch.setattr(tensors, "BLOCK", 64)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 5)) * [3, 2, 1, 1, 1] + rng.standard_normal(5)
    w = rng.uniform(0.5, 2, size=300)
    rows = Sample(DenseRows(array_of(library, X)), w)
    sums = PairSums(5).update(rows)
    white = spherical_whitening(sums, 3)
    T, t = SphericalTriples(white).update(rows).finish()
    p, m = w / w.sum(), sums.mean
    np.testing.assert_allclose(m, p @ X, atol=1e-12)
    y = np.concatenate([(X - m) @ (white.E / np.sqrt(white.eta)), np.ones((300, 1))], axis=1)
    outside = ((X - m) ** 2).sum(axis=1) - (((X - m) @ white.E) ** 2).sum(axis=1)
    np.testing.assert_allclose(t, (p * outside) @ y / 3, atol=1e-12)
    raw = np.einsum("n,na,nb,nc->abc", p, y, y, y)
    J = np.diag(np.append(1 / white.eta, 0.0))
    expected = raw - sum(
        np.transpose(np.einsum("ab,c->abc", J, t), axes)
        for axes in ((0, 1, 2), (2, 0, 1), (1, 2, 0))
    )
    np.testing.assert_allclose(T, expected, atol=1e-12)


def _scaled(sums, n):
    """The same moments of n rows."""
    sums.total, sums.score = n, n * sums.score
    sums.first, sums.second = n * sums.first, n * sums.second
    sums.plain_first, sums.plain_second = n * sums.plain_first, n * sums.plain_second
    return sums


def test_exact_scores_give_the_covariances_back():
    rng = np.random.default_rng(3)
    means, w = random_views(rng, sizes=(4, 5, 3), k=3)
    M = np.concatenate(means)
    view = np.arange(9, 12)
    A = rng.standard_normal((3, 3, 3))
    sigma = A @ A.transpose(0, 2, 1)
    scores = linear_scores(M, np.arange(12) < 9)
    np.testing.assert_allclose(scores.T @ M, np.eye(3), atol=1e-10)
    sums = ScoreSums(view, scores)
    sums.total, sums.score = 1.0, w
    sums.first = w[:, None] * means[2].T
    second = sigma + np.einsum("aj,bj->jab", means[2], means[2])
    sums.second = w[:, None, None] * second
    sums.plain_first, sums.plain_second = sums.first.sum(axis=0), sums.second.sum(axis=0)
    found, moved = conditional_covariances(_scaled(sums, 1e8), w, np.ones(3))
    assert moved == 0
    np.testing.assert_allclose(found, sigma, atol=1e-8)
    fourth = np.einsum("j,aj,bj,jcd->abcd", w, means[0], means[1], second)
    P12 = (means[0] * w) @ means[1].T
    U1, U2 = (np.linalg.svd(P)[0][:, :3] for P in (P12, P12.T))
    printed = printed_second_moments(fourth, P12, U1, U2, U1.T @ means[0])
    np.testing.assert_allclose(printed, second, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_and_float32_rows_give_the_same_moments(dtype):
    torch = pytest.importorskip("torch")
    X, w = table(np.random.default_rng(4))
    exact = CoreSums(bases()).update(Sample(DenseRows(X), w)).finish()
    pairs = PairSums(7).update(Sample(DenseRows(X), w)).pairs
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for rows in (
        as_rows(torch.tensor(X, dtype=getattr(torch, dtype))),
        DenseRows(X.astype(dtype)),
        as_rows(sp.csr_array(X.astype(dtype))),
    ):
        core = CoreSums(bases()).update(Sample(rows, w)).finish()
        np.testing.assert_allclose(core.triple, exact.triple, atol=tolerance)
        found = PairSums(7).update(Sample(rows, w)).pairs
        np.testing.assert_allclose(found, pairs, atol=tolerance)


@pytest.mark.parametrize("library", LIBRARIES[1:])
def test_sums_are_the_same_wherever_rows_are(library):
    X, w = table(np.random.default_rng(3), 40)
    scores = np.random.default_rng(4).standard_normal((7, 3))
    there = Sample(DenseRows(array_of(library, X)), w, 5)
    for new in (
        lambda: views.LineSums(7),
        lambda: CrossProduct(bases()[1], halves=True),
        lambda: ScoreSums(np.array([1, 4]), scores),
        lambda: ScoreSums(np.array([1, 4]), scores, diagonal=True),
        lambda: PairSums(7),
    ):
        ours, theirs = new().update(Sample(DenseRows(X), w, 5)), new().update(there)
        for name, value in vars(ours).items():
            np.testing.assert_allclose(vars(theirs)[name], value, atol=1e-11, err_msg=name)
            assert type(vars(theirs)[name]) is type(value), name
