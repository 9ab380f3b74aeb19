"""Hidden Markov models as users meet them."""

import itertools
import warnings

import numpy as np
import pytest
from exact_chains import brute_force
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from thirdmoment import BernoulliHMM, CategoricalHMM, GaussianHMM
from thirdmoment.datasets import make_categorical_hmm, make_gaussian_hmm
from thirdmoment.exceptions import InvalidInput, MomentWarning, ThirdMomentError, UnusableMoments
from thirdmoment.metrics import align
from thirdmoment.models.hmm.em import MarkovProblem, project
from thirdmoment.refinement.anderson import Logarithms
from thirdmoment.refinement.categories import Categories


@pytest.fixture(scope="module")
def symbols():
    return make_categorical_hmm(1000, 20, n_symbols=10, n_components=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(symbols):
    return CategoricalHMM(3).fit(symbols.X, lengths=symbols.lengths)


@pytest.fixture(scope="module")
def vectors():
    return make_gaussian_hmm(20, 200, n_features=3, n_components=3, random_state=0)


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


def test_gaussian_forecasts_have_the_moments_of_their_mixture(vectors):
    model = GaussianHMM(3, covariance_type="full").fit(vectors.X, lengths=vectors.lengths)
    found = model.forecast(vectors.X, 1, vectors.lengths)
    p = found.states[0, 0]
    mean = p @ model.means_
    second = p @ (np.diagonal(model.covars_, axis1=1, axis2=2) + model.means_**2)
    np.testing.assert_allclose(found.mean[0, 0], mean)
    np.testing.assert_allclose(found.variance[0, 0], second - mean**2)


@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
def test_gaussian_states_are_found(vectors, kind):
    model = GaussianHMM(3, covariance_type=kind).fit(vectors.X, lengths=vectors.lengths)
    order = align(model.means_, vectors.emission, metric="sqeuclidean")
    # 4,000 observations in three states: standard error of a mean about 0.03
    np.testing.assert_allclose(model.means_[order], vectors.emission, atol=0.2)
    np.testing.assert_allclose(model.transmat_[np.ix_(order, order)], vectors.transmat, atol=0.08)
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
    np.testing.assert_allclose(model.emissionprob_[order], p, atol=0.05)
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
    np.testing.assert_allclose(model.emissionprob_[order], p, atol=0.08)


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


def test_anderson_mixing_never_lowers_the_likelihood_and_saves_steps(symbols):
    model = CategoricalHMM(3)
    problem = problem_of(model, symbols)
    rng = np.random.default_rng(0)
    start = (
        np.full(3, 1 / 3),
        rng.dirichlet(np.ones(3), size=3),
        rng.dirichlet(np.ones(10), size=3),
    )
    mixed = problem.run(start, 400)
    assert np.all(np.diff(mixed.path[: mixed.steps]) > -1e-12)
    plain, value = project(problem.family, start), -np.inf
    for _ in range(mixed.steps):
        plain, value = problem.step(plain)
    assert mixed.path[-1] >= value


def test_logarithms_are_coordinates_of_laws():
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3), size=2)
    chart = Logarithms(laws)
    for a, b in zip(laws, chart.parameters(chart.vector(laws)), strict=True):
        np.testing.assert_allclose(a, b)


def test_one_state_is_the_law_of_all_symbols(symbols):
    model = CategoricalHMM(1, prior_count=0.0).fit(symbols.X, lengths=symbols.lengths)
    law = np.bincount(symbols.X[:, 0], minlength=10) / len(symbols.X)
    np.testing.assert_allclose(model.emissionprob_[0], law)
    assert model.transmat_ == pytest.approx(1.0)


def test_refine_none_leaves_the_papers_zeros_and_raises_where_moments_fail():
    data = make_categorical_hmm(500, 20, n_symbols=10, n_components=3)
    model = CategoricalHMM(3, refine="none", weighting="none").fit(data.X, lengths=data.lengths)
    assert model.n_iter_ == 0
    with pytest.raises(UnusableMoments, match="separate"):
        CategoricalHMM(3, refine="none").fit(np.array([[0], [1], [0], [1]]), lengths=[2, 2])


# bad input -----------------------------------------------------------------------------------


def test_lengths_that_do_not_add_up_are_named(symbols):
    with pytest.raises(InvalidInput, match=r"adds up to 19 in 2 sequences, but X has 20"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[10, 9])
    with pytest.raises(InvalidInput, match="positive integers"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[20, 0])
    with pytest.raises(InvalidInput, match=r"entry 9\.5"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[9.5, 10.5])


def test_lengths_in_the_place_of_y_are_explained(symbols):
    with pytest.raises(InvalidInput, match=r"write fit\(X, lengths=lengths\)"):
        CategoricalHMM(2).fit(symbols.X[:20], [10, 10])


def test_unseen_symbols_are_named(fitted):
    with pytest.raises(InvalidInput, match="code 10, but the model knows only codes up to 9"):
        fitted.score(np.array([[1], [10]]))
    roomy = CategoricalHMM(2, n_features=5).fit(np.tile([[0], [1], [2]], (30, 1)))
    assert np.isfinite(roomy.score(np.array([[4], [0]])))  # declared, smoothed by prior_count


def test_short_sequences_count_for_what_they_can_give():
    data = make_categorical_hmm(800, 10, n_symbols=6, n_components=2, persistence=0.7)
    X = np.concatenate([data.X, data.X[:6]])
    lengths = [*data.lengths, 2, 2, 1, 1]
    model = CategoricalHMM(2).fit(X, lengths=lengths)
    assert model.report_.details["short_sequences"] == 4
    assert "4 of 804 sequences have fewer than three" in str(model.report_)


def test_only_short_sequences_start_otherwise():
    X = np.tile([[0], [1], [1], [0]], (30, 1))
    with pytest.warns(MomentWarning, match="not usable"):
        model = CategoricalHMM(2).fit(X, lengths=[2] * 60)
    assert np.isfinite(model.score(X, lengths=[2] * 60))


def test_a_periodic_chain_is_learned_and_said_to_be_one():
    X = np.tile([[0], [1], [2]], (200, 1))
    model = CategoricalHMM(3, prior_count=0.0).fit(X)
    assert model.score(X) > -0.02
    assert "periodic" in str(model.report_)


def test_states_that_are_never_visited_are_counted():
    X = np.zeros((100, 1), dtype=int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = CategoricalHMM(2, n_features=2).fit(X)
    assert model.score(X) > -1e-2
    for array in (model.transmat_, model.emissionprob_):
        np.testing.assert_allclose(array.sum(axis=1), 1)


@pytest.mark.parametrize("model", [CategoricalHMM(2), BernoulliHMM(2), GaussianHMM(2)])
def test_nan_is_refused(model):
    X = np.ones((20, 2))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X)


def test_fewer_symbols_than_states_say_what_is_missing():
    with pytest.raises(UnusableMoments, match="2 symbols cannot separate n_components=5"):
        CategoricalHMM(5, refine="none").fit(np.array([[0], [1]] * 4), lengths=[4, 4])


def test_arguments_are_checked_before_any_work():
    X = np.zeros((5, 1), dtype=int)
    with pytest.raises(InvalidInput, match="covariance_type='tied'"):
        GaussianHMM(2, covariance_type="tied").fit(X)
    with pytest.raises(InvalidInput, match="prior_count"):
        CategoricalHMM(2, prior_count=-1).fit(X)
    with pytest.raises(InvalidInput, match="There are 5 rows"):
        CategoricalHMM(6).fit(X)
    with pytest.raises(NotFittedError):
        CategoricalHMM(2).predict(X)


def test_categories_keep_their_scale_in_a_chain():
    """Statistics of a chain are those of the family: masses are visits."""
    family = Categories(np.array([3]), 0.0)
    data = make_categorical_hmm(5, 10, n_symbols=3, n_components=2)
    model = CategoricalHMM(2, n_features=3)
    model._prepare(data.X)
    from thirdmoment.models.hmm.em import expectation

    rows = model._observations(family, data.X, data.lengths)
    sums, _ = expectation(family, rows, (data.startprob, data.transmat, data.emission))
    assert sums[0].sum() == pytest.approx(5)
    assert sums[1].sum() == pytest.approx(45)
    assert sums[2].sum() == pytest.approx(50)


@st.composite
def sequences_of_any_kind(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=12))
    n, d = sum(lengths), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["random", "constant", "period", "wide"]))
    X = rng.integers(0, draw(st.integers(1, 5)), size=(n, d))
    if kind == "constant":
        X[:] = 1
    elif kind == "period":
        X = np.arange(n)[:, None] % 3 + np.zeros((1, d), dtype=int)
    elif kind == "wide":
        X = X * 50
    return X, lengths


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(sequences_of_any_kind(), st.integers(1, 5), st.sampled_from(["c", "b", "g", "f"]))
def test_any_sequences_give_a_valid_model_or_a_clear_error(data, k, kind):
    X, lengths = data
    model = {
        "c": CategoricalHMM(k), "b": BernoulliHMM(k), "g": GaussianHMM(k),
        "f": GaussianHMM(k, covariance_type="full"),
    }[kind]  # fmt: skip
    model.set_params(max_refine_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        try:
            model.fit(X, lengths=lengths)
        except ThirdMomentError:
            return  # with a message of its own, not a crash
    assert np.isfinite(model.score(X, lengths=lengths))
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_proba(X, lengths).sum(axis=1), 1)
    assert len(str(model.report_)) > 0
