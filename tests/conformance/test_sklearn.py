"""Every public estimator passes scikit-learn's own checks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import thirdmoment
from thirdmoment import (
    BernoulliHMM,
    CategoricalHMM,
    CategoricalMixture,
    GaussianHMM,
    GaussianMixture,
    GaussianSearch,
    IndependentFactors,
    KernelMixture,
    LatentDirichletAllocation,
    MixedLinearRegression,
    MultiViewMixture,
    PoissonTopicModel,
    RegressionSearch,
    SingleTopicModel,
    SubspaceClustering,
    SubspaceSearch,
    TopicSearch,
)
from thirdmoment.datasets import make_lda_corpus

# Two topics: some checks fit nine samples, and fewer samples than topics are an error by design.
ESTIMATORS = [
    LatentDirichletAllocation(n_components=2),
    SingleTopicModel(n_components=2),
    MultiViewMixture(n_components=2),
    GaussianMixture(n_components=2),
    CategoricalMixture(n_components=2),
    IndependentFactors(n_components=2),
    PoissonTopicModel(n_components=2),
    CategoricalHMM(n_components=2),
    BernoulliHMM(n_components=2),
    GaussianHMM(n_components=2),
    KernelMixture(n_components=2),
    TopicSearch(n_components=2),
    GaussianSearch(n_components=2),
    MixedLinearRegression(n_components=2),
    RegressionSearch(n_components=1),
    SubspaceClustering(n_components=2),
    SubspaceSearch(n_components=2),
]

CLASSIFIER = "the check takes predict_proba for a classifier's and reads its classifier_tags"
# Expected failures, each with its reason; the models' own tests check sparse input instead.
EXPECTED = {
    model: {
        "check_estimator_sparse_array": CLASSIFIER,
        "check_estimator_sparse_matrix": CLASSIFIER,
    }
    for model in (SingleTopicModel, MultiViewMixture)
}
EXPECTED[CategoricalMixture] = {
    "check_sample_weight_equivalence_on_dense_data": "the check gives real numbers, which are no "
    "codes; tests/models/test_categorical.py checks weights"
}
WITH_Y = "the check calls score_samples without y, of which it is the log-likelihood"
EXPECTED[MixedLinearRegression] = {
    "check_methods_subset_invariance": WITH_Y,
    "check_methods_sample_order_invariance": WITH_Y,
}
ORDER = "the rows are a sequence: what a row means depends on those before and after it"
for model in (CategoricalHMM, BernoulliHMM, GaussianHMM):
    EXPECTED[model] = {
        "check_methods_subset_invariance": ORDER,
        "check_methods_sample_order_invariance": ORDER,
    }


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda e: EXPECTED.get(type(e), {}), xfail_strict=True
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = {
        name
        for name in thirdmoment.__all__
        if isinstance(getattr(thirdmoment, name), type)
        and hasattr(getattr(thirdmoment, name), "fit")
    }
    assert public == {type(estimator).__name__ for estimator in ESTIMATORS}


def test_grid_search_and_pipeline_work():
    X = make_lda_corpus(300, 40, 3, mean_length=30).X
    search = GridSearchCV(LatentDirichletAllocation(), {"n_components": [2, 3]}, cv=3).fit(X)
    assert search.best_params_["n_components"] in (2, 3)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
def test_pipelines_pass_the_counts_on():
    X = make_lda_corpus(300, 40, 3, mean_length=30).X
    H = make_pipeline(MaxAbsScaler(), LatentDirichletAllocation(3)).fit_transform(X)
    assert H.shape == (300, 3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_html_representation_links_to_the_documentation(estimator):
    assert type(estimator).__name__ in estimator._repr_html_()
    assert "thirdmoment" in estimator._get_doc_link()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clones_are_unfitted_and_equal_in_arguments(estimator):
    assert clone(estimator).get_params() == estimator.get_params()
