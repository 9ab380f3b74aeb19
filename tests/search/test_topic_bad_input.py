"""Hints and corpora that cannot work get a message that says what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from thirdmoment import TopicSearch
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InvalidInput, MomentWarning, RankDeficientMoment
from thirdmoment.recovery.search import usable_rank

NAMES = [f"word{j}" for j in range(99)] + ["hockey"]


@pytest.fixture(scope="module")
def corpus():
    X = make_lda_corpus(500, 100, 3, random_state=0).X.tolil()
    X[:, 5] = 0
    X[:, 6] = 0
    X[10, 6] = 2
    return sp.csr_array(X)


@pytest.fixture(scope="module")
def search(corpus):
    return TopicSearch(3).fit(corpus, feature_names=NAMES)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ({"words": "hockei"}, "'hockei' is not in the vocabulary of 100 words. Near it: hockey"),
        ({"words": "zzzzqqq"}, "No word is near it"),
        ({"words": 100}, "not in the vocabulary"),
        ({"words": "word5"}, "occurs in 0 document"),
        ({"words": "word6"}, "occurs in 1 document"),
        ({"words": ["word1", "word2"], "negative": "word2"}, "contradict each other: 'word2'"),
        ({"negative": "word2"}, "negative words alone"),
        ({"words": []}, "No word is given"),
        ({"words": ["word1", "word2"], "weights": [1.0]}, "shape (1,) for 2 words"),
        ({"words": ["word1"], "weights": [-1.0]}, "must be positive"),
        ({"vector": np.zeros(100)}, "zero or not finite"),
        ({"vector": np.full(100, np.nan)}, "zero or not finite"),
        ({"vector": np.ones(3)}, "one a word"),
        ({"documents": np.zeros((2, 100))}, "holds a word of the vocabulary"),
        ({"documents": -np.ones((2, 100))}, "Negative values"),
        ({}, "exactly one kind of hint"),
        ({"words": "word1", "vector": np.ones(100)}, "exactly one kind of hint"),
    ],
)
def test_hints_that_point_at_nothing(search, hint, message):
    with pytest.raises(InvalidInput) as error:
        search.search(**hint)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"concentration": -1.0}, "concentration"),
        ({"concentration": "much"}, "concentration"),
        ({"weighting": "some"}, "weighting"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_arguments_are_checked_before_the_corpus_is_read(options, message):
    with pytest.raises(InvalidInput, match=message):
        TopicSearch(**options).fit(None)


def test_texts_are_refused_with_the_way_to_count_them():
    with pytest.raises(InvalidInput, match="CountVectorizer"):
        TopicSearch(2).fit(["one two three", "four five six"])


def test_feature_names_must_fit(corpus):
    with pytest.raises(InvalidInput, match="99 names, but X has 100 columns"):
        TopicSearch(3).fit(corpus, feature_names=NAMES[:99])
    with pytest.raises(InvalidInput, match="'word3' twice"):
        TopicSearch(3).fit(corpus, feature_names=["word3", *NAMES[:99]])


def test_too_many_topics_for_the_corpus():
    X = np.tile([[3, 1, 0, 0], [0, 0, 2, 2], [1, 0, 3, 0.0]], (20, 1))
    with pytest.warns(MomentWarning, match="fewer than n_components=4"):
        search = TopicSearch(4).fit(X)
    assert search.n_components_ < 4
    assert np.isfinite(search.search(0).parameters).all()
    with pytest.raises(RankDeficientMoment, match="rank 0"):
        usable_rank(np.array([-0.1, -0.3]), 2)


def test_an_unfitted_search_says_so(tmp_path):
    with pytest.raises(NotFittedError):
        TopicSearch().search("word")
    with pytest.raises(NotFittedError):
        TopicSearch().save(tmp_path / "nothing")


def test_a_file_of_something_else_is_refused(tmp_path):
    import joblib

    joblib.dump({"a": 1}, tmp_path / "other")
    with pytest.raises(InvalidInput, match="no saved model"):
        TopicSearch.load(tmp_path / "other")


def test_a_failed_fit_leaves_the_old_index(search, corpus):
    before = search.index_
    with pytest.raises(InvalidInput):
        search.fit(np.zeros((5, 4)))
    assert search.index_ is before


def test_random_hints_never_break(search, corpus):
    rng = np.random.default_rng(0)
    usable = np.flatnonzero((corpus > 0).sum(axis=0) >= 2)
    for _ in range(60):
        count = int(rng.integers(1, 5))
        words = rng.choice(usable, count, replace=False).tolist()
        cut = int(rng.integers(1, count + 1))
        found = search.search(words[:cut], negative=words[cut:] or None)
        assert np.isfinite(found.parameters).all()
        assert found.parameters.sum() == pytest.approx(1)
        assert 0 <= found.report.stability <= 1 + 1e-9
        v = rng.standard_normal(100) * 10.0 ** rng.integers(-200, 200)
        assert np.isfinite(search.search(vector=v).parameters).all()
        rows = rng.integers(0, 500, int(rng.integers(1, 4)))
        assert np.isfinite(search.search(documents=corpus[rows]).parameters).all()


def test_a_concentration_too_large_for_so_few_topics_is_told(corpus):
    forced = TopicSearch(3, concentration=1e4).fit(corpus)
    assert "too large for so few" in str(forced.report_)
    chosen = TopicSearch(3).fit(corpus)
    assert chosen.index_.m_w @ chosen.index_.m_w > 0.98
    assert "too large" not in str(chosen.report_)
