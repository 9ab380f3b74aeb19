"""What mixtures say about data and arguments they cannot use; valid output always."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thirdmoment import CategoricalMixture, GaussianMixture, MultiViewMixture
from thirdmoment.exceptions import InvalidInput, ThirdMomentWarning

MODELS = [GaussianMixture, CategoricalMixture, MultiViewMixture]


def codes(n=60, seed=0):
    return np.random.default_rng(seed).integers(0, 3, size=(n, 4)).astype(float)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be at least 1"),
        ({"n_components": 2.5}, "must be an integer"),
        ({"solver": "magic"}, "solver='magic' is unknown"),
        ({"refine": "hard"}, "refine='hard' is unknown"),
        ({"weighting": "tf"}, "weighting='tf' is unknown"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_wrong_arguments_are_named(model, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        model(**arguments).fit(codes())


@pytest.mark.parametrize("model", MODELS)
def test_fewer_rows_than_components_are_an_error(model):
    with pytest.raises(InvalidInput, match=r"3 rows .* fewer than n_components=5"):
        model(5).fit(codes(3))


@pytest.mark.parametrize("model", MODELS)
def test_weights_that_cannot_be_used(model):
    X = codes()
    with pytest.raises(InvalidInput, match="negative entry"):
        model(2).fit(X, sample_weight=np.linspace(-1, 1, len(X)))
    with pytest.raises(InvalidInput, match="zero for every sample"):
        model(2).fit(X, sample_weight=np.zeros(len(X)))


def test_codes_that_are_no_codes():
    with pytest.raises(InvalidInput, match="the code -1"):
        CategoricalMixture(2).fit(codes() - 1)
    with pytest.raises(InvalidInput, match=r"the value \d\.5"):
        CategoricalMixture(2).fit(codes() + 0.5)
    with pytest.raises(ValueError, match=r"could not convert|dtype"):
        CategoricalMixture(2).fit(np.array([["a", "b", "c"]] * 5))


def test_gaussian_arguments():
    X = np.random.default_rng(0).standard_normal((30, 6))
    with pytest.raises(InvalidInput, match="covariance_type='round'"):
        GaussianMixture(2, covariance_type="round").fit(X)
    with pytest.raises(InvalidInput, match="leaves out column 5"):
        GaussianMixture(2, covariance_type="block", views=[[0, 1], [2, 3], [4]]).fit(X)
    with pytest.raises(InvalidInput, match="reg_covar=-1"):
        GaussianMixture(2, reg_covar=-1).fit(X)


def check_gaussian(model, X):
    assert np.isfinite(model.means_).all()
    assert model.weights_.min() >= 0
    assert model.weights_.sum() == pytest.approx(1, abs=1e-5)
    P = model.predict_proba(X)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-6)
    assert np.isfinite(model.score(X))


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
@pytest.mark.parametrize(
    "X",
    [
        np.ones((20, 4)),
        np.repeat(np.eye(4), 5, axis=0),
        np.concatenate([np.zeros((19, 4)), np.full((1, 4), 1e3)]),
        np.concatenate([np.random.default_rng(0).standard_normal((30, 3)), np.ones((30, 1))], 1),
        1e6 + 1e-3 * np.random.default_rng(0).standard_normal((40, 4)),
        np.random.default_rng(0).standard_normal((40, 1)),
    ],
    ids=["constant", "duplicates", "outlier", "constant column", "far away", "one column"],
)
def test_degenerate_tables_give_valid_models(kind, X):
    check_gaussian(GaussianMixture(3, covariance_type=kind).fit(X), X)


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
def test_a_component_of_nearly_zero_weight_leaves_the_others_alone():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=5_000, p=[0.6, 0.399, 0.001])
    means = np.array([[0.0] * 6, [4.0] * 6, [-6.0] * 6])
    X = means[labels] + rng.standard_normal((5_000, 6))
    model = GaussianMixture(3).fit(X)
    check_gaussian(model, X)
    np.testing.assert_allclose(model.means_[0], 0.0, atol=0.15)
    np.testing.assert_allclose(model.means_[1], 4.0, atol=0.15)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    k=st.integers(1, 4),
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["spherical", "diag", "full", "tied"]),
    grid=st.booleans(),
)
def test_any_small_table_gives_a_valid_gaussian_model_or_a_clear_error(n, d, k, seed, kind, grid):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.choice([1e-3, 1.0, 1e3])
    X = np.round(X) if grid else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThirdMomentWarning)
        try:
            model = GaussianMixture(k, covariance_type=kind).fit(X)
        except InvalidInput:
            assert n < k
            return
    check_gaussian(model, X)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 60),
    columns=st.integers(1, 6),
    sizes=st.integers(1, 4),
    k=st.integers(1, 4),
    seed=st.integers(0, 1000),
    missing=st.sampled_from([0.0, 0.3, 0.8]),
)
def test_any_small_code_table_gives_valid_tables_or_a_clear_error(
    n, columns, sizes, k, seed, missing
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, sizes, size=(n, columns)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThirdMomentWarning)
        try:
            model = CategoricalMixture(k).fit(X)
        except InvalidInput:
            assert np.sum(~np.isnan(X).all(axis=1)) < k
            return
    for table in model.probabilities_:
        assert np.isfinite(table).all()
        assert table.min() >= 0
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-8)
    assert np.isfinite(model.score_samples(X)).all()
