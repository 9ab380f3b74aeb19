"""Searches for Gaussian components: right targets, honest verdicts, errors that help."""

import warnings

import numpy as np
import pytest

from thirdmoment import GaussianSearch
from thirdmoment.datasets import make_gaussian_mixture
from thirdmoment.exceptions import InputWarning, InvalidInput, MomentWarning
from thirdmoment.moments.gaussian import SphericalTriples
from thirdmoment.search.rows import training_rows
from thirdmoment.streaming import fold


def overlapping(seed=0, n=6000, k=6, d=60, sigma=1.0):
    """Means that share a direction and differ much in length (SR-24)."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((k, d)) * 0.5 + rng.standard_normal(d) * 0.7
    means *= np.linspace(0.6, 2.0, k)[:, None]
    labels = rng.integers(k, size=n)
    return means[labels] + sigma * rng.standard_normal((n, d)), labels, means


def nearest(means, found):
    return int(np.argmin(((means - found.parameters) ** 2).sum(axis=1)))


def test_labelled_rows_find_their_component_where_raw_means_do_not():
    X, labels, means = overlapping()
    search = GaussianSearch(6).fit(X)
    raw = 0
    for target in range(6):
        rows = X[labels == target][:10]
        found = search.search(rows)
        assert nearest(means, found) == target
        assert found.informative, found.report
        assert found.report.label_score > 0
        assert found.weight == pytest.approx(1 / 6, abs=0.05)
        error = np.linalg.norm(found.parameters - means[target])
        assert error < np.linalg.norm(rows.mean(axis=0) - means[target])
        plain = search.search(rows, whiten=False)
        raw += nearest(means, plain) == target
        assert nearest(means, plain) == target or not plain.informative
    assert raw <= 3  # inner products with the mean of the labels follow the lengths of means


def test_a_dark_pixel_finds_the_dark_half_and_is_misaligned_if_raw():
    rng = np.random.default_rng(5)
    X = np.repeat([0.1, 0.9], 2000)[:, None] + 0.05 * rng.standard_normal((4000, 3))
    search = GaussianSearch(2).fit(X)
    assert search.search(X[0]).parameters.mean() == pytest.approx(0.1, abs=0.02)
    raw = search.search(X[0], whiten=False)
    assert raw.parameters.mean() == pytest.approx(0.9, abs=0.02)
    assert not raw.informative
    assert raw.alignment < 0.2


def test_a_query_equals_the_contraction_of_the_whole_tensor():
    X, labels, _ = overlapping(1)
    search = GaussianSearch(6).fit(X)
    chunks = training_rows(search._units.rows(X), None, 6).samples()
    triples = fold(lambda: SphericalTriples(search._white), chunks)
    T, t = triples.finish()
    np.testing.assert_allclose(search._variance, t, rtol=1e-10)
    found = search.search(X[labels == 2][:5])
    own = (X[labels == 2][:5].mean(axis=0) - search.mean_) / search._units.scale
    hint = np.append(own @ search._white.E / np.sqrt(search._white.eta), 1.0)
    np.testing.assert_allclose(
        found.report.scores, np.linalg.eigvalsh(T @ hint)[::-1], atol=1e-8 * found.report.scores[0]
    )


def test_a_blurred_direction_is_not_called_informative():
    rng = np.random.default_rng(2)
    k, d = 8, 40
    means = np.linalg.qr(rng.standard_normal((d, k)))[0].T * 5
    X = means[rng.integers(k, size=4000)] + 0.5 * rng.standard_normal((4000, d))
    search = GaussianSearch(k).fit(X)
    clear = means[0] + 0.2 * means[1:].sum(axis=0)
    assert search.search(direction=clear).informative
    # meant for the first, but every other score is nearly as large and one is larger
    blurred = means[0] + 0.95 * means[1:].sum(axis=0) + 0.1 * means[3]
    found = search.search(direction=blurred)
    assert nearest(means, found) == 3
    assert not found.informative
    assert "alignment" in found.report.warnings[0]
    between = search.search((means[1] + means[2]) / 2)
    assert not between.informative


def test_components_of_several_searches_assign_rows():
    data = make_gaussian_mixture(3000, 8, 3, random_state=1)
    search = GaussianSearch(3).fit(data.X)
    hints = [data.X[data.labels == j][:4] for j in range(3)]
    found = search.search_many([*hints, {"samples": hints[0]}])
    assert len(found) == 4
    np.testing.assert_array_equal(found[0].parameters, found[3].parameters)
    labels = search.assign(data.X, found[:3])
    assert np.mean(labels == data.labels) > 0.95


def ellipses(k, seed=0):
    """Long, tilted groups in three columns that a sphere does not hold."""
    rng = np.random.default_rng(seed)
    labels = np.arange(400 * k) % k
    axes = rng.standard_normal((k, 3, 3)) * np.array([3.0, 0.3, 0.3])[:, None]
    return 4 * rng.standard_normal((k, 3))[labels] + np.einsum(
        "ad,ade->ae", rng.standard_normal((len(labels), 3)), axes[labels]
    ), labels


@pytest.mark.parametrize("k", [3, 6])
def test_elliptical_groups_and_more_of_them_than_columns(k):
    X, labels = ellipses(k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        search = GaussianSearch(k).fit(X)
    found = search.search_many([X[labels == j][:5] for j in range(k)])
    right = np.mean(search.assign(X, found) == labels)
    plain = np.mean(search.assign(X, found, refine="none") == labels)
    assert right > 0.9
    assert right > plain + 0.1


def test_columns_in_very_different_units():
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 3
    X = 5 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((900, 4))
    X[:, 0] *= 1000
    search = GaussianSearch(3).fit(X)
    found = search.search_many([X[labels == j][:5] for j in range(3)])
    assert np.mean(search.assign(X, found) == labels) > 0.97


@pytest.mark.parametrize("wrong", [[np.zeros(4)], ["here"]])
def test_only_answers_of_the_search_are_components(wrong):
    search = GaussianSearch(2).fit(make_gaussian_mixture(200, 4, 2).X)
    with pytest.raises(InvalidInput, match="answers of a search over 4 columns"):
        search.assign(np.zeros((2, 4)), wrong)


def test_hints_that_end_in_another_component_are_told():
    X = make_gaussian_mixture(300, 4, 2, separation=8.0).X
    search = GaussianSearch(2).fit(X)
    same = search.search_many([X[0], X[0] + 1e-6])
    with pytest.warns(InputWarning, match="lie in another component now"):
        search.assign(X, same)


def test_spherical_groups_are_assigned_as_well_as_by_the_truth():
    data = make_gaussian_mixture(3000, 50, 10, separation=3.0, random_state=5)
    search = GaussianSearch(10).fit(data.X)
    found = search.search_many([data.X[data.labels == j][:3] for j in range(10)])
    best = np.argmin(((data.X[:, None] - data.means) ** 2).sum(axis=2), axis=1)
    right = np.mean(search.assign(data.X, found) == data.labels)
    assert right > np.mean(best == data.labels) - 0.01


def test_answers_do_not_depend_on_threads_and_weights_repeat_rows():
    X, labels, _ = overlapping(3, n=2000)
    answers = [
        GaussianSearch(6, n_jobs=jobs).fit(X).search(X[labels == 1][:5]).parameters
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*answers)
    weight = np.where(np.arange(2000) < 500, 2.0, 1.0)
    a = GaussianSearch(6).fit(X, sample_weight=weight).search(X[:1])
    b = GaussianSearch(6).fit(np.concatenate([X, X[:500]])).search(X[:1])
    np.testing.assert_allclose(a.parameters, b.parameters, atol=1e-7)


def test_one_component_is_the_mean():
    X, _, _ = overlapping(4, n=500)
    found = GaussianSearch(1).fit(X).search(X[:3])
    np.testing.assert_allclose(found.parameters, X.mean(axis=0), atol=1e-8)
    assert found.weight == pytest.approx(1)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ({}, "exactly one kind of hint"),
        ({"samples": np.ones((1, 8)), "direction": np.ones(8)}, "exactly one kind of hint"),
        ({"direction": np.zeros(8)}, "zero or not finite"),
        ({"direction": np.ones(3)}, "X has 8 columns"),
        ({"samples": np.ones((2, 3))}, "expecting 8 features"),
        ({"samples": np.full((1, 8), np.nan)}, "NaN"),
    ],
)
def test_hints_that_point_at_nothing(hint, message):
    search = GaussianSearch(3).fit(make_gaussian_mixture(500, 8, 3).X)
    with pytest.raises(ValueError, match="(?s)" + message):
        search.search(**hint)


def test_too_many_components():
    X = make_gaussian_mixture(200, 4, 2).X
    with pytest.warns(MomentWarning, match="at most 4 spherical"):
        search = GaussianSearch(5).fit(X)
    assert not search.search(X[0]).informative
    with pytest.raises(InvalidInput, match="n_components=0"):
        GaussianSearch(0).fit(X)
