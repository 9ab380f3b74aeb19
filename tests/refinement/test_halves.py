"""Two halves of the data: overlaps, gains and rivals, by hand and by brute force."""

import itertools

import numpy as np
import pytest

from thirdmoment.likelihood.gaussians import Spherical
from thirdmoment.likelihood.mixture import MixtureData
from thirdmoment.refinement.halves import (
    Explained,
    MixturePart,
    Pieces,
    examine,
    examine_mixture,
    overlap,
    two_halves,
)


def test_overlap_by_hand():
    first = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    second = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(overlap(first, second), [1 / 1.5, 1.5 / 2])
    np.testing.assert_allclose(overlap(first, first), 1)
    np.testing.assert_allclose(overlap(np.eye(2), np.eye(2)[::-1]), 0)


def test_a_piece_that_counts_twice_is_two_pieces():
    rng = np.random.default_rng(0)
    rise, counts, sizes = rng.normal(size=20), rng.integers(1, 5, 20), rng.integers(1, 9, 20)
    merged = Pieces(counts.astype(float), sizes.astype(float)).mean_gain(rise)
    apart = Pieces(np.ones(counts.sum()), np.repeat(sizes, counts).astype(float))
    found = apart.mean_gain(np.repeat(rise, counts))
    assert merged.value == pytest.approx(found.value)
    assert merged.error == pytest.approx(found.error)


def test_the_standard_error_is_that_of_repeated_draws():
    rng = np.random.default_rng(1)
    sizes = np.full(400, 2.0)
    means = [Pieces(np.ones(400), sizes).mean_gain(rng.normal(1, 3, 400)) for _ in range(400)]
    spread = np.std([one.value for one in means])
    assert np.mean([one.error for one in means]) == pytest.approx(spread, rel=0.15)
    assert np.mean([one.value for one in means]) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("weights", [np.ones(400), np.random.default_rng(0).integers(1, 6, 400)])
def test_halves_share_out_every_row(weights):
    weights = weights.astype(float)
    (a, v), (b, w) = two_halves(weights, 3, np.random.default_rng(0))
    total = np.zeros(400)
    total[a] += v
    total[b] += w
    np.testing.assert_allclose(total, weights)
    assert abs(v.sum() - w.sum()) < 6 * np.sqrt(weights.sum())
    if weights.max() == 1:
        assert not set(a) & set(b)


def test_few_rows_are_not_halved_and_many_are_thinned():
    rng = np.random.default_rng(0)
    assert two_halves(np.ones(89), 3, rng) is None
    assert two_halves(np.ones(90), 3, rng) is not None
    (a, _), (b, _) = two_halves(np.ones(50_000), 3, rng)
    assert len(a) == len(b) == 10_000
    assert not set(a) & set(b)
    (a, _), _ = two_halves(np.ones(500_000), 3, rng, least_weight=0.001)
    assert len(a) == 200_000  # two hundred rows of the smallest component
    (a, _), _ = two_halves(np.ones(500_000), 3, rng, least_weight=0.001, cells=1000)
    assert len(a) == 20_000  # twenty million numbers


def parts_of(X, floor=1e-6):
    family = Spherical(floor)

    def part(place, w):
        return family, MixtureData([family.rows(X[place], w)])

    return part


def test_the_gain_is_that_of_scoring_the_other_half():
    """By brute force with one Gaussian and with two, each made from its own half."""
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(300, 3)), rng.normal(size=(300, 3)) + 3])
    parameters = (np.full(2, 0.5), np.array([[0.0] * 3, [3.0] * 3]), np.ones(2))
    halves = two_halves(np.ones(600), 2, np.random.default_rng(0))
    parts = [MixturePart(*parts_of(X)(*half), 1e-3, 1) for half in halves]
    found = examine(parts, parameters, unit="row")
    rise = []
    for (mine, _), (theirs, _) in itertools.permutations(halves):
        fitted = MixturePart(*parts_of(X)(theirs, np.ones(len(theirs))), 1e-3, 1).run(parameters)
        rise.append(log_density(X[mine], *fitted) - alone(X[mine], X[theirs]))
    assert found.gains[0].value == pytest.approx(np.concatenate(rise).mean(), rel=1e-6)
    assert found.gains[0].clear
    assert np.all(found.trust > 0.9)


def log_density(X, weights, means, variances):
    square = ((X[:, None] - means) ** 2).sum(axis=2)
    d = X.shape[1]
    each = weights * np.exp(-square / (2 * variances)) / (2 * np.pi * variances) ** (d / 2)
    return np.log(each.sum(axis=1))


def alone(X, training):
    mean = training.mean(axis=0)
    variance = ((training - mean) ** 2).mean()
    return log_density(X, np.ones(1), mean[None], np.array([variance]))


def test_components_of_one_cloud_gain_nothing():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    parameters = (np.full(3, 1 / 3), rng.normal(size=(3, 3)), np.ones(3))
    found = examine_mixture(
        parts_of(X), np.ones(400), parameters, rng=np.random.default_rng(0), tol=1e-3, n_threads=1
    )
    assert not found.gains[0].clear


class Stated:
    """A part that answers what it was told; parameters are names."""

    def __init__(self, answers):
        self.answers = answers
        self.pieces = Pieces(np.ones(4), np.ones(4))

    def run(self, parameters):
        return parameters

    def explain(self, parameters):
        return self.answers[parameters]

    def simpler(self, parameters):
        return {}


@pytest.mark.parametrize("lead", [0.0, 9.0])
def test_a_rival_counts_where_the_data_cannot_tell_it_from_the_answer(lead):
    rows = np.eye(3)[[0, 1, 1, 2]]
    other = rows.copy()
    other[2] = [0, 0.25, 0.75]
    other[1] = [0, 0.75, 0.25]
    swapped = other[:, [2, 0, 1]]
    noise = np.array([1.0, -1.0, 1.0, -1.0])
    parts = [
        Stated({"answer": Explained(rows, lead + noise), "rival": Explained(swapped, 0 * noise)})
    ] * 2
    found = examine(parts, "answer", unit="row", rival="rival")
    shared = [1.0, 1 / 2, 1 / 2]  # 0.75 + 0.25 of two rows; 1 row of 1 + 0.25 + 0.75
    np.testing.assert_allclose(found.trust, np.ones(3) if lead else shared)
