"""Simplex, eigenpairs, whitening, tensors."""

import importlib

import numpy as np
import pytest

from thirdmoment.exceptions import RankDeficientMoment
from thirdmoment.linalg import (
    add_symmetric_cube,
    add_symmetric_products,
    contract,
    fill_symmetric,
    operator_norm,
    orthonormal,
    outer_sum,
    polar,
    project_to_simplex,
    sum_of_axes,
    symmetrise,
    top_eigenpairs,
    whiten,
    whitening_from,
)
from thirdmoment.linalg.eigen import random_start
from thirdmoment.linalg.polar import newton_schulz

# the package names a function as the module that holds it
eigen, polar_module, tensors = (
    importlib.import_module(f"thirdmoment.linalg.{name}") for name in ("eigen", "polar", "tensors")
)


def symmetric(d, seed=0):
    A = np.random.default_rng(seed).standard_normal((d, d))
    return (A + A.T) / 2


class TestSimplex:
    def test_projection_satisfies_the_optimality_conditions(self):
        v = np.random.default_rng(0).standard_normal((20, 30))
        p = project_to_simplex(v)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-15)
        assert p.min() >= 0
        for row, result in zip(v, p, strict=True):
            support = result > 0
            shift = (row - result)[support]
            np.testing.assert_allclose(shift, shift[0], atol=1e-12)  # constant on the support
            assert np.all(row[~support] <= shift[0] + 1e-12)  # and nothing left out was larger

    def test_a_point_of_the_simplex_stays(self):
        p = np.random.default_rng(1).dirichlet(np.ones(7), size=3)
        np.testing.assert_allclose(project_to_simplex(p), p, atol=1e-15)

    def test_all_negative_rows_are_projected_too(self):
        np.testing.assert_allclose(project_to_simplex(np.array([[-5.0, -4.0, -9.0]])), [[0, 1, 0]])


class TestEigenpairs:
    def test_algebraically_largest_of_an_indefinite_operator(self):
        A = symmetric(60)
        exact = np.sort(np.linalg.eigvalsh(A))[::-1]
        assert abs(exact[-1]) > exact[3]  # larger in magnitude, and not wanted
        start = random_start(np.random.default_rng(0), 60, 4, like=A)
        found = top_eigenpairs(lambda Q: A @ Q, start, 4, tol=1e-10, max_products=50)
        assert found.converged
        np.testing.assert_allclose(found.values[:4], exact[:4], rtol=1e-9)
        residual = A @ found.vectors[:, :4] - found.vectors[:, :4] * found.values[:4]
        assert np.abs(residual).max() < 1e-8 * exact[0]

    def test_the_reported_residual_is_the_true_one(self):
        A = symmetric(200, seed=3)
        start = random_start(np.random.default_rng(0), 200, 5, like=A)
        found = top_eigenpairs(lambda Q: A @ Q, start, 5, tol=1e-12, max_products=2)
        assert not found.converged
        U, s = found.vectors[:, :5], found.values
        true = np.linalg.norm(A @ U - U * s[:5], axis=0).max() / s[0]
        assert found.residual == pytest.approx(true, rel=1e-6)

    def test_an_operator_of_exact_rank_stops_by_itself(self):
        B = np.random.default_rng(0).standard_normal((50, 3))
        start = random_start(np.random.default_rng(1), 50, 3, like=B)
        found = top_eigenpairs(lambda Q: B @ (B.T @ Q), start, 3, tol=1e-12)
        assert found.products <= 3
        exact = np.linalg.svd(B)[1] ** 2
        np.testing.assert_allclose(found.values[:3], exact, rtol=1e-10)

    def test_operator_norm_sees_negative_eigenvalues(self):
        A = -np.diag(np.arange(1.0, 31.0))
        start = random_start(np.random.default_rng(0), 30, 4, like=A, oversampling=0)
        norm, _ = operator_norm(lambda Q: A @ Q, start, rtol=1e-6, max_products=30)
        assert norm == pytest.approx(30, rel=1e-4)


class TestWhitening:
    def test_whitened_second_moment_is_the_identity(self):
        B = np.random.default_rng(0).standard_normal((8, 3))
        W = whiten(B @ B.T, 3)
        np.testing.assert_allclose(W.W.T @ (B @ B.T) @ W.W, np.eye(3), atol=1e-10)
        np.testing.assert_allclose(W.W.T @ W.B, np.eye(3), atol=1e-12)

    def test_scaled_words_whiten_the_unscaled_moment(self):
        B = np.random.default_rng(0).standard_normal((8, 3))
        scale = np.random.default_rng(1).uniform(0.5, 2, size=8)
        M = B @ B.T
        values, vectors = np.linalg.eigh(scale[:, None] * M * scale)
        W = whitening_from(values[::-1][:3], vectors[:, ::-1][:, :3], scale=scale)
        np.testing.assert_allclose(W.W.T @ M @ W.W, np.eye(3), atol=1e-10)
        np.testing.assert_allclose(W.B @ W.B.T, M, atol=1e-10)

    def test_missing_rank_is_refused_with_its_numbers(self):
        with pytest.raises(RankDeficientMoment) as caught:
            whiten(np.diag([4.0, 1.0, 0.0, 0.0]), 3)
        assert caught.value.rank == 2
        assert str(caught.value) == (
            "The second moment has numerical rank 2, so it cannot separate n_components=3 "
            "components (eigenvalue 3 is 0, floor 4e-10). Lower n_components to 2, or give more "
            "samples."
        )

    def test_negative_eigenvalues_are_never_inverted(self):
        with pytest.raises(RankDeficientMoment):
            whiten(np.diag([1.0, -5.0]), 2)


class TestTensors:
    def test_contraction_is_the_definition(self):
        rng = np.random.default_rng(0)
        T, A, B, C = (rng.standard_normal(s) for s in ((2, 3, 4), (2, 5), (3, 6), (4, 7)))
        np.testing.assert_allclose(
            contract(T, A, B, C), np.einsum("ijl,ia,jb,lc->abc", T, A, B, C), atol=1e-13
        )

    def test_symmetrised_tensor_is_invariant_under_all_permutations(self):
        T = symmetrise(np.random.default_rng(0).standard_normal((4, 4, 4)))
        for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
            np.testing.assert_allclose(T, T.transpose(axes), atol=1e-15)

    def test_cube_by_parts_is_the_sum_of_outer_products(self):
        rng = np.random.default_rng(0)
        Y, w = rng.standard_normal((50, 6)), rng.standard_normal(50)
        T = fill_symmetric(add_symmetric_cube(np.zeros((6, 6, 6)), w, Y))
        np.testing.assert_allclose(T, np.einsum("n,na,nb,nc->abc", w, Y, Y, Y), atol=1e-12)

    def test_outer_sum_places_the_vector_on_each_axis(self):
        rng = np.random.default_rng(0)
        P, m = symmetric(3), rng.standard_normal(3)
        expected = (
            np.einsum("ab,c->abc", P, m)
            + np.einsum("ac,b->abc", P, m)
            + np.einsum("bc,a->abc", P, m)
        )
        np.testing.assert_allclose(outer_sum(P, m), expected, atol=1e-15)
        np.testing.assert_allclose(sum_of_axes(P[:, :, None] * m), expected, atol=1e-15)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_kernels_follow_the_array_library(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    rng = np.random.default_rng(0)
    Y, w, v = rng.standard_normal((30, 4)), rng.random(30), rng.standard_normal((3, 9))
    T = symmetrise(rng.standard_normal((4, 4, 4)))
    convert = module.asarray
    cube = fill_symmetric(add_symmetric_cube(convert(np.zeros((4, 4, 4))), convert(w), convert(Y)))
    np.testing.assert_allclose(
        np.asarray(cube), np.einsum("n,na,nb,nc->abc", w, Y, Y, Y), atol=1e-12
    )
    np.testing.assert_allclose(
        np.asarray(project_to_simplex(convert(v))), project_to_simplex(v), atol=1e-12
    )
    A = convert(Y[:4])
    np.testing.assert_allclose(
        np.asarray(contract(convert(T), A, A, A)), contract(T, Y[:4], Y[:4], Y[:4]), atol=1e-12
    )
    M = Y.T @ Y
    np.testing.assert_allclose(
        np.asarray(whiten(convert(M), 2).eigenvalues), whiten(M, 2).eigenvalues, rtol=1e-12
    )


def test_a_restarted_basis_finds_the_same_eigenpairs(monkeypatch):
    """The best directions stand for all blocks before: residuals are still what they are said."""
    from thirdmoment.linalg import eigen

    monkeypatch.setattr(eigen, "MOST_BLOCKS", 2)
    monkeypatch.setattr(eigen, "LARGE", 0)
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(80, 80)))[0]
    values = np.concatenate([[9.0, 5, 4, 3], 0.2 * rng.normal(size=76)])
    A = (U * values) @ U.T
    start = rng.normal(size=(80, 6))
    found = eigen.top_eigenpairs(lambda Q: A @ Q, start, 4, tol=1e-7, max_products=40)
    np.testing.assert_allclose(found.values[:4], values[:4], atol=1e-8)
    V = found.vectors[:, :4]
    rest = np.linalg.norm(A @ V - V * found.values[:4], axis=0)
    np.testing.assert_allclose(found.residual, rest.max() / found.values[0], atol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-10)
    brief = eigen.top_eigenpairs(lambda Q: A @ Q, start, 4, tol=0.0, max_products=5)
    W = brief.vectors[:, :4]
    rest = np.linalg.norm(A @ W - W * brief.values[:4], axis=0)
    assert brief.residual == pytest.approx(rest.max() / brief.values[0], rel=1e-6)


class TestOnAGpu:
    """What a GPU does otherwise, in fewer and larger products, without one."""

    @pytest.fixture(autouse=True)
    def gpu(self, monkeypatch):
        for module in (tensors, polar_module, eigen):
            monkeypatch.setattr(module, "on_gpu", lambda array: True)

    @pytest.mark.parametrize("k", [3, 10, 23])
    def test_cubes_are_those_of_the_host(self, k):
        rng = np.random.default_rng(0)
        Y, H, w = rng.standard_normal((50, k)), rng.standard_normal((50, k)), rng.random(50)
        cube = fill_symmetric(add_symmetric_cube(np.zeros((k, k, k)), w, Y))
        np.testing.assert_allclose(cube, np.einsum("n,ni,nj,nl->ijl", w, Y, Y, Y), atol=1e-12)
        products = np.einsum("ni,nj,nl->ijl", Y, Y, H)
        found = add_symmetric_products(np.zeros((k, k, k)), Y, H)
        upper = np.triu_indices(k)
        np.testing.assert_allclose(found[upper], products[upper], atol=1e-12)

    def test_orthonormal_blocks_span_what_they_came_from(self):
        Y = np.random.default_rng(0).standard_normal((200, 7)) @ np.diag(np.geomspace(1, 1e-3, 7))
        Q = orthonormal(Y)
        np.testing.assert_allclose(Q.T @ Q, np.eye(7), atol=1e-12)
        np.testing.assert_allclose(Q @ (Q.T @ Y), Y, atol=1e-12)

    def test_dependent_columns_are_told_apart_all_the_same(self):
        Y = np.ones((50, 3))
        Y[:, 2] = np.arange(50)
        Q = orthonormal(Y)
        np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)

    @pytest.mark.parametrize("smallest", [1.0, 1e-4, 1e-9])
    def test_the_polar_factor_is_that_of_the_singular_values(self, smallest):
        rng = np.random.default_rng(1)
        U, V = (np.linalg.qr(rng.standard_normal((20, 20)))[0] for _ in range(2))
        torch = pytest.importorskip("torch")
        M = torch.as_tensor(U * np.geomspace(1, smallest, 20) @ V.T)
        np.testing.assert_allclose(polar(M), U @ V.T, atol=1e-6)

    @pytest.mark.parametrize("least", [0.3, 1e-3, 1e-6])
    def test_scaled_steps_bring_a_whole_range_to_one(self, least):
        values = np.geomspace(least, 1, 200)
        steps = newton_schulz(least)
        assert len(steps) <= 19
        for a, b in steps:
            values = a * values - b * values**3
        np.testing.assert_allclose(values, 1, atol=1e-14)
