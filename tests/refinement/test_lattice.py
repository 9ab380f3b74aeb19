"""Densities on a lattice and around centres: valid whatever they are made of."""

import numpy as np
import pytest
from scipy import stats

from thirdmoment.refinement.axis import MOST_NODES, silverman, smooth_axis, spread_of
from thirdmoment.refinement.centres import Centres
from thirdmoment.refinement.lattice import Lattice


def kde(x, points, width):
    return stats.norm.pdf(x[:, None], points[None, :], width).mean(axis=1)


def lattice_of(X, k=1, exact=None, **options):
    exact = np.zeros(X.shape[1], dtype=bool) if exact is None else np.array(exact)
    return Lattice(X, np.ones(len(X)), k, exact, **options)


def counts_of(view, X, shares):
    return view.rows(X).add.left_dot(shares)[:, None, :]


def test_a_smoothed_lattice_is_the_kernel_density_estimate():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 300), rng.normal(6, 0.2, 200)])[:, None]
    view = lattice_of(X, 2)
    for width in (0.1, 0.5):
        T = view.table(counts_of(view, X, np.ones((1, 500))), np.array([[width]]))[:, 0]
        grid = np.linspace(-4, 8, 400)
        found = view.rows(grid[:, None]).read.dot_t(T)[0]
        exact = kde(grid, X[:, 0], width)
        # what is left of binning is of fourth order in step/width
        assert np.abs(found - exact).max() < 0.01 * exact.max()


@pytest.mark.parametrize("columns", [1, 2])
def test_tables_are_densities_even_of_negative_counts(columns):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, columns))
    view = lattice_of(X, 2)
    signed = rng.normal(1, 1.5, (2, 400))
    T = view.table(counts_of(view, X, signed), np.full((2, columns), 0.4))[:, 0]
    assert T.min() >= 0
    np.testing.assert_allclose(T.sum(axis=1) * view.cell, 1, rtol=1e-12)
    # the integral of what is read, by a fine rule that knows nothing of the nodes
    ends = [(axis.nodes[0] - axis.step, axis.nodes[-1] + axis.step) for axis in view.axes]
    t = [np.linspace(a, b, 4001 if columns == 1 else 501) for a, b in ends]
    grid = np.stack(np.meshgrid(*t, indexing="ij"), axis=-1).reshape(-1, columns)
    area = np.prod([one[1] - one[0] for one in t])
    np.testing.assert_allclose(view.rows(grid).read.dot_t(T).sum(axis=1) * area, 1, rtol=2e-3)


def test_an_empty_component_is_flat_and_valid():
    X = np.random.default_rng(2).standard_normal((100, 1))
    view = lattice_of(X)
    T = view.table(np.zeros((1, 1, view.size)), np.array([[0.3]]))
    np.testing.assert_allclose(T.sum() * view.cell, 1)
    assert np.ptp(T) == 0


def test_values_far_away_cost_few_nodes_and_keep_the_resolution_of_the_rest():
    x = np.concatenate([np.random.default_rng(3).standard_normal(2000), [1e6, -1e6]])
    axis = smooth_axis(x, np.ones(2002), 2, two=False)
    assert len(axis.numbers) <= MOST_NODES[0]
    assert axis.step < 0.2  # a bandwidth of the bulk
    _, _, inside = axis.locate(x)
    assert inside.all()
    left, share, _ = axis.locate(x)
    back = axis.nodes[left] * (1 - share) + axis.nodes[left + 1] * share
    np.testing.assert_allclose(back, x, atol=1e-8)


def test_heavy_tails_leave_out_a_small_share_of_rows_at_most():
    x = np.random.default_rng(4).standard_cauchy(20_000)
    axis = smooth_axis(x, np.ones(20_000), 2, two=False)
    assert len(axis.numbers) <= MOST_NODES[0]
    assert axis.locate(x)[2].mean() >= 0.99


def test_narrow_components_far_apart_are_resolved():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(c, 1, 400) for c in (0, 1000, 5000)])
    axis = smooth_axis(x, np.ones(1200), 3, two=False)
    assert axis.step < 0.9 * 400**-0.2 / 2  # half of the bandwidth such a component asks for


def test_unknown_values_and_places_have_no_density():
    X = np.array([[0.0, 1.0], [1.0, 2.0], [0.0, 1.5], [1.0, 2.5]])
    view = lattice_of(X, exact=[True, False])
    T = view.table(counts_of(view, X, np.ones((1, 4))), np.array([[0.3]]))[:, 0]
    assert view.rows(np.array([[2.0, 1.0]])).read.dot_t(T) == 0
    assert view.rows(np.array([[0.0, 1e9]])).read.dot_t(T) == 0
    assert view.rows(np.array([[0.0, 1.2]])).read.dot_t(T) > 0


def test_exact_columns_are_never_smoothed():
    X = np.array([[0.0], [0.0], [1.0], [3.0]])
    view = lattice_of(X, exact=[True])
    T = view.table(counts_of(view, X, np.ones((1, 4))), np.zeros((1, 0)))[0, 0]
    np.testing.assert_allclose(T, [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(view.points_of()[:, 0], [0, 1, 3])
    assert not view.smooth


@pytest.mark.parametrize("columns", [1, 2])
def test_samples_follow_the_table(columns):
    rng = np.random.default_rng(6)
    X = rng.gamma(2.0, 1.0, (500, columns))
    view = lattice_of(X)
    T = view.table(counts_of(view, X, np.ones((1, 500))), np.full((1, columns), 0.2))[0, 0]
    drawn = view.draw(T, 20_000, rng)
    spread = X.std(axis=0)
    assert np.all(np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 5 * spread / np.sqrt(20_000) + 0.02)
    inflated = np.sqrt(spread**2 + 0.2**2)  # a kernel adds its variance
    np.testing.assert_allclose(drawn.std(axis=0), inflated, rtol=0.05)


def test_the_fast_rule_by_hand():
    nodes = np.arange(5.0)
    sd, iqr = spread_of(nodes, np.ones((1, 5)))
    assert sd[0] == pytest.approx(np.sqrt(2))
    assert iqr[0] == pytest.approx(2.5)  # quarters of mass at midpoints 0.1, 0.3, ..., 0.9
    n = np.array([32.0])
    assert silverman(sd, iqr, n, 1)[0] == pytest.approx(0.9 * np.sqrt(2) * 0.5)
    assert silverman(sd, iqr, n, 2)[0] == pytest.approx(np.sqrt(2) * (4 / (4 * 32)) ** (1 / 6))
    assert silverman(sd, 0 * iqr, n, 1)[0] == pytest.approx(0.9 * np.sqrt(2) * 0.5)


def test_centres_are_mixtures_of_gaussians():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 3))
    view = Centres(X, np.ones(300), 2, rng)
    T = view.table(counts_of(view, X, rng.normal(1, 1, (1, 300))), np.zeros((1, 3)))[:, 0]
    assert T.min() >= 0
    assert T.sum() == pytest.approx(1)
    new = rng.standard_normal((20, 3))
    found = view.rows(new).read.dot_t(T)[0]
    each = stats.norm.pdf(new[:, None, :], view.points[None], view.scale).prod(axis=2)
    np.testing.assert_allclose(found, each @ T[0], rtol=1e-6)  # kept in float32
    drawn = view.draw(T[0], 5000, rng)
    wide = np.sqrt(T[0] @ view.points**2 - (T[0] @ view.points) ** 2 + view.scale**2)
    np.testing.assert_allclose(drawn.std(axis=0), wide, rtol=5 / np.sqrt(2 * 5000))
