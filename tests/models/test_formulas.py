"""Single formulas against values worked out by hand, where answers alone would hide an error."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import thirdmoment as tm
from thirdmoment._array import DenseRows
from thirdmoment.decomposition import decompose
from thirdmoment.likelihood.categories import Categories, CodedRows, distinct_rows
from thirdmoment.likelihood.gaussians import valid_weights
from thirdmoment.likelihood.packed import sequences
from thirdmoment.metrics import align
from thirdmoment.models.rows import worth
from thirdmoment.models.units import Units, cast
from thirdmoment.moments.gaussian import leading_whitening
from thirdmoment.moments.regression import directed_regression
from thirdmoment.moments.sequences import (
    AdjacentCounts,
    Symbols,
    Windows,
    adjacent_features,
    whole_sequences,
    window_rows,
)
from thirdmoment.moments.views import PairSums, Sample
from thirdmoment.moments.word_search import third_factor, word_moment
from thirdmoment.recovery.covariance import conditional_covariances
from thirdmoment.recovery.dirichlet import _parabola, estimate_concentration
from thirdmoment.recovery.markov import state_probabilities, stochastic_rows
from thirdmoment.recovery.search import resolution
from thirdmoment.recovery.spherical import component_variances, recover_spherical
from thirdmoment.refinement import chains as em
from thirdmoment.refinement.chains import Observations
from thirdmoment.refinement.collapsed import Sweeper
from thirdmoment.refinement.lattice import Lattice
from thirdmoment.refinement.subspaces import LEAST_NOISE, _principal, dimension, fit_layers, layered


class Sums:
    """Two components of one column: means 0 and 2, variance 1 within; the first came out wrong."""

    total, score = 1e4, np.array([5e3, 5e3])
    first = np.array([[0.0], [1e4]])
    plain_first = np.array([1e4])

    def __init__(self, diagonal):
        self.diagonal = diagonal
        second = np.array([[-0.5], [1.0 + 4.0]]) * 5e3
        self.second = second if diagonal else second[:, :, None]
        plain = np.array([3e4])  # variance 2: one within, one between
        self.plain_second = plain if diagonal else plain[:, None]


@pytest.mark.parametrize("diagonal", [True, False])
def test_an_infeasible_variance_becomes_a_share_of_that_within_components(diagonal):
    found, moved = conditional_covariances(Sums(diagonal), np.array([0.5, 0.5]), np.ones(1))
    least = np.sqrt(1 * 2 / (1e4 * 0.5))  # the sampling error of a variance
    np.testing.assert_allclose(found.ravel(), [least * 1.0, 1.0], rtol=1e-6)
    assert moved == 1


def test_parameters_of_latent_classes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(c, size=500) for c in (2, 3, 4)])
    model = tm.CategoricalMixture(2, n_starts=1, tol=1.0).fit(X)
    free = 2 * (1 + 2 + 3) + 1
    assert model.bic(X) - model.aic(X) == pytest.approx(free * (np.log(500) - 2))


def test_parameters_of_kernel_mixtures():
    """A density so wide that no row moves it costs nothing; values cost one less than they are."""
    rng = np.random.default_rng(0)
    flat = tm.KernelMixture(1, bandwidth=50.0).fit(rng.normal(size=(400, 3)))
    assert flat._n_parameters() == 1  # at least one a component
    X = np.column_stack([rng.integers(c, size=900) for c in (5, 6, 7)]).astype(float)
    values = tm.KernelMixture(2, kernel="delta", n_starts=1).fit(X)
    assert values._n_parameters() == 1 + 2 * (4 + 5 + 6)


@pytest.mark.parametrize(("order", "error"), [(3, 6), (4, 24)])
def test_cumulants_are_told_in_units_of_their_sampling_error(order, error):
    rng = np.random.default_rng(1)
    X = rng.exponential(size=(2000, 3)) @ rng.normal(size=(3, 3))
    model = tm.IndependentFactors(3, order=order, refine="none").fit(X)
    cumulants = np.sort(np.abs(model.skewness_ if order == 3 else model.kurtosis_))
    weakest = cumulants[1] / np.sqrt(error / 2000)
    assert model.report_.details["weakest_cumulant"] == pytest.approx(weakest, rel=1e-3)


def test_the_noise_of_a_topic_query_is_half_the_difference_of_its_halves():
    corpus = tm.datasets.make_lda_corpus(500, 60, 3, random_state=0)
    index = tm.TopicSearch(3, concentration=0.7).fit(corpus.X).index_
    place = index.documents_of(4)
    rows = index.rows[place]
    q, signs = index.omega[rows] * index.counts[place], index.signs[rows]
    halves = [
        word_moment(index.X[rows], index.Y[rows], 2 * q * (signs == s), signs, 4, index.W).whole
        for s in (1, -1)
    ]
    expected = third_factor(0.7) * (halves[0] - halves[1]) / 2
    np.testing.assert_allclose(index.word(4).difference, expected, atol=1e-8)


def test_the_noise_of_a_regression_query_is_half_the_difference_of_its_halves(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3))
    y = (X * np.array([[2.0, 0, 1], [0, 2, -1]])[rng.integers(2, size=4000)]).sum(axis=1)
    search = tm.RegressionSearch(2).fit(X, y)
    found = search.search(direction=np.array([2.0, 0, 1]))
    calls = []
    whole = type(search._rows).gram
    monkeypatch.setattr(
        type(search._rows), "gram", lambda *a, **k: calls.append(whole(*a, **k)) or calls[-1]
    )
    whitenings = []
    import thirdmoment.search.regression as module

    monkeypatch.setattr(
        module,
        "directed_regression",
        lambda *a: whitenings.append(a) or directed_regression(*a),
    )
    search.search(direction=np.array([2.0, 0, 1]))
    (raw,), ((_, W, third, hint),) = calls, whitenings
    M = directed_regression(raw.whole, W, third, hint)
    noise = directed_regression(raw.whole + raw.difference, W, third, hint) - M
    values = np.linalg.eigvalsh(M)[::-1]
    assert found.report.gap_snr == pytest.approx(resolution(M, noise, values).gap_snr)


def test_the_prior_is_part_of_what_em_raises():
    codes = np.array([[0], [1], [2], [1], [0]])
    T = np.array([[0.7, 0.3], [0.2, 0.8]])
    tables = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    values = []
    for prior in (0.0, 0.4):
        family = Categories(np.array([3]), prior)
        rows = CodedRows(DenseRows(np.eye(3)[codes[:, 0]]), np.ones(5))
        data = Observations([rows], None, sequences(np.array([5])))
        values.append(em.expectation(family, data, (np.array([0.6, 0.4]), T, tables))[1])
    assert 5 * (values[1] - values[0]) == pytest.approx(0.4 * np.log(tables).sum())


@pytest.mark.parametrize("categories", [3, 100_000])
def test_equal_rows_add_up_their_weights(categories):
    codes = np.array([[0, 1], [categories - 1, 2], [0, 1], [-1, 1]])
    table = distinct_rows(codes, np.array([1.5, 2.0, 3.0, 4.0]), np.array([categories, 3]))
    found = {
        tuple(row): count for row, count in zip(table.codes.tolist(), table.counts, strict=True)
    }
    assert found == {(0, 1): 4.5, (categories - 1, 2): 2.0, (-1, 1): 4.0}


def test_draws_from_one_node_have_the_width_of_its_hat():
    rng = np.random.default_rng(0)
    lattice = Lattice(rng.normal(size=(300, 1)), np.ones(300), 1, np.array([False]))
    table = np.zeros(lattice.size)
    table[lattice.size // 2] = 1 / lattice.cell
    drawn = lattice.draw(table, 40_000, rng)
    assert drawn.var() == pytest.approx(lattice.axes[0].step ** 2 / 6, rel=0.03)


def test_halves_of_different_weight_are_not_noise():
    X = np.tile([[1.0, 2.0, -1.0]], (20, 1))
    split = np.where(np.arange(20) < 15, 1.0, -1.0)
    sums = PairSums(3).update(Sample(DenseRows(X), np.ones(20), 0, split))
    np.testing.assert_allclose(sums.noise, 0.0, atol=1e-12)


def test_rows_go_to_the_component_of_the_highest_density():
    rng = np.random.default_rng(3)
    wide, narrow = rng.normal(0, 3, size=(3000, 4)), rng.normal(2, 0.5, size=(3000, 4))
    X = np.concatenate([wide, narrow])
    search = tm.GaussianSearch(2).fit(X)
    parts = [search.search(wide[:200]), search.search(narrow[:200])]
    density = [
        np.log(one.weight)
        + stats.multivariate_normal(one.parameters, one.report.details["variance"]).logpdf(X)
        for one in parts
    ]
    expected = np.argmax(density, axis=0)
    np.testing.assert_array_equal(search.assign(X, parts, refine="none"), expected)


def test_shares_of_topics_count_documents_by_their_weight():
    rng = np.random.default_rng(4)
    X = np.zeros((200, 12))
    X[:100, :6] = rng.poisson(6, size=(100, 6))
    X[100:, 6:] = rng.poisson(6, size=(100, 6))
    weights = np.where(np.arange(200) < 100, 3.0, 1.0)
    model = tm.LatentDirichletAllocation(2).fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.weights_, [0.75, 0.25], atol=0.02)


def test_sweeps_start_from_as_many_words_as_the_documents_weigh():
    X = sp.csr_array(np.array([[2.0, 1.0], [0.0, 4.0]]))
    sweeper = Sweeper(X, np.array([3.0, 0.5]), eta=0.1, n_threads=1)
    topics, alpha = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.3, 0.7])
    assert sweeper.word_counts(topics, alpha).sum() == pytest.approx(3 * 3 + 0.5 * 4)


def test_variances_come_in_the_units_of_the_columns():
    for diagonal in (True, False):
        plain, _ = conditional_covariances(Sums(diagonal), np.array([0.5, 0.5]), np.ones(1))
        scaled, _ = conditional_covariances(Sums(diagonal), np.array([0.5, 0.5]), np.array([3.0]))
        np.testing.assert_allclose(scaled, 9 * plain)


@pytest.mark.parametrize("diagonal", [True, False])
def test_components_keep_a_share_of_the_variance_to_themselves(diagonal):
    """Means further apart than all the variance there is leave least · total within."""
    sums = Sums(diagonal)
    sums.first = np.array([[-1e4], [2e4]])  # means -2 and 4, though the variance is 2
    found, _ = conditional_covariances(sums, np.array([0.5, 0.5]), np.ones(1))
    error = np.sqrt(2 / 5e3)
    within = 0.1 * error * 2.0
    np.testing.assert_allclose(found.ravel(), [error * within, error * within], rtol=1e-6)


def test_a_law_without_mass_is_even():
    np.testing.assert_allclose(state_probabilities(np.eye(3)[:, :2], -np.ones(3)), [0.5, 0.5])
    np.testing.assert_allclose(stochastic_rows(np.array([[0.0, 0.0], [1.0, 3.0]])),
                               [[0.5, 0.5], [0.25, 0.75]])  # fmt: skip


@pytest.mark.parametrize("k", [2, 4])
def test_the_exact_tensor_of_a_spherical_mixture_gives_means_and_weights(k):
    rng = np.random.default_rng(k)
    weights = rng.dirichlet(np.full(k, 3.0))
    means = 2 * rng.normal(size=(k, 6))
    mean = weights @ means
    values, vectors = np.linalg.eigh(((means - mean) * weights[:, None]).T @ (means - mean))
    E, eta = vectors[:, ::-1][:, : k - 1], values[::-1][: k - 1]
    white = np.column_stack([(means - mean) @ E / np.sqrt(eta), np.ones(k)])
    T = np.einsum("i,ia,ib,ic->abc", weights, white, white, white)
    found = recover_spherical(decompose(T, "tensor", rng), mean, E, eta)
    order = align(found.means, means, metric="sqeuclidean")
    np.testing.assert_allclose(found.means[order], means, atol=1e-7)
    np.testing.assert_allclose(found.weights[order], weights, atol=1e-8)
    np.testing.assert_allclose(found.raw_weights[order], weights, atol=1e-8)
    variances = rng.uniform(0.5, 2.0, size=k)
    t = (weights * variances) @ white
    average = float(weights @ variances)
    np.testing.assert_allclose(
        component_variances(weights, white, t, average), variances, rtol=1e-8
    )
    narrow = component_variances(weights, white, t, average, within=1.01)
    np.testing.assert_allclose(narrow, np.clip(variances, average / 1.01, 1.01 * average))


def test_places_of_densities_are_their_means():
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 0.5, size=(400, 1))
    lattice = Lattice(x, np.ones(400), 1, np.array([False]))
    table = 7.0 * np.exp(-0.5 * ((lattice.axes[0].nodes - 2.6) / 0.3) ** 2)[None]
    assert lattice.places(table)[0, 0] == pytest.approx(2.6, abs=1e-3)


@pytest.mark.parametrize("n", [20.0, 60.0, 300.0, 5000.0])
def test_dimensions_by_the_bic_of_probabilistic_pca(n):
    rng = np.random.default_rng(int(n))
    for _ in range(40):
        values = np.sort(np.concatenate([1 + rng.exponential(0.6, 3), np.ones(4)]))[::-1]
        values = values * rng.uniform(0.7, 1.0, 7)
        values = np.sort(values)[::-1]
        best, chosen = -np.inf, 0
        for p in range(1, min(6, int(n / 2)) + 1):
            noise = values[p:].mean()
            fit = -n / 2 * (np.log(values[:p]).sum() + (7 - p) * np.log(noise))
            free = 7 * p - p * (p - 1) / 2
            if fit - np.log(n) / 2 * free > best:
                best, chosen = fit - np.log(n) / 2 * free, p
        assert dimension(values, n) == chosen


def test_layers_without_noise_have_the_smallest_there_is():
    rng = np.random.default_rng(5)
    X = 3 * rng.normal(size=(200, 1)) * np.array([1.0, 2.0, -1.0, 0.5])
    found = fit_layers(X, np.ones(200), np.zeros(200, dtype=int), 1, [1], affine=False)
    assert found.noise == pytest.approx(LEAST_NOISE * np.mean(X**2))


def test_directions_below_a_relative_floor_are_not_whitened():
    for size in (1e-6, 1.0, 1e6):
        values = size * np.array([5.0, 1.0 + 4e-10, 1.0, 1.0])
        with pytest.raises(tm.exceptions.RankDeficientMoment):
            leading_whitening(np.zeros(4), values, np.eye(4), float(values.sum()), 3)
        clear = size * np.array([5.0, 3.0, 1.0, 1.0])
        found = leading_whitening(np.zeros(4), clear, np.eye(4), float(clear.sum()), 3)
        np.testing.assert_allclose(found.eta, size * np.array([4.0, 2.0]))
        assert found.sigma2 == pytest.approx(size)


def test_float32_keeps_what_it_holds_and_nothing_else():
    good = np.array([[[2.0, 0.5], [0.5, 1.0]]])
    assert cast(good, np.float32).dtype == np.float32
    assert cast(good, np.float64).dtype == np.float64
    for bad in (good * 1e40, good * 1e-44, np.array([[[1.0, 1 - 1e-7], [1 - 1e-7, 1.0]]])):
        assert cast(bad, np.float32).dtype == np.float64
    assert cast(np.array([[1.0, 0.99999999]]), np.float32).dtype == np.float32


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
@pytest.mark.parametrize("kind", ["full", "tied", "block"])
def test_nearly_collinear_columns_of_float32(kind):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 4)) + 3 * rng.integers(2, size=(300, 1))
    X[:, 3] = 2 * X[:, 0] + 1e-5 * rng.normal(size=300)
    X = X.astype(np.float32)
    views = [[0, 3], [1], [2]]
    model = tm.GaussianMixture(2, covariance_type=kind, views=views).fit(X)
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.sample(5)[0]).all()
    assert np.isfinite(tm.GaussianHMM(2, covariance_type="full").fit(X).score(X))


def test_windows_in_parts_are_the_windows():
    windows = Windows(
        np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0]]), np.arange(3.0), np.ones(3), (2, 2, 2)
    )
    whole = window_rows(windows, np.arange(1.0, 7.0), 0, 3)
    part = window_rows(windows, np.arange(1.0, 7.0), 1, 3)
    np.testing.assert_array_equal(part.rows.toarray(), whole.rows.toarray()[1:])
    np.testing.assert_array_equal(part.weights, whole.weights[1:])
    np.testing.assert_array_equal(whole.rows.toarray()[0], [1, 0, 0, 4, 5, 0])


def test_principal_variances_of_few_and_of_many_rows():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(3, 5))
    many = np.concatenate([few, np.zeros((4, 5))])
    np.testing.assert_allclose(_principal(few)[0], _principal(many)[0][:3], rtol=1e-10)


def test_too_many_components_for_the_columns_or_the_rank_are_told():
    values = np.array([4.0, 1.0, 1.0])
    with pytest.raises(tm.exceptions.RankDeficientMoment) as error:
        leading_whitening(np.zeros(3), values, np.eye(3), 6.0, 3)
    assert error.value.rank == 2
    with pytest.raises(tm.exceptions.RankDeficientMoment) as error:
        leading_whitening(np.zeros(3), values, np.eye(3), 6.0, 4)
    assert error.value.rank == 3


def test_few_rows_leave_half_of_the_variance_within():
    sums = Sums(True)
    for name in ("score", "first", "plain_first", "second", "plain_second"):
        setattr(sums, name, getattr(sums, name) * 4e-4)
    sums.total = 4.0
    found, _ = conditional_covariances(sums, np.array([0.5, 0.5]), np.ones(1))
    assert found[0, 0] == pytest.approx(0.5)  # its error would be one


def test_one_unit_for_all_columns_is_the_root_of_their_mean_square():
    units = Units(np.zeros(4), np.array([3.0, 4.0, 7.0, 9.0]), np.array([True, True, False, False]))
    np.testing.assert_allclose(units.common().scale, np.sqrt((9 + 16) / 4))
    np.testing.assert_allclose(units.common(least=5.0).scale, 5.0)
    assert units.log_volume() == pytest.approx(np.log(3 * 4 * 7 * 9))


@pytest.mark.parametrize("symbols", [3, 50_000])
def test_neighbours_are_counted_over_all_parts(symbols):
    code = np.array([0, 1, 1, 2, 0, 1, 0, 2])
    whole = AdjacentCounts(symbols).update(Symbols(code, np.array([0, 4, 8])))
    parts = AdjacentCounts(symbols).update(Symbols(code[:4], np.array([0, 4])))
    parts.update(Symbols(code[4:], np.array([0, 4])))
    merged = AdjacentCounts(symbols).update(Symbols(code[:4], np.array([0, 4])))
    merged.merge(AdjacentCounts(symbols).update(Symbols(code[4:], np.array([0, 4]))))
    for other in (parts, merged):
        assert abs(other.pairs - whole.pairs).sum() == 0
    assert whole.pairs.sum() == 6
    assert whole.pairs[0, 1] == 2


def test_a_concentration_that_nothing_shows_is_one():
    profile = estimate_concentration(lambda alpha0, basis: None)
    assert profile.alpha0 == 1.0
    assert not profile.bounded


def test_copies_and_weights_are_worth_the_same_to_the_last_bit():
    weights = worth(np.array([1, 3, 3, 1]) / 3, np.array([1, 3, 3, 1]) / 3, 3.0, discrete=False)
    copies = worth(np.array([1.0, 3, 3, 1]), np.ones(8), 1.0, discrete=False)
    np.testing.assert_array_equal(weights, copies)
    assert copies.sum() == pytest.approx(64 / 20)


def test_units_of_columns_are_no_reason_against_float32():
    apart = np.array([[[1.0, 0.0], [0.0, 1e-9]]])
    assert cast(apart, np.float32).dtype == np.float32
    wide = np.eye(50)[None] + 1e-4 * np.ones((1, 50, 50))
    assert cast(wide, np.float32).dtype == np.float32
    flat = np.ones((1, 50, 50)) + 1e-4 * np.eye(50)
    assert cast(flat, np.float32).dtype == np.float64


@pytest.mark.parametrize("place", [0, 3])
def test_the_best_concentration_at_the_end_of_the_grid_is_taken_as_it_is(place):
    grid = np.array([0.1, 0.3, 1.0, 3.0])
    residual = np.abs(np.arange(4.0) - place)
    assert _parabola(grid, residual, place) == grid[place]


def test_fractional_weights_of_discrete_rows_are_worth_their_effective_number():
    single = np.array([0.3, 1.0, 0.55, 0.7])
    found = worth(np.array([0.85, 1.7]), single, 1.0, discrete=True)
    assert found.sum() == pytest.approx(single.sum() ** 2 / (single @ single))


def test_extrapolated_weights_become_a_law():
    np.testing.assert_allclose(
        valid_weights(np.array([0.2, -0.1, 0.6])), [0.25, 0, 0.75], atol=1e-9
    )


def test_layers_without_steps_are_those_of_the_labels():
    rng = np.random.default_rng(7)
    X, labels = rng.normal(size=(60, 4)), rng.integers(2, size=60)
    run = layered(X, np.ones(60), labels, 2, [1, 2], affine=False, tol=0.0, max_steps=0)
    assert len(run.path) == 1
    more = layered(X, np.ones(60), labels, 2, [1, 2], affine=False, tol=0.0, max_steps=3)
    assert 1 < len(more.path) <= 4


def test_adjacent_features_are_means_over_neighbours():
    features = np.array([[1.0], [2.0], [4.0], [3.0], [5.0]])
    found = adjacent_features(features, np.array([0, 3, 5]))  # 1 2 4 | 3 5
    np.testing.assert_allclose(found, [[1, 11 / 3], [2, (1 * 2 + 2 * 4 + 3 * 5) / 3]])


def test_sequences_are_put_together_up_to_a_size():
    offsets = np.array([0, 4, 8, 30, 33])
    assert whole_sequences(offsets, 9) == [(0, 2), (2, 3), (3, 4)]
    assert whole_sequences(offsets, 2) == [(0, 1), (1, 2), (2, 3), (3, 4)]
