"""Mixed linear regressions: exact moments, finite samples, starts, and what a fit can do."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import thirdmoment as tm
from tests.exact.search import regression_rows
from thirdmoment import MixedLinearRegression
from thirdmoment.exceptions import InputWarning, InvalidInput, UnusableMoments
from thirdmoment.metrics import align
from thirdmoment.moments.regression import root_of_inverse


def draw(seed, n, d, k, sigma=0.5, mean=0.0, mix=None):
    rng = np.random.default_rng(seed)
    slopes = rng.standard_normal((k, d))
    slopes *= 2 / np.linalg.norm(slopes, axis=1, keepdims=True)
    X = mean + rng.standard_normal((n, d)) @ (np.eye(d) if mix is None else mix)
    labels = rng.integers(k, size=n)
    y = (X * slopes[labels]).sum(axis=1) + sigma * rng.standard_normal(n)
    return X, y, slopes, labels


def relative_error(found, slopes):
    found = found[align(found, slopes)]
    return np.linalg.norm(found - slopes, axis=1).mean() / 2


def test_exact_moments_give_all_parameters_back():
    rng = np.random.default_rng(0)
    d, k = 4, 3
    coefs, intercepts = rng.standard_normal((k, d)), np.array([0.5, -1.0, 2.0])
    weights, sigma = np.array([0.5, 0.3, 0.2]), 0.3
    mean, root = rng.standard_normal(d), rng.standard_normal((d, d)) + 2 * np.eye(d)
    X, y, mass = regression_rows(coefs, intercepts, weights, sigma, mean, root)
    model = MixedLinearRegression(k, refine="none").fit(X, y, sample_weight=mass * 1e6)
    order = align(model.coef_, coefs)
    np.testing.assert_allclose(model.coef_[order], coefs, atol=1e-8)
    np.testing.assert_allclose(model.intercept_[order], intercepts, atol=1e-8)
    np.testing.assert_allclose(model.weights_[order], weights, atol=1e-8)
    np.testing.assert_allclose(model.noise_variance_, sigma**2, atol=1e-8)
    assert model.report_.residual < 1e-7  # a root of rounding errors


def test_the_variance_is_no_eigenvalue():
    """The smallest eigenvalue of E[y² xxᵀ], as printed, is not E[y²] where k = d (SR-19)."""
    coefs, weights = np.array([[1.0, 0.5], [-0.3, 1.2]]), np.array([0.6, 0.4])
    X, y, mass = regression_rows(coefs, np.zeros(2), weights, 0.2, np.zeros(2), np.eye(2))
    fourth = (X * (mass * y**2)[:, None]).T @ X
    tau = np.linalg.eigvalsh(fourth)[0]
    right = (fourth - mass @ y**2 * np.eye(2)) / 2
    truth = (coefs.T * weights) @ coefs
    np.testing.assert_allclose(right, truth, atol=1e-12)
    assert np.abs((fourth - tau * np.eye(2)) / 2 - truth).max() > 0.1


@pytest.mark.parametrize(("d", "k"), [(5, 2), (8, 3), (10, 4)])
def test_the_fit_reaches_the_likelihood_of_the_truth(d, k):
    mix = np.random.default_rng(5).standard_normal((d, d)) / np.sqrt(d) + np.eye(d)
    X, y, slopes, labels = draw(d, 8000, d, k, mean=3.0, mix=mix)
    model = MixedLinearRegression(k).fit(X, y)
    truth = clone(model).fit(X, y)
    truth.coef_, truth.intercept_ = slopes, np.zeros(k)
    truth.weights_, truth.noise_variance_ = np.full(k, 1 / k), np.full(k, 0.25)
    assert model.score(X, y) > truth.score(X, y)
    assert relative_error(model.coef_, slopes) < 0.05
    order = align(model.coef_, slopes)
    assigned = model.assign(X, y)
    partner = np.empty(k, dtype=int)
    partner[order] = np.arange(k)
    assert np.mean(partner[assigned] == labels) > 0.75
    np.testing.assert_allclose(model.noise_variance_, 0.25, rtol=0.2)


def test_the_moment_error_falls_like_the_root_of_the_rows():
    errors = []
    for n in (20_000, 320_000):
        each = [draw(seed, n, 5, 2) for seed in range(4)]
        errors.append(
            np.mean(
                [
                    relative_error(MixedLinearRegression(2, refine="none").fit(X, y).coef_, slopes)
                    for X, y, slopes, _ in each
                ]
            )
        )
    slope = np.log(errors[1] / errors[0]) / np.log(16)
    assert -0.8 < slope < -0.3


def test_fewer_columns_than_components_start_otherwise_and_say_so():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 3, 300)
    y = np.where(rng.random(300) < 0.5, 2 * x, 5 - x) + 0.1 * rng.standard_normal(300)
    model = MixedLinearRegression(2).fit(x[:, None], y)
    assert any("at most 1 regressions" in text for text in model.report_.warnings)
    np.testing.assert_allclose(np.sort(model.coef_.ravel()), [-1, 2], atol=0.1)
    with pytest.raises(UnusableMoments, match="at most 1 regressions"):
        MixedLinearRegression(2, refine="none").fit(x[:, None], y)


def test_columns_that_are_not_gaussian_are_named():
    X, _, slopes, labels = draw(3, 5000, 3, 2)
    X[:, 1] = np.random.default_rng(0).exponential(size=5000)
    y = (X * slopes[labels]).sum(axis=1) + 0.2 * np.random.default_rng(1).standard_normal(5000)
    model = MixedLinearRegression(2).fit(X, y)
    assert any("Column 1 of X is not Gaussian" in text for text in model.report_.warnings)
    assert relative_error(model.coef_, slopes) < 0.05


def test_fewer_rows_than_entries_of_the_second_moment():
    X, y, _, _ = draw(4, 90, 10, 2)
    told = MixedLinearRegression(2).fit(X, y).report_.warnings
    assert any("90 rows cannot show the 10² entries" in text for text in told)
    with pytest.raises(UnusableMoments, match="10² entries"):
        MixedLinearRegression(2, refine="none").fit(X, y)


def test_collinear_columns_are_told_and_predictions_stay():
    X, y, _, _ = draw(5, 4000, 4, 2)
    double = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(4000)])
    with pytest.warns(InputWarning, match="span 4 dimensions only"):
        model = MixedLinearRegression(2).fit(double, y)
    plain = MixedLinearRegression(2).fit(X, y)
    np.testing.assert_allclose(
        model.predict_components(double), plain.predict_components(X), atol=1e-3
    )


def test_standardised_rows_have_unit_covariance():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) * [1, 1e4, 1e-4]
    covariance = np.cov(X.T, bias=True)
    Z = (X - X.mean(axis=0)) @ root_of_inverse(covariance, np.abs(X).max(axis=0))
    np.testing.assert_allclose(Z.T @ Z / 500, np.eye(3), atol=1e-6)


def test_one_regression_is_least_squares():
    X, y, _, _ = draw(7, 500, 3, 1)
    model = MixedLinearRegression(1).fit(X, y)
    A = np.column_stack([X, np.ones(500)])
    beta = np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), beta, atol=1e-6)


def test_what_a_fitted_model_can_do():
    X, y, _, _ = draw(8, 3000, 5, 2)
    model = MixedLinearRegression(2).fit(X, y)
    each = model.predict_components(X[:7])
    np.testing.assert_allclose(model.predict(X[:7]), each @ model.weights_)
    posterior = model.posterior(X, y)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    np.testing.assert_array_equal(posterior.argmax(axis=1), model.assign(X, y))
    assert model.score(X, y) == pytest.approx(model.lower_bound_, abs=1e-6)
    one = MixedLinearRegression(1).fit(X, y)
    assert model.bic(X, y) < one.bic(X, y)
    assert model.aic(X, y) < one.aic(X, y)
    drawn, labels = model.sample(X, random_state=0)
    assert np.std(drawn - model.predict_components(X)[np.arange(3000), labels]) < 0.6
    search = GridSearchCV(MixedLinearRegression(), {"n_components": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_components": 2}


def test_threads_and_units_do_not_matter():
    X, y, _, _ = draw(9, 25_000, 4, 2)
    one, two = (MixedLinearRegression(2, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    scaled = MixedLinearRegression(2).fit(X * [1, 1e3, 1e-3, 5] + 7, 1e4 * y - 3)
    np.testing.assert_allclose(scaled.coef_ * [1, 1e3, 1e-3, 5] / 1e4, one.coef_, atol=1e-4)


def test_common_variance_is_common():
    X, y, _, _ = draw(10, 3000, 4, 2)
    model = MixedLinearRegression(2, common_variance=True).fit(X, y)
    assert model.noise_variance_[0] == model.noise_variance_[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"refine": "gibbs"}, "refine"),
        ({"tol": -1.0}, "tol"),
        ({"solver": "magic"}, "magic"),
    ],
)
def test_arguments_are_checked_first(options, message):
    with pytest.raises(InvalidInput, match=message):
        MixedLinearRegression(**options).fit(None, None)


def test_too_few_rows_for_the_components():
    with pytest.raises(InvalidInput, match="3 rows"):
        MixedLinearRegression(4).fit(np.ones((3, 2)), np.ones(3))


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
def test_random_data_never_breaks():
    rng = np.random.default_rng(11)
    for _ in range(40):
        n, d = int(rng.integers(6, 200)), int(rng.integers(1, 6))
        k = int(rng.integers(1, 4))
        X = rng.choice([rng.standard_normal((n, d)), rng.integers(0, 3, (n, d)).astype(float)])
        y = rng.choice([np.zeros(n), rng.standard_normal(n) * 1e8, X[:, 0], np.round(X[:, 0])])
        model = MixedLinearRegression(k, max_refine_iter=30).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.score(X, y))
        assert model.weights_.sum() == pytest.approx(1)


def test_batches_are_as_good_as_all_rows(monkeypatch):
    from thirdmoment.models import stream

    monkeypatch.setattr(stream, "KEPT_ROWS", 1500)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 4)) + 2
    slopes = rng.standard_normal((3, 4))
    y = (X * slopes[rng.integers(3, size=9000)]).sum(axis=1) + 0.5 * rng.standard_normal(9000)
    first = tm.MixedLinearRegression(3).fit(X[:1000], y[:1000])
    once = tm.MixedLinearRegression(3).partial_fit(X[:1000], y[:1000])
    np.testing.assert_allclose(once.coef_, first.coef_)
    whole, model = tm.MixedLinearRegression(3).fit(X, y), tm.MixedLinearRegression(3)
    for a in range(0, 9000, 500):
        model.partial_fit(X[a : a + 500], y[a : a + 500])
    errors = [tm.metrics.recovery_error(m.coef_, slopes) for m in (whole, model, first)]
    assert errors[1] < 1.3 * errors[0] < errors[2]
    assert model.n_seen_ == 9000
    assert model.score(X, y) == pytest.approx(whole.score(X, y), rel=5e-3)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:5, :2], y[:5])
    np.testing.assert_array_equal(model.coef_, before)
