"""EM of mixtures, its starts, and fits to moments."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from thirdmoment._array import posterior_of
from thirdmoment.likelihood.categories import Categories, CodeTable
from thirdmoment.likelihood.gaussians import Block, Diagonal, Spherical, Tied, with_floor
from thirdmoment.likelihood.mixture import (
    BothChunks,
    MixtureData,
    carry_over,
    from_labels,
    log_joint,
)
from thirdmoment.recovery.spherical import (
    MomentFit,
    StandardMoments,
    _misfit,
    fit_to_moments,
    move_components,
)
from thirdmoment.refinement.mixture import MixtureProblem, em_step, mixture_em
from thirdmoment.refinement.race import race
from thirdmoment.refinement.spread import k_means_labels, spread_centres
from thirdmoment.starts.categorical import coded_chunks


def rows(family, X, w=None, cuts=3):
    w = np.ones(len(X)) if w is None else w
    edges = np.linspace(0, len(X), cuts + 1).astype(int)
    return MixtureData([family.rows(X[a:b], w[a:b]) for a, b in itertools.pairwise(edges)])


def families(X, w):
    d = X.shape[1]
    second = (X * w[:, None]).T @ X
    full = np.stack([np.cov(X.T) + j * np.eye(d) for j in range(2)])
    blocks = [full[:, :2, :2], full[:, 2:, 2:]]
    means, weights = np.stack([X[0], X[1]]), np.array([0.3, 0.7])
    return {
        "spherical": (Spherical(1e-6), (weights, means, np.array([0.5, 2.0]))),
        "diag": (Diagonal(1e-6), (weights, means, np.array([[0.5, 1, 2], [1, 1, 3.0]]))),
        "full": (Block(1e-6, [np.arange(d)]), (weights, means, full)),
        "block": (Block(1e-6, [np.array([0, 1]), np.array([2])]), (weights, means, *blocks)),
        "tied": (Tied(1e-6, second), (weights, means, full[:1])),
    }


def covariance(name, parameters, j):
    if name == "spherical":
        return parameters[2][j] * np.eye(3)
    if name == "diag":
        return np.diag(parameters[2][j])
    if name == "tied":
        return parameters[2][0]
    if name == "full":
        return parameters[2][j]
    out = np.zeros((3, 3))
    out[:2, :2], out[2:, 2:] = parameters[2][j], parameters[3][j]
    return out


@pytest.mark.parametrize("name", ["spherical", "diag", "full", "block", "tied"])
def test_densities_and_m_steps_equal_the_textbook(name):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((40, 3)), rng.uniform(0.5, 2, size=40)
    family, parameters = families(X, w)[name]
    chunk = family.rows(X, w)
    joint = log_joint(family, parameters, chunk)
    expected = np.stack([
        np.log(parameters[0][j])
        + multivariate_normal(parameters[1][j], covariance(name, parameters, j)).logpdf(X)
        for j in range(2)
    ])  # fmt: skip
    np.testing.assert_allclose(joint, expected, rtol=1e-9)
    P = np.exp(expected) / np.exp(expected).sum(axis=0)
    new, value = em_step(family, rows(family, X, w), parameters)
    assert value == pytest.approx(w @ np.log(np.exp(expected).sum(axis=0)) / w.sum())
    mass = P @ w
    np.testing.assert_allclose(new[0], mass / mass.sum())
    mu = (P * w) @ X / mass[:, None]
    np.testing.assert_allclose(new[1], mu)
    S = [((X - mu[j]) * (P[j] * w)[:, None]).T @ (X - mu[j]) / mass[j] for j in range(2)]
    S = [sum(m * s for m, s in zip(mass, S, strict=True)) / mass.sum()] * 2 if name == "tied" else S
    for j in range(2):
        want = S[j].copy()
        got = covariance(name, new, j)
        if name == "spherical":
            want = np.mean(np.diagonal(want)) * np.eye(3)
        if name == "diag":
            want = np.diag(np.diagonal(want))
        if name == "block":
            want[:2, 2] = want[2, :2] = 0
        np.testing.assert_allclose(got, want, atol=1e-9)


def test_float32_rows_agree_with_float64():
    X = np.random.default_rng(1).standard_normal((500, 3))
    for family, parameters in families(X, np.ones(500)).values():
        exact, value = em_step(family, rows(family, X), parameters)
        fast, value32 = em_step(family, rows(family, X.astype(np.float32)), parameters)
        assert value32 == pytest.approx(value, rel=1e-5)
        for a, b in zip(exact, fast, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_posteriors_of_rows_far_from_everything_are_finite():
    joint = np.array([[-1e5, -3.0], [-1.1e5, -2.0]])
    P, value = posterior_of(joint.copy())
    np.testing.assert_allclose(P.sum(axis=0), 1.0)
    assert value[0] == pytest.approx(-1e5)


def test_accelerated_em_never_falls_and_ends_at_a_fixed_point():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(-1, 1, (300, 2)), rng.normal(1.5, 1, (200, 2))])
    family = Spherical(1e-6)
    data = rows(family, X)
    start = (np.array([0.5, 0.5]), X[:2], np.ones(2))
    found = mixture_em(family, data, start, tol=1e-8, max_steps=500)
    assert np.all(np.diff(found.path) > -1e-12)
    again, _ = em_step(family, data, found.parameters)
    np.testing.assert_allclose(again[1], found.parameters[1], atol=1e-3)


def test_categorical_steps_leave_missing_cells_out():
    codes = np.array([[0, 1], [1, -1], [-1, 0], [1, 1]])
    table = CodeTable(codes, np.array([1.0, 2.0, 1.0, 1.0]), np.array([2, 2]))
    family, data = Categories(table.sizes, 0.0), coded_chunks(table)
    laws = np.array([[0.8, 0.2, 0.3, 0.7], [0.4, 0.6, 0.9, 0.1]])
    weights = np.array([0.6, 0.4])
    new, value = em_step(family, data, (weights, laws))
    a, b = laws[:, :2], laws[:, 2:]
    p = np.stack([weights * a[:, 0] * b[:, 1], weights * a[:, 1],
                  weights * b[:, 0], weights * a[:, 1] * b[:, 1]])  # fmt: skip
    counts = table.counts
    assert value == pytest.approx(counts @ np.log(p.sum(axis=1)) / 5)
    r = p / p.sum(axis=1, keepdims=True) * counts[:, None]
    np.testing.assert_allclose(new[0], r.sum(axis=0) / 5)
    np.testing.assert_allclose(new[1][:, 0], r[0] / (r[0] + r[1] + r[3]))
    np.testing.assert_allclose(new[1][:, 3], (r[0] + r[3]) / (r[0] + r[2] + r[3]))


def test_the_race_keeps_the_best_start_and_ties_go_to_the_first():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(c, 0.5, (200, 2)) for c in (0, 3, 6)])
    family = Spherical(1e-6)
    data = rows(family, X)
    labels = np.repeat([0, 1, 2], 200)
    good = from_labels(family, data, labels, 3)
    bad = (np.full(3, 1 / 3), np.array([[0.0, 0], [0.1, 0], [4.5, 4.5]]), np.ones(3))
    problem = MixtureProblem(family, data, 1e-6, 1)
    found = race(problem, [bad, good], max_steps=100)
    assert found.chosen == 1
    level = race(problem, [good, good], max_steps=100)
    assert level.chosen == 0
    assert level.path[-1] == pytest.approx(found.path[-1])


def test_a_component_that_only_a_loser_has_is_taken_over():
    rng = np.random.default_rng(4)
    centres = np.array([[0.0, 0], [6, 0], [0, 6], [6, 6], [12, 0], [12, 6]])
    labels = np.repeat(np.arange(6), 150)
    X = centres[labels] + rng.standard_normal((900, 2))
    family = Spherical(1e-6)
    data = rows(family, X)
    w, v = np.full(6, 1 / 6), np.ones(6)
    one = centres.copy()
    one[5] = [0.5, 0.5]  # misses the last group
    two = centres.copy()
    two[0] = [6.5, 0.5]  # misses the first
    problem = MixtureProblem(family, data, 1e-6, 1)
    found = race(problem, [(w, one, v), (w, two, v)], max_steps=200)
    best = mixture_em(family, data, (w, centres, v), tol=1e-6, max_steps=200)
    assert found.path[-1] >= max(found.contest.values)
    assert found.path[-1] == pytest.approx(best.path[-1], abs=1e-3)


def test_carrying_over_keeps_the_posteriors():
    X = np.concatenate([np.zeros((50, 3)), np.full((50, 3), 9.0)])
    X += np.random.default_rng(5).standard_normal(X.shape)
    source, target = Spherical(1e-6), Block(1e-6, [np.arange(3)])
    parameters = (np.array([0.5, 0.5]), np.array([[0.0] * 3, [9.0] * 3]), np.ones(2))
    both = zip(rows(source, X).chunks, rows(target, X).chunks, strict=True)
    carried = carry_over(source, parameters, target, [BothChunks(*pair) for pair in both])
    np.testing.assert_allclose(carried[1][0], X[:50].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(carried[2][1], np.cov(X[50:].T, bias=True), atol=1e-6)


def test_spread_centres_find_every_far_group_and_count_weights_as_copies():
    rng = np.random.default_rng(6)
    groups = np.repeat(100.0 * np.eye(4), [12, 9, 6, 3], axis=0)
    X = groups + rng.standard_normal((30, 4))
    w = rng.integers(1, 4, size=30).astype(float)
    one = spread_centres(X, w, 4, np.random.default_rng(0))
    copies = np.repeat(X, w.astype(int), axis=0)
    two = spread_centres(copies, np.ones(len(copies)), 4, np.random.default_rng(0))
    np.testing.assert_array_equal(one, two)
    labels = k_means_labels(X, w, one)
    for a, b in ((0, 12), (12, 21), (21, 27), (27, 30)):
        assert len(set(labels[a:b])) == 1
    assert len(set(labels)) == 4


def test_covariances_below_the_floor_are_raised():
    bad = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    fixed = with_floor(bad, 0.1)
    assert np.linalg.eigvalsh(fixed)[0].min() == pytest.approx(0.1)


def standard_moments(rng, k=4, q=3, n=1e6):
    w, Y = rng.dirichlet(np.full(k, 5.0)), rng.standard_normal((k, q))
    Y -= w @ Y
    second = np.einsum("k,ka,kb->ab", w, Y, Y)
    third = np.einsum("k,ka,kb,kc->abc", w, Y, Y, Y)
    return StandardMoments(second, third, n), w, Y


def test_the_gradient_of_the_misfit_is_its_derivative():
    moments, _, Y = standard_moments(np.random.default_rng(0), n=1.0)
    theta = np.concatenate([np.array([0.1, -0.2, 0.3, 0.0]), (Y + 0.3).ravel()])
    value, gradient = _misfit(theta, moments, 4, 3)
    step = 1e-6
    for i in range(len(theta)):
        moved = theta.copy()
        moved[i] += step
        slope = (_misfit(moved, moments, 4, 3)[0] - value) / step
        assert slope == pytest.approx(gradient[i], abs=1e-4)


def test_exact_moments_are_fitted_exactly_and_misplaced_components_moved():
    sharp, w, Y = standard_moments(np.random.default_rng(1), n=1e18)  # no room for any misfit
    near = fit_to_moments(sharp, MomentFit(w, Y + 0.05, np.inf), steps=5000)
    np.testing.assert_allclose(near.centres, Y, atol=1e-6)
    np.testing.assert_allclose(near.weights, w, atol=1e-6)
    moments = sharp._replace(n=1e6)
    wrong = Y.copy()
    wrong[np.argmin(w)] = -Y[np.argmin(w)]
    stuck = fit_to_moments(moments, MomentFit(w, wrong, np.inf), steps=300)
    moved = move_components(moments, stuck, np.random.default_rng(0), steps=300)[0]
    assert moved.misfit <= stuck.misfit
    assert moved.misfit < 1.0


def test_normal_density_of_one_dimension():
    family = Spherical(1e-6)
    x = np.array([[0.3]])
    joint = log_joint(
        family, (np.ones(1), np.zeros((1, 1)), np.array([4.0])), family.rows(x, np.ones(1))
    )
    assert joint[0, 0] == pytest.approx(norm(0, 2).logpdf(0.3))


def test_greedy_centres_leave_the_rows_nearer():
    """Mean over twenty draws: the best of a few is nearer than a single one."""
    from thirdmoment.refinement.spread import spread_centres

    X = np.random.default_rng(0).standard_normal((600, 3)) + 6 * np.eye(3)[np.arange(600) % 3]
    w, left = np.ones(600), {}
    for greedy in (False, True):
        sums = []
        for seed in range(20):
            C = spread_centres(X, w, 8, np.random.default_rng(seed), greedy=greedy)
            assert C.shape == (8, 3)
            sums.append(((X[:, None] - C) ** 2).sum(axis=2).min(axis=1).sum())
        left[greedy] = np.mean(sums)
    assert left[True] < left[False]
