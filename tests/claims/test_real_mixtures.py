"""Claims about mixtures on real data; skipped where the data is not there."""

from pathlib import Path

import numpy as np
import pytest

from thirdmoment import CategoricalMixture, GaussianMixture
from thirdmoment.metrics import align

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pd = pytest.importorskip("pandas")

needs_data = pytest.mark.skipif(not DATA.exists(), reason="the real data is not on this machine")


@needs_data
@pytest.mark.parametrize(
    ("name", "majority", "em"),
    [
        ("bluebird", 24.07, 11.11),
        ("rte", 12.50, 7.25),
        ("dog", 18.84, 15.74),
        ("web", 31.17, 17.08),
    ],
)
def test_crowd_errors_are_those_of_dawid_skene(name, majority, em):
    labels = pd.read_csv(DATA / "crowd" / f"{name}_labels.csv.gz")
    truth = pd.read_csv(DATA / "crowd" / f"{name}_truth.csv.gz")
    codes = np.full((labels["item"].max(), labels["worker"].max()), np.nan)
    codes[labels["item"] - 1, labels["worker"] - 1] = labels["label"] - 1
    k = int(np.nanmax(codes)) + 1
    model = CategoricalMixture(k, n_categories=k).fit(codes)
    votes = np.stack([(codes == c).sum(axis=1) for c in range(k)], axis=1)
    given = model.predict_proba(codes).T @ (votes / votes.sum(axis=1, keepdims=True))
    name_of = np.argsort(align(given / given.sum(axis=1, keepdims=True), np.eye(k)))
    found = name_of[model.predict(codes)][truth["item"] - 1]
    error = 100 * np.mean(found != truth["label"].to_numpy() - 1)
    assert error <= majority
    assert error <= em + 1


@needs_data
def test_old_faithful_has_the_published_likelihood():
    X = pd.read_csv(DATA / "mixtures_small" / "faithful.csv").to_numpy(dtype=float)
    model = GaussianMixture(2, covariance_type="full").fit(X)
    assert model.log_likelihood(X) == pytest.approx(-1130.26, abs=0.05)  # mclust, VVV, two groups


@needs_data
def test_carcinoma_has_the_published_likelihood():
    codes = pd.read_csv(DATA / "latent_class" / "carcinoma.csv").to_numpy(dtype=float) - 1
    model = CategoricalMixture(3, prior_count=0.0).fit(codes)
    assert model.log_likelihood(codes) == pytest.approx(-293.705, abs=0.01)  # poLCA, three classes
