"""Multi-view mixtures of any law."""

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment import MultiViewMixture
from thirdmoment.exceptions import InvalidInput, MomentWarning, RankDeficientView, UnusableMoments
from thirdmoment.metrics import align


def skewed_sample(n, seed=0, k=3, d=12):
    """Components with exponential noise: no Gaussian in sight."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.standard_normal((k, d))
    weights = rng.dirichlet(np.full(k, 5.0))
    labels = rng.choice(k, size=n, p=weights)
    X = means[labels] + rng.exponential(size=(n, d)) - 1
    return X, means, weights, labels


GROUPS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def stacked(model):
    out = np.empty((len(model.weights_), sum(len(g) for g in model.view_groups_)))
    for group, means in zip(model.view_groups_, model.means_, strict=True):
        out[:, group] = means
    return out


def oracle_error(X, means, labels):
    """Of means by those who know the labels."""
    own = np.stack([X[labels == j].mean(axis=0) for j in range(len(means))])
    return np.abs(own - means).max()


@pytest.mark.parametrize("views", [3, 4, GROUPS, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]])
@pytest.mark.parametrize("weighting", ["auto", "none"])
def test_means_of_all_views_come_in_one_order(views, weighting):
    X, means, weights, labels = skewed_sample(60_000)
    model = MultiViewMixture(3, views=views, weighting=weighting).fit(X)
    found = stacked(model)
    order = align(found, means, metric="euclidean")
    # moments cost a factor of three to five against labels, unweighted ones twice that
    factor = 5 if weighting == "auto" else 10
    assert np.abs(found[order] - means).max() < factor * oracle_error(X, means, labels)
    np.testing.assert_allclose(model.weights_[order], weights, atol=0.02)
    assert len(model.means_) == (views if isinstance(views, int) else len(views))


@pytest.mark.parametrize("solver", ["tensor", "power", "eig", "schur", "joint-schur", "joint"])
def test_every_solver_finds_the_components(solver):
    X, means, _, labels = skewed_sample(60_000, seed=1)
    found = stacked(MultiViewMixture(3, views=GROUPS, solver=solver).fit(X))
    order = align(found, means, metric="euclidean")
    assert np.abs(found[order] - means).max() < 3 * oracle_error(X, means, labels)


def test_covariances_of_correlated_views_are_recovered():
    rng = np.random.default_rng(2)
    n, k = 100_000, 2
    means = rng.standard_normal((k, 9)) * 2
    factors = rng.standard_normal((k, 3, 3, 3)) * 0.7  # component, view, 3, 3
    labels = rng.integers(k, size=n)
    noise = np.einsum("avij,avj->avi", factors[labels], rng.standard_normal((n, 3, 3)))
    X = means[labels] + noise.reshape(n, 9)
    groups = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    model = MultiViewMixture(k, views=groups, covariance_type="full").fit(X)
    order = align(stacked(model), means, metric="euclidean")
    for v in range(3):
        truth = factors[:, v] @ factors[:, v].transpose(0, 2, 1)
        np.testing.assert_allclose(model.covariances_[v][order], truth, atol=0.15)
    diagonal = MultiViewMixture(k, views=groups, covariance_type="diag").fit(X)
    for full, thin in zip(model.covariances_, diagonal.covariances_, strict=True):
        np.testing.assert_allclose(np.diagonal(full, axis1=1, axis2=2), thin, rtol=0.05, atol=0.05)


def test_lifting_tells_components_with_equal_means_apart():
    rng = np.random.default_rng(3)
    n = 100_000
    scale = np.array([[0.5, 1.5, 0.5, 1.5, 0.5, 1.5], [1.5, 0.5, 1.5, 0.5, 1.5, 0.5]])
    labels = rng.integers(2, size=n)
    X = scale[labels] * rng.standard_normal((n, 6))
    groups = [[0, 1], [2, 3], [4, 5]]
    model = MultiViewMixture(2, views=groups, lift=2).fit(X)
    assert np.mean(model.predict(X) == labels) > 0.9 or np.mean(model.predict(X) != labels) > 0.9
    spread = np.array([[model.covariances_[v][j][i, i] for v in range(3) for i in range(2)]
                       for j in range(2)])  # fmt: skip
    order = align(spread, scale**2)
    np.testing.assert_allclose(spread[order], scale**2, atol=0.3)


def test_sparse_and_dense_input_agree():
    rng = np.random.default_rng(4)
    labels = rng.integers(2, size=4_000)
    rate = rng.uniform(0.1, 1.0, size=(2, 12))
    X = rng.poisson(rate[labels]).astype(float)
    dense = MultiViewMixture(2, views=GROUPS, covariance_type="diag", weighting="none").fit(X)
    sparse = MultiViewMixture(2, views=GROUPS, covariance_type="diag", weighting="none")
    sparse.fit(sp.csr_array(X))
    np.testing.assert_allclose(stacked(sparse), stacked(dense), atol=1e-8)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), dense.predict(X))


def test_wide_sparse_views_are_never_squared(monkeypatch):
    from thirdmoment.starts import views as view_start

    X, _, _, _ = skewed_sample(20_000, seed=5, d=30)
    formed = MultiViewMixture(3, views=[range(10), range(10, 20), range(20, 30)])
    thin = MultiViewMixture(3, views=[range(10), range(10, 20), range(20, 30)])
    found = stacked(formed.fit(X))
    monkeypatch.setattr(view_start, "FORMED_COLUMNS", 5)
    implicit = stacked(thin.fit(X))
    order = align(implicit, found, metric="euclidean")
    assert np.abs(implicit[order] - found).max() < 0.15
    assert thin.report_.passes > 2


def test_views_that_share_columns_or_are_too_few_are_refused():
    X = np.random.default_rng(0).standard_normal((50, 6))
    with pytest.raises(InvalidInput, match="Views share column 2"):
        MultiViewMixture(2, views=[[0, 1, 2], [2, 3], [4, 5]]).fit(X)
    with pytest.raises(InvalidInput, match="two views do not identify"):
        MultiViewMixture(2, views=[[0, 1, 2], [3, 4, 5]]).fit(X)
    with pytest.raises(InvalidInput, match="views=2 is too few"):
        MultiViewMixture(2, views=2).fit(X)
    with pytest.raises(InvalidInput, match="View 2 names column 6"):
        MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 6]]).fit(X)
    with pytest.raises(InvalidInput, match="must be an integer"):
        MultiViewMixture(2, views="columns").fit(X)
    with pytest.raises(InvalidInput, match="lift=3"):
        MultiViewMixture(2, lift=3).fit(X)


def test_a_view_of_too_small_a_rank_is_named_with_its_rank():
    X, _, _, _ = skewed_sample(2_000, d=8, k=3)
    views = [[0], [1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(RankDeficientView, match="View 0 has rank 2 against the other views"):
        MultiViewMixture(3, views=views, refine="none", solver="tensor").fit(X)
    with pytest.warns(MomentWarning, match="not usable"):
        model = MultiViewMixture(3, views=views, solver="tensor").fit(X)
    assert model.report_.start.startswith("spread-out rows")


def test_fewer_than_three_varying_views_are_an_error_without_refinement():
    X = np.random.default_rng(0).standard_normal((50, 2))
    with pytest.raises(UnusableMoments, match="fewer than three"):
        MultiViewMixture(2, refine="none").fit(X)


def test_a_random_partition_reports_its_incoherence():
    X, _, _, _ = skewed_sample(5_000, d=18)
    model = MultiViewMixture(3).fit(X)
    details = model.report_.details
    assert details["partitions_tried"] == 10
    columns = model._units  # facts are in units of the columns
    M = ((stacked(model) - columns.location) / columns.scale).T
    U, s, _ = np.linalg.svd(M, full_matrices=False)
    assert details["incoherence"] == pytest.approx(18 / 3 * (U**2).sum(axis=1).max())
    parts = [np.linalg.svd(M[group], compute_uv=False)[2] for group in model.view_groups_]
    sizes = [len(group) for group in model.view_groups_]
    ratios = [a * np.sqrt(18 / m) / s[2] for a, m in zip(parts, sizes, strict=True)]
    assert details["partition_ratio"] == pytest.approx(min(ratios))


@pytest.mark.parametrize("wrong", [[], [0.9, 1], [[0, 1]], "01"])
def test_views_must_be_lists_of_column_numbers(wrong):
    X = np.random.default_rng(0).standard_normal((50, 6))
    with pytest.raises(InvalidInput, match="View 0 is"):
        MultiViewMixture(2, views=[wrong, [2, 3], [4, 5]]).fit(X)


def test_masks_are_views_too_and_groups_are_copies():
    X, _, _, _ = skewed_sample(3_000)
    mine = np.arange(4)
    mask = np.isin(np.arange(12), GROUPS[1])
    model = MultiViewMixture(3, views=[mine, mask, GROUPS[2]]).fit(X)
    np.testing.assert_array_equal(model.view_groups_[1], GROUPS[1])
    assert model.view_groups_[0] is not mine


def test_constant_columns_keep_their_place():
    X, _, _, _ = skewed_sample(3_000)
    X = np.concatenate([X, np.full((3_000, 1), 7.0)], axis=1)
    model = MultiViewMixture(3).fit(X)
    assert sum(means.shape[1] for means in model.means_) == 13
    np.testing.assert_allclose(stacked(model)[:, 12], 7.0)


def test_tiny_units_are_no_floor():
    X, _, _, _ = skewed_sample(20_000)
    large = MultiViewMixture(3, views=GROUPS, covariance_type="diag", weighting="none").fit(X)
    small = MultiViewMixture(3, views=GROUPS, covariance_type="diag", weighting="none")
    small.fit(1e-6 * X)
    np.testing.assert_allclose(small.covariances_[0], 1e-12 * large.covariances_[0], rtol=1e-3)


def test_the_warning_points_at_the_call():
    X = np.random.default_rng(0).standard_normal((50, 2))
    with pytest.warns(MomentWarning) as caught:
        MultiViewMixture(2).fit(X)
    assert caught[0].filename == __file__
    assert "refined by likelihood" not in str(caught[0].message)


def test_few_rows_give_covariances_that_still_classify():
    from sklearn.datasets import make_blobs
    from sklearn.metrics import adjusted_rand_score

    X, labels = make_blobs(500, n_features=9, centers=3, random_state=4, cluster_std=3.0)
    model = MultiViewMixture(3).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95
    for cov in model.covariances_:
        assert np.linalg.eigvalsh(cov).min() > 0.05
