"""Topics that a few words name come first, with their names; the others are as they were."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InputWarning, InvalidInput, MomentWarning
from thirdmoment.metrics import align, recovery_error

CORPUS = make_lda_corpus(3000, 200, 5, random_state=1)
WORDS = [f"w{j}" for j in range(200)]


def own_words(topic, n=2):
    """Words that one true topic holds far more of than the others."""
    share = CORPUS.topics[topic] ** 2 / CORPUS.topics.sum(axis=0)
    return [WORDS[j] for j in np.argsort(-share)[:n]]


@pytest.mark.parametrize("refine", ["auto", "none"])
def test_named_topics_are_the_true_ones_and_the_rest_is_unchanged(refine):
    wanted = [3, 1]
    seeds = {"third": own_words(3), "first": own_words(1, 1)[0]}
    model = tm.LatentDirichletAllocation(5, refine=refine)
    given = model.fit(CORPUS.X, feature_names=WORDS, seeds=seeds)
    assert given.topic_labels_[:2] == ["third", "first"]
    nearest = align(CORPUS.topics, given.components_)
    assert list(nearest[:2]) == wanted
    plain = tm.LatentDirichletAllocation(5, refine=refine).fit(CORPUS.X)
    assert recovery_error(given.components_, plain.components_) < 0.01
    rest = given.weights_[2:]
    assert np.all(np.diff(rest) <= 0)  # heaviest first
    order = align(plain.components_, given.components_)
    np.testing.assert_allclose(given.weights_, plain.weights_[order], atol=0.01)
    np.testing.assert_allclose(
        given.concentration_ / given.concentration_.sum(), given.weights_, rtol=1e-6
    )


def test_everything_is_in_the_order_of_the_topics():
    seeds = {"last": own_words(4), "second": own_words(2)}
    given = tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS, seeds=seeds)
    plain = tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS)
    order = align(plain.components_, given.components_)
    np.testing.assert_allclose(given.topic_trust_, plain.topic_trust_[order], atol=0.15)
    np.testing.assert_allclose(given.word_share_, plain.word_share_[order], atol=0.01)
    shares = given.transform(CORPUS.X[:50])
    np.testing.assert_allclose(shares, plain.transform(CORPUS.X[:50])[:, order], atol=0.05)


def text_like(seed=0):
    """Documents that break the model: bursts of words, and more topics than are fitted."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(300, 0.05), size=12)
    weights = np.sort(np.maximum(rng.dirichlet(np.full(12, 0.5)), 0.02))[::-1]
    rows = []
    for _ in range(2500):
        h = rng.dirichlet(2 * weights / weights.sum())
        law = rng.dirichlet(200 * (h @ topics) + 1e-3)
        rows.append(rng.multinomial(rng.integers(30, 90), law))
    return np.array(rows, dtype=float), topics


def test_small_topics_of_documents_that_break_the_model_are_found_by_name():
    """Of nine small topics most are found, and more than without seeds."""
    words, named, plain = [f"w{j}" for j in range(300)], 0, 0
    for seed in range(3):
        X, topics = text_like(seed)
        free = tm.LatentDirichletAllocation(8).fit(X)
        for small in (6, 9, 11):
            own = topics[small] ** 2 / topics.sum(axis=0)
            hint = [f"w{j}" for j in np.argsort(-own)[:3]]
            model = tm.LatentDirichletAllocation(8)
            model.fit(X, feature_names=words, seeds={"small": hint})
            assert not model.report_.details["trusted"]
            found = np.abs(topics - model.components_[0]).sum(axis=1)
            named += int(np.argmin(found) == small)
            nearest = [np.argmin(np.abs(topics - one).sum(axis=1)) for one in free.components_]
            plain += small in nearest
    assert named > max(plain, 9 / 2)


def test_a_seed_without_a_topic_is_said():
    X, _ = text_like()
    rng = np.random.default_rng(0)
    X = np.hstack([X, rng.poisson(0.05, size=(len(X), 1))])  # a word of no topic
    words = [*(f"w{j}" for j in range(300)), "noise"]
    model = tm.LatentDirichletAllocation(8)
    model.fit(X, feature_names=words, seeds={"nothing": "noise"})
    text = "The seeds of nothing (noise) found no topic of their own"
    assert text in model.report_.full()
    assert "seeds of nothing found no topic" in str(model.report_)
    assert model.topic_labels_[0] == "nothing (not found)"


def test_names_are_saved_and_go_with_the_next_fit(tmp_path):
    model = tm.LatentDirichletAllocation(5)
    model.fit(CORPUS.X, feature_names=WORDS, seeds={"third": own_words(3)})
    model.save(tmp_path / "a.tm")
    assert tm.load(tmp_path / "a.tm").topic_labels_[0] == "third"
    assert "third" not in model.fit(CORPUS.X, feature_names=WORDS).topic_labels_


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (["w1"], "seeds is a dict"),
        ({1: ["w1"]}, "seeds is a dict"),
        ({"a": ["w1x"]}, r"'w1x' is not in the vocabulary of 200 words. Near it: w1"),
        ({"a": []}, "The seed 'a' has no words"),
        ({str(j): "w1" for j in range(6)}, "6 seeds are more than n_components=5"),
        ({"a": [1.5]}, "1.5 is no word"),
        ({" ": ["w1"]}, "seeds is a dict"),
    ],
)
def test_seeds_that_cannot_be_used_are_refused_before_the_fit(seeds, message, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("the fit began")

    monkeypatch.setattr(tm.LatentDirichletAllocation, "_starts", never)
    with pytest.raises(InvalidInput, match=message):
        tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS, seeds=seeds)


def test_a_word_of_one_document_is_refused():
    X = CORPUS.X.toarray()[:500].copy()
    X[:, 7] = 0
    X[3, 7] = 1
    with pytest.raises(InvalidInput, match=r"'w7' occurs in 1 document"):
        tm.LatentDirichletAllocation(5).fit(X, feature_names=WORDS, seeds={"a": ["w7"]})


def test_as_many_seeds_as_topics_and_few_documents():
    seeds = {str(t): own_words(t) for t in range(5)}
    given = tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS, seeds=seeds)
    assert given.topic_labels_ == list("01234")
    assert list(align(CORPUS.topics, given.components_)) == list(range(5))
    few = tm.LatentDirichletAllocation(5).fit(
        CORPUS.X[:30], feature_names=WORDS, seeds={"a": own_words(0)}
    )
    assert few.topic_labels_[0] == "a"


def test_words_of_seeds_are_found_in_any_case_and_unknown_ones_are_told():
    seeds = {"third": [*(word.upper() for word in own_words(3)), "nowhere"]}
    with pytest.warns(InputWarning, match=r"left out: 'nowhere' \(third\)"):
        given = tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS, seeds=seeds)
    assert align(CORPUS.topics, given.components_)[0] == 3


def test_a_word_that_only_held_out_documents_have():
    """Such a word points nowhere in the documents of the start; the others of its seed do."""
    from thirdmoment.refinement.topics import held_out

    X = CORPUS.X.toarray().copy()
    X[:, 7] = 1  # a document is held out by its own content
    held = np.flatnonzero(held_out(sp.csr_array(X), np.ones(len(X))))[:6]
    X[:, 7] = 0
    X[held, 7] = 1
    seeds = {"third": ["w7", *own_words(3)], "alone": "w7"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = tm.LatentDirichletAllocation(5).fit(X, feature_names=WORDS, seeds=seeds)
    assert np.isfinite(given.components_).all()


def test_seeded_fits_tell_no_numbers_that_were_not_given():
    few = make_lda_corpus(800, 8, 4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MomentWarning)
        tm.LatentDirichletAllocation(4).fit(few.X, seeds={"a": [0]})
