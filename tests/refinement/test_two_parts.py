"""A topic against its background: one EM step, checked word by word."""

import numpy as np
import scipy.sparse as sp

from thirdmoment.refinement.collapsed import two_part_step


def plain_step(X, rows, weights, topic, share, mean):
    background = np.maximum(mean - share * topic, 0.05 * mean)
    background = background / background.sum()
    counts = np.zeros(len(topic))
    for row, weight in zip(rows, weights, strict=True):
        c, h = X[row], 0.5
        for _ in range(3):
            p = h * topic / (h * topic + (1 - h) * background)
            h = (c @ p + 1) / (c.sum() + 2)
        counts += weight * c * h * topic / (h * topic + (1 - h) * background)
    return counts / counts.sum()


def test_the_step_agrees_with_the_plain_reference():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, size=(30, 12)).astype(float)
    topic, mean = rng.dirichlet(np.ones(12)), X.sum(axis=0) / X.sum()
    rows, weights = np.array([1, 4, 9, 16, 25]), np.array([1.0, 2.0, 1.0, 0.5, 3.0])
    found = two_part_step(sp.csr_array(X[rows]), weights, topic, 0.3, mean)
    np.testing.assert_allclose(found, plain_step(X, rows, weights, topic, 0.3, mean), atol=1e-12)


def test_words_of_the_background_are_left_to_it():
    """Documents half topic, half background: a blurred start comes nearer to the topic."""
    rng = np.random.default_rng(1)
    topic, rest = np.repeat([1.0, 0.0], 10) / 10, np.repeat([0.0, 1.0], 10) / 10
    X = sp.csr_array(rng.multinomial(40, (topic + rest) / 2, size=200).astype(float))
    mean = 0.1 * topic + 0.9 * rest
    blurred = 0.6 * topic + 0.4 * rest
    found = two_part_step(X, np.ones(200), blurred, 0.1, mean)
    assert np.abs(found - topic).sum() < np.abs(blurred - topic).sum()


def test_documents_without_a_word_of_the_topic_change_nothing():
    X = sp.csr_array(np.array([[0.0, 0.0, 3.0]]))
    topic = np.array([0.5, 0.5, 0.0])
    found = two_part_step(X, np.ones(1), topic, 0.5, np.array([0.3, 0.3, 0.4]))
    np.testing.assert_array_equal(found, topic)
