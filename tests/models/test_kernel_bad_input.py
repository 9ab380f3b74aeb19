"""Every mistake has a message, before any long work."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thirdmoment import KernelMixture
from thirdmoment.datasets import make_shaped_mixture
from thirdmoment.exceptions import (
    InvalidInput,
    RankDeficientView,
    ThirdMomentError,
    ThirdMomentWarning,
    UnusableMoments,
)

X = make_shaped_mixture(300, 2, random_state=0).X


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"views": [[0], [1]]}, "has 2 column groups; two views do not identify"),
        ({"views": [[0], [1], [1]]}, "Views share column 1"),
        ({"views": "columns"}, "views='columns' must be 'auto'"),
        ({"bandwidth": 0}, "bandwidth=0 must be a finite positive number"),
        ({"bandwidth": -0.5}, "bandwidth=-0.5 must be a finite positive number"),
        ({"bandwidth": [0.5, -1, 0.5]}, "bandwidth=-1 must be a finite positive number"),
        ({"bandwidth": [0.5, 0.5]}, "one for each of the 3 views"),
        ({"bandwidth": [[0.5, 0.1], 1, 1]}, "bandwidth of view 0 has 2 entries for 1 columns"),
        ({"bandwidth": "scott"}, "bandwidth='scott' must be 'auto', 'cv', 'wide'"),
        ({"bandwidth": np.nan}, "must be a finite positive number"),
        ({"kernel": "cosine"}, "kernel of view 0 is 'cosine'"),
        ({"kernel": ["rbf", "rbf"]}, "one for each of the 3 views"),
        ({"kernel": [["rbf", "rbf"], "rbf", "rbf"]}, "one for each of its 1 columns"),
        ({"features": "nystrom"}, "features='nystrom' is unknown"),
        ({"rank": 0}, "rank=0 must be at least 1"),
        ({"concentration": -1}, "concentration=-1 must be a finite positive number"),
        ({"exchangeable": "yes"}, "exchangeable='yes' must be True or False"),
        ({"refine": "gibbs"}, "refine='gibbs' is unknown"),
        ({"n_components": 0}, "n_components=0 must be at least 1"),
        ({"features": "fourier", "kernel": "delta"}, "kernel of differences"),
        ({"kernel": lambda A, B: A}, "the kernel|The kernel"),
    ],
)
def test_wrong_arguments_have_a_message(options, message):
    with pytest.raises(InvalidInput, match=message):
        KernelMixture(**options).fit(X)


def test_exchangeable_views_must_be_alike():
    with pytest.raises(InvalidInput, match="same number of columns"):
        KernelMixture(exchangeable=True, views=[[0], [1, 2], [3]]).fit(
            np.column_stack([X, X[:, 0] ** 2])
        )


def test_too_many_views_with_dirichlet_proportions():
    wide = np.random.default_rng(0).standard_normal((100, 9))
    views = [[j] for j in range(9)]
    with pytest.raises(InvalidInput, match="with 9 views is too many"):
        KernelMixture(concentration=1.0, views=views).fit(wide)


def test_codes_with_many_smooth_columns_in_one_view():
    wide = np.column_stack([X, X**2])
    kernel = [["delta", "rbf", "rbf", "rbf"], "rbf", "rbf"]
    with pytest.raises(InvalidInput, match="View 0 mixes columns of kernel 'delta' with 3 smooth"):
        KernelMixture(views=[[0, 1, 2, 3], [4], [5]], kernel=kernel).fit(wide)


def test_missing_values_are_refused():
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KernelMixture().fit(broken)


def test_few_rows_start_otherwise_or_say_why():
    with pytest.raises(InvalidInput, match=r"There are 3 rows .* fewer than n_components=4"):
        KernelMixture(4).fit(X[:3])
    with pytest.raises(UnusableMoments, match=r"There are 10 rows for n_components=4; .* \(12\)"):
        KernelMixture(4, refine="none").fit(X[:10])
    model = KernelMixture(4).fit(X[:10])
    assert any("10 rows for n_components=4" in text for text in model.report_.warnings)
    assert model.weights_.sum() == pytest.approx(1)


def test_more_components_than_the_views_can_show():
    # a linear kernel of one column has two features: a constant and the column
    with pytest.raises(RankDeficientView, match=r"has rank 2 .* n_components=3 .*singular values"):
        KernelMixture(3, kernel="linear", refine="none").fit(X)
    model = KernelMixture(3, kernel="linear").fit(X)
    assert any("has rank 2" in text for text in model.report_.warnings)


def test_memory_of_the_exact_route_is_refused_before_it_is_taken():
    many = np.random.default_rng(0).standard_normal((20_000, 3))
    with pytest.raises(InvalidInput, match=r"about 20.9 GiB .* 20000 rows and 3 views \(2 GiB"):
        KernelMixture(features="exact").fit(many)


def test_constant_columns_leave_their_view():
    wide = np.column_stack([X, np.ones(300), X**2, np.zeros(300)])
    model = KernelMixture(views=[[0, 3, 4], [1, 5], [2, 6, 7]]).fit(wide)
    assert [group.tolist() for group in model.view_groups_] == [[0, 4], [1, 5], [2, 6]]


def test_questions_about_views_that_do_not_exist():
    model = KernelMixture().fit(X)
    with pytest.raises(InvalidInput, match="view=3 does not exist; there are 3 views, 0 to 2"):
        model.density(X, 3)
    with pytest.raises(InvalidInput, match="component=2 does not exist"):
        model.density(X, 0, 2)
    with pytest.raises(
        InvalidInput, match="X has 2 columns; give whole rows of 3 columns or the 1"
    ):
        model.density(X[:, :2], 0)
    with pytest.raises(InvalidInput, match="must return one value"):
        model.expectation(lambda x: 1.0, 0)


@st.composite
def tables(draw):
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.standard_normal((n, d))
    kinds = ["normal", "ties", "constant", "huge", "tiny", "codes", "cauchy", "far", "zeros"]
    kind = draw(st.sampled_from(kinds))
    if kind == "ties":
        values = np.round(values)
    elif kind == "constant":
        values[:, : d // 2 + 1] = 3.0
    elif kind == "huge":
        values *= 1e12
    elif kind == "tiny":
        values = 1 + 1e-12 * values
    elif kind == "codes":
        values = rng.integers(3, size=(n, d)).astype(float)
    elif kind == "cauchy":
        values = rng.standard_cauchy((n, d)) ** 3
    elif kind == "far":
        values[0] = 1e15
    elif kind == "zeros":
        values = np.where(rng.random((n, d)) < 0.8, 0.0, values)
    weights = rng.integers(0, 3, n).astype(float)
    return values, (weights if draw(st.booleans()) and weights.any() else None)


@settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    tables(),
    st.integers(1, 4),
    st.sampled_from(["auto", "none"]),
    st.sampled_from(["auto", "cv", "wide", 0.5]),
    st.sampled_from(["rbf", "laplace", "linear", "delta"]),
    st.sampled_from(["low-rank", "exact", "fourier"]),
    st.booleans(),
    st.sampled_from([None, 0.5, 5.0]),
    st.sampled_from(["auto", 3]),
)
def test_fit_succeeds_or_says_why(
    table, k, refine, bandwidth, kernel, features, exchangeable, concentration, views
):
    values, weights = table
    model = KernelMixture(
        k,
        views=views,
        refine=refine,
        bandwidth=bandwidth,
        kernel=kernel,
        features=features,
        exchangeable=exchangeable,
        concentration=concentration,
        max_refine_iter=5,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ThirdMomentWarning)
        try:
            model.fit(values, sample_weight=weights)
        except ThirdMomentError:
            assert not hasattr(model, "weights_")
            return
        assert model.weights_.sum() == pytest.approx(1)
        assert np.all(np.isfinite(model.score_samples(values)))
        np.testing.assert_allclose(model.predict_proba(values).sum(axis=1), 1)
        assert np.all(np.isfinite(model.sample(3)[0]))
        assert np.isfinite(model.bic(values))
        for v in range(len(model.view_groups_)):
            assert model.density(values, v).min() >= 0
