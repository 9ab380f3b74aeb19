"""Arguments of other libraries get a sentence that names ours."""

import inspect

import pytest
from sklearn.base import clone

import thirdmoment as tm
from thirdmoment.exceptions import UnknownArgument
from thirdmoment.models.other_names import SENTENCES


@pytest.mark.parametrize(
    ("model", "argument", "ours"),
    [
        (tm.LatentDirichletAllocation, "max_iter", "max_refine_iter"),
        (tm.LatentDirichletAllocation, "doc_topic_prior", "concentration"),
        (tm.LatentDirichletAllocation, "num_topics", "n_components"),
        (tm.GaussianMixture, "n_init", "n_starts"),
        (tm.GaussianHMM, "n_iter", "max_refine_iter"),
        (tm.GaussianHMM, "min_covar", "reg_covar"),
        (tm.GaussianMixture, "warm_start", "_init"),
        (tm.IndependentFactors, "fun", "order=3"),
        (tm.TopicSearch, "feature_names", "fit"),
    ],
)
def test_a_foreign_argument_is_answered_with_ours(model, argument, ours):
    with pytest.raises(UnknownArgument, match=f"no argument '{argument}'.*{ours}"):
        model(3, **{argument: 1})


def test_a_name_that_nobody_has_lists_those_there_are():
    with pytest.raises(TypeError, match="It has n_components, concentration"):
        tm.LatentDirichletAllocation(3, wings=2)


def test_all_arguments_of_scikit_learn_and_hmmlearn_are_answered():
    from sklearn import decomposition, mixture

    peers = {
        tm.LatentDirichletAllocation: decomposition.LatentDirichletAllocation,
        tm.GaussianMixture: mixture.GaussianMixture,
        tm.IndependentFactors: decomposition.FastICA,
    }
    hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
    peers |= {tm.GaussianHMM: hmm.GaussianHMM, tm.CategoricalHMM: hmm.CategoricalHMM}
    for ours, theirs in peers.items():
        known = {*inspect.signature(ours).parameters, *SENTENCES, "tol"}
        assert set(inspect.signature(theirs).parameters) <= known


def test_sentences_name_arguments_that_exist():
    arguments = set()
    for name in tm.__all__:
        if inspect.isclass(getattr(tm, name)):
            arguments |= set(inspect.signature(getattr(tm, name)).parameters)
    for sentence in SENTENCES.values():
        named = sentence.split(" ")[0]
        if "_" in named and "(" not in named:
            assert named in arguments


def test_known_arguments_and_copies_pass():
    model = tm.LatentDirichletAllocation(3, tol=1e-3)
    assert clone(model).tol == 1e-3


def test_a_subclass_may_hand_its_arguments_on():
    class Own(tm.GaussianMixture):
        def __init__(self, n_components=2, **others):
            super().__init__(n_components, **others)

    assert Own(3, tol=0.5).tol == 0.5
    with pytest.raises(TypeError):
        Own(3, max_iter=5)


def test_no_hint_names_an_argument_that_the_model_lacks():
    for model in (tm.LatentDirichletAllocation, tm.SingleTopicModel, tm.TopicSearch):
        with pytest.raises(UnknownArgument, match="It has n_components"):
            model(3, n_init=5)
    with pytest.raises(UnknownArgument, match="It has n_components"):
        tm.SingleTopicModel(3, doc_topic_prior=0.1)
