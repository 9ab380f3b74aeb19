"""Hidden Markov models: bad input is named, odd input is learned."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from thirdmoment import BernoulliHMM, CategoricalHMM, GaussianHMM
from thirdmoment.datasets import make_categorical_hmm
from thirdmoment.exceptions import InvalidInput, MomentWarning, ThirdMomentError, UnusableMoments
from thirdmoment.likelihood.categories import Categories
from thirdmoment.refinement.chains import expectation


@pytest.fixture(scope="module")
def symbols():
    return make_categorical_hmm(1000, 20, n_symbols=10, n_components=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(symbols):
    return CategoricalHMM(3).fit(symbols.X, lengths=symbols.lengths)


def test_lengths_that_do_not_add_up_are_named(symbols):
    with pytest.raises(InvalidInput, match=r"adds up to 19 in 2 sequences, but X has 20"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[10, 9])
    with pytest.raises(InvalidInput, match="positive integers"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[20, 0])
    with pytest.raises(InvalidInput, match=r"entry 9\.5"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[9.5, 10.5])
    with pytest.raises(InvalidInput, match="entry inf"):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=[np.inf, 10])
    for odd in ([[1, 2], [3]], "20", [[10, 10]], []):
        with pytest.raises(InvalidInput, match="lengths"):
            CategoricalHMM(2).fit(symbols.X[:20], lengths=odd)
    for fine in (np.array([10, 10], dtype=object), (n for n in (10, 10)), (10.0, 10.0), 20):
        CategoricalHMM(2).fit(symbols.X[:20], lengths=fine)


def test_lengths_in_the_place_of_y_are_explained(symbols, fitted):
    for y in ([10, 10], [10, 9], 20, [10.0, 10.0]):
        with pytest.raises(InvalidInput, match=r"write fit\(X, lengths=lengths\)"):
            CategoricalHMM(2).fit(symbols.X[:20], y)
    with pytest.raises(InvalidInput, match=r"write score\(X, lengths=lengths\)"):
        fitted.score(symbols.X[:20], [10, 10])
    CategoricalHMM(2).fit(symbols.X[:20], np.zeros(20))  # a y like scikit-learn's is ignored


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
    assert "4 of 804 sequences have fewer than three" in model.report_.full()


def test_only_short_sequences_start_otherwise():
    X = np.tile([[0], [1], [1], [0]], (30, 1))
    model = CategoricalHMM(2).fit(X, lengths=[2] * 60)
    assert any("not usable" in text for text in model.report_.warnings)
    assert np.isfinite(model.score(X, lengths=[2] * 60))


def test_a_periodic_chain_is_learned_and_said_to_be_one():
    X = np.tile([[0], [1], [2]], (200, 1))
    model = CategoricalHMM(3, prior_count=0.0).fit(X)
    assert model.score(X) > -0.02
    assert "periodic" in model.report_.full()


def test_states_that_are_never_visited_are_counted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = GaussianHMM(5).fit(np.repeat([[0.0], [1.0]], 50, axis=0))
    visited = int(np.sum(model.weights_ > 1e-6))
    assert visited < 5
    text = f"{5 - visited} of 5 states are never visited. Set n_components to {visited}."
    assert text in model.report_.warnings


def test_sequences_of_one_observation_have_no_neighbours():
    X = np.random.default_rng(0).integers(0, 30, size=(100, 1))
    model = CategoricalHMM(2).fit(X, lengths=[1] * 100)
    assert any("not usable" in text for text in model.report_.warnings)
    assert np.isfinite(model.score(X, lengths=[1] * 100))


def test_values_too_large_to_square_are_named():
    X = np.random.default_rng(0).standard_normal((50, 1)) * 1e200
    with pytest.raises(InvalidInput, match="in other units"):
        GaussianHMM(2).fit(X)


def test_variances_at_the_floor_are_reported():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((100, 1)), 5 + rng.standard_normal((100, 1))])
    model = GaussianHMM(2).fit(X)
    assert "1 of 2 states have a variance at its floor" in model.report_.full()


@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
def test_the_unit_of_the_data_does_not_matter(kind, unit):
    """The floor of variances is relative: log-likelihoods differ by the unit alone."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 2, size=40), 50)
    X = rng.standard_normal((2000, 2)) * np.where(states, 2.0, 5.0)[:, None]
    plain = GaussianHMM(2, covariance_type=kind).fit(X)
    moved = GaussianHMM(2, covariance_type=kind).fit(unit * X)
    shift = -4000 * np.log(unit)
    assert moved.log_likelihood(unit * X) == pytest.approx(plain.log_likelihood(X) + shift)
    assert moved.lower_bound_ == pytest.approx(plain.lower_bound_ + shift / 2000)
    np.testing.assert_allclose(moved.covars_, unit**2 * plain.covars_, rtol=1e-4)


def test_variances_of_another_kind_than_fitted_are_refused():
    X = np.random.default_rng(0).standard_normal((200, 2)) * [1.0, 5.0]
    model = GaussianHMM(2).fit(X)
    model.covars_ = np.ones(2)
    with pytest.raises(InvalidInput, match="one variance a state"):
        model.score(X)


def test_a_list_of_sequences_gets_the_right_call():
    parts = [np.zeros((5, 1)), np.ones((4, 1))]
    for wrong in (parts, [np.zeros(5), np.ones(4)], [np.zeros((5, 2)), np.zeros((5, 2))]):
        with pytest.raises(InvalidInput, match=r"lengths=\[len\(s\) for s in sequences\]"):
            GaussianHMM(2).fit(wrong)


def test_noise_that_cannot_be_gauged_is_said():
    X = np.random.default_rng(0).integers(0, 3, size=(40, 1))
    model = CategoricalHMM(2, refine="none").fit(X)
    assert np.isnan(model.report_.snr)
    assert "too few observations to gauge the noise" in model.report_.full()


def test_a_stream_takes_new_symbols_while_it_keeps_all_rows():
    model = CategoricalHMM(2).partial_fit(np.tile([[0], [1]], (50, 1)))
    model.partial_fit(np.tile([[2], [1]], (50, 1)))
    # sequences 0101.. and 2121..: half of all observations is 1, a quarter each is 0 and 2
    assert model.emissionprob_.shape == (2, 3)
    np.testing.assert_allclose(model.weights_ @ model.emissionprob_, [0.25, 0.5, 0.25], atol=0.01)


def test_a_stream_keeps_its_number_of_states(symbols):
    model = CategoricalHMM(2, n_features=10).partial_fit(
        symbols.X[:12_000], lengths=symbols.lengths[:600]
    )
    model.partial_fit(symbols.X[:2000], lengths=symbols.lengths[:100])
    with pytest.raises(InvalidInput, match="begun with 2 states"):
        model.set_params(n_components=3).partial_fit(symbols.X[:20])


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
    with pytest.raises(InvalidInput, match="binarize='a'"):
        BernoulliHMM(2, binarize="a").fit(X)
    for model in (CategoricalHMM(2), GaussianHMM(2)):
        for call in (model.predict, model.score):
            with pytest.raises(NotFittedError):
                call(X)
        with pytest.raises(NotFittedError):
            model.to_hmmlearn()


def test_categories_keep_their_scale_in_a_chain():
    """Statistics of a chain are those of the family: masses are visits."""
    family = Categories(np.array([3]), 0.0)
    data = make_categorical_hmm(5, 10, n_symbols=3, n_components=2)
    model = CategoricalHMM(2, n_features=3)
    model._prepare(data.X)
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
        warnings.simplefilter("ignore", ConvergenceWarning)  # twenty steps are few
        try:
            model.fit(X, lengths=lengths)
        except ThirdMomentError:
            return  # with a message of its own, not a crash
    assert np.isfinite(model.score(X, lengths=lengths))
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_proba(X, lengths).sum(axis=1), 1)
    assert len(str(model.report_)) > 0
