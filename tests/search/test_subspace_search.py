"""Searches for one subspace: labels at every affinity, honest verdicts, bad input."""

import numpy as np
import pytest

from thirdmoment import SubspaceSearch
from thirdmoment.exceptions import InvalidInput


def draw(seed=0, n=6000, d=40, k=4, p=3, sigma=0.2, blend=0.0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((d, p))
    bases = [np.linalg.qr(rng.standard_normal((d, p)) + blend * shared)[0] for _ in range(k)]
    labels = rng.integers(k, size=n)
    X = np.stack([bases[j] @ rng.standard_normal(p) for j in labels])
    return X + sigma * rng.standard_normal((n, d)), labels, bases


def distance(basis, truth):
    return np.linalg.norm(basis @ basis.T - truth @ truth.T, 2)


@pytest.mark.parametrize("blend", [0.0, 0.5, 0.8])
def test_several_labels_find_their_subspace_at_every_affinity(blend):
    X, labels, bases = draw(blend=blend)
    search = SubspaceSearch(4, 3).fit(X)
    assert search.noise_variance_ == pytest.approx(0.04, rel=0.05)
    for target in range(4):
        found = search.search(X[labels == target][:8])
        assert distance(found.parameters, bases[target]) < 0.2
        np.testing.assert_allclose(found.parameters.T @ found.parameters, np.eye(3), atol=1e-10)
        assert found.weight == pytest.approx(0.25, abs=0.04)
        assert found.report.details["variance"] == pytest.approx(1, abs=0.15)
        assert found.informative, found.report
        assert not found.report.details["third_rule"]


def test_labels_of_two_subspaces_are_not_informative():
    X, labels, _ = draw(1)
    search = SubspaceSearch(4, 3).fit(X)
    mixed = np.concatenate([X[labels == 0][:4], X[labels == 1][:4]])
    assert not search.search(mixed).informative


def test_one_direction_needs_a_clear_lead():
    X, _, bases = draw(2, n=20_000)
    search = SubspaceSearch(4, 3).fit(X)
    found = search.search(direction=bases[1].sum(axis=1))
    assert distance(found.parameters, bases[1]) < 0.25
    between = bases[1][:, 0] + 0.95 * bases[2][:, 0]
    assert not search.search(direction=between).informative


def test_one_dimension_and_one_subspace():
    X, _, bases = draw(3, k=2, p=1)
    found = SubspaceSearch(2, 1).fit(X).search(direction=bases[0][:, 0])
    assert distance(found.parameters, bases[0]) < 0.1
    X, _, _ = draw(4, k=1, p=2)
    whole = SubspaceSearch(1, 2).fit(X)
    answer = whole.search(X[:5])
    assert answer.weight == pytest.approx(1, abs=0.05)
    assert answer.margin == np.inf


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ({}, "exactly one kind of hint"),
        ({"samples": np.zeros((2, 40))}, "no part in the data"),
        ({"direction": np.zeros(40)}, "zero or not finite"),
        ({"direction": np.ones(3)}, "X has 40 columns"),
        ({"samples": np.ones((2, 3))}, "expecting 40 features"),
    ],
)
def test_hints_that_point_at_nothing(hint, message):
    X, _, _ = draw(n=500)
    search = SubspaceSearch(4, 3).fit(X)
    with pytest.raises(ValueError, match=message):
        search.search(**hint)


def test_subspaces_that_do_not_fit():
    X, _, _ = draw(n=300)
    with pytest.raises(InvalidInput, match="need 44 columns, but X has 40"):
        SubspaceSearch(4, 11).fit(X)
    with pytest.raises(InvalidInput, match="subspace_dim=0"):
        SubspaceSearch(4, 0).fit(X)
