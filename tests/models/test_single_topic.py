"""Mixture of multinomials: recovery, EM, scores."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

import thirdmoment as tm
from thirdmoment import SingleTopicModel
from thirdmoment.datasets import make_single_topic_corpus
from thirdmoment.decomposition import SOLVERS
from thirdmoment.metrics import align, recovery_error


@pytest.fixture(scope="module")
def corpus():
    return make_single_topic_corpus(3000, 150, 4, mean_length=15, random_state=3)


@pytest.fixture(scope="module")
def fitted(corpus):
    return SingleTopicModel(4).fit(corpus.X)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_topics(corpus, solver):
    model = SingleTopicModel(4, solver=solver, refine="none").fit(corpus.X)
    oracle = corpus.topic_counts / corpus.topic_counts.sum(axis=1, keepdims=True)
    # counting with the true labels is the best any method can do; moments stay within a factor
    limit = 3 * recovery_error(oracle, corpus.topics)
    assert recovery_error(model.components_, corpus.topics) < limit


def test_refined_topics_reach_the_label_knowing_oracle(corpus, fitted):
    oracle = corpus.topic_counts / corpus.topic_counts.sum(axis=1, keepdims=True)
    best = recovery_error(oracle, corpus.topics)
    assert recovery_error(fitted.components_, corpus.topics) < 1.1 * best
    order = align(fitted.components_, corpus.topics)
    share = corpus.proportions.mean(axis=0)
    np.testing.assert_allclose(fitted.weights_[order], share, atol=0.03)


def test_the_penalised_likelihood_never_falls(fitted):
    path = np.array(fitted.report_.refine_path)
    assert len(path) >= 2
    assert np.all(np.diff(path) >= -1e-9 * np.abs(path[0]))


def test_labels_are_found(corpus, fitted):
    order = align(fitted.components_, corpus.topics)
    truth = np.argmax(corpus.proportions, axis=1)
    assert np.mean(np.argsort(order)[fitted.predict(corpus.X)] == truth) > 0.95
    np.testing.assert_array_equal(fitted.predict(corpus.X), fitted.fit_predict(corpus.X))


def test_posteriors_and_likelihood_are_those_of_the_mixture(corpus, fitted):
    X = corpus.X[:20].toarray()
    joint = X @ np.log(fitted.components_).T + np.log(fitted.weights_)
    np.testing.assert_allclose(fitted.score_samples(X), logsumexp(joint, axis=1), rtol=1e-12)
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-12)
    assert fitted.score(X) == pytest.approx(fitted.score_samples(X).mean())
    total = fitted.log_likelihood(X)
    assert total == pytest.approx(fitted.score_samples(X).sum())
    free = 4 * 149 + 3
    assert fitted.aic(X) == pytest.approx(-2 * total + 2 * free)
    assert fitted.bic(X) == pytest.approx(-2 * total + free * np.log(20))


def test_sample_weight_equals_repetition(corpus):
    X = corpus.X[:300].toarray()
    times = np.tile([1, 2, 0], 100)
    a = SingleTopicModel(3).fit(X, sample_weight=times)
    b = SingleTopicModel(3).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-8)
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-8)


def test_samples_follow_the_model(fitted):
    X, labels = fitted.sample(3000, length=20, random_state=0)
    assert X.shape == (3000, 150)
    share = np.bincount(labels, minlength=4) / 3000
    np.testing.assert_allclose(share, fitted.weights_, atol=4 * 0.5 / np.sqrt(3000))


def test_the_answer_does_not_depend_on_the_number_of_threads(corpus, fitted):
    for n_jobs in (1, 3):
        again = SingleTopicModel(4, n_jobs=n_jobs).fit(corpus.X)
        np.testing.assert_array_equal(again.components_, fitted.components_)


def test_zero_probabilities_of_the_plain_estimator_do_not_break_scoring(corpus):
    model = SingleTopicModel(4, refine="none", weighting="none").fit(corpus.X)
    assert model.components_.min() == 0
    assert np.isfinite(model.score_samples(corpus.X)).all()


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, lambda X: X.toarray()])
def test_every_form_of_input_gives_the_same_answer(corpus, fitted, form):
    X = form(corpus.X)
    model = SingleTopicModel(4).fit(X)
    np.testing.assert_allclose(model.components_, fitted.components_, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(corpus.X), atol=1e-9)


def test_batches_are_as_good_as_all_documents(monkeypatch):
    from thirdmoment.models.topics import streamed

    monkeypatch.setattr(streamed, "SAMPLED", 800)
    corpus = tm.datasets.make_single_topic_corpus(6000, 150, 4, random_state=3)
    X = corpus.X.tocsr()
    whole, first = tm.SingleTopicModel(4).fit(X), tm.SingleTopicModel(4).fit(X[:800])
    model = tm.SingleTopicModel(4)
    for a in range(0, 6000, 400):
        model.partial_fit(X[a : a + 400], feature_names=[f"w{j}" for j in range(150)])
    errors = [
        tm.metrics.recovery_error(m.components_, corpus.topics) for m in (whole, model, first)
    ]
    assert errors[1] < 1.1 * errors[0] < errors[2]
    assert model.n_seen_ == 6000
    assert model._batches["kept"] is None
    assert model.top_words(1)[0][0].startswith("w")
    np.testing.assert_allclose(np.sort(model.weights_), np.sort(whole.weights_), atol=0.01)
    before = model.components_.copy()
    with pytest.raises(ValueError):  # noqa: PT011  of scikit-learn
        model.partial_fit(X[:5, :9])
    np.testing.assert_array_equal(model.components_, before)
