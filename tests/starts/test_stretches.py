"""States that last: starts from stretches of a sequence."""

import numpy as np
import pytest

from thirdmoment import BernoulliHMM, CategoricalHMM, GaussianHMM
from thirdmoment.recovery.markov import chain_of
from thirdmoment.refinement.chains import MarkovProblem
from thirdmoment.refinement.spread import classes_of
from thirdmoment.starts.stretches import blocks, stretches


def lasting_states(n, k, persistence, rng):
    T = np.full((k, k), (1 - persistence) / (k - 1))
    np.fill_diagonal(T, persistence)
    stay, jump = rng.random(n) < persistence, rng.integers(1, k, size=n)
    states = np.cumsum(np.where(stay, 0, jump)) % k
    return states, T


@pytest.mark.parametrize(("persistence", "seed"), [(0.99, 3), (0.95, 3), (0.999, 0)])
def test_persistent_chains_reach_the_likelihood_of_the_truth(persistence, seed):
    """Six states, eight symbols: without stretches the first two end below."""
    rng = np.random.default_rng(seed)
    n, k, d = 20_000, 6, 8
    laws = rng.dirichlet(np.ones(d), size=k)
    states, T = lasting_states(n, k, persistence, rng)
    X = (rng.random(n)[:, None] > np.cumsum(laws, axis=1)[states]).sum(axis=1).clip(max=d - 1)
    model = CategoricalHMM(k, n_features=d, max_refine_iter=300).fit(X[:, None])
    family = model._prepare(X[:, None])
    data = model._observations(family, X[:, None], np.array([n]))
    problem = MarkovProblem(family, data, 0.02, 1, model._chart)
    truth = problem.run((np.full(k, 1 / k), T, laws), 300).path[-1]
    assert n * (model.lower_bound_ - truth) > -1


def test_blocks_do_not_cross_sequences():
    found = blocks(np.array([0, 5, 7, 10]), 2)
    np.testing.assert_array_equal(found, [0, 0, 1, 1, 2, 3, 3, 4, 4, 5])


def test_states_that_last_are_found_from_their_stretches():
    rng = np.random.default_rng(0)
    states, _ = lasting_states(8000, 3, 0.995, rng)
    X = 2.0 * np.eye(3)[states] + rng.standard_normal((8000, 3))
    found = dict(stretches(X, np.array([0, 8000]), 3, rng))["stretches of 10 observations"]
    table = np.zeros((3, 3))
    np.add.at(table, (found, states), 1)
    assert table.max(axis=1).sum() / 8000 > 0.9
    assert stretches(X[:100], np.array([0, 100]), 3, rng) == []  # too few blocks


@pytest.mark.parametrize("kind", ["codes", "kinds"])
def test_features_of_kinds_are_those_of_observations(kind):
    rng = np.random.default_rng(1)
    code, features = rng.integers(5, size=2000), rng.standard_normal((5, 2))
    offsets = np.array([0, 900, 2000])
    a = stretches(features, offsets, 3, np.random.default_rng(0), code=code)
    b = stretches(features[code], offsets, 3, np.random.default_rng(0))
    for (name, one), (other, two) in zip(a, b, strict=True):
        assert name == other
        np.testing.assert_array_equal(one, two)


def test_a_chain_of_known_states_counts_what_follows_what():
    start, T = chain_of(np.array([0, 0, 1, 1, 0]), np.array([0, 3, 5]), 2)
    np.testing.assert_allclose(start, [0.5, 0.5])  # 0 and 1 begin, each seen once more
    np.testing.assert_allclose(T, [[0.5, 0.5], [2 / 3, 1 / 3]])  # 00, 01 | 10, one more of each


def test_classes_of_all_rows_come_from_a_part():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.standard_normal((500, 2)), rng.standard_normal((500, 2)) + 10])
    labels = classes_of(X, np.ones(1000), 2, rng, most=100)
    assert len(np.unique(labels[:500])) == len(np.unique(labels[500:])) == 1
    assert labels[0] != labels[-1]


@pytest.mark.parametrize("model", [BernoulliHMM(3), GaussianHMM(3)])
def test_vectors_are_started_from_stretches_too(model, monkeypatch):
    rng = np.random.default_rng(0)
    states, _ = lasting_states(1500, 3, 0.99, rng)
    X = rng.random((1500, 4)) < rng.uniform(0.1, 0.9, (3, 4))[states]
    X = X.astype(float) if isinstance(model, BernoulliHMM) else X + rng.standard_normal((1500, 4))
    seen = []
    original = type(model)._refined

    def refined(self, data, starts):
        seen.extend(start.name for start in starts)
        return original(self, data, starts)

    monkeypatch.setattr(type(model), "_refined", refined)
    model.fit(X)
    assert "stretches of 10 observations" in seen
