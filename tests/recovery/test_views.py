"""Recovery from exact cross moments."""

import numpy as np
import pytest

from tests.exact.views import hmm_views, match, population_core, random_views
from thirdmoment.exceptions import RankDeficientView
from thirdmoment.recovery.views import means_from_pairs, mixture_weights, recover_views

SOLVERS = ["tensor", "power", "eig", "schur", "joint-schur", "joint"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["real", "categorical"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_moments_give_views_of_different_sizes_back(solver, kind, seed):
    rng = np.random.default_rng(seed)
    means, w = random_views(rng, kind=kind)
    found = recover_views(population_core(means, w), 4, solver, np.random.default_rng(0))
    order, error = match(found.means, means)
    assert error < 1e-8
    np.testing.assert_allclose(found.weights[order], w, atol=1e-8)
    np.testing.assert_allclose(found.raw_weights[order], w, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_exact_moments_of_a_markov_chain_give_all_three_views_back(solver):
    means, w = hmm_views(np.random.default_rng(1))
    found = recover_views(population_core(means, w), 3, solver, np.random.default_rng(0))
    order, error = match(found.means, means)
    assert error < 1e-8
    np.testing.assert_allclose(found.weights[order], w, atol=1e-8)


def test_a_view_of_too_small_a_rank_is_named():
    means, w = random_views(np.random.default_rng(0), sizes=(6, 2, 7), k=3)
    with pytest.raises(RankDeficientView, match="View 1 has rank 2") as caught:
        recover_views(population_core(means, w), 3, "tensor", np.random.default_rng(0))
    assert (caught.value.view, caught.value.rank) == (1, 2)


def test_every_view_regresses_on_all_others():
    rng = np.random.default_rng(2)
    means, w = random_views(rng, sizes=(4, 5, 6), k=3)
    M = np.concatenate(means)
    groups = np.split(np.arange(15), [4, 9])
    pairs = (M * w) @ M.T
    for columns in groups:
        pairs[np.ix_(columns, columns)] += 7.0  # own blocks must not matter
    np.testing.assert_allclose(means_from_pairs(pairs, groups, M, w), M, atol=1e-8)


def test_columns_of_no_view_have_no_means():
    """Nor what happened to lie in memory: it overflowed in one fit of many."""
    means, w = random_views(np.random.default_rng(2), sizes=(4, 5, 6), k=3)
    M = np.concatenate([np.ones((1, 3)), *means])
    groups = np.split(np.arange(1, 16), [4, 9])
    for _ in range(5):
        left_behind = np.full(M.shape, 1e308)
        del left_behind
        found = means_from_pairs((M * w) @ M.T, groups, M, w)
        np.testing.assert_array_equal(found[0], 0)


def test_weights_stay_on_the_simplex_where_least_squares_leaves_it():
    A = np.array([[1.0, 1.1], [0.0, 0.1]])
    w, raw = mixture_weights([A], [np.array([1.0, -0.05])])
    assert raw.min() < 0
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)


@pytest.mark.parametrize("solver", ["eig", "joint"])
def test_a_target_of_one_column_is_enough(solver):
    means, w = random_views(np.random.default_rng(3), sizes=(5, 6, 1), k=3)
    found = recover_views(population_core(means, w), 3, solver, np.random.default_rng(0))
    order, error = match(found.means, means)
    assert error < 1e-8
    np.testing.assert_allclose(found.weights[order], w, atol=1e-8)
