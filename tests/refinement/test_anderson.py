"""Anderson mixing: monotone, and fewer steps than EM near the optimum."""

import numpy as np

from thirdmoment import CategoricalHMM
from thirdmoment.datasets import make_categorical_hmm
from thirdmoment.refinement.chains import MarkovProblem, project
from thirdmoment.refinement.em import Logarithms, anderson_em


def test_anderson_mixing_never_lowers_the_likelihood_and_saves_steps():
    """From near the optimum, to the same likelihood: half the steps of plain EM."""
    data = make_categorical_hmm(1000, 20, n_symbols=10, n_components=3, random_state=0)
    model = CategoricalHMM(3)
    family = model._prepare(data.X)
    problem = MarkovProblem(family, model._observations(family, data.X, data.lengths), 0.01, 1)
    start = project(family, (data.startprob, data.transmat, data.emission))
    mixed = anderson_em(problem.step, start, Logarithms(start), tol=0.0, atol=1e-9, max_steps=200)
    assert np.all(np.diff(mixed.path) >= 0)
    plain, steps, value = start, 0, -np.inf
    while value < mixed.path[-1] - 1e-6 and steps < 1000:
        plain, value = problem.step(plain)
        steps += 1
    assert mixed.steps < 0.5 * steps


def test_logarithms_are_coordinates_of_laws():
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3), size=2)
    chart = Logarithms(laws)
    for a, b in zip(laws, chart.parameters(chart.vector(laws)), strict=True):
        np.testing.assert_allclose(a, b)
