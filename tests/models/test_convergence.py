"""EM that ends at its limit while it still gains says so, in every model, at the user's line."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from thirdmoment import (
    BernoulliHMM,
    CategoricalHMM,
    CategoricalMixture,
    GaussianHMM,
    GaussianMixture,
    KernelMixture,
    MixedLinearRegression,
    SingleTopicModel,
)
from thirdmoment.datasets import make_gaussian_mixture, make_lda_corpus
from thirdmoment.report import build
from thirdmoment.report.build import note_unfinished

RNG = np.random.default_rng(0)
BLOBS = make_gaussian_mixture(300, 4, 3).X
CODES = RNG.integers(3, size=(300, 4))
CASES = {
    "GaussianMixture": (GaussianMixture(3), (BLOBS,)),
    "CategoricalMixture": (CategoricalMixture(3), (CODES,)),
    "KernelMixture": (KernelMixture(3), (BLOBS,)),
    "MixedLinearRegression": (MixedLinearRegression(2), (BLOBS[:, :3], BLOBS[:, 3])),
    "SingleTopicModel": (SingleTopicModel(3), (make_lda_corpus(300, 40, 3).X,)),
    "CategoricalHMM": (CategoricalHMM(3), (CODES[:, :1],)),
    "BernoulliHMM": (BernoulliHMM(2), ((CODES > 1).astype(float),)),
    "GaussianHMM": (GaussianHMM(3), (BLOBS,)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fit_that_still_gains_at_its_limit_warns(name, monkeypatch):
    """One step is never enough; that it still gains is put in its mouth."""
    monkeypatch.setattr(build, "recent_gain", lambda path: 0.25)
    model, data = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(max_refine_iter=1).fit(*data)
    found = [one for one in caught if one.category is ConvergenceWarning]
    assert len(found) == 1
    assert "Raise max_refine_iter" in str(found[0].message)
    assert found[0].filename == __file__
    assert not model.converged_
    assert any("likelihood still rose" in text for text in model.report_.warnings)


@pytest.mark.parametrize(
    ("path", "converged", "total", "told"),
    [
        ((-3.0, -2.0), False, 1000, True),
        ((-3.0, -2.0), True, 1000, False),
        ((-2.00005, -2.0), False, 1e6, False),  # fifty units, but 5e-5 an observation
        ((-2.001, -2.0), False, 900, False),  # less than a unit in all
        ((-9.0, -2.0, -2.0, -2.0, -2.0, -2.0, -2.0), False, 1000, False),  # long ago
        ((), False, 1000, False),
    ],
)
def test_what_counts_as_still_gaining(path, converged, total, told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = note_unfinished(path, converged, total, 10)
    assert bool(found) == told


def test_a_default_fit_of_clean_data_says_nothing():
    data = make_gaussian_mixture(3000, 8, 4, separation=3.0)
    assert GaussianMixture(4).fit(data.X).converged_


def test_a_warning_points_at_the_line_of_the_user_even_through_a_pipeline(monkeypatch):
    monkeypatch.setattr(build, "recent_gain", lambda path: 0.25)
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = make_pipeline(StandardScaler(), GaussianMixture(4, max_refine_iter=1))
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X)
    assert caught[0].filename == __file__
