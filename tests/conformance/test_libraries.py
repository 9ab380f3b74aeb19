"""Every estimator takes arrays of any library, and answers in the one that it was asked in."""

import os
import subprocess
import sys
import textwrap

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment._array import as_given
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.models import tables

torch = pytest.importorskip("torch")

rng = np.random.default_rng(0)
REAL = rng.normal(size=(90, 4)) + 4 * rng.integers(0, 2, 90)[:, None]
CODES = rng.integers(0, 3, (90, 4))
TARGET = REAL[:, 0] * np.where(rng.random(90) < 0.5, 2.0, -2.0) + 0.1 * rng.normal(size=90)
WORDS = make_lda_corpus(90, 20, 2).X.toarray()

CASES = [
    (tm.GaussianMixture(2), REAL, ("predict", "predict_proba", "score_samples")),
    (tm.CategoricalMixture(2), CODES, ("predict", "predict_proba", "score_samples")),
    (tm.KernelMixture(2), REAL, ("predict", "predict_proba", "score_samples")),
    (tm.MultiViewMixture(2), REAL, ("predict", "predict_proba")),
    (tm.GaussianHMM(2), REAL, ("predict", "predict_proba", "score_samples", "decode", "forecast")),
    (tm.CategoricalHMM(2), CODES[:, :1], ("predict", "predict_proba", "forecast")),
    (tm.BernoulliHMM(2), CODES // 2, ("predict", "predict_proba")),
    (tm.IndependentFactors(2), REAL, ("transform",)),
    (tm.SubspaceClustering(2), REAL, ("predict", "transform")),
    (tm.LatentDirichletAllocation(2), WORDS, ("transform",)),
    (tm.SingleTopicModel(2), WORDS, ("predict", "predict_proba")),
    (tm.PoissonTopicModel(2), WORDS, ("transform",)),
]
NAMES = [type(row[0]).__name__ for row in CASES]
LIBRARIES = [
    ("torch", torch.as_tensor, torch.Tensor),
    ("array_api_strict", array_api_strict.asarray, array_api_strict._array_object.Array),
]


def flat(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize(("library", "make", "kind"), LIBRARIES, ids=[row[0] for row in LIBRARIES])
@pytest.mark.parametrize(
    ("model", "X", "methods"), CASES, ids=[type(row[0]).__name__ for row in CASES]
)
def test_results_are_in_the_library_of_the_data(model, X, methods, library, make, kind):
    given = make(X.astype(np.float64))
    model.fit(given)
    for name in methods:
        wanted = flat(getattr(model, name)(X.astype(np.float64)))
        found = flat(getattr(model, name)(given))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            if np.ndim(other) > 0:
                assert isinstance(one, kind), name
                np.testing.assert_allclose(np.asarray(one), other, rtol=1e-3, atol=1e-3)


DISPATCHED = """
    import sklearn, torch
    import thirdmoment as tm
    sklearn.set_config(array_api_dispatch=True)
    X = torch.randn((200, 4), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for model in (tm.GaussianMixture(2), tm.GaussianHMM(2), tm.KernelMixture(2)):
        found = model.fit(X).predict_proba(X)
        assert isinstance(found, torch.Tensor) and found.shape == (200, 2)
    assert isinstance(tm.IndependentFactors(2).fit_transform(X), torch.Tensor)
"""


def test_dispatch_of_scikit_learn_is_honoured():
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(DISPATCHED)], check=True, env=env)


def test_fits_of_tensors_are_those_of_their_numbers():
    for model, X, _ in CASES[:9]:
        own = model.fit(X.astype(np.float64)).get_params()
        learned = {name: value for name, value in vars(model).items() if name.endswith("_")}
        model.fit(torch.as_tensor(X.astype(np.float64)))
        assert model.get_params() == own
        for name, value in learned.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                np.testing.assert_array_equal(vars(model)[name], value)


def test_targets_weights_and_sparse_matrices_may_be_tensors():
    X, y = torch.as_tensor(REAL), torch.as_tensor(TARGET)
    found = tm.MixedLinearRegression(2).fit(X, y, sample_weight=torch.ones(90)).predict(X)
    wanted = tm.MixedLinearRegression(2).fit(REAL, TARGET).predict(REAL)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), wanted)
    counts = torch.as_tensor(WORDS).to_sparse_csr()
    found = tm.SingleTopicModel(2).fit(counts).predict_proba(counts)
    assert isinstance(found, torch.Tensor)
    wanted = tm.SingleTopicModel(2).fit(sp.csr_array(WORDS)).predict_proba(sp.csr_array(WORDS))
    np.testing.assert_allclose(found.numpy(), wanted)


def test_what_stands_beside_the_data_may_be_tensors_everywhere():
    X, w = torch.as_tensor(REAL), torch.ones(90, requires_grad=True)
    for model in (tm.GaussianMixture(2), tm.KernelMixture(2), tm.MultiViewMixture(2)):
        model.fit(X, sample_weight=w)
    tm.CategoricalMixture(2).fit(torch.as_tensor(CODES), sample_weight=w)
    tm.LatentDirichletAllocation(2).fit(torch.as_tensor(WORDS), sample_weight=w)
    lengths = torch.as_tensor([60, 30])
    found = tm.GaussianHMM(2).fit(X, lengths=lengths).predict(X, lengths)
    assert isinstance(found, torch.Tensor)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize(("library", "make", "kind"), LIBRARIES, ids=[row[0] for row in LIBRARIES])
def test_many_rows_of_any_library_are_read_where_they_are(library, make, kind, monkeypatch):
    monkeypatch.setattr(tables, "SAMPLED", 60)
    X = make(REAL)
    for model in (tm.GaussianMixture(2), tm.KernelMixture(2)):
        found = model.fit(X).predict(X)
        assert isinstance(found, kind)
        np.testing.assert_array_equal(np.asarray(found), model.predict(REAL))


def test_many_rows_of_truth_values_are_numbers(monkeypatch):
    monkeypatch.setattr(tables, "SAMPLED", 60)
    found = tm.GaussianMixture(2).fit(torch.as_tensor(REAL > 2)).means_
    np.testing.assert_allclose(found, tm.GaussianMixture(2).fit(REAL > 2).means_, atol=1e-6)
    with pytest.raises(ValueError, match="0 feature"):
        tm.GaussianMixture(2).fit(torch.zeros(90, 0))


def test_results_go_back_to_the_device_of_the_data():
    there = as_given(torch.ones(2, device="meta"), torch.ones(2, device="meta"))
    assert there.device.type == "meta"
    assert as_given(torch.ones(2), torch.ones(2, device="meta")).device.type == "meta"
    assert isinstance(as_given(torch.ones(2), array_api_strict.ones(2)), LIBRARIES[1][2])


def test_small_chains_on_a_device_are_those_of_the_host(monkeypatch):
    monkeypatch.setattr("thirdmoment.models.hmm.base.FEW", 50)
    X = np.repeat(REAL, 5, axis=0) + 0.1 * np.random.default_rng(1).normal(size=(450, 4))
    host = tm.GaussianHMM(2).fit(X)
    there = tm.GaussianHMM(2, device="cpu").fit(X)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(there.report_.trust, host.report_.trust, atol=1e-9)
    with pytest.raises(ValueError, match="on the host"):
        there.partial_fit(X)
