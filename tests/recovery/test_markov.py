"""Chains from their emissions: exact laws give the parameters back."""

import numpy as np
import pytest

from tests.exact.chains import exact_adjacent, random_chain
from thirdmoment.recovery.markov import (
    second_eigenvalue,
    state_probabilities,
    stationary_distribution,
    stochastic_rows,
    transitions_from_blocks,
    transitions_from_pairs,
)


@pytest.mark.parametrize("k", [2, 4, 22])
def test_exact_pairs_give_the_transitions_back(k):
    start, T, laws = random_chain(k + 3, k, k, persistence=0.6)
    adjacent = exact_adjacent(start, T, laws, [4, 2])
    weights = 1 / np.sqrt(start @ laws)
    np.testing.assert_allclose(
        transitions_from_pairs(laws.T, adjacent.pairs, weights), T, atol=1e-8
    )


def test_blocks_give_the_transitions_back():
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.ones(3), size=3)
    now = rng.random((4, 3))
    np.testing.assert_allclose(transitions_from_blocks(now, now @ T.T), T, atol=1e-10)


def test_first_observations_give_the_start_back():
    start, _, laws = random_chain(6, 3, 1)
    np.testing.assert_allclose(state_probabilities(laws.T, start @ laws), start, atol=1e-10)


def test_the_stationary_law_stays():
    _, T, _ = random_chain(6, 4, 2)
    p = stationary_distribution(T)
    np.testing.assert_allclose(p @ T, p, atol=1e-12)
    np.testing.assert_allclose(p.sum(), 1)


def test_a_chain_that_falls_apart_gets_the_most_even_stationary_law():
    np.testing.assert_allclose(stationary_distribution(np.eye(3)), np.full(3, 1 / 3))


def test_split_and_periodic_chains_have_a_second_eigenvalue_of_one():
    assert second_eigenvalue(np.eye(2)) == pytest.approx(1)
    assert second_eigenvalue(np.array([[0.0, 1.0], [1.0, 0.0]])) == pytest.approx(1)
    assert second_eigenvalue(np.full((2, 2), 0.5)) == pytest.approx(0, abs=1e-12)


def test_rows_without_mass_become_even():
    np.testing.assert_array_equal(stochastic_rows(np.array([[0.0, 0.0], [1.0, 3.0]])),
                                  [[0.5, 0.5], [0.25, 0.75]])  # fmt: skip
