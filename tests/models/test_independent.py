"""Independent factors and Poisson topics."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.decomposition import FastICA

from thirdmoment import IndependentFactors, PoissonTopicModel
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InvalidInput, MomentWarning, UnusableMoments
from thirdmoment.metrics import recovery_error


def matched(found, truth):
    """Largest distance of directions after the best matching, signs ignored."""
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    truth = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    overlap = np.abs(found @ truth.T)
    return float(np.sqrt(np.maximum(0, 2 - 2 * overlap.max(axis=0))).max())


def mixed(sources, d=5, seed=0):
    mixing = np.random.default_rng(seed).standard_normal((sources.shape[1], d))
    return sources @ mixing, mixing


def test_skewed_sources_are_separated_by_the_third_order():
    S = np.random.default_rng(0).exponential(size=(20_000, 4))
    X, mixing = mixed(S)
    model = IndependentFactors(4).fit(X)
    assert model.order_ == 3
    assert matched(model.components_, mixing) < 0.1
    np.testing.assert_allclose(model.skewness_, 2.0, atol=0.3)
    found = model.transform(X)
    np.testing.assert_allclose(np.corrcoef(found.T), np.eye(4), atol=0.02)
    np.testing.assert_allclose(model.inverse_transform(found), X, atol=1e-8)


def test_symmetric_sources_make_auto_choose_the_fourth_order():
    rng = np.random.default_rng(1)
    S = np.stack([rng.uniform(-1, 1, 20_000), rng.laplace(size=20_000),
                  rng.choice([-1.0, 1.0], 20_000)], axis=1)  # fmt: skip
    X, mixing = mixed(S)
    model = IndependentFactors(3).fit(X)
    assert model.order_ == 4
    assert matched(model.components_, mixing) < 0.05
    assert np.sort(model.kurtosis_)[0] == pytest.approx(
        -2, abs=0.1
    )  # negative ones keep their sign
    peer = FastICA(3, random_state=0, whiten="unit-variance").fit(X)
    assert matched(model.components_, mixing) < 2 * matched(peer.mixing_.T, mixing) + 0.01


@pytest.mark.parametrize("order", [3, 4])
def test_noisy_views_do_not_disturb_the_factors(order):
    rng = np.random.default_rng(2)
    n, k = 100_000, 3
    h = rng.exponential(size=(n, k)) if order == 3 else rng.uniform(-1, 1, size=(n, k))
    mixing = rng.standard_normal((k, 4 * 5))
    X = h @ mixing + 0.5 * rng.standard_normal((n, 20))
    views = [list(range(5 * v, 5 * v + 5)) for v in range(4)]
    model = IndependentFactors(k, views=views, order=order).fit(X)
    assert model.order_ == order
    assert matched(model.components_, mixing) < 0.12


def test_auto_takes_the_fourth_order_of_four_views_where_skewness_vanishes():
    rng = np.random.default_rng(3)
    h = rng.uniform(-1, 1, size=(50_000, 2))
    mixing = rng.standard_normal((2, 12))
    X = h @ mixing + 0.3 * rng.standard_normal((50_000, 12))
    views = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert IndependentFactors(2, views=views).fit(X).order_ == 4


def test_gaussian_factors_are_reported_as_not_identifiable():
    X, _ = mixed(np.random.default_rng(4).standard_normal((5_000, 3)))
    report = IndependentFactors(3).fit(X).report_
    assert "nearly Gaussian" in str(report)


def test_wrong_orders_and_views_are_refused():
    X = np.random.default_rng(0).standard_normal((50, 6))
    with pytest.raises(InvalidInput, match="order=4 needs four views"):
        IndependentFactors(2, views=[[0, 1], [2, 3], [4, 5]], order=4).fit(X)
    with pytest.raises(InvalidInput, match="order=5"):
        IndependentFactors(2, order=5).fit(X)
    with pytest.raises(InvalidInput, match="must list the columns"):
        IndependentFactors(2, views=3).fit(X)
    with pytest.raises(UnusableMoments, match="cannot be read off 6 columns"):
        IndependentFactors(7).fit(X)


def poisson_corpus(n, seed=0, k=3, d=40):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.2), size=k)
    shape = np.array([0.5, 1.0, 2.0])
    h = rng.gamma(shape, 10.0, size=(n, k))
    return rng.poisson(h @ topics), topics, shape


def test_one_count_vector_a_document_identifies_poisson_topics():
    X, topics, shape = poisson_corpus(40_000)
    model = PoissonTopicModel(3).fit(X)
    assert recovery_error(model.components_, topics) < 0.1
    np.testing.assert_allclose(np.sort(model.rates_), 10 * shape, rtol=0.1)
    # gamma rates: sd = scale √shape, skewness = 2/√shape
    np.testing.assert_allclose(np.sort(model.rate_deviations_), 10 * np.sqrt(shape), rtol=0.15)
    np.testing.assert_allclose(np.sort(model.rate_skewness_), np.sort(2 / np.sqrt(shape)), rtol=0.3)
    rates = model.transform(X[:50])
    assert rates.shape == (50, 3)
    np.testing.assert_allclose(rates.sum(axis=1), X[:50].sum(axis=1), rtol=1e-3)


def test_the_error_of_poisson_topics_falls_with_the_number_of_documents():
    errors = [
        np.mean([
            recovery_error(PoissonTopicModel(3).fit(X).components_, topics)
            for X, topics, _ in (poisson_corpus(n, seed) for seed in range(4))
        ])
        for n in (2_000, 32_000)
    ]  # fmt: skip
    assert -0.75 < np.log(errors[1] / errors[0]) / np.log(16) < -0.3


def test_poisson_moments_that_cannot_be_used():
    X = make_lda_corpus(40, 6, 2).X.toarray()
    with pytest.raises(UnusableMoments):
        PoissonTopicModel(7, refine="none").fit(X)
    with pytest.warns(MomentWarning, match="not usable"):
        model = PoissonTopicModel(7).fit(X)
    assert np.isfinite(model.components_).all()


def test_auto_falls_back_to_the_order_that_the_views_allow():
    rng = np.random.default_rng(5)
    X = rng.exponential(size=(20_000, 2)) @ rng.standard_normal((2, 6))
    X += 0.3 * rng.standard_normal(X.shape)
    model = IndependentFactors(2, views=[[c] for c in range(6)]).fit(X)
    assert model.order_ == 3
    assert model.report_.solver == "tensor"


def test_clear_skewness_of_views_is_preferred():
    rng = np.random.default_rng(6)
    X = rng.exponential(size=(30_000, 2)) @ rng.standard_normal((2, 12))
    X += 0.3 * rng.standard_normal(X.shape)
    views = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert IndependentFactors(2, views=views).fit(X).order_ == 3
    fourth = IndependentFactors(2, views=views, order=4).fit(X)
    assert np.isnan(fourth.skewness_).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_identifiable_factor_among_gaussians_is_found(seed):
    rng = np.random.default_rng(seed)
    S = np.column_stack([rng.laplace(size=3_000), rng.standard_normal((3_000, 2))])
    mixing = rng.standard_normal((3, 3))
    found = IndependentFactors(3).fit(S @ mixing).components_
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    assert np.abs(found @ mixing[0]).max() / np.linalg.norm(mixing[0]) > np.cos(np.radians(6))


def test_rates_maximise_the_poisson_likelihood_and_empty_documents_have_none():
    X = poisson_corpus(60, seed=3)[0]
    model = PoissonTopicModel(3).fit(poisson_corpus(4000, seed=4)[0])
    H = model.transform(np.concatenate([X, np.zeros((1, X.shape[1]), dtype=int)]))
    assert np.all(H[-1] == 0)
    C = np.maximum(model.components_, 1e-8)
    C = C / C.sum(axis=1, keepdims=True)
    for x, h in zip(X, H[:-1], strict=True):
        best = scipy.optimize.minimize(
            lambda a, x=x: np.exp(a).sum() - x @ np.log(np.exp(a) @ C), np.zeros(3), tol=1e-10
        )
        assert h.sum() - x @ np.log(h @ C) < best.fun + 1e-3 if x.sum() else np.all(h == 0)
