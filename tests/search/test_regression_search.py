"""Searches for one regression: the right one, and messages where the moments do not apply."""

import numpy as np
import pytest

from thirdmoment import RegressionSearch
from thirdmoment.exceptions import InvalidInput, MomentWarning, UnusableMoments


def draw(seed=0, n=60_000, d=6, k=3, sigma=0.3):
    rng = np.random.default_rng(seed)
    slopes = np.linalg.qr(rng.standard_normal((d, k)))[0].T * 2
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 2, d) + 1.0
    labels = rng.integers(k, size=n)
    shift = np.array([0.0, 1.0, -1.0])[:k]
    y = (X * slopes[labels]).sum(axis=1) + shift[labels] + sigma * rng.standard_normal(n)
    return X, y, slopes, labels


def test_labelled_rows_and_directions_find_their_regression():
    sizes = {}
    for n in (15_000, 240_000):
        X, y, slopes, labels = draw(n=n)
        search, sizes[n] = RegressionSearch(3).fit(X, y), []
        for target in range(3):
            own = np.flatnonzero(labels == target)[:30]
            found = search.search(X[own], y[own])
            errors = np.linalg.norm(slopes - found.parameters, axis=1)
            assert errors.argmin() == target
            sizes[n].append(errors[target])
            direct = search.search(direction=slopes[target])
            assert np.linalg.norm(slopes - direct.parameters, axis=1).argmin() == target
    assert np.mean(sizes[240_000]) < np.mean(sizes[15_000]) / 2  # a quarter, but for chance
    shift = [0.0, 1.0, -1.0][target]
    assert found.report.details["intercept"] == pytest.approx(shift, abs=2 * sizes[240_000][-1])
    many = search.search_many([{"X": X[own], "y": y[own]}])
    np.testing.assert_array_equal(many[0].parameters, found.parameters)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ({}, "exactly one kind of hint"),
        ({"X": np.ones((2, 6))}, "need their y"),
        ({"X": np.ones((2, 6)), "y": np.ones(2)}, "no slope"),
        ({"direction": np.zeros(6)}, "zero or not finite"),
        ({"direction": np.ones(2)}, "X has 6 columns"),
        ({"direction": np.ones(6), "y": np.ones(2)}, "not with a direction"),
    ],
)
def test_hints_that_point_at_nothing(hint, message):
    X, y, _, _ = draw(n=2000)
    search = RegressionSearch(3).fit(X, y)
    with pytest.raises(InvalidInput, match=message):
        search.search(**hint)


def test_rows_that_cannot_show_the_regressions():
    X, y, _, _ = draw(n=2000)
    with pytest.raises(UnusableMoments, match="at most 6 regressions"):
        RegressionSearch(7).fit(X, y)
    with pytest.warns(MomentWarning, match="6² entries"):
        RegressionSearch(2).fit(X[:30], y[:30])
    with pytest.warns(MomentWarning, match="not Gaussian"):
        RegressionSearch(2).fit(np.exp(X), y)


def test_rows_without_any_regression():
    X, _, _, _ = draw(n=500)
    with pytest.warns(MomentWarning, match="show no regression"):
        search = RegressionSearch(2).fit(X, np.ones(500))
    with pytest.raises(UnusableMoments, match="nothing to search for"):
        search.search(direction=np.ones(6))
