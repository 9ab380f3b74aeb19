"""From exact population moments back to the parameters, to 1e-8."""

import numpy as np
import pytest

from tests.exact.words import population, random_model
from thirdmoment.decomposition import SOLVERS, decompose
from thirdmoment.decomposition.result import tensor_values
from thirdmoment.linalg import contract, symmetrise, whiten
from thirdmoment.metrics import align
from thirdmoment.moments.words import (
    RawMoments,
    adjusted_moments,
    change_basis,
    dirichlet_corrections,
)
from thirdmoment.recovery.dirichlet import estimate_concentration, implied_share, sampling_residual
from thirdmoment.recovery.order import canonical_order, leading_columns
from thirdmoment.recovery.topics import recover_topics, topic_shares


def solve(topics, alpha, alpha0, solver="tensor"):
    """Whole population pipeline at a given alpha0."""
    raw = RawMoments(*population(topics, alpha))
    b = dirichlet_corrections(alpha0)
    W = whiten(adjusted_moments(raw, b)[0], len(alpha))
    T = adjusted_moments(change_basis(raw, W.W), b)[1]
    return decompose(T, solver, np.random.default_rng(0)), W, raw


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_moments_give_topics_and_concentration_back(solver, seed):
    topics, alpha = random_model(4, 7, seed=seed)
    found, W, raw = solve(topics, alpha, alpha.sum(), solver)
    estimate = recover_topics(found.eigenvalues, (W.B @ found.vectors).T, raw.m, alpha.sum())
    order = align(estimate.topics, topics)
    np.testing.assert_allclose(estimate.topics[order], topics, atol=1e-8)
    np.testing.assert_allclose(alpha.sum() * estimate.weights[order], alpha, atol=1e-8)
    np.testing.assert_allclose(alpha.sum() * estimate.raw_weights[order], alpha, atol=1e-7)
    np.testing.assert_allclose(estimate.scale, 1, atol=1e-7)
    assert estimate.spurious == 0
    assert estimate.clipped_mass.max() < 1e-8


def test_exact_moments_of_a_mixture_give_topics_and_weights_back():
    rng = np.random.default_rng(0)
    topics, weights = rng.dirichlet(np.ones(6), size=3), np.array([0.5, 0.3, 0.2])
    raw = RawMoments(
        topics.T @ weights,
        np.einsum("i,ia,ib->ab", weights, topics, topics),
        np.einsum("i,ia,ib,ic->abc", weights, topics, topics, topics),
    )
    W = whiten(raw.A2, 3)
    found = decompose(change_basis(raw, W.W).A3, "tensor", np.random.default_rng(0))
    estimate = recover_topics(found.eigenvalues, (W.B @ found.vectors).T, raw.m, 0.0)
    order = align(estimate.topics, topics)
    np.testing.assert_allclose(estimate.topics[order], topics, atol=1e-8)
    np.testing.assert_allclose(estimate.raw_weights[order], weights, atol=1e-8)


@pytest.mark.parametrize("true", [0.1, 1.0, 5.0])
def test_exact_moments_reveal_the_concentration(true):
    topics, alpha = random_model(4, 7, seed=3, alpha0=true)

    def at(alpha0, basis):
        return solve(topics, alpha, alpha0)[0]

    profile = estimate_concentration(at)
    assert profile.bounded
    # log spacing h = log(1.65)/4 = 0.125 after two refinements; a parabola is exact to order h²
    assert profile.alpha0 == pytest.approx(true, rel=0.125**2)
    assert implied_share(at(true, None).eigenvalues, true) == pytest.approx(1, abs=1e-9)


def test_the_implied_share_falls_through_one_at_the_truth():
    topics, alpha = random_model(4, 7, seed=3, alpha0=1.0)
    share = [implied_share(solve(topics, alpha, a)[0].eigenvalues, a) for a in (0.5, 1.0, 2.0)]
    assert share[0] > 1 > share[2]


def test_two_topics_do_not_reveal_the_concentration():
    """TF-12: for k = 2 a wrong alpha0 is orthogonally decomposable too."""
    topics, alpha = random_model(2, 5, seed=1)
    wrong = solve(topics, alpha, 0.7 * alpha.sum())[0]
    assert wrong.residual < 1e-6


def test_components_of_negative_mass_are_counted():
    B = -np.eye(2)
    estimate = recover_topics(np.ones(2), B.T.copy(), np.array([0.5, 0.5]), 1.0)
    assert estimate.spurious == 2
    np.testing.assert_allclose(estimate.topics.sum(axis=1), 1)


def test_shares_solve_the_constrained_problem():
    topics = np.array([[0.7, 0.3, 0.0], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(
        topic_shares(topics, 0.25 * topics[0] + 0.75 * topics[1]), [0.25, 0.75]
    )
    np.testing.assert_allclose(topic_shares(topics, np.array([1.0, 0.0, 0.0])), [1, 0])


def test_order_is_by_weight_and_stable():
    np.testing.assert_array_equal(canonical_order(np.array([0.2, 0.5, 0.2, 0.1])), [1, 0, 2, 3])


def test_the_noise_of_the_residual_is_the_change_of_the_whitened_tensor():
    """Finite differences: perturb Pairs and Triples, whiten anew, see what leaves the diagonal."""
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    T = np.einsum("i,ai,bi,ci->abc", [2.0, 1.5, 1.0, 0.7], V, V, V)
    E = rng.standard_normal((4, 4))
    E = E + E.T
    D = symmetrise(rng.standard_normal((4, 4, 4)))
    step = 1e-6
    values, U = np.linalg.eigh(np.eye(4) + step * E)
    C = (U / np.sqrt(values)) @ U.T
    change = (contract(T + step * D, C, C, C) - T) / step
    off = np.sum(change**2) - np.sum(tensor_values(change, V) ** 2)
    expected = np.sqrt(off / np.sum(T**2))
    assert sampling_residual(T, V, D, E) == pytest.approx(expected, rel=1e-4)


def test_no_noise_leaves_no_residual():
    T = np.einsum("i,ai,bi,ci->abc", [2.0, 1.0], np.eye(2), np.eye(2), np.eye(2))
    assert sampling_residual(T, np.eye(2), 0 * T, np.zeros((2, 2))) == 0
    assert np.isnan(sampling_residual(0 * T, np.eye(2), T, np.zeros((2, 2))))


def test_leading_columns_are_those_of_a_stable_sort():
    rng = np.random.default_rng(0)
    far = np.where(rng.random((3, 2000)) < 0.9, -np.inf, rng.integers(40, size=(3, 2000)))
    long = (rng.random((3, 2000)), far, np.sort(rng.random((2, 1999))))
    for table in (rng.random((4, 30)), rng.integers(3, size=(4, 30)) / 3, np.zeros((2, 5)), *long):
        for n in (1, 3, 10, 50, 300):
            expected = np.argsort(-table, axis=1, kind="stable")[:, :n]
            np.testing.assert_array_equal(leading_columns(table, n), expected)
