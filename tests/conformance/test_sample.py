"""``sample`` is the same everywhere: a number, a seed, rows and where they come from."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(200, 3)) + 5 * RNG.integers(2, size=(200, 1))
COUNTS = RNG.poisson(2.0, size=(200, 12))
CODES = RNG.integers(3, size=(200, 4))
FITTED = {
    "LatentDirichletAllocation": COUNTS,
    "SingleTopicModel": COUNTS,
    "GaussianMixture": TABLE,
    "KernelMixture": TABLE,
    "CategoricalMixture": CODES,
    "GaussianHMM": TABLE,
    "CategoricalHMM": CODES[:, :1],
    "BernoulliHMM": CODES > 0,
}


@pytest.fixture(scope="module", params=FITTED)
def model(request):
    return getattr(tm, request.param)(2).fit(FITTED[request.param])


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def test_one_signature(model):
    names = list(inspect.signature(model.sample).parameters)
    assert names[:2] == ["n_samples", "random_state"]


def test_a_seed_repeats_and_another_does_not(model):
    first, again, other = (model.sample(40, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(dense(first[0]), dense(again[0]))
    assert not np.array_equal(dense(first[0]), dense(other[0]))
    assert dense(first[0]).shape[0] == 40
    assert len(first[1]) == 40


def test_a_random_state_may_be_an_object(model):
    drawn = model.sample(5, np.random.RandomState(3))[0]
    np.testing.assert_array_equal(dense(drawn), dense(model.sample(5, 3)[0]))


def test_without_a_seed_that_of_the_model_is_taken(model):
    np.testing.assert_array_equal(dense(model.sample(5)[0]), dense(model.sample(5, 0)[0]))


def test_all_models_that_sample_are_here():
    able = {
        name
        for name in tm.__all__
        if inspect.isclass(getattr(tm, name)) and hasattr(getattr(tm, name), "sample")
    }
    assert able - {"MixedLinearRegression"} == set(FITTED)  # which samples at given rows
