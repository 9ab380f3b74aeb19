"""Hidden Markov models as users meet them."""

import itertools

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.exact.chains import brute_force
from thirdmoment import BernoulliHMM, CategoricalHMM, GaussianHMM
from thirdmoment.datasets import make_categorical_hmm, make_gaussian_hmm
from thirdmoment.exceptions import InvalidInput, UnusableMoments
from thirdmoment.metrics import align
from thirdmoment.refinement.chains import MarkovProblem, thinned


@pytest.fixture(scope="module")
def symbols():
    return make_categorical_hmm(1000, 20, n_symbols=10, n_components=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(symbols):
    return CategoricalHMM(3).fit(symbols.X, lengths=symbols.lengths)


@pytest.fixture(scope="module")
def vectors():
    return make_gaussian_hmm(20, 200, n_features=3, n_components=3, random_state=0)


def share_errors(p, visits):
    """Five standard errors of shares p among so many visits, and a count for small ones."""
    return 5 * np.sqrt(p * (1 - p) / visits) + 5 / visits


def problem_of(model, data):
    family = model._prepare(data.X)
    rows = model._observations(family, data.X, data.lengths)
    return MarkovProblem(family, rows, 0.01, 1, model._chart)


def test_the_fit_ends_where_em_from_the_truth_ends(symbols, fitted):
    model = CategoricalHMM(3)
    problem = problem_of(model, symbols)
    truth = problem.run((symbols.startprob, symbols.transmat, symbols.emission), 500)
    ours = fitted.log_likelihood(symbols.X, symbols.lengths)
    assert ours > truth.path[-1] * len(symbols.X) - 0.5
    order = align(fitted.emissionprob_, symbols.emission, metric="sqeuclidean")
    error = np.sum((fitted.emissionprob_[order] - symbols.emission) ** 2)
    oracle = truth.parameters[2][align(truth.parameters[2], symbols.emission)]
    assert error < 1.5 * np.sum((oracle - symbols.emission) ** 2)
    assert fitted.report_.start.startswith("moments")


def test_parameters_are_valid_and_states_sorted(fitted):
    for array in (fitted.startprob_[None], fitted.transmat_, fitted.emissionprob_):
        np.testing.assert_allclose(array.sum(axis=1), 1)
        assert np.all(array >= 0)
    assert np.all(np.diff(fitted.weights_) <= 0)
    np.testing.assert_allclose(fitted.stationary_ @ fitted.transmat_, fitted.stationary_)


def test_moments_alone_improve_like_the_root_of_n():
    errors = []
    for n in (1000, 8000, 64_000):
        runs = []
        for seed in range(4):
            data = make_categorical_hmm(n, 10, n_symbols=8, n_components=2, random_state=seed)
            model = CategoricalHMM(2, refine="none").fit(data.X, lengths=data.lengths)
            order = align(model.emissionprob_, data.emission)
            runs.append(np.linalg.norm(model.emissionprob_[order] - data.emission))
        errors.append(np.median(runs))
    slope = np.polyfit(np.log([1000, 8000, 64_000]), np.log(errors), 1)[0]
    assert -0.75 < slope < -0.3  # -1/2 in the limit


def test_the_same_answer_on_any_number_of_threads(symbols, vectors):
    for model, data in ((CategoricalHMM(3), symbols), (GaussianHMM(3), vectors)):
        one, two = (
            model.set_params(n_jobs=j).fit(data.X, lengths=data.lengths).transmat_ for j in (1, 2)
        )
        np.testing.assert_array_equal(one, two)


def test_likelihood_equals_hmmlearns(symbols, fitted, vectors):
    pytest.importorskip("hmmlearn")
    peer = fitted.to_hmmlearn()
    ours = fitted.log_likelihood(symbols.X, symbols.lengths)
    assert peer.score(symbols.X, symbols.lengths) == pytest.approx(ours, rel=1e-10)
    np.testing.assert_allclose(
        peer.predict_proba(symbols.X, symbols.lengths),
        fitted.predict_proba(symbols.X, symbols.lengths),
        atol=1e-8,
    )
    value, path = peer.decode(symbols.X, symbols.lengths)
    mine, states = fitted.decode(symbols.X, symbols.lengths)
    assert value == pytest.approx(mine, rel=1e-10)
    assert np.mean(path == states) > 0.999  # ties may fall either way
    for kind in ("spherical", "diag", "full"):
        model = GaussianHMM(3, covariance_type=kind).fit(vectors.X, lengths=vectors.lengths)
        theirs = model.to_hmmlearn().score(vectors.X, vectors.lengths)
        assert theirs == pytest.approx(model.log_likelihood(vectors.X, vectors.lengths), rel=1e-10)


def test_scores_and_posteriors_equal_enumeration(fitted):
    X, lengths = np.array([[1], [4], [2], [0], [7]]), [2, 3]
    arguments = fitted.startprob_, fitted.transmat_, fitted.emissionprob_.T
    gamma, _, values, path, best = brute_force(*arguments, X[:, 0], [0, 2, 5])
    np.testing.assert_allclose(fitted.score_samples(X, lengths), values)
    assert fitted.score(X, lengths=lengths) == pytest.approx(values.sum() / 5)
    np.testing.assert_allclose(fitted.predict_proba(X, lengths), gamma, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X, lengths), path)
    assert fitted.decode(X, lengths)[0] == pytest.approx(best.sum())
    value, states = fitted.decode(X, lengths, algorithm="map")
    np.testing.assert_array_equal(states, gamma.argmax(axis=1))
    assert value == pytest.approx(gamma.max(axis=1).sum())


def test_forecasts_equal_ratios_of_likelihoods(fitted):
    X, lengths = np.array([[1], [4], [2], [0], [7]]), [2, 3]
    found = fitted.forecast(X, n_steps=2, lengths=lengths)
    for s, part in enumerate((X[:2], X[2:])):
        whole = fitted.log_likelihood(part)
        one = [np.exp(fitted.log_likelihood(np.append(part, [[a]], axis=0)) - whole)
               for a in range(10)]  # fmt: skip
        np.testing.assert_allclose(found.mean[s, 0], one, atol=1e-12)
        two = np.zeros(10)
        for a, b in itertools.product(range(10), repeat=2):
            longer = np.append(part, [[a], [b]], axis=0)
            two[b] += np.exp(fitted.log_likelihood(longer) - whole)
        np.testing.assert_allclose(found.mean[s, 1], two, atol=1e-12)
    np.testing.assert_allclose(found.states.sum(axis=2), 1)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_gaussian_forecasts_have_the_moments_of_their_mixture(vectors, offset):
    """Against the law of total variance, also far from zero."""
    model = GaussianHMM(3).fit(vectors.X + offset, lengths=vectors.lengths)
    found = model.forecast(vectors.X + offset, 1, vectors.lengths)
    near = model.means_ - offset
    for p, variance in zip(found.states[:, 0], found.variance[:, 0], strict=True):
        within, between = p @ model.covars_, p @ (near - p @ near) ** 2
        np.testing.assert_allclose(variance, within + between, rtol=1e-5)
    assert np.all(found.variance > 0)


@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
def test_gaussian_states_are_found(vectors, kind):
    model = GaussianHMM(3, covariance_type=kind).fit(vectors.X, lengths=vectors.lengths)
    order = align(model.means_, vectors.emission, metric="sqeuclidean")
    # five standard errors of estimates that see the states, and a half more for seeing them darkly
    visits = np.bincount(vectors.states)[:, None]
    assert np.all(np.abs(model.means_[order] - vectors.emission) < 7.5 / np.sqrt(visits))
    found = model.transmat_[np.ix_(order, order)]
    assert np.all(np.abs(found - vectors.transmat) < 1.5 * share_errors(vectors.transmat, visits))
    right = np.mean(order[vectors.states] == model.predict(vectors.X, vectors.lengths))
    model.startprob_, model.transmat_ = vectors.startprob, vectors.transmat
    model.means_ = vectors.emission
    model.covars_ = {"spherical": np.ones(3), "diag": np.ones((3, 3)),
                     "full": np.tile(np.eye(3), (3, 1, 1))}[kind]  # fmt: skip
    best = np.mean(vectors.states == model.predict(vectors.X, vectors.lengths))
    assert right > best - 0.01


def test_more_states_than_columns_just_work():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 4, size=500), 8)
    X = np.array([-6.0, -2.0, 2.0, 6.0])[states, None] + rng.standard_normal((4000, 1))
    model = GaussianHMM(4).fit(X)
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [-6, -2, 2, 6], atol=0.2)
    for k, features in ((2, "windows ("), (3, "products"), (4, "kernel")):
        moments = GaussianHMM(k, refine="none").fit(X)
        assert features in moments.report_.start


def test_states_that_differ_in_spread_only_are_found_by_products():
    rng = np.random.default_rng(1)
    states = np.repeat(rng.integers(0, 2, size=400), 25)
    X = np.array([0.5, 3.0])[states, None] * rng.standard_normal((10_000, 1))
    model = GaussianHMM(2).fit(X)
    np.testing.assert_allclose(np.sort(np.sqrt(model.covars_[:, 0])), [0.5, 3.0], rtol=0.05)


def test_marks_are_found():
    rng = np.random.default_rng(0)
    data = make_categorical_hmm(50, 200, n_symbols=5, n_components=3, persistence=0.8)
    p = np.array([[0.9, 0.1, 0.1, 0.5], [0.1, 0.8, 0.2, 0.1], [0.05, 0.1, 0.7, 0.9]])
    X = rng.random((10_000, 4)) < p[data.states]
    model = BernoulliHMM(3).fit(X, lengths=data.lengths)
    order = align(model.emissionprob_, p, metric="sqeuclidean")
    errors = share_errors(p, np.bincount(data.states)[:, None])
    assert np.all(np.abs(model.emissionprob_[order] - p) < 1.5 * errors)
    drawn, _ = model.sample(1000)
    assert set(np.unique(drawn)) <= {0, 1}
    with pytest.raises(InvalidInput, match=r"X has the value 0\.5"):
        BernoulliHMM(2, binarize=None).fit(np.full((10, 2), 0.5))


def test_many_columns_become_features():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 2, size=300), 10)
    p = rng.uniform(0.1, 0.9, size=(2, 20))
    X = rng.random((3000, 20)) < p[states]
    model = BernoulliHMM(2).fit(X)
    order = align(model.emissionprob_, p, metric="sqeuclidean")
    errors = share_errors(p, np.bincount(states)[:, None])
    assert np.all(np.abs(model.emissionprob_[order] - p) < 1.5 * errors)


def test_several_columns_of_symbols_have_a_table_each():
    data = make_categorical_hmm(200, 20, n_symbols=4, n_components=2, persistence=0.8)
    rng = np.random.default_rng(1)
    other = (rng.random(4000) < np.array([0.2, 0.8])[data.states]).astype(int)
    X = np.stack([data.X[:, 0], other], axis=1)
    model = CategoricalHMM(2).fit(X, lengths=data.lengths)
    assert [table.shape for table in model.emissionprob_] == [(2, 4), (2, 2)]
    np.testing.assert_allclose(np.sort(model.emissionprob_[1][:, 1]), [0.2, 0.8], atol=0.06)
    with pytest.raises(InvalidInput, match="one column"):
        model.to_hmmlearn()


def test_samples_follow_the_model(fitted):
    X, states = fitted.sample(50_000, random_state=1)
    counts = np.bincount(states, minlength=3) / 50_000
    np.testing.assert_allclose(counts, fitted.stationary_, atol=0.02)
    law = np.bincount(X[states == 0, 0], minlength=10) / np.sum(states == 0)
    np.testing.assert_allclose(law, fitted.emissionprob_[0], atol=0.02)
    np.testing.assert_array_equal(fitted.sample(20)[0], fitted.sample(20)[0])
    assert fitted.sample(1, currstate=2)[1][0] == 2
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        fitted.sample(1, currstate=3)


def test_criteria_count_parameters(fitted, symbols):
    value = fitted.log_likelihood(symbols.X, symbols.lengths)
    free = 2 + 3 * 2 + 3 * 9
    assert fitted.aic(symbols.X, symbols.lengths) == pytest.approx(-2 * value + 2 * free)
    expected = -2 * value + free * np.log(20_000)
    assert fitted.bic(symbols.X, symbols.lengths) == pytest.approx(expected)


def test_batches_that_are_kept_give_what_fit_gives(symbols):
    X, lengths = symbols.X[:6000], symbols.lengths[:300]
    whole = CategoricalHMM(3, n_features=10).fit(X, lengths=lengths)
    parts = CategoricalHMM(3, n_features=10)
    for a in (0, 100, 200):
        parts.partial_fit(X[20 * a : 20 * a + 2000], lengths=lengths[a : a + 100])
    np.testing.assert_array_equal(whole.transmat_, parts.transmat_)
    assert parts.n_seen_ == 6000


def test_later_batches_go_on_learning(symbols):
    model = CategoricalHMM(3, n_features=10)
    batch = 200
    for a in range(0, 1000, batch):
        model.partial_fit(
            symbols.X[20 * a : 20 * (a + batch)], lengths=symbols.lengths[a : a + batch]
        )
    first = CategoricalHMM(3, n_features=10).fit(symbols.X[:8000], lengths=symbols.lengths[:400])
    scores = [m.score(symbols.X, lengths=symbols.lengths) for m in (first, model)]
    assert scores[1] > scores[0]
    assert model.n_seen_ == 20_000


def test_gaussian_batches_go_on_learning():
    data = make_gaussian_hmm(100, 200, n_features=2, separation=3.0)
    model = GaussianHMM(3)
    for a in range(0, 100, 25):
        model.partial_fit(data.X[200 * a : 200 * a + 5000], lengths=data.lengths[a : a + 25])
    whole = GaussianHMM(3).fit(data.X, lengths=data.lengths)
    np.testing.assert_allclose(model.means_, whole.means_, atol=0.05)


def test_one_state_is_the_law_of_all_symbols(symbols):
    model = CategoricalHMM(1, prior_count=0.0).fit(symbols.X, lengths=symbols.lengths)
    law = np.bincount(symbols.X[:, 0], minlength=10) / len(symbols.X)
    np.testing.assert_allclose(model.emissionprob_[0], law)
    assert model.transmat_ == pytest.approx(1.0)


def test_refine_none_leaves_the_papers_zeros_and_raises_where_moments_fail():
    data = make_categorical_hmm(500, 20, n_symbols=10, n_components=3)
    model = CategoricalHMM(3, refine="none", weighting="none").fit(data.X, lengths=data.lengths)
    assert model.n_iter_ == 0
    assert np.any(model.emissionprob_ == 0)
    with pytest.raises(UnusableMoments, match="No sequence has three observations"):
        CategoricalHMM(3, refine="none").fit(np.array([[0], [1], [0], [1]]), lengths=[2, 2])


def test_one_sequence_says_little_about_the_start():
    data = make_categorical_hmm(1, 5000, n_symbols=6, n_components=2)
    model = CategoricalHMM(2).fit(data.X)
    assert model.startprob_.min() > 1e-3  # not certain
    assert "startprob_ rests on 1 sequence:" in model.report_.full()


def test_states_out_of_reach_do_not_make_a_series_impossible():
    """The best state of the first rows cannot be the first: 5,000 nats, no underflow."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1, 0], 50)
    X = np.where(states, 100.0, 0.0)[:, None] + rng.standard_normal((250, 1))
    model = GaussianHMM(2).fit(X)
    model.startprob_ = np.array([1.0, 0.0])
    pytest.importorskip("hmmlearn")
    peer = model.to_hmmlearn()
    rest = X[50:]
    assert model.log_likelihood(rest) == pytest.approx(peer.score(rest), rel=1e-10)
    np.testing.assert_array_equal(model.predict(rest), peer.predict(rest))
    np.testing.assert_allclose(model.predict_proba(rest), peer.predict_proba(rest), atol=1e-8)


def test_float32_in_gives_float32_out(vectors):
    single = GaussianHMM(3).fit(vectors.X.astype(np.float32), lengths=vectors.lengths)
    double = GaussianHMM(3).fit(vectors.X, lengths=vectors.lengths)
    for name in ("startprob_", "transmat_", "weights_", "means_", "covars_"):
        assert getattr(single, name).dtype == np.float32
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), atol=1e-3)
    X = vectors.X[:10].astype(np.float32)
    assert single.predict_proba(X).dtype == np.float32
    assert single.sample(3)[0].dtype == np.float32


def test_data_far_from_zero_and_in_any_unit_give_the_same_states(vectors):
    plain = GaussianHMM(3).fit(vectors.X, lengths=vectors.lengths)
    states = plain.predict(vectors.X, vectors.lengths)
    for scale, offset in ((1.0, 1e6), (1e6, 0.0), (1e-3, 0.0)):
        X = scale * vectors.X + offset
        moved = GaussianHMM(3, reg_covar=0.0).fit(X, lengths=vectors.lengths)
        assert np.mean(moved.predict(X, vectors.lengths) == states) > 0.999


def test_parameters_set_by_hand_make_a_model():
    model = CategoricalHMM(2)
    model.startprob_ = np.array([0.6, 0.4])
    model.transmat_ = np.array([[0.7, 0.3], [0.4, 0.6]])
    model.emissionprob_ = np.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
    X, _ = model.sample(50)
    value = brute_force(model.startprob_, model.transmat_, model.emissionprob_.T, X[:6, 0], [0, 6])[
        2
    ]
    assert model.log_likelihood(X[:6]) == pytest.approx(value[0])
    gauss = GaussianHMM(2)
    gauss.startprob_, gauss.transmat_ = model.startprob_, model.transmat_
    gauss.means_, gauss.covars_ = np.array([[0.0], [3.0]]), np.ones((2, 1))
    assert np.isfinite(gauss.score(gauss.sample(20)[0]))


def test_the_peer_gets_copies(fitted, vectors):
    pytest.importorskip("hmmlearn")
    for model in (fitted, GaussianHMM(3).fit(vectors.X, lengths=vectors.lengths)):
        before = model.transmat_.copy()
        model.to_hmmlearn().transmat_[:] = 0.0
        np.testing.assert_array_equal(model.transmat_, before)


def test_lengths_are_routed_through_a_pipeline(vectors):
    with config_context(enable_metadata_routing=True):
        model = GaussianHMM(3).set_fit_request(lengths=True).set_predict_request(lengths=True)
        pipe = make_pipeline(StandardScaler(), model).fit(vectors.X, lengths=vectors.lengths)
        states = pipe.predict(vectors.X, lengths=vectors.lengths)
    Z = StandardScaler().fit_transform(vectors.X)
    direct = GaussianHMM(3).fit(Z, lengths=vectors.lengths)
    np.testing.assert_array_equal(states, direct.predict(Z, vectors.lengths))


def test_a_stream_after_a_fit_begins_anew(symbols):
    model = CategoricalHMM(3).fit(symbols.X, lengths=symbols.lengths)
    model.partial_fit(symbols.X[:2000], lengths=symbols.lengths[:100])
    fresh = CategoricalHMM(3).fit(symbols.X[:2000], lengths=symbols.lengths[:100])
    np.testing.assert_array_equal(model.transmat_, fresh.transmat_)
    assert model.n_seen_ == 2000


def test_races_look_at_long_and_short_sequences_alike():
    lengths = np.tile([2, 2000], 200)
    positions, pieces = thinned(lengths, np.random.default_rng(0))
    assert 30_000 < len(positions) < 60_000
    assert pieces.sum() == len(positions)
    assert np.all(np.diff(positions) > 0)
    few, _ = thinned(np.array([100, 50]), np.random.default_rng(0))
    assert len(few) == 150
