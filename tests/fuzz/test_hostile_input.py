"""A short run over hostile input; ``make fuzz N=10000`` is the long one."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thirdmoment as tm
from tests.fuzz import hostile, judge

MANY = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@MANY
@given(st.integers(0, 10**9))
def test_any_input_is_fitted_or_refused_in_words(number):
    judge.run(hostile.case(number))


@pytest.mark.parametrize("model", range(len(hostile.MODELS)))
def test_every_model_meets_hostile_input(model):
    outcomes = [
        judge.run(hostile.case(model + len(hostile.MODELS) * number)) for number in range(12)
    ]
    assert "fitted" in outcomes


def test_any_file_is_read_or_refused_in_words(tmp_path):
    outcomes = {judge.run_file(*hostile.file_of_counts(number), tmp_path) for number in range(200)}
    assert outcomes == {"fitted", "refused"}


def test_the_judge_sees_what_is_wrong(monkeypatch):
    """Each fault that it looks for, planted once."""
    honest = tm.GaussianMixture.fit

    def mutates(self, X):
        X[0, 0] += 1
        return honest(self, X)

    def crashes(self, X):
        raise ZeroDivisionError("division")

    def leaks(self, X):
        np.log(np.zeros(1))
        return honest(self, X)

    def half_done(self, X):
        self.means_ = X
        raise tm.exceptions.InvalidInput("too late")

    def nonsense(self, X):
        honest(self, X)
        self.weights_ = self.weights_ * 2
        return self

    for fit, message in (
        (mutates, "input was changed"),
        (crashes, "ZeroDivisionError"),
        (leaks, "RuntimeWarning"),
        (half_done, "changed the estimator"),
        (nonsense, "is no law"),
    ):
        monkeypatch.setattr(tm.GaussianMixture, "fit", fit)
        X = np.random.default_rng(0).normal(size=(60, 3))
        planted = hostile.Case("GaussianMixture", {"n_components": 2}, X, {}, X)
        with pytest.raises(judge.Fault, match=message):
            judge.run(planted)
    monkeypatch.setattr(tm.GaussianMixture, "fit", honest)
    assert judge.run(planted) == "fitted"
