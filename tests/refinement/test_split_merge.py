"""Splits and mergers lead many components out of local optima."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

from thirdmoment import GaussianMixture
from thirdmoment.datasets import make_gaussian_mixture
from thirdmoment.likelihood.gaussians import Block, Diagonal, Spherical
from thirdmoment.likelihood.mixture import MixtureData, from_labels
from thirdmoment.refinement import split_merge
from thirdmoment.refinement.mixture import MixtureProblem
from thirdmoment.refinement.race import Contest, Refined
from thirdmoment.refinement.split_merge import moved, promising_moves, split_and_merge

pytestmark = pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.MomentWarning")


def stuck(family, seed=0):
    """Twelve groups of which two share a component, and one that has two: a local optimum."""
    rng = np.random.default_rng(seed)
    labels = np.arange(12 * 80) % 12
    centres = rng.permutation(np.stack(np.meshgrid(range(4), range(3)), -1).reshape(-1, 2))
    X = 8.0 * centres[labels] + rng.standard_normal((len(labels), 2))
    X -= X.mean(axis=0)
    wrong = np.where(labels == 11, 10, labels)  # 10 and 11 are neighbours or not: one component
    wrong[(labels == 0) & (X[:, 0] > X[labels == 0, 0].mean())] = 11
    data = MixtureData([family.rows(X[a:b], np.ones(b - a)) for a, b in ((0, 400), (400, len(X)))])
    problem = MixtureProblem(family, data, 0.02, 1)
    truth = problem.run(from_labels(family, data, labels, 12), 300)
    trapped = problem.run(from_labels(family, data, wrong, 12), 300)
    return problem, truth, trapped


@pytest.mark.parametrize(
    "family",
    [Spherical(1e-6), Diagonal(1e-6), Block(1e-6, [np.arange(2)])],
    ids=["spherical", "diag", "full"],
)
def test_a_split_and_a_merger_find_the_way_out(family):
    problem, truth, trapped = stuck(family)
    behind = (truth.path[-1] - trapped.path[-1]) * problem.total
    assert behind > 50  # it is stuck
    first = promising_moves(family, problem.data, trapped.parameters)[0]
    assert {first.split, *first.merged} == {10, 0, 11}
    start = moved(family, trapped.parameters, [first])
    assert start[0].sum() == pytest.approx(1)
    before = Refined(trapped.parameters, trapped.path, trapped.steps)
    found = split_and_merge(problem, before, max_steps=300)
    assert (truth.path[-1] - found.path[-1]) * problem.total < 0.1
    assert found.swaps >= 1
    assert found.path[-1] > trapped.path[-1]


@pytest.mark.parametrize("seed", range(4))
def test_weights_repeat_rows(seed):
    X = make_gaussian_mixture(120, 3, 12, separation=4.0, random_state=1).X
    w = np.random.default_rng(seed).integers(1, 4, size=120)
    weighted = GaussianMixture(12).fit(X, sample_weight=w)
    repeated = GaussianMixture(12).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-6)


def test_a_jump_is_not_taken_for_steps_that_still_gain():
    data = make_gaussian_mixture(2000, 5, 20, separation=5.0, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = GaussianMixture(20, max_refine_iter=5).fit(data.X)
    assert np.all(np.diff(model.report_.refine_path) > -1e-9)


def test_the_runner_up_may_win_and_is_named():
    problem, truth, trapped = stuck(Diagonal(1e-6))
    before = Refined(
        trapped.parameters, trapped.path, contest=Contest(second=(3, truth.parameters))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_merge, "ROUNDS", 0)  # no moves: the start decides
        found = split_and_merge(problem, before, max_steps=300)
    assert found.chosen == 3
    assert found.contest.next_best() > 50


def test_nothing_moves_at_the_best_optimum():
    family = Spherical(1e-6)
    problem, truth, _ = stuck(family)
    before = Refined(truth.parameters, truth.path, truth.steps)
    after = split_and_merge(problem, before, max_steps=300)
    assert after.swaps == 0
    np.testing.assert_array_equal(after.parameters[1], truth.parameters[1])


@pytest.mark.parametrize("kind", ["spherical", "diag"])
def test_forty_components_in_ten_columns_end_where_em_from_the_truth_does(kind):
    """Without moves they end about 450 units lower."""
    data = make_gaussian_mixture(4000, 10, 40, separation=4.0, random_state=11)
    model = GaussianMixture(40, covariance_type=kind).fit(data.X)
    precisions = np.ones(40) if kind == "spherical" else np.ones((40, 10))
    oracle = Peer(
        40, covariance_type=kind, weights_init=data.weights, means_init=data.means,
        precisions_init=precisions, max_iter=500, tol=1e-6,
    ).fit(data.X)  # fmt: skip
    assert len(data.X) * (model.score(data.X) - oracle.score(data.X)) > -1
