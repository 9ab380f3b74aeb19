"""Bad input: a clear error that names the value and the remedy, before any long work."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment import LatentDirichletAllocation, SingleTopicModel, TopicSearch
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InputWarning, InvalidInput

MODELS = [LatentDirichletAllocation, SingleTopicModel]
GOOD = make_lda_corpus(60, 20, 2, mean_length=12).X.toarray()


def changed(value):
    X = GOOD.copy()
    X[3, 4] = value
    return X


CASES = [
    (changed(np.nan), {}, "NaN"),
    (changed(np.inf), {}, "infinity"),
    (changed(-2.0), {}, r"Negative values in data passed to \w+ \(smallest -2\)"),
    (np.zeros((60, 20)), {}, "X holds no words: every count is zero"),
    (np.empty((0, 20)), {}, "0 sample"),
    (np.empty((60, 0)), {}, "0 feature"),
    (GOOD[:2], {"n_components": 3}, r"n_samples = 2 document\(s\) cannot show n_components=3"),
    (np.eye(20)[:10] * 2, {}, r"Every document is shorter than three words \(the longest has 2\)"),
    (GOOD, {"n_components": 0}, "n_components=0 must be at least 1"),
    (GOOD, {"n_components": 2.5}, "n_components=2.5 must be an integer"),
    (GOOD, {"n_components": True}, "n_components=True must be an integer"),
    (GOOD, {"solver": "newton"}, "solver='newton' is unknown. Choose one of 'auto'"),
    (GOOD, {"refine": "gibbs"}, "refine='gibbs' is unknown"),
    (GOOD, {"weighting": 3}, "weighting=3 is unknown. Choose one of 'auto', 'none'"),
    (GOOD, {"tol": -1.0}, "tol=-1.0 must be a finite non-negative number"),
    (GOOD, {"tol": "small"}, "tol='small' must be a non-negative number"),
    (GOOD, {"max_refine_iter": -1}, "max_refine_iter=-1 must be at least 0"),
    (GOOD, {"n_jobs": 0}, "n_jobs=0 must be None or a non-zero integer"),
    (GOOD[0], {}, "2D array"),
    (np.array([["a", "b"]]), {}, "could not convert|dtype"),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("X", "arguments", "message"), CASES)
def test_bad_input_is_refused_and_leaves_no_trace(model, X, arguments, message):
    estimator = model(**{"n_components": 2, **arguments})
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)
    assert vars(estimator).keys() == before.keys()


@pytest.mark.parametrize("value", ["much", 0.0, -1.0, np.nan, True, None])
def test_bad_concentrations_are_refused(value):
    with pytest.raises(InvalidInput, match="concentration="):
        LatentDirichletAllocation(2, concentration=value).fit(GOOD)


@pytest.mark.parametrize("model", MODELS)
def test_a_failed_fit_keeps_the_earlier_one(model):
    estimator = model(n_components=2).fit(GOOD)
    before = estimator.components_.copy()
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(changed(np.nan)[:, :10])
    np.testing.assert_array_equal(estimator.components_, before)
    assert estimator.n_features_in_ == 20


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(60), "sample_weight is zero for every sample"),
        (-np.ones(60), r"negative entry \(-1\)"),
        (np.ones(7), "sample_weight"),
    ],
)
def test_bad_weights_are_refused(model, weight, message):
    with pytest.raises(ValueError, match=message):
        model(n_components=2).fit(GOOD, sample_weight=weight)


@pytest.mark.parametrize("model", MODELS)
def test_real_values_are_accepted_with_a_warning(model):
    X = sp.csr_array(GOOD / GOOD.sum(axis=1, keepdims=True))
    with pytest.warns(InputWarning, match=r"real values \(tf-idf\?\).*only approximate"):
        estimator = model(n_components=2).fit(X)
    assert np.isfinite(estimator.components_).all()
    # rows sum to one, and a document has ten units on average at least
    assert estimator.report_.details["input_unit"] == pytest.approx(0.1)


@pytest.mark.parametrize("model", MODELS)
def test_counts_of_integer_type_are_welcome(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        integers = model(n_components=2).fit(GOOD.astype(np.int32))
    floats = model(n_components=2).fit(GOOD)
    np.testing.assert_array_equal(integers.components_, floats.components_)


@pytest.mark.parametrize("model", MODELS)
def test_fitting_is_needed_first(model):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        model().top_words()
    method = "transform" if model is LatentDirichletAllocation else "predict"
    with pytest.raises(NotFittedError):
        getattr(model(), method)(GOOD)


@pytest.mark.parametrize("model", MODELS)
def test_other_numbers_of_words_are_refused_later(model):
    estimator = model(n_components=2).fit(GOOD)
    method = estimator.transform if model is LatentDirichletAllocation else estimator.predict
    with pytest.raises(ValueError, match="20 features"):
        method(GOOD[:, :10])


@pytest.mark.parametrize(
    "texts",
    [
        ["the cat sat", "on the mat"] * 20,
        np.array(["the cat sat", "on the mat"] * 20, dtype=object),
        [["the", "cat"], ["on", "the", "mat"]] * 20,
        "one text",
    ],
)
def test_texts_instead_of_counts_are_told_how_to_count(texts):
    with pytest.raises(InvalidInput, match=r"X holds texts, not word counts.*CountVectorizer"):
        LatentDirichletAllocation(2).fit(texts)
    model = LatentDirichletAllocation(2).fit(make_lda_corpus(200, 20, 2).X)
    with pytest.raises(InvalidInput, match="X holds texts"):
        model.transform(texts)


def test_words_in_the_place_of_the_target_are_not_dropped():
    X = make_lda_corpus(200, 20, 2).X
    with pytest.raises(InvalidInput, match="Pass them as feature_names="):
        TopicSearch(2).fit(X, [f"word{j}" for j in range(20)])


def test_frames_of_polars_are_tables():
    """They have a method of the same name as a source."""
    import polars as pl

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 4 * rng.integers(2, size=(200, 1))
    frame = pl.DataFrame({name: X[:, j] for j, name in enumerate("abc")})
    model = tm.GaussianMixture(2).fit(frame)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.to_pandas()))
    assert list(model.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "model", [tm.GaussianMixture(2), tm.LatentDirichletAllocation(2), tm.IndependentFactors(2)]
)
def test_generators_are_refused_with_both_remedies(model):
    with pytest.raises(InvalidInput, match=r"read once only.*source\(lambda.*partial_fit"):
        model.fit(row for row in np.ones((4, 3)))
