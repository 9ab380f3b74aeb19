"""The Dirichlet law of documents from the moments of their words, topics known."""

import numpy as np
import pytest

from tests.exact.words import population, random_model
from thirdmoment.recovery.order import MOST, proportion_map, total_concentration


@pytest.mark.parametrize("alpha0", [0.05, 0.5, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("k", [2, 4])
def test_exact_moments_give_the_concentration_back(k, alpha0):
    topics, alpha = random_model(k, 7, seed=k, alpha0=alpha0)
    mu, P2, _ = population(topics, alpha)
    A = proportion_map(topics)
    np.testing.assert_allclose(topics @ A, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(A.T @ mu, alpha / alpha0, atol=1e-10)
    assert total_concentration(A.T @ mu, A.T @ P2 @ A) == pytest.approx(alpha0, rel=1e-8)


def test_a_word_that_no_topic_has_changes_nothing():
    topics, _ = random_model(3, 6, seed=0)
    wider = np.column_stack([topics, np.zeros(3)])
    np.testing.assert_allclose(proportion_map(wider)[:6], proportion_map(topics), atol=1e-12)


def test_documents_that_do_not_differ_have_the_largest_concentration():
    m = np.array([0.5, 0.3, 0.2])
    assert total_concentration(m, np.outer(m, m)) == MOST
    assert total_concentration(m, 0.9 * np.outer(m, m)) == MOST  # less than no spread: noise
