"""Exact populations give embeddings, weights and laws back; all routes agree."""

from itertools import permutations

import numpy as np
import pytest

from tests.exact.kernel import dirichlet_population, finite_population
from tests.exact.views import match
from thirdmoment import CategoricalMixture, KernelMixture
from thirdmoment.datasets import make_categorical_mixture
from thirdmoment.linalg import project_to_simplex
from thirdmoment.models.kernel.views import read_views
from thirdmoment.starts.kernel import (
    FeatureOptions,
    embeddings,
    feature_table,
    weighted_rows,
)
from thirdmoment.starts.kernel_rows import KernelRows
from thirdmoment.starts.start import Settings


def laws(X, p, places, k, *, a0=0.0, shared=False, method="low-rank", kernel="rbf", stacked=True):
    """P_v(x | h) (d_v, k) of every view from scores of the others (K-9, K-12), and α."""
    rng = np.random.default_rng(0)
    w = p * len(X)
    widths = 0.8 if shared else [0.7, 0.9, 1.2, 0.8][: X.shape[1]]
    views = read_views(X, w, "auto", kernel, widths, rng, one_bandwidth=True)
    rows = KernelRows(X, w, views, shared)
    features = feature_table(rows, k, FeatureOptions(method, 300), rng)
    settings = Settings("auto", stacked, False, 1, rng)
    found = embeddings(features, k, settings, a0=a0, exchangeable=shared)[0]
    out = []
    shares = weighted_rows(found, len(views), a0, stacked=stacked)
    for v, place in enumerate(places):
        A = shares[v] * p[:, None]
        out.append(np.stack([A[X[:, v] == x].sum(axis=0) for x in place]))
    return out, found.views.weights * (a0 or 1.0)


@pytest.mark.parametrize("method", ["low-rank", "exact"])
@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("sizes", [(5, 4, 6), (4, 3, 5, 4)])
def test_exact_populations_give_the_laws_back(method, stacked, sizes):
    rng = np.random.default_rng(3)
    places, tables, weights, X, p = finite_population(rng, 3, sizes)
    found, alpha = laws(X, p, places, 3, method=method, stacked=stacked)
    order, error = match(found, [table.T for table in tables])
    assert error < 1e-8
    np.testing.assert_allclose(alpha[order], weights, atol=1e-8)


@pytest.mark.parametrize("method", ["low-rank", "exact"])
@pytest.mark.parametrize("views", [3, 4])
def test_exact_exchangeable_populations_give_the_laws_back(method, views):
    rng = np.random.default_rng(4)
    places, tables, weights, X, p = finite_population(rng, 3, (5,) * views, shared=True)
    found, alpha = laws(X, p, places, 3, shared=True, method=method)
    order, error = match(found, [table.T for table in tables])
    assert error < 1e-8
    np.testing.assert_allclose(alpha[order], weights, atol=1e-8)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("a0", [0.4, 1.5, 6.0])
def test_exact_dirichlet_populations_give_laws_and_parameters_back(shared, a0):
    rng = np.random.default_rng(5)
    places, tables, alpha, X, p = dirichlet_population(rng, 3, a0=a0, shared=shared)
    assert p.sum() == pytest.approx(1)
    found, estimate = laws(X, p, places, 3, a0=a0, shared=shared)
    order, error = match(found, [table.T for table in tables])
    assert error < 1e-8
    np.testing.assert_allclose(estimate[order], alpha, atol=1e-7 * a0)


def test_without_its_corrections_a_dirichlet_population_is_not_recovered():
    rng = np.random.default_rng(5)
    places, tables, _, X, p = dirichlet_population(rng, 3, a0=1.5)
    found, _ = laws(X, p, places, 3, a0=0.0)
    assert match(found, [table.T for table in tables])[1] > 0.05


def three_humps(n, seed=0):
    rng = np.random.default_rng(seed)
    h = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    centres = np.array([[0.0, 4, 2], [2, 0, 4], [4, 2, 0]])
    return centres[h] + 0.7 * rng.standard_normal((n, 3)), h


@pytest.mark.parametrize("exchangeable", [False, True])
def test_low_rank_features_equal_gram_matrices_at_full_rank(exchangeable, monkeypatch):
    from thirdmoment.starts import kernel as start

    X, h = three_humps(300)
    if exchangeable:
        X = np.array([0.0, 2.5, 5.0])[h][:, None] + 0.7 * np.random.default_rng(1).standard_normal(
            (300, 3)
        )
    full = start.pivoted_map
    monkeypatch.setattr(start, "pivoted_map", lambda *a, **b: full(*a, **b, tol=1e-14))
    options = {"refine": "none", "weighting": "none", "exchangeable": exchangeable}
    low = KernelMixture(3, **options).fit(X)
    exact = KernelMixture(3, features="exact", **options).fit(X)
    np.testing.assert_allclose(low.weights_, exact.weights_, atol=1e-6)
    grid = np.linspace(-2, 7, 200)
    for v in range(3):
        scale = exact.density(grid, v).max()
        np.testing.assert_allclose(low.density(grid, v), exact.density(grid, v), atol=1e-6 * scale)


def test_the_delta_kernel_is_the_categorical_model():
    # wide enough that both keep k directions of each view
    data = make_categorical_mixture(20_000, 30, 3, random_state=1)
    X, w, rng = data.X.astype(float), np.ones(20_000), np.random.default_rng(0)
    views = read_views(X, w, "auto", "delta", "auto", rng)
    rows = KernelRows(X, w, views, False)
    features = feature_table(rows, 3, FeatureOptions("low-rank", 300), rng)
    settings = Settings("tensor", False, False, 1, rng)
    found = embeddings(features, 3, settings, a0=0.0, exchangeable=False)[0]
    table = CategoricalMixture(
        3, prior_count=0.0, refine="none", weighting="none", solver="tensor"
    ).fit(data.X)
    order = np.argsort(-found.views.weights)
    np.testing.assert_allclose(found.views.weights[order], table.weights_, atol=1e-8)
    for v, columns in enumerate(features.table.views):
        # feature of a value is one where the value is met first, zero elsewhere
        first = [np.flatnonzero(X[:, v] == value)[0] for value in range(30)]
        Z = features.table.chunks
        rows = np.concatenate([chunk.rows.toarray() for chunk in Z])[first][:, columns]
        laws = project_to_simplex((rows @ found.views.means[columns]).T)
        np.testing.assert_allclose(laws[order], table.probabilities_[v], atol=1e-8)


def test_the_refined_delta_kernel_is_categorical_em():
    data = make_categorical_mixture(20_000, 6, 3, random_state=1)
    kernel = KernelMixture(3, kernel="delta", tol=1e-6, max_refine_iter=3000).fit(data.X)
    table = CategoricalMixture(3, prior_count=0.0, tol=1e-6, max_refine_iter=3000).fit(data.X)
    assert kernel.score(data.X) == pytest.approx(table.score(data.X), abs=1e-8)
    for v in range(3):
        np.testing.assert_allclose(
            kernel.density(np.arange(6.0), v).T, table.probabilities_[v], atol=1e-3
        )


def test_fourier_features_find_the_same_components():
    X, h = three_humps(3000)
    model = KernelMixture(3, features="fourier", rank=100, refine="none").fit(X)
    label = model.predict(X)
    agree = max(np.mean(np.array(order)[label] == h) for order in permutations(range(3)))
    assert agree > 0.97


def test_features_made_anew_in_every_pass_give_the_same_answer(monkeypatch):
    from thirdmoment.starts import kernel as start

    X, _ = three_humps(25_000)
    kept = KernelMixture(3, refine="none").fit(X)
    monkeypatch.setattr(start, "KEPT_BYTES", 0)
    anew = KernelMixture(3, refine="none").fit(X)
    np.testing.assert_array_equal(kept._tables, anew._tables)
