"""Kernels, their features, and the moments of views of one law."""

import itertools

import numpy as np
import pytest

from tests.exact.kernel import finite_population
from thirdmoment._array import DenseRows
from thirdmoment.exceptions import InvalidInput, RankDeficientMoment, RankDeficientView
from thirdmoment.linalg.whiten import pivoted_cholesky
from thirdmoment.moments.features import (
    Custom,
    Delta,
    Gaussian,
    Laplace,
    Linear,
    Product,
    exchangeable_gram_map,
    fourier_map,
    gram_bytes,
    gram_maps,
    pivoted_map,
)
from thirdmoment.moments.views import ExchangeableSums, PairSums, Sample, mean_pairs
from thirdmoment.streaming import fold


@pytest.mark.parametrize("kernel", [Gaussian, Laplace])
@pytest.mark.parametrize("scale", [[0.7], [0.4, 1.3]])
def test_kernels_integrate_to_one_in_every_dimension(kernel, scale):
    scale = np.array(scale)
    t = np.linspace(-25, 25, 2501 if len(scale) == 1 else 1001)
    grid = np.array(list(itertools.product(*[t * s for s in scale])))
    values = kernel(scale)(grid, np.zeros((1, len(scale))))
    cell = np.prod(scale) * (t[1] - t[0]) ** len(scale)
    # the kink of the Laplace kernel costs the rule step²/12 a dimension
    assert values.sum() * cell == pytest.approx(1, abs=(t[1] - t[0]) ** 2 / 4)


def test_product_of_columns_is_the_kernel_of_all_columns():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((8, 3)), rng.standard_normal((5, 3))
    scale = np.array([0.5, 1.0, 2.0])
    parts = tuple(Gaussian(scale[j : j + 1]) for j in range(3))
    np.testing.assert_allclose(Product(parts)(X, Y), Gaussian(scale)(X, Y), rtol=1e-12)
    np.testing.assert_allclose(Product(parts).diagonal(X), Gaussian(scale).diagonal(X), rtol=1e-12)
    mixed = Product((Delta(), Gaussian(scale[:1])))
    A = np.column_stack([rng.integers(2, size=6), rng.standard_normal(6)]).astype(float)
    by_hand = (A[:, :1] == A[:, 0]) * Gaussian(scale[:1])(A[:, 1:], A[:, 1:])
    np.testing.assert_allclose(mixed(A, A), by_hand)


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(np.array([0.8])),
        Laplace(np.array([0.8])),
        Linear(np.zeros(1), np.ones(1)),
        Delta(),
    ],
)
def test_diagonals_agree_with_the_kernel(kernel):
    X = np.random.default_rng(1).standard_normal((6, 1))
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel(X, X)), rtol=1e-12)


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
def test_pivoted_cholesky_leaves_what_it_says_and_needs_few_columns(tol):
    X = np.random.default_rng(2).standard_normal((300, 1))
    kernel = Gaussian(np.array([0.6]))
    K = kernel(X, X)
    found = pivoted_cholesky(lambda j: K[:, j], np.diag(K), tol=tol, most=200)
    left = np.trace(K - found.Z @ found.Z.T) / np.trace(K)
    assert left == pytest.approx(found.left, abs=1e-12)
    assert found.left <= tol
    assert found.Z.shape[1] <= 60  # of 300: smooth kernels have few directions


def test_pivoted_cholesky_of_the_delta_kernel_stops_at_the_number_of_values():
    codes = np.random.default_rng(3).integers(7, size=(200, 1)).astype(float)
    found = pivoted_map(Delta(), codes, np.ones(200), np.random.default_rng(0))
    assert len(found.points) == len(np.unique(codes))
    Z = found(codes)
    np.testing.assert_allclose(Z @ Z.T, codes == codes.T, atol=1e-12)


def test_features_of_new_points_reproduce_the_kernel():
    rng = np.random.default_rng(4)
    X, new = rng.standard_normal((400, 2)), rng.standard_normal((50, 2))
    kernel = Gaussian(np.array([0.9, 1.1]))
    Z = pivoted_map(kernel, X, np.ones(400), rng, tol=1e-8)
    # the residual of a point is at most the trace left, and Cauchy-Schwarz bounds the rest
    bound = np.sqrt(400 * 1e-8) * kernel.diagonal(X)[0]
    assert np.abs(Z(X) @ Z(X).T - kernel(X, X)).max() < bound
    assert np.abs(Z(new) @ Z(new).T - kernel(new, new)).max() < 0.01 * kernel.diagonal(X)[0]


@pytest.mark.parametrize("kernel", [Gaussian, Laplace])
def test_fourier_features_approach_the_kernel(kernel):
    X = np.random.default_rng(5).standard_normal((60, 2))
    exact = kernel(np.array([0.8, 1.5]))
    errors = []
    for size in (200, 20_000):
        Z = fourier_map(exact, np.random.default_rng(0), size=size)(X)
        errors.append(np.abs(Z @ Z.T - exact(X, X)).max() / exact.diagonal(X)[0])
    assert errors[1] < 4 / np.sqrt(10_000)  # four standard errors of a mean of cosines
    assert errors[1] < errors[0] / 3


def test_fourier_features_refuse_other_kernels():
    with pytest.raises(InvalidInput, match="kernel of differences"):
        fourier_map(Delta(), np.random.default_rng(0))


def test_custom_kernels_are_checked():
    X = np.arange(4.0)[:, None]
    with pytest.raises(InvalidInput, match=r"shape \(4,\) for blocks of 4 and 4 rows"):
        Custom(lambda A, B: A[:, 0])(X, X)
    with pytest.raises(InvalidInput, match="is -1, so it is not positive"):
        Custom(lambda A, B: -np.ones((len(A), len(B)))).diagonal(X)


def test_gram_directions_are_orthonormal_singular_directions():
    rng = np.random.default_rng(6)
    _, _, _, X, p = finite_population(rng)
    kernels = [Gaussian(np.array([s])) for s in (0.6, 0.9, 1.2)]
    blocks = [X[:, [v]] for v in range(3)]
    maps = gram_maps(kernels, blocks, p, 3)
    low = [pivoted_map(f, B, p, rng, tol=0.0) for f, B in zip(kernels, blocks, strict=True)]
    full = [f(B) for f, B in zip(low, blocks, strict=True)]
    for v in range(3):
        K = kernels[v](blocks[v], blocks[v])
        beta = maps[v].beta
        np.testing.assert_allclose(beta.T @ K @ beta, np.eye(3), atol=1e-8)
        # MV-2 in coordinates: leading left singular vectors of the pairs with all other views
        across = np.concatenate(
            [(full[v] * p[:, None]).T @ full[u] for u in range(3) if u != v], axis=1
        )
        U = np.linalg.svd(across)[0][:, :3]
        own, other = maps[v](blocks[v]), full[v] @ U
        np.testing.assert_allclose(own @ own.T, other @ other.T, atol=1e-8)


def test_gram_directions_say_which_view_is_too_poor():
    rng = np.random.default_rng(7)
    _, _, _, X, p = finite_population(rng, k=2)
    kernels = [Gaussian(np.array([1.0]))] * 3
    with pytest.raises(RankDeficientView, match=r"View 0 has rank 2 .* n_components=4"):
        gram_maps(kernels, [X[:, [v]] for v in range(3)], p, 4)
    _, _, _, X, p = finite_population(rng, k=2, shared=True)
    with pytest.raises(RankDeficientMoment, match="numerical rank 2"):
        exchangeable_gram_map(kernels[0], [X[:, [v]] for v in range(3)], p, 4)


def test_memory_of_gram_matrices_grows_with_the_square_of_the_rows():
    assert gram_bytes(2000, 3, exchangeable=False) == 4 * gram_bytes(1000, 3, exchangeable=False)
    assert gram_bytes(1000, 3, exchangeable=True) > 9 * 8 * 1000**2


def random_table(rng, n=40, views=4, r=3):
    return rng.standard_normal((n, views * r)), rng.uniform(0.5, 2, n)


def test_exchangeable_moments_are_means_over_all_pairs_and_triples():
    rng = np.random.default_rng(8)
    Z, w = random_table(rng)
    W = rng.standard_normal((3, 2))
    found = ExchangeableSums(W, 4).update(Sample(DenseRows(Z), w)).finish()
    Y = Z.reshape(40, 4, 3) @ W
    p = w / w.sum()
    pairs = [np.einsum("a,ai,aj->ij", p, Y[:, u], Y[:, v])
             for u, v in itertools.permutations(range(4), 2)]  # fmt: skip
    triples = [np.einsum("a,ai,aj,al->ijl", p, Y[:, u], Y[:, v], Y[:, t])
               for u, v, t in itertools.permutations(range(4), 3)]  # fmt: skip
    np.testing.assert_allclose(found.first, p @ Y.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.second, np.mean(pairs, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.third, np.mean(triples, axis=0), atol=1e-12)
    sums = PairSums(12).update(Sample(DenseRows(Z), w))
    np.testing.assert_allclose(W.T @ mean_pairs(sums.pairs, 4) @ W, found.second, atol=1e-12)


@pytest.mark.parametrize("cuts", [[7], [1, 2, 39], [20, 30]])
def test_any_split_gives_the_same_exchangeable_moments(cuts):
    rng = np.random.default_rng(9)
    Z, w = random_table(rng)
    W = rng.standard_normal((3, 2))
    whole = ExchangeableSums(W, 4).update(Sample(DenseRows(Z), w)).finish()
    edges = [0, *cuts, 40]
    chunks = [Sample(DenseRows(Z[a:b]), w[a:b], a) for a, b in itertools.pairwise(edges)]
    merged = fold(lambda: ExchangeableSums(W, 4), chunks, n_threads=2).finish()
    for one, other in zip(whole, merged, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
