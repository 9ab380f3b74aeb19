"""Subspace clustering: all subspaces, linear and affine, and what a fit can do."""

import multiprocessing
import os

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from thirdmoment import SubspaceClustering
from thirdmoment.exceptions import InvalidInput
from thirdmoment.refinement.subspaces import (
    Flats,
    alternate,
    fit_flats,
    fit_layers,
    log_densities,
    square_distances,
)


def draw(seed=0, n=1500, d=30, k=4, p=3, sigma=0.1, offset=0.0):
    rng = np.random.default_rng(seed)
    bases = [np.linalg.qr(rng.standard_normal((d, p)))[0] for _ in range(k)]
    centres = offset * rng.standard_normal((k, d))
    labels = rng.integers(k, size=n)
    X = np.stack([centres[j] + bases[j] @ rng.standard_normal(p) for j in labels])
    return X + sigma * rng.standard_normal((n, d)), labels, bases, centres


def agreement(truth, labels, k):
    counts = np.zeros((k, k))
    np.add.at(counts, (truth, labels), 1)
    rows, columns = scipy.optimize.linear_sum_assignment(-counts)
    return counts[rows, columns].sum() / len(truth)


@pytest.mark.parametrize("seed", range(3))
def test_all_subspaces_are_found(seed):
    X, labels, bases, _ = draw(seed)
    model = SubspaceClustering(4, 3).fit(X)
    assert agreement(labels, model.labels_, 4) > 0.98
    for truth in bases:
        P = truth @ truth.T
        assert min(np.linalg.norm(b @ b.T - P, 2) for b in model.bases_) < 0.15
    assert model.noise_variance_ == pytest.approx(0.01, rel=0.1)
    np.testing.assert_array_equal(model.means_, 0)
    assert np.all(np.diff(model.report_.refine_path) <= 1e-12)


def test_affine_subspaces_keep_their_place():
    X, labels, _, centres = draw(3, offset=0.5, d=20, k=3, p=2)
    model = SubspaceClustering(3, 2, affine=True).fit(X)
    assert agreement(labels, model.labels_, 3) > 0.98
    flats = Flats(model.means_, model.bases_)
    assert np.sqrt(square_distances(centres, flats)).min(axis=1).max() < 0.1


def test_the_groups_alone_come_close():
    X, labels, _, _ = draw(4)
    raw = SubspaceClustering(4, 3, refine="none").fit(X)
    assert raw.n_iter_ == 0
    assert agreement(labels, raw.labels_, 4) > 0.95
    assert SubspaceClustering(4, 3).fit(X).score(X) >= raw.score(X)


def test_lines_in_the_plane_start_otherwise_and_say_so():
    rng = np.random.default_rng(5)
    angles = np.array([0.2, 1.2, 2.2])
    labels = rng.integers(3, size=600)
    along = rng.standard_normal(600)
    X = np.stack([np.cos(angles[labels]), np.sin(angles[labels])], axis=1) * along[:, None]
    X += 0.02 * rng.standard_normal(X.shape)
    model = SubspaceClustering(3, 1).fit(X)
    assert any("need 3 columns, but X has 2" in text for text in model.report_.warnings)
    assert model.report_.start == "flats through few rows"
    found = np.sort(np.arctan2(model.bases_[:, 1, 0], model.bases_[:, 0, 0]) % np.pi)
    np.testing.assert_allclose(found, angles, atol=0.05)
    with pytest.raises(InvalidInput, match="need 3 columns"):
        SubspaceClustering(3, 1, refine="none").fit(X)


def test_what_a_fitted_model_can_do():
    X, _, _, _ = draw(6)
    model = SubspaceClustering(4, 3).fit(X)
    distance = model.transform(X[:9])
    assert distance.shape == (9, 4)
    np.testing.assert_array_equal(distance.argmin(axis=1), model.predict(X[:9]))
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.noise_variance_ * 27, rel=1e-6)
    assert model.weights_.sum() == pytest.approx(1)
    assert list(model.get_feature_names_out()) == [f"subspaceclustering{j}" for j in range(4)]


def test_units_and_threads_do_not_matter():
    X, _, _, _ = draw(7)
    one = SubspaceClustering(4, 3, n_jobs=1).fit(X)
    two = SubspaceClustering(4, 3, n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    tiny = SubspaceClustering(4, 3).fit(X * 1e-150)
    np.testing.assert_array_equal(one.labels_, tiny.labels_)


def test_the_alternation_is_principal_components_of_each_label():
    X, labels, bases, _ = draw(8, n=300, k=2)
    start = Flats(np.zeros((2, 30)), np.stack(bases))
    weights = np.random.default_rng(0).uniform(0.5, 2, 300)
    found = fit_flats(X, weights, labels, start, affine=True)
    own = labels == 0
    mean = np.average(X[own], axis=0, weights=weights[own])
    np.testing.assert_allclose(found.centres[0], mean)
    scaled = (X[own] - mean) * np.sqrt(weights[own])[:, None]
    U = np.linalg.svd(scaled, full_matrices=False)[2][:3]
    np.testing.assert_allclose(found.bases[0] @ found.bases[0].T, U.T @ U, atol=1e-8)
    run = alternate(X, weights, start, affine=True, tol=0.0, max_steps=50)
    assert run.path[-1] <= run.path[0]
    assert run.converged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"subspace_dim": 31}, "exceeds the number of columns"),
        ({"refine": "em"}, "refine"),
        ({"n_components": 2000}, "fewer than n_components"),
    ],
)
def test_bad_arguments(options, message):
    X, _, _, _ = draw()
    with pytest.raises(InvalidInput, match=message):
        SubspaceClustering(**options).fit(X)


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
def test_random_data_never_breaks():
    rng = np.random.default_rng(9)
    for _ in range(40):
        n, d = int(rng.integers(4, 80)), int(rng.integers(1, 6))
        k, p = int(rng.integers(1, 4)), int(rng.integers(1, d + 1))
        scale = 10.0 ** rng.integers(-100, 100)
        X = rng.choice([rng.standard_normal((n, d)), rng.integers(0, 2, (n, d)) * 1.0]) * scale
        model = SubspaceClustering(k, p, affine=bool(rng.integers(2))).fit(X)
        assert np.isfinite(model.bases_).all()
        assert model.labels_.shape == (n,)
        assert np.isfinite(model.transform(X)).all()


def of_dimensions(dims, d=20, n=1500, sigma=0.05, seed=0, affine=False):
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(dims), size=n)
    bases = [np.linalg.qr(rng.standard_normal((d, p)))[0] for p in dims]
    centres = 2.0 * affine * rng.standard_normal((len(dims), d))
    X = np.stack([centres[j] + bases[j] @ rng.standard_normal(dims[j]) for j in labels])
    return X + sigma * rng.standard_normal(X.shape), labels, bases


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("given", [[4, 1, 3, 2], "auto"])
def test_subspaces_of_different_dimensions(given, affine):
    X, labels, bases = of_dimensions([1, 2, 3, 4], affine=affine)
    model = SubspaceClustering(4, given, affine=affine).fit(X)
    assert sorted(model.subspace_dims_) == [1, 2, 3, 4]
    assert agreement(labels, model.labels_, 4) > 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.noise_variance_ == pytest.approx(0.05**2, rel=0.05)
    assert model.transform(X[:7]).shape == (7, 4)
    for basis in model.bases_:
        truth = next(b for b in bases if b.shape == basis.shape)
        assert np.linalg.svd(basis.T @ truth, compute_uv=False).min() > 0.999


def test_one_dimension_for_all_cannot_do_that():
    X, labels, _ = of_dimensions([1, 2, 3, 4])
    models = [SubspaceClustering(4, p).fit(X) for p in (2, 3)]
    assert max(agreement(labels, model.labels_, 4) for model in models) < 0.95


def test_the_likelihood_of_layers_is_that_of_gaussians():
    X, labels, _ = of_dimensions([1, 3], d=5, n=200)
    layers = fit_layers(X, np.ones(200), labels, 2, [1, 3], affine=True)
    found = log_densities(X, layers)
    for j, p in enumerate(layers.dims):
        basis = layers.flats.bases[j, :, :p]
        cov = (basis * (layers.variances[j, :p] - layers.noise)) @ basis.T
        law = scipy.stats.multivariate_normal(
            layers.flats.centres[j], cov + layers.noise * np.eye(5)
        )
        exact = law.logpdf(X) + np.log(layers.shares[j]) + 2.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(found[:, j], exact, rtol=1e-9)


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([1, 2], "subspace_dim has 2 entries, but n_components=3"),
        ("many", "must be an integer, a list or 'auto'"),
        ([1, 0, 2], "subspace_dim=0 must be at least 1"),
        ([1, 2, 30], "subspace_dim=30 exceeds"),
    ],
)
def test_dimensions_that_cannot_be(dims, text):
    with pytest.raises(InvalidInput, match=text):
        SubspaceClustering(3, dims).fit(np.random.default_rng(0).standard_normal((50, 8)))


def test_more_dimensions_than_columns_start_through_few_rows():
    X = of_dimensions([1, 2], d=3, n=600)[0]
    X = np.concatenate([X, of_dimensions([1, 1], d=3, n=200, seed=7)[0]])
    model = SubspaceClustering(3, [1, 2, 2]).fit(X)
    assert any("need 5 columns" in text for text in model.report_.warnings)
    assert sorted(model.subspace_dims_) == [1, 2, 2]


@pytest.mark.parametrize("dims", [2, [1, 2, 2], "auto"])
@pytest.mark.parametrize("columns", [12, 3])
@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.MomentWarning")
def test_weights_repeat_rows(dims, columns):
    for seed in range(4):
        X, _, _ = of_dimensions([1, 2, 2], d=columns, n=200, sigma=0.3, seed=seed)
        w = np.random.default_rng(seed).choice([1, 3], size=200)
        weighted = SubspaceClustering(3, dims).fit(X, sample_weight=w)
        repeated = SubspaceClustering(3, dims).fit(np.repeat(X, w, axis=0))
        np.testing.assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)


@pytest.mark.parametrize("dims", [[1, 2, 3], "auto"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_affine_subspaces_far_from_the_origin(dims, offset):
    X, labels, _ = of_dimensions([1, 2, 3], d=10, n=900, affine=True)
    model = SubspaceClustering(3, dims, affine=True).fit(X + offset)
    assert model.noise_variance_ == pytest.approx(0.05**2, rel=0.1)
    assert agreement(labels, model.labels_, 3) > 0.98
    shares = np.bincount(model.labels_, minlength=3) / 900
    np.testing.assert_allclose(model.weights_, shares, atol=1e-12)
    own = model.transform(X + offset)[np.arange(900), model.labels_] ** 2
    assert model.score(X + offset) == pytest.approx(-own.mean())


def test_dimensions_that_add_up_to_more_than_the_columns_are_told():
    X = load_digits().data
    model = SubspaceClustering(10, "auto").fit(X)
    assert model.subspace_dims_.sum() > X.shape[1]
    assert any("add up to" in text for text in model.report_.warnings)


def test_directions_that_subspaces_share_are_no_trap():
    """Affine subspaces through one point: fewer directions than their dimensions add up to."""
    for seed in range(6):
        X, labels, _ = of_dimensions([1, 2, 3], d=12, n=900, seed=seed)
        model = SubspaceClustering(3, [1, 2, 3], affine=True).fit(X)
        assert agreement(labels, model.labels_, 3) > 0.95


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_forked_after_a_fit_fits_as_well():
    X, _, _ = of_dimensions([2, 2, 2], d=12, n=600)
    first = SubspaceClustering(3, 2).fit(X)
    KMeans(3, n_init=1).fit(X)  # threads of OpenMP, which do not survive a fork
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        found = pool.apply_async(SubspaceClustering(3, 2).fit_predict, (X,)).get(timeout=60)
    np.testing.assert_array_equal(found, first.labels_)
