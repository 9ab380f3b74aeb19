"""Cross-fitted nonparametric EM: held-out objective, folds, guard."""

import numpy as np
import pytest
from scipy import stats

from thirdmoment.models.kernel.views import read_views
from thirdmoment.refinement.smooth import (
    SmoothProblem,
    SmoothTables,
    guarded_em,
    smooth_step,
)
from thirdmoment.starts.kernel_rows import KernelRows, counts_from, density_tables, folded_rows


def problem_of(X, k, *, folds=5, bandwidth="auto", shared=False, kernel="rbf"):
    rng, w = np.random.default_rng(0), np.ones(len(X))
    views = read_views(X, w, "auto", kernel, bandwidth, rng)
    rows = KernelRows(X, w, views, shared)
    family = SmoothTables(density_tables(rows, k, rng), k, folds=folds, shared=shared)
    return family, folded_rows(rows, family)


def start_of(family, data, shares):
    counts, effective = counts_from(family, data, [shares] * len(family.views))
    mass = shares.sum(axis=0)
    return mass / mass.sum(), family.tables(counts, effective)


def two_groups(n=400, seed=0):
    rng = np.random.default_rng(seed)
    h = rng.integers(2, size=n)
    return np.where(h[:, None] == 0, rng.normal(0, 1, (n, 3)), 2 + rng.exponential(1, (n, 3))), h


def test_the_objective_is_the_likelihood_by_densities_made_without_the_fold():
    X, h = two_groups(150)
    X, width = np.clip(X, -2, 4), 0.4  # nobody further away than kernels reach
    family, data = problem_of(X, 2, bandwidth=width)
    shares = np.eye(2)[h]
    parameters = start_of(family, data, shares)
    _, value = smooth_step(family, data, parameters)
    fold = np.arange(len(X)) % 5
    total = 0.0
    for f in range(5):
        inside = fold == f
        joint = np.zeros((inside.sum(), 2))
        for c in range(2):
            rest = X[(h == c) & ~inside]
            density = np.ones(inside.sum())
            for v in range(3):
                density *= stats.norm.pdf(X[inside, v][:, None], rest[:, v], width).mean(axis=1)
            joint[:, c] = np.mean(h == c) * density
        total += np.log(joint.sum(axis=1)).sum()
    assert value == pytest.approx(total / len(X), abs=5e-3)  # binning


def test_guarded_em_returns_the_best_step_and_never_less_than_its_start():
    X, h = two_groups()
    family, data = problem_of(X, 2)
    problem = SmoothProblem(family, data, 0.0, 1)
    rng = np.random.default_rng(3)
    for shares in (np.eye(2)[h], rng.dirichlet(np.ones(2), size=len(X))):
        start = start_of(family, data, shares)
        found = problem.run(start, 30)
        assert found.path[-1] == max(found.path)
        again = smooth_step(family, data, found.parameters)[1]
        assert again == pytest.approx(found.path[-1], abs=1e-12)
        assert again >= smooth_step(family, data, start)[1]


def test_guarded_em_stops_after_steps_without_a_gain():
    values = iter([1.0, 3.0, 2.0, 2.5, 2.9, 9.0])
    seen = []

    def step(parameters):
        seen.append(parameters[0][0])
        return (parameters[0] + 1,), next(values)

    found = guarded_em(step, (np.zeros(1),), 1.0, tol=0.0, max_steps=50)
    assert found.converged
    assert found.parameters[0][0] == 1  # where the objective was 3
    assert len(seen) == 5


def test_views_of_one_law_share_their_density():
    X, h = two_groups()
    family, data = problem_of(X, 2, shared=True)
    _, tables = start_of(family, data, np.eye(2)[h])
    parts = [tables[..., place] for place in family.place]
    np.testing.assert_array_equal(parts[0], parts[1])
    np.testing.assert_array_equal(parts[0], parts[2])


def test_without_anything_to_smooth_there_are_no_folds():
    X = np.random.default_rng(4).integers(3, size=(200, 3)).astype(float)
    family, _ = problem_of(X, 2, kernel="delta")
    assert family.folds == 1
