"""Units, offsets, far values, ties, rare codes: what must not change an answer, or break it."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from thirdmoment import KernelMixture
from thirdmoment.datasets import make_shaped_mixture
from thirdmoment.exceptions import InvalidInput, RankDeficientMoment, ThirdMomentWarning
from thirdmoment.refinement.axis import distinct_values, silverman, spread_of


def two_groups(n, d, apart=4.0, seed=0):
    rng = np.random.default_rng(seed)
    h = rng.integers(2, size=n)
    return apart * h[:, None] + rng.standard_normal((n, d)), h


def accuracy(model, X, h):
    agree = float(np.mean(model.predict(X) == h))
    return max(agree, 1 - agree)


def fitted(X, k=2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThirdMomentWarning)
        return KernelMixture(k, **options).fit(X)


@pytest.mark.parametrize("far", [1e7, 1e9, 1e12, 1e18, 1e30, 1e100])
def test_one_value_however_far_does_no_harm(far):
    X, h = two_groups(300, 3)
    X[0, 0] = far
    assert accuracy(fitted(X), X[1:], h[1:]) > 0.98


@pytest.mark.parametrize("views", ["auto", [[0, 1], [2, 3], [4, 5]]])
def test_a_few_per_cent_of_far_values_do_not_make_the_rest_coarse(views):
    rng = np.random.default_rng(1)
    X, h = two_groups(4000, 6, seed=1)
    out = rng.random(4000) < 0.03
    X[out] = rng.uniform(-1e6, 1e6, (out.sum(), 6))
    model = fitted(X, 2, views=views)
    assert accuracy(model, X[~out], h[~out]) > 0.98
    assert max(axis.step for view in model._family.views for axis in view.axes) < 1
    assert np.all(model.report_.details["left_out"] < 0.06)
    told = any("too far from all others" in text for text in model.report_.warnings)
    assert told == np.any(model.report_.details["left_out"] > 0.01)


def test_a_component_of_far_values_is_no_memory_problem():
    rng = np.random.default_rng(2)
    X, h = two_groups(2000, 3)
    X[:40] = rng.uniform(-1e6, 1e6, (40, 3))
    model = fitted(X, 3)
    assert np.all(np.isfinite(model.score_samples(X)))
    assert max(view.size for view in model._family.views) <= 4096  # nodes of a density
    found = model.predict(X[40:])
    pairs = [np.bincount(found[h[40:] == j], minlength=3) for j in (0, 1)]
    assert np.argmax(pairs[0]) != np.argmax(pairs[1])
    assert sum(pair.max() for pair in pairs) > 0.95 * 1960  # the far ones leave the groups alone


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("scale", [1e-6, 1e4, 1e8])
def test_units_do_not_matter(columns, scale):
    X, h = two_groups(600, 3 * columns, apart=3.0)
    views = [list(range(columns * v, columns * (v + 1))) for v in range(3)]
    one, other = fitted(X, views=views), fitted(scale * X, views=views)
    assert accuracy(other, scale * X, h) > 0.97
    # a density has the unit of one over the columns
    moved = other.score(scale * X) + X.shape[1] * np.log(scale)
    assert moved == pytest.approx(one.score(X), abs=0.05)


@pytest.mark.parametrize("columns", [1, 3])
def test_offsets_do_not_matter(columns):
    X, h = two_groups(600, 3 * columns)
    views = [list(range(columns * v, columns * (v + 1))) for v in range(3)]
    one, other = fitted(X, views=views), fitted(X + 1e8, views=views)
    assert accuracy(other, X + 1e8, h) > 0.98
    assert other.score(X + 1e8) == pytest.approx(one.score(X), abs=0.05)


def test_columns_of_mostly_zeros_have_the_bandwidth_of_their_spread():
    rng = np.random.default_rng(3)
    n = 4000
    for zeros in (0.6, 0.8, 0.95):
        x = np.where(rng.random(n) < zeros, 0.0, rng.exponential(1, n))
        values, mass = distinct_values(x, np.ones(n))
        width = silverman(*spread_of(values, mass[None]), np.array([float(n)]), 1)[0]
        whole = 0.9 * x.std() * n**-0.2
        assert 0.15 * whole < width <= whole * (1 + 1e-9)


def test_many_equal_values_leave_fit_and_objective_consistent():
    rng = np.random.default_rng(9)
    z = rng.integers(2, size=1000)
    plain = rng.standard_normal((1000, 4))
    X = np.where(z[:, None] & (rng.random((1000, 4)) < 0.6), 0.0, plain)
    model = fitted(X)
    # held out, so not above what the densities of all rows give them by much
    assert model.lower_bound_ < model.score(X) + 0.05


def test_a_code_beside_the_number_shows_what_piles_up():
    rng = np.random.default_rng(11)
    z = rng.integers(2, size=1000)
    piled = z[:, None] & (rng.random((1000, 4)) < 0.6)
    X = np.where(piled, 0.0, rng.standard_normal((1000, 4)))
    wide = np.column_stack([X == 0, X]).astype(float)
    views = [[v, 4 + v] for v in range(4)]
    model = fitted(wide, views=views, kernel=[["delta", "rbf"]] * 4)
    # a row of the second group shows no zero with probability 0.4⁴ = 0.026, half of all rows are
    assert accuracy(model, wide, z) > 1 - 0.026 / 2 - 5 * np.sqrt(0.013 / 1000)


def test_sharper_bandwidths_are_advised_where_they_pay():
    rng = np.random.default_rng(10)
    X, h = two_groups(2000, 3, apart=8.0, seed=10)
    assert not any("bandwidth='cv'" in text for text in fitted(X).report_.warnings)
    humps = np.where(rng.random((2000, 3)) < 0.5, -2.0, 2.0) + 0.2 * rng.standard_normal((2000, 3))
    X[h == 0] = humps[h == 0]
    assert any("bandwidth='cv'" in text for text in fitted(X).report_.warnings)
    cv = fitted(X, bandwidth="cv")
    assert not any("bandwidth='cv'" in text for text in cv.report_.warnings)


def test_with_dirichlet_proportions_the_objective_is_that_of_the_model():
    pd = pytest.importorskip("pandas")
    X, _ = two_groups(600, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fitted(frame, concentration=1.0)
    assert model.lower_bound_ == pytest.approx(model.score(frame))


def test_zero_inflated_groups_are_found():
    rng = np.random.default_rng(4)
    h = rng.integers(2, size=3000)
    zero = rng.random((3000, 3)) < np.where(h[:, None] == 0, 0.6, 0.3)
    X = np.where(zero, 0.0, rng.gamma(np.where(h[:, None] == 0, 2, 12), 1.0, (3000, 3)))
    truth = fitted(X)
    assert accuracy(truth, X, h) > 0.85


def test_a_column_of_rare_codes_that_says_nothing_does_no_harm():
    rng = np.random.default_rng(5)
    X, h = two_groups(2000, 3, apart=2.5)
    codes = rng.integers(500, size=2000)
    wide = np.column_stack([X, codes])
    model = fitted(wide, views=[[0], [1], [2], [3]], kernel=["rbf", "rbf", "rbf", "delta"])
    alone = fitted(X)
    assert accuracy(model, wide, h) > accuracy(alone, X, h) - 0.02


def test_cross_validation_does_not_chase_ties():
    data = make_shaped_mixture(4000, 2, skewed=False, spacing=4, random_state=6)
    rounded = np.round(data.X, 1)
    auto, cv = (fitted(rounded, bandwidth=name) for name in ("auto", "cv"))
    assert min(width.min() for width in cv.bandwidths_) >= 0.09
    assert cv.score(data.X) > auto.score(data.X) - 0.05


def test_expectations_of_functions_defined_on_the_data_alone():
    rng = np.random.default_rng(7)
    h = rng.integers(2, size=2000)
    X = np.exp(3 * h[:, None] + rng.standard_normal((2000, 3)))
    model = fitted(X)
    found = np.sort(model.expectation(lambda x: np.log(x[:, 0]), 0))
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found, [0, 3], atol=0.35)


def test_expectations_over_wide_views_are_not_blurred():
    X, _ = two_groups(3000, 9, apart=5.0)
    model = fitted(X, views=[[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    first = model.expectation(lambda x: x, 1)
    second = model.expectation(lambda x: x**2, 1)
    np.testing.assert_allclose(second - first**2, 1.0, atol=0.12)


def test_views_of_one_law_may_have_a_constant_among_them():
    X, _ = two_groups(500, 4)
    X[:, 0] = 1.0
    model = fitted(X, exchangeable=True)
    assert model.bandwidths_[0].shape == (2, 1)
    assert np.all(model.density([0.1, 0.2], 1) > 0)


def test_views_of_one_law_need_one_bandwidth():
    X, _ = two_groups(300, 3)
    with pytest.raises(InvalidInput, match="the same bandwidth"):
        KernelMixture(exchangeable=True, bandwidth=[0.3, 0.6, 0.9]).fit(X)
    one = fitted(X * [1, 2, 3], exchangeable=True, bandwidth="wide")
    other = fitted((X * [1, 2, 3])[:, ::-1], exchangeable=True, bandwidth="wide")
    np.testing.assert_allclose(one.bandwidths_[0], other.bandwidths_[0])


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"rank": 2}])
def test_views_of_one_law_with_too_few_features(options):
    X, _ = two_groups(300, 3)
    with pytest.raises(RankDeficientMoment, match=r"numerical rank 2.*n_components=3"):
        KernelMixture(3, exchangeable=True, refine="none", **options).fit(X)
    assert len(fitted(X, 3, exchangeable=True, **options).weights_) == 3


def test_words_for_bandwidths_are_checked_everywhere():
    X, _ = two_groups(300, 3)
    with pytest.raises(InvalidInput, match="bandwidth has 'cv' for one view"):
        KernelMixture(bandwidth=["cv", "auto", "auto"]).fit(X)
    with pytest.raises(InvalidInput, match="bandwidth has 'scott' for one view"):
        KernelMixture(bandwidth=["scott", 0.5, 0.5]).fit(X)
    with pytest.raises(InvalidInput, match="bandwidth='cv' needs refinement"):
        KernelMixture(bandwidth="cv", refine="none").fit(X)
    mixed = fitted(X, bandwidth=["wide", "auto", 0.7])
    assert np.all(mixed.bandwidths_[2] == 0.7)


def test_bandwidths_finer_than_the_lattice_are_reported():
    X, _ = two_groups(300, 6)
    model = fitted(X, bandwidth=0.005, views=[[0, 1], [2, 3], [4, 5]])
    assert model.bandwidths_[0].min() > 0.005
    assert any("finer than its density can show" in text for text in model.report_.warnings)


def test_the_number_of_steps_is_respected():
    X, _ = two_groups(300, 2)
    assert fitted(X, max_refine_iter=0).n_iter_ == 0
    with pytest.warns(ConvergenceWarning, match="stopped at max_refine_iter=1"):
        one = fitted(X, max_refine_iter=1)
    assert max(len(one.report_.refine_path) - 2, 0) <= 4  # a step in each stage


def test_a_callable_kernel_sees_all_columns_of_its_view():
    X, h = two_groups(400, 4)
    X = np.column_stack([X, np.ones(400)])
    seen = []

    def kernel(A, B):
        seen.append(A.shape[1])
        return np.exp(-0.5 * (A[:, :1] - B[:, :1].T) ** 2)

    model = fitted(X, views=[[0, 4], [1], [2]], kernel=[kernel, "rbf", "rbf"])
    assert set(seen) == {2}
    assert accuracy(model, X, h) > 0.97


def test_dirichlet_parameters_sum_to_the_concentration():
    X, _ = two_groups(600, 3)
    model = fitted(X, concentration=1.6)
    assert model.concentration_.sum() == pytest.approx(1.6)
    one = fitted(X, 1, concentration=1.6)
    np.testing.assert_allclose(one.concentration_, [1.6])
    assert one.sample(5)[1].shape == (5, 3)


def test_weights_count_as_rows():
    X, _ = two_groups(12, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = np.array([40, 39, 41, 40] * 3)
        one = KernelMixture(2, refine="none").fit(np.repeat(X, counts, axis=0))
        other = KernelMixture(2, refine="none").fit(X, sample_weight=counts)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-8)


def test_too_many_codes_beside_a_smooth_column_are_refused():
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.permutation(3000), rng.standard_normal((3000, 3))]).astype(float)
    kernel = [["delta", "rbf"], "rbf", "rbf"]
    with pytest.raises(InvalidInput, match=r"3000 distinct values and 1 smooth columns needs"):
        KernelMixture(views=[[0, 1], [2], [3]], kernel=kernel).fit(X)


def test_pictures_need_views():
    X, _ = two_groups(300, 3)
    model = fitted(X)
    for wrong in ([], 0):
        with pytest.raises(InvalidInput, match="non-empty list"):
            model.plot_components(views=wrong)
