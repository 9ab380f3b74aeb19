"""Alignment and scores, worked out by hand."""

import numpy as np
import pytest

from thirdmoment.datasets import make_lda_corpus
from thirdmoment.likelihood.documents import split_counts
from thirdmoment.metrics import (
    align,
    npmi_coherence,
    perplexity,
    recovery_error,
    topic_diversity,
)


def test_alignment_undoes_any_permutation():
    truth = np.random.default_rng(0).dirichlet(np.ones(9), size=6)
    order = np.random.default_rng(1).permutation(6)
    np.testing.assert_array_equal(truth[order][align(truth[order], truth)], truth)
    assert recovery_error(truth[order], truth) == 0


def test_recovery_error_is_the_mean_distance_of_rows():
    estimate, truth = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.7, 0.3]])
    assert recovery_error(estimate, truth) == pytest.approx((0.4 + 0.0) / 2)


def test_columns_must_agree():
    with pytest.raises(ValueError, match=r"\(3, 2\) and truth \(3, 3\)"):
        align(np.ones((3, 2)), np.eye(3))


@pytest.mark.parametrize("metric", ["cityblock", "cosine"])
def test_tensors_are_aligned_as_arrays_are(metric):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(9), size=5)
    other = truth[rng.permutation(5)[:4]] + 0.02 * rng.random((4, 9))
    wanted = align(other, truth, metric=metric)
    for a in (other, torch.as_tensor(other)):
        for b in (truth, torch.as_tensor(truth)):
            np.testing.assert_array_equal(align(a, b, metric=metric), wanted)


def test_more_and_fewer_components_are_aligned():
    truth = np.eye(4)
    np.testing.assert_array_equal(align(truth[[3, 0, 2]], truth), [1, -1, 2, 0])
    np.testing.assert_array_equal(align(truth[[3, 0, 2, 1]], truth[:2]), [1, 3])
    assert recovery_error(truth[:3], truth) == 0.25  # one row of size one is missing
    assert recovery_error(truth, truth[:2]) == 0.0
    assert recovery_error(truth[:0], truth) == 1.0


def test_npmi_by_hand():
    X = np.array([[1, 1, 0], [2, 0, 0], [0, 3, 1], [1, 1, 1]])
    # words 0 and 1: together in 2 of 4, alone in 3 of 4 each
    expected = np.log((2 / 4) / (3 / 4) ** 2) / -np.log(2 / 4)
    found = npmi_coherence(np.array([[0.6, 0.4, 0.0]]), X, n_words=2)
    assert found[0] == pytest.approx(expected)


def test_npmi_of_pairs_that_never_or_always_meet():
    X = np.array([[1, 0, 1], [0, 1, 1]])
    topics = np.array([[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]])
    assert npmi_coherence(topics[:1], X, n_words=2)[0] == -1
    always = np.array([[1, 2], [3, 1]])
    assert npmi_coherence(np.array([[0.5, 0.5]]), always, n_words=2)[0] == 1


def test_diversity_counts_distinct_words():
    same = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    assert topic_diversity(same, n_words=2) == 0.5


def test_perplexity_of_uniform_topics_is_the_vocabulary():
    X = make_lda_corpus(50, 40, 3).X
    assert perplexity(np.full((3, 40), 1 / 40), X) == pytest.approx(40)


def test_perplexity_follows_its_definition():
    """The definition, step by step, in plain NumPy on the same split."""
    corpus = make_lda_corpus(30, 25, 3, mean_length=20)
    X = corpus.X
    a, b = (half.toarray() for half in split_counts(X, 0))
    C = np.clip(corpus.topics, 1e-8, None)
    C /= C.sum(axis=1, keepdims=True)
    H = np.full((30, 3), 1 / 3)
    for _ in range(50):
        H = H * ((a / (H @ C)) @ C.T) + 1 / 3
        H /= H.sum(axis=1, keepdims=True)
    expected = np.exp(-(b * np.log(H @ C)).sum() / b.sum())
    assert perplexity(corpus.topics, X) == pytest.approx(expected, rel=1e-10)


def test_perplexity_does_not_depend_on_the_order_of_documents():
    corpus = make_lda_corpus(60, 25, 3, mean_length=20)
    turned = perplexity(corpus.topics, corpus.X[::-1])
    assert turned == pytest.approx(perplexity(corpus.topics, corpus.X), rel=1e-12)


@pytest.mark.parametrize(
    "seed",
    [None, -1, 7, np.random.default_rng(0), np.random.RandomState(0)],
    ids=lambda seed: type(seed).__name__,
)
def test_any_usual_random_state_draws_a_split(seed):
    corpus = make_lda_corpus(200, 25, 3, mean_length=20)
    value = perplexity(corpus.topics, corpus.X, random_state=seed)
    assert value == pytest.approx(perplexity(corpus.topics, corpus.X), rel=0.1)
    with pytest.raises(TypeError):
        perplexity(corpus.topics, corpus.X, random_state=1.5)


def test_nothing_to_predict_is_an_error():
    with pytest.raises(ValueError, match="no words left to predict"):
        perplexity(np.full((2, 3), 1 / 3), np.zeros((4, 3)))
