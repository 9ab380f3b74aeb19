"""Exact populations give the searched component back to 1e-8, end to end, in all four models."""

import numpy as np
import pytest
from exact_search import gaussian_rows, lda_documents, regression_rows

from thirdmoment import GaussianSearch, RegressionSearch, TopicSearch


@pytest.mark.parametrize("target", range(3))
def test_a_topic_from_a_word_documents_or_a_direction(target):
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(5, 0.6), size=3)
    alpha = np.array([0.9, 0.5, 0.3])
    X, probability = lda_documents(topics, alpha)
    search = TopicSearch(3, concentration=alpha.sum(), weighting="none")
    search.fit(X, sample_weight=probability * 1e6)
    dual = np.linalg.pinv(topics)[:, target]
    hints = [{"vector": dual}, {"documents": 100 * topics[[target]]}]
    telling = [x for x in range(5) if topics[:, x].argmax() == target]
    hints += [{"words": x} for x in telling]
    assert telling
    for hint in hints:
        found = search.search(**hint)
        np.testing.assert_allclose(found.parameters, topics[target], atol=1e-8)
        assert found.weight == pytest.approx(alpha[target] / alpha.sum(), abs=1e-8)
        assert found.report.consistency == pytest.approx(1, abs=1e-6)
    found = search.search(telling[0])
    np.testing.assert_allclose(found.report.scores, np.sort(topics[:, telling[0]])[::-1], atol=1e-8)


@pytest.mark.parametrize("target", range(3))
def test_a_gaussian_component_from_rows_or_a_direction(target):
    rng = np.random.default_rng(4)
    means = rng.standard_normal((3, 5))
    means[1] = 3 * means[0] + 0.5  # its inner products outweigh those of the first
    weights, variances = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.1])
    X, mass = gaussian_rows(means, weights, variances)
    search = GaussianSearch(3).fit(X, sample_weight=mass * 1e3)
    assert search.noise_variance_ == pytest.approx(weights @ variances, abs=1e-10)
    scores = np.linalg.pinv(means) @ np.eye(3)[target]
    for hint in ({"samples": means[target]}, {"direction": scores}):
        found = search.search(**hint)
        np.testing.assert_allclose(found.parameters, means[target], atol=1e-8)
        assert found.weight == pytest.approx(weights[target], abs=1e-8)
        assert found.report.details["variance"] == pytest.approx(variances[target], abs=1e-8)
    assert search.search(means[target]).alignment == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("target", range(3))
def test_a_regression_from_rows_or_a_direction(target):
    rng = np.random.default_rng(5)
    coefs, intercepts = rng.standard_normal((3, 4)), np.array([0.5, -1.0, 2.0])
    weights, mean = np.array([0.5, 0.3, 0.2]), rng.standard_normal(4)
    root = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    X, y, mass = regression_rows(coefs, intercepts, weights, 0.3, mean, root)
    search = RegressionSearch(3).fit(X, y, sample_weight=mass * 1e6)
    rows = mean + 100 * rng.standard_normal((50, 4))
    labels = (rows, rows @ coefs[target] + intercepts[target])
    # v with inner product one with the slopes of the target and zero with the others
    standard = coefs @ np.linalg.inv(search._standard.root.T)
    dual = search._standard.slopes(np.linalg.pinv(standard)[:, target][None])[0]
    for found in (search.search(*labels), search.search(direction=dual)):
        np.testing.assert_allclose(found.parameters, coefs[target], atol=1e-8)
        assert found.weight == pytest.approx(weights[target], abs=1e-8)
        assert found.report.details["intercept"] == pytest.approx(intercepts[target], abs=1e-7)
