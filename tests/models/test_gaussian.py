"""Gaussian mixtures: recovery, likelihood, scikit-learn's manners."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Peer

from thirdmoment import GaussianMixture
from thirdmoment.datasets import make_gaussian_mixture
from thirdmoment.exceptions import InvalidInput, UnusableMoments
from thirdmoment.metrics import align
from thirdmoment.refinement.em import EMResult
from thirdmoment.refinement.race import race
from thirdmoment.report import Judged
from thirdmoment.starts import spherical
from thirdmoment.starts.gaussian import GaussianData
from thirdmoment.starts.spherical import signal_directions
from thirdmoment.starts.start import MomentFacts, Start

TYPES = ["spherical", "diag", "full", "tied", "block"]
VIEWS = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def error(model, data):
    order = align(model.means_, data.means, metric="euclidean")
    return np.linalg.norm(model.means_[order] - data.means, axis=1).mean()


def diagonal_sample(n, seed=0, k=3, d=9):
    rng = np.random.default_rng(seed)
    means, sd = 2.5 * rng.standard_normal((k, d)), rng.uniform(0.5, 1.5, size=(k, d))
    labels = rng.integers(k, size=n)
    return means[labels] + sd[labels] * rng.standard_normal((n, d)), means, labels


def test_the_error_of_the_moments_falls_like_one_over_root_n():
    errors = []
    for n in (4_000, 64_000):
        runs = [make_gaussian_mixture(n, 8, 3, random_state=seed) for seed in range(6)]
        fits = [GaussianMixture(3, refine="none").fit(data.X) for data in runs]
        errors.append(np.mean([error(fit, data) for fit, data in zip(fits, runs, strict=True)]))
    slope = np.log(errors[1] / errors[0]) / np.log(16)
    assert -0.7 < slope < -0.35


@pytest.mark.parametrize("seed", range(3))
def test_refined_likelihood_is_that_of_em_from_the_truth(seed):
    data = make_gaussian_mixture(5_000, 12, 5, separation=1.7, random_state=seed)
    model = GaussianMixture(5).fit(data.X)
    oracle = Peer(
        5,
        covariance_type="spherical",
        means_init=data.means,
        weights_init=data.weights,
        tol=1e-9,
        max_iter=1000,
    ).fit(data.X)
    assert model.score(data.X) >= oracle.score(data.X) - 1e-4
    assert model.report_.start == "moments"


@pytest.mark.parametrize("kind", TYPES)
def test_scores_and_posteriors_agree_with_scikit_learn(kind):
    X, _, _ = diagonal_sample(600)
    model = GaussianMixture(3, covariance_type=kind, views=VIEWS).fit(X)
    if kind == "block":
        with pytest.raises(InvalidInput, match="block"):
            model.to_sklearn()
        peer = GaussianMixture(3, covariance_type="full").fit(X).to_sklearn()
        assert model.score(X) <= peer.score(X) + 1e-6  # fewer parameters
        return
    peer = model.to_sklearn()
    np.testing.assert_allclose(model.score_samples(X), peer.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-8)
    assert model.bic(X) == pytest.approx(peer.bic(X))
    assert model.aic(X) == pytest.approx(peer.aic(X))
    assert model.covariances_.shape == peer.covariances_.shape


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_separates_clear_groups_and_samples_from_itself(kind):
    X, _, labels = diagonal_sample(3_000, seed=1)
    model = GaussianMixture(3, covariance_type=kind, views=VIEWS).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.97
    drawn, component = model.sample(4_000)
    assert drawn.shape == (4_000, 9)
    found = np.stack([drawn[component == j].mean(axis=0) for j in range(3)])
    np.testing.assert_allclose(found, model.means_, atol=0.2)


def test_random_views_recover_a_diagonal_mixture_by_moments_alone():
    X, means, _ = diagonal_sample(40_000, seed=2)
    model = GaussianMixture(3, covariance_type="diag", refine="none").fit(X)
    order = align(model.means_, means, metric="euclidean")
    assert np.abs(model.means_[order] - means).max() < 0.25
    assert 1 <= model.report_.details["incoherence"] < 9 / 3


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_five_blobs_in_the_plane_just_work(kind):
    X, labels = make_blobs(1000, centers=5, cluster_std=0.5, random_state=3)
    model = GaussianMixture(5, covariance_type=kind).fit(X)
    assert any("not usable" in text for text in model.report_.warnings)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95
    assert model.report_.start.startswith("spread-out rows")


def test_moments_that_cannot_be_used_are_an_error_without_refinement():
    X = np.random.default_rng(0).standard_normal((50, 2))
    with pytest.raises(UnusableMoments, match="at most 2 spherical components"):
        GaussianMixture(5, refine="none").fit(X)
    with pytest.raises(UnusableMoments, match="fewer than three"):
        GaussianMixture(2, covariance_type="diag", refine="none").fit(X)


def test_standardised_data_with_two_opposite_means_is_no_trap():
    # centred means ±mu have rank one: the constant coordinate restores the second
    rng = np.random.default_rng(4)
    sign = rng.choice([-1.0, 1.0], size=4_000, p=[0.4, 0.6])
    X = sign[:, None] * np.full(6, 0.8) + rng.standard_normal((4_000, 6))
    X -= X.mean(axis=0)
    for kind in ("spherical", "diag"):
        model = GaussianMixture(2, covariance_type=kind, refine="none").fit(X)
        gap = np.linalg.norm(model.means_[0] - model.means_[1])
        assert gap == pytest.approx(2 * 0.8 * np.sqrt(6), rel=0.1)


def test_a_shift_and_a_scale_of_the_data_change_nothing_but_the_units():
    X, _, _ = diagonal_sample(500, seed=5)
    plain = GaussianMixture(3).fit(X)
    moved = GaussianMixture(3, reg_covar=1e-6 * 100).fit(1e4 + 10 * X)
    np.testing.assert_allclose(moved.means_, 1e4 + 10 * plain.means_, rtol=1e-5)
    np.testing.assert_array_equal(moved.predict(1e4 + 10 * X), plain.predict(X))


def test_a_common_variance_is_common():
    data = make_gaussian_mixture(2_000, 6, 3)
    model = GaussianMixture(3, common_variance=True).fit(data.X)
    assert np.ptp(model.covariances_) == 0
    assert model.covariances_[0] == pytest.approx(1.0, abs=0.05)


def test_refinement_never_ends_below_its_start():
    data = make_gaussian_mixture(800, 10, 4, separation=1.0, random_state=7)
    path = GaussianMixture(4).fit(data.X).report_.refine_path
    assert max(path) == pytest.approx(path[-1])
    assert path[-1] >= path[0]


def test_the_answer_is_bitwise_the_same_on_any_number_of_threads():
    data = make_gaussian_mixture(20_000, 10, 4)
    one, two = (GaussianMixture(4, n_jobs=j).fit(data.X) for j in (1, 2))
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_array_equal(one.covariances_, two.covariances_)


def test_batches_up_to_ten_thousand_rows_give_what_fit_gives():
    data = make_gaussian_mixture(3_000, 8, 3)
    whole = GaussianMixture(3).fit(data.X)
    parts = GaussianMixture(3)
    for batch in np.array_split(data.X, 4):
        parts.partial_fit(batch)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-12)
    assert parts.n_seen_ == 3_000


@pytest.mark.parametrize("kind", TYPES)
def test_later_batches_bring_the_estimate_closer(kind):
    data = make_gaussian_mixture(40_000, 9, 3, separation=1.5, random_state=1)
    model = GaussianMixture(3, covariance_type=kind, views=VIEWS)
    model.partial_fit(data.X[:2_000])
    first = error(model, data)
    for batch in np.array_split(data.X[2_000:], 8):
        model.partial_fit(batch)
    assert error(model, data) < 0.6 * first
    assert model.n_seen_ == 40_000


def test_weights_count_rows():
    data = make_gaussian_mixture(300, 5, 3)
    w = np.random.default_rng(0).integers(0, 4, size=300)
    weighted = GaussianMixture(3).fit(data.X, sample_weight=w)
    repeated = GaussianMixture(3).fit(np.repeat(data.X, w, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-6)


def test_float32_stays_float32_and_pickles():
    data = make_gaussian_mixture(500, 5, 3)
    model = GaussianMixture(3).fit(data.X.astype(np.float32))
    assert model.means_.dtype == np.float32
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(data.X), model.predict(data.X))


def test_one_component_is_the_sample_mean_and_variance():
    X = np.random.default_rng(0).standard_normal((100, 3)) + 5
    model = GaussianMixture(1, covariance_type="full").fit(X)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0))
    np.testing.assert_allclose(model.covariances_[0], np.cov(X.T, bias=True))


@pytest.mark.parametrize("kind", ["diag", "block"])
def test_the_papers_form_and_the_weighted_form_both_find_the_means(kind):
    X, means, _ = diagonal_sample(30_000, seed=6)
    for weighting in ("auto", "none"):
        model = GaussianMixture(
            3, covariance_type=kind, views=VIEWS, refine="none", weighting=weighting
        ).fit(X)
        order = align(model.means_, means, metric="euclidean")
        assert np.abs(model.means_[order] - means).max() < 0.3


def test_moments_alone_give_each_component_its_own_variance():
    rng = np.random.default_rng(8)
    sd, means = np.array([0.5, 1.0, 2.0]), 4 * rng.standard_normal((3, 9))
    labels = rng.integers(3, size=60_000)
    X = means[labels] + sd[labels, None] * rng.standard_normal((60_000, 9))
    for kind in ("spherical", "diag", "block"):
        model = GaussianMixture(3, covariance_type=kind, views=VIEWS, refine="none").fit(X)
        order = align(model.means_, means, metric="euclidean")
        if kind == "block":
            found = np.mean([np.trace(c, axis1=1, axis2=2) / 3 for c in model.covariances_], axis=0)
        else:
            found = model.covariances_ if kind == "spherical" else model.covariances_.mean(axis=1)
        np.testing.assert_allclose(np.sqrt(found[order]), sd, rtol=0.25)


@pytest.mark.parametrize("kind", TYPES)
def test_a_variance_floor_does_not_break_the_climb(kind):
    X, _, _ = diagonal_sample(400, seed=7)
    model = GaussianMixture(3, covariance_type=kind, views=VIEWS).fit(1e-3 * X)
    path = np.array(model.report_.refine_path)
    assert path[-1] >= path[0]
    assert path[-1] == pytest.approx(model.score(1e-3 * X), abs=1e-6)


def test_float32_steps_are_left_out_where_they_cannot_resolve_the_components(monkeypatch):
    from thirdmoment.models.mixtures import gaussian

    rng = np.random.default_rng(9)
    X = np.concatenate([rng.standard_normal((300, 3)), 3e4 + rng.standard_normal((300, 3))])
    exact = GaussianMixture(2).fit(X).score(X)
    monkeypatch.setattr(gaussian, "FAST_SIZE", 0)
    assert GaussianMixture(2).fit(X).score(X) == pytest.approx(exact, abs=1e-6)
    assert np.isfinite(GaussianMixture(2).fit(1e20 * X).weights_).all()


def test_tied_starts_from_some_rows_have_the_right_size():
    X, _ = make_blobs(9_000, centers=5, cluster_std=0.7, random_state=1)
    model = GaussianMixture(5, covariance_type="tied", max_refine_iter=0).fit(X)
    assert np.diagonal(model.covariances_).max() < 3


def test_weights_count_rows_beyond_the_size_of_the_spread_start():
    X, _ = make_blobs(5_000, centers=5, cluster_std=1.5, random_state=2)
    w = np.random.default_rng(0).integers(1, 4, size=5_000)
    weighted = GaussianMixture(5, covariance_type="full").fit(X, sample_weight=w)
    repeated = GaussianMixture(5, covariance_type="full").fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-3)


def test_reported_weights_are_in_the_order_of_the_fitted_ones():
    data = make_gaussian_mixture(20_000, 8, 4, random_state=3)
    model = GaussianMixture(4).fit(data.X)
    np.testing.assert_allclose(model.report_.raw_weights, model.weights_, atol=0.05)


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.MomentWarning")
def test_duplicated_rows_without_a_floor_do_not_crash():
    X = np.repeat(np.random.default_rng(0).standard_normal((3, 4)), 10, axis=0)
    for kind in ("spherical", "diag", "full"):
        model = GaussianMixture(3, covariance_type=kind, reg_covar=0.0).fit(X)
        np.testing.assert_allclose(model.predict_proba(X).max(axis=1), 1.0)
        labels = model.predict(X).reshape(3, 10)
        assert np.all(labels == labels[:, :1])
        assert len(set(labels[:, 0])) == 3  # each of the three points is a component


def test_streams_keep_the_heaviest_component_first():
    data = make_gaussian_mixture(16_000, 6, 3, random_state=4)
    model = GaussianMixture(3)
    for batch in np.array_split(data.X, 4):
        model.partial_fit(batch)
    assert np.all(np.diff(model.weights_) <= 0)


def test_the_order_of_rows_and_the_sign_of_the_data_do_not_matter():
    data = make_gaussian_mixture(3_000, 7, 3, random_state=5)
    plain = GaussianMixture(3).fit(data.X)
    order = np.random.default_rng(0).permutation(len(data.X))
    np.testing.assert_allclose(
        GaussianMixture(3).fit(data.X[order]).means_, plain.means_, atol=1e-3
    )
    np.testing.assert_allclose(GaussianMixture(3).fit(-data.X).means_, -plain.means_, atol=1e-3)
    columns = np.random.default_rng(1).permutation(7)
    turned = GaussianMixture(3).fit(data.X[:, columns]).means_
    np.testing.assert_allclose(turned, plain.means_[:, columns], atol=1e-3)


def test_collapsed_components_are_avoided_or_named():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((300, 2)), np.full((40, 2), 0.25)])
    model = GaussianMixture(3, covariance_type="full").fit(X)
    collapsed = np.linalg.eigvalsh(model.covariances_)[:, 0] <= 1.5e-6
    named = any("variance at its floor" in text for text in model.report_.warnings)
    assert collapsed.any() == named
    points = np.repeat(rng.standard_normal((3, 2)), 20, axis=0)  # nothing but repeated values
    report = GaussianMixture(3, covariance_type="full").fit(points).report_
    assert any("3 of 3 components have a variance at its floor" in text for text in report.warnings)


def test_views_may_be_named_like_the_columns_of_a_table():
    pd = pytest.importorskip("pandas")
    X, _, _ = diagonal_sample(500)
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(9)])
    names = [[f"c{i}" for i in group] for group in VIEWS]
    by_name = GaussianMixture(3, covariance_type="block", views=names).fit(table)
    by_number = GaussianMixture(3, covariance_type="block", views=VIEWS).fit(X)
    np.testing.assert_allclose(by_name.means_, by_number.means_)
    plain = GaussianMixture(3, covariance_type="full").fit(table)
    np.testing.assert_array_equal(plain.to_sklearn().predict(table), plain.predict(table))


def test_small_tables_race_another_start_against_the_moments():
    data = make_gaussian_mixture(300, 8, 3)
    assert len(GaussianMixture(3).fit(data.X).report_.details["starts"]) > 1


def blobs_with_heavy_tails(seed):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((4, 4))
    means *= 4.8 / np.linalg.norm(means, axis=1, keepdims=True)
    return means[rng.integers(4, size=3000)] + rng.standard_t(3, (3000, 4))


@pytest.mark.parametrize("seed", [13, 17, 23, 30])
def test_moments_that_the_report_doubts_are_raced(seed):
    """Noise by formula trusted the moments of these; a component of weight 3e-4 came out."""
    from sklearn.mixture import GaussianMixture as Peer

    X = blobs_with_heavy_tails(seed)
    model = GaussianMixture(4).fit(X)
    assert len(model.report_.details["starts"]) > 4
    peer = Peer(4, covariance_type="spherical", n_init=10, random_state=0).fit(X)
    assert len(X) * (model.score(X) - peer.score(X)) > -1
    assert model.weights_.min() > 0.01


def test_clean_data_is_not_raced():
    data = make_gaussian_mixture(5000, 10, 4, separation=3.0)
    model = GaussianMixture(4).fit(data.X)
    assert model.report_.start == "moments"
    assert model.report_.details["starts"] == ()


def test_a_start_whose_component_vanishes_is_raced_after_all(monkeypatch):
    from thirdmoment.starts.start import MomentFacts

    monkeypatch.setattr(MomentFacts, "trusted", lambda self, rows: True)
    model = GaussianMixture(4).fit(blobs_with_heavy_tails(13))
    assert len(model.report_.details["starts"]) > 4
    assert model.weights_.min() > 0.01


def test_a_degenerate_optimum_that_was_passed_over_is_told():
    """Rows that pile up on one point: the likelihood of a component there has no limit."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((400, 4)) + 8 * j for j in range(3)])
    found = [(np.zeros(1),), (np.ones(1),)]

    class Problem:
        """Start a ends higher, collapsed; start b is sound."""

        total, tol = 100.0, 0.02

        def run(self, parameters, steps):
            return EMResult(parameters, (-3.0, -1.0 if parameters[0][0] == 0 else -1.5), True, 2)

        def collapsed(self, parameters):
            return int(parameters[0][0] == 0)

        def places(self, parameters):
            return parameters[0][:, None]

    refined = race(Problem(), found, max_steps=50)
    assert refined.chosen == 1
    assert refined.contest.passed_over == pytest.approx(50)
    model = GaussianMixture(3).fit(X)
    candidate, judged = Start((), "moments", None), Judged(None)
    report = model._report(candidate, refined._replace(parameters=()), judged)
    assert "50 more units of log-likelihood was passed over" in report.full()


@pytest.mark.parametrize("where", [(0,), (0, 1), (0, 1, 2)])
def test_runs_that_end_in_nan_lose_to_any_other(where):
    class Problem:
        """Starts of these numbers lead to NaN; others are sound, the last collapses."""

        total, tol = 100.0, 0.02

        def run(self, parameters, steps):
            number = int(parameters[0][0])
            end = np.nan if number in where else -1.0 - number / 10
            return EMResult(parameters, (-3.0, end), True, 2)

        def collapsed(self, parameters):
            return int(parameters[0][0] == 3)

        def places(self, parameters):
            return 10 * parameters[0][:, None]

        def replaced(self, best, other, i, j):
            return other

    starts = [(np.full(3, float(i)),) for i in range(4)]
    refined = race(Problem(), starts, max_steps=50)
    assert refined.chosen == min(set(range(4)) - set(where))
    assert np.isfinite(refined.path[-1])


class TestTrust:
    """Each thing that is known of the moments can speak against them."""

    facts = MomentFacts(
        spectrum=np.array([5.0, 3.0, 2.0]),
        noise=0.5,
        residual=0.05,
        raw_weights=np.array([0.4, 0.35, 0.25]),
        clipped_mass=np.zeros(3),
        solver="tensor",
        details={"passes": 2},
        expected_noise=0.4,
    )

    def test_clear_moments_are_trusted(self):
        assert self.facts.trusted(5000)

    @pytest.mark.parametrize(
        "change",
        [
            {"noise": 1.4},  # eigenvalue 3 is 1.43 times the noise
            {"expected_noise": 2.1},  # below the noise by formula
            {"residual": 0.11},
            {"raw_weights": np.array([0.5, 0.4, 0.25])},  # sum 1.15
            {"raw_weights": np.array([0.6, 0.35, 0.08])},  # below a quarter of a third
        ],
    )
    def test_any_doubt_is_enough(self, change):
        assert not self.facts._replace(**change).trusted(5000)

    def test_few_rows_are_never_trusted(self):
        assert not self.facts.trusted(1999)


def test_many_columns_need_no_covariance_matrix(monkeypatch):
    data = make_gaussian_mixture(1500, 400, 4, random_state=2)
    samples = GaussianData(data.X, np.ones(1500), np.zeros(400)).samples()
    thin, noise = signal_directions(samples, 4, np.random.default_rng(0), n_threads=1)
    monkeypatch.setattr(spherical, "FORMED_COLUMNS", 400)
    formed, exact = signal_directions(samples, 4, np.random.default_rng(0), n_threads=1)
    np.testing.assert_allclose(thin.eta, formed.eta, rtol=1e-4)
    assert abs(thin.sigma2 / formed.sigma2 - 1) < 1e-6
    angles = np.linalg.svd(thin.E.T @ formed.E, compute_uv=False)
    assert angles.min() > 1 - 1e-4
    assert 0.7 * exact < noise <= exact * (1 + 1e-9)  # found from below, to a tenth a step
