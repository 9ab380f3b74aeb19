"""The moment start of views: what it refuses, and how it names what it refuses."""

import numpy as np
import pytest

from tests.exact.views import population_core, random_views
from thirdmoment._array import DenseRows
from thirdmoment.exceptions import ComplexSpectrum, RankDeficientView
from thirdmoment.moments.views import Core, PairSums, Sample
from thirdmoment.starts.start import Settings
from thirdmoment.starts.view_facts import partition_facts
from thirdmoment.starts.views import (
    Gathered,
    PairFacts,
    ViewTable,
    estimate_means,
    gather,
    partitions,
)


def settings(solver):
    return Settings(solver, True, False, 1, np.random.default_rng(0))


def by_hand(core, names=(4, 5, 6)):
    """Gathered moments of three views of two columns each."""
    columns = [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])]
    bases = []
    for group in columns:
        V = np.zeros((6, 2))
        V[group, [0, 1]] = 1.0
        bases.append(V)
    chunk = Sample(DenseRows(np.zeros((1, 6))), np.ones(1))
    table = ViewTable([chunk], columns, None, list(names))
    gathered = Gathered(
        core, tuple(bases), tuple(columns), None, PairFacts(np.empty(0), 0.1, np.inf, 1, 2)
    )
    return gathered, table


@pytest.mark.parametrize("solver", ["eig", "schur", "joint-schur", "joint"])
def test_a_spectrum_that_stays_complex_is_an_error(solver):
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    triple = np.stack([0.3 * np.eye(2) + turn, 0.1 * np.eye(2) + 0.5 * turn], axis=2)
    pairs = {(u, v): np.eye(2) for u in range(3) for v in range(3) if u != v}
    gathered, table = by_hand(Core((np.ones(2),) * 3, pairs, triple))
    with pytest.raises(ComplexSpectrum, match="real spectrum"):
        estimate_means(gathered, table, 2, settings(solver))


def test_a_deficient_view_is_called_as_the_user_called_it():
    means, w = random_views(np.random.default_rng(0), sizes=(2, 2, 2), k=2)
    means[1] = np.ones((2, 2))  # no direction tells the components apart
    gathered, table = by_hand(population_core(means, w))
    with pytest.raises(RankDeficientView, match="View 5 has rank 1"):
        estimate_means(gathered, table, 2, settings("tensor"))


@pytest.mark.parametrize("constant", [None, 12])
def test_products_alone_gauge_the_noise_of_the_formed_pairs(monkeypatch, constant):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 12)) * np.linspace(0.1, 3, 12) + rng.integers(2, size=(500, 1))
    if constant is not None:
        X = np.column_stack([X, np.ones(500)])
    table = ViewTable(
        [Sample(DenseRows(X[:300]), np.ones(300)), Sample(DenseRows(X[300:]), np.ones(200), 300)],
        [np.arange(4), np.arange(4, 8), np.arange(8, 12)], constant, [0, 1, 2],
    )  # fmt: skip
    formed = gather(table, 2, settings("tensor"))
    monkeypatch.setattr("thirdmoment.starts.views.FORMED_COLUMNS", 5)
    thin = gather(table, 2, settings("tensor"))
    sums = PairSums(X.shape[1]).update(table.chunks[0]).update(table.chunks[1])
    exact = np.linalg.norm(sums.noise[np.ix_(thin.groups[0], thin.groups[1])], 2)
    assert 0.85 * exact <= thin.facts.noise <= exact * (1 + 1e-9)  # to a tenth, from below
    assert formed.facts.expected_noise == pytest.approx(thin.facts.expected_noise)


def test_partitions_use_every_view_once_and_are_balanced():
    views = [np.array([2 * v, 2 * v + 1]) for v in range(7)]
    chunk = Sample(DenseRows(np.zeros((1, 15))), np.ones(1))
    table = ViewTable([chunk], views, 14, list(range(7)))
    for groups in partitions(table, np.random.default_rng(0)):
        flat = np.concatenate([group[group < 14] for group in groups])
        assert sorted(flat) == list(range(14))
        assert all(14 in group for group in groups)
        assert max(len(g) for g in groups) - min(len(g) for g in groups) <= 2


def test_incoherence_of_even_means_is_one():
    hadamard = np.array([[1, 1], [1, -1], [1, 1], [1, -1], [1, 1], [1, -1.0]])
    facts = partition_facts(hadamard, [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])])
    assert facts["incoherence"] == pytest.approx(1.0)
    assert facts["partition_ratio"] == pytest.approx(1.0)
    spiked = np.zeros((6, 2))
    spiked[0, 0] = spiked[1, 1] = 1.0
    assert partition_facts(spiked, [np.arange(6)])["incoherence"] == pytest.approx(3.0)
