"""Topic searches: the right topic, the same answers from the index as from the full moments."""

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from tests.io import on_disk
from thirdmoment import TopicSearch
from thirdmoment.datasets import make_lda_corpus, make_single_topic_corpus
from thirdmoment.recovery.search import whitened_search


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(4000, 300, 5, concentration=1.0, random_state=1)


@pytest.fixture(scope="module")
def search(corpus):
    names = [f"word{j}" for j in range(300)]
    return TopicSearch(5, concentration=1.0).fit(corpus.X, feature_names=names)


def telling_words(topics, n=3, ratio=3.0):
    """For each topic its most probable words that no other topic uses nearly as often."""
    order = np.sort(topics, axis=0)
    clear = order[-1] > ratio * order[-2]
    return {
        t: [j for j in np.argsort(-topics[t]) if clear[j] and topics[:, j].argmax() == t][:n]
        for t in range(len(topics))
    }


def test_every_telling_word_finds_its_topic(search, corpus):
    for topic, words in telling_words(corpus.topics).items():
        assert words
        for j in words:
            found = search.search(f"word{j}")
            errors = np.abs(corpus.topics - found.parameters).sum(axis=1)
            assert errors.argmin() == topic
            assert errors[topic] < 0.2
            share = corpus.concentration[topic] / corpus.concentration.sum()
            assert found.weight == pytest.approx(share, rel=0.25)
            assert found.informative, found.report
            assert found.report.details["rank"][f"word{j}"] <= 30
            assert found.parameters.min() >= 0
            assert found.parameters.sum() == pytest.approx(1)


def test_the_estimated_scores_are_those_of_the_topics(search, corpus):
    j = telling_words(corpus.topics)[0][0]
    found = search.search(f"word{j}").report
    truth = np.sort(corpus.topics[:, j])[::-1]
    assert found.scores[0] == pytest.approx(truth[0], rel=0.1)
    assert found.scores[1] == pytest.approx(truth[1], abs=0.1 * truth[0])


def test_the_index_gives_what_the_full_contraction_gives(search, corpus):
    index = search.index_
    X = corpus.X.toarray()
    for j in (0, 7, 150):
        fast, slow = index.word(j), index.direction(np.eye(300)[j])
        np.testing.assert_allclose(fast.M, slow.M, atol=1e-10 * np.abs(slow.M).max())
        np.testing.assert_allclose(fast.difference, slow.difference, atol=1e-10)
        assert set(index.rows[index.documents_of(j)]) == set(np.flatnonzero(X[:, j]))
    np.testing.assert_allclose(index.Y, X @ index.W, atol=1e-9)


def test_the_whitening_holds_exactly_however_far_the_eigenvectors_are(search, corpus):
    index = search.index_
    np.testing.assert_allclose(index.W.T @ index.unwhitener, np.eye(5), atol=1e-8)
    # A 1 = E1 (SR-18): every direction sums to its own scale
    np.testing.assert_allclose(index.unwhitener.sum(axis=0), index.m_w, atol=1e-10)
    X, mean = corpus.X.toarray(), index.mean
    L = X.sum(axis=1)
    omega = L / (L + 1000)
    omega = omega / omega.sum()
    E2 = (X * (omega / (L * (L - 1)))[:, None]).T @ X
    E2 -= np.diag((X * (omega / (L * (L - 1)))[:, None]).sum(axis=0))
    A = 2 * E2 - np.outer(mean, mean)
    np.testing.assert_allclose(index.unwhitener, A @ index.W, atol=1e-10)


def test_several_words_agree_or_are_told_apart(search, corpus):
    words = telling_words(corpus.topics)
    names = {t: [f"word{j}" for j in found] for t, found in words.items()}
    together = search.search(names[1])
    assert np.abs(corpus.topics - together.parameters).sum(axis=1).argmin() == 1
    assert together.informative
    mixed = search.search([names[0][0], names[1][0]])
    assert not mixed.informative
    # a weight decides, a negative word excludes
    heavy = search.search([names[0][0], names[1][0]], weights=[10.0, 1.0])
    assert np.abs(corpus.topics - heavy.parameters).sum(axis=1).argmin() == 0
    without = search.search([names[0][0], names[1][0]], negative=names[1][1:])
    assert np.abs(corpus.topics - without.parameters).sum(axis=1).argmin() == 0


def test_documents_and_their_directions_find_the_topic(search, corpus):
    for topic in range(5):
        rows = np.argsort(-corpus.proportions[:, topic])[:5]
        found = search.search(documents=corpus.X[rows])
        assert np.abs(corpus.topics - found.parameters).sum(axis=1).argmin() == topic
        assert found.alignment > 0.9
        assert found.report.label_score > 0.3
        dual = np.linalg.pinv(corpus.topics)[:, topic]
        direct = search.search(vector=dual)
        assert np.abs(corpus.topics - direct.parameters).sum(axis=1).argmin() == topic


def test_documents_most_about_a_topic_hold_it(search, corpus):
    j = telling_words(corpus.topics)[2][0]
    found = search.search(f"word{j}")
    best = found.documents(20)
    assert len(set(best.tolist())) == 20
    assert corpus.proportions[best, 2].mean() > 0.85
    shares = found.shares()
    assert np.corrcoef(shares, corpus.proportions[:, 2])[0, 1] > 0.9
    assert found.top_words(3) == [f"word{i}" for i in np.argsort(-found.parameters)[:3]]


def test_many_queries_equal_single_ones_on_any_number_of_threads(search, corpus):
    hints = ["word0", ["word1", "word2"], {"documents": corpus.X[:3]}, {"words": "word9"}]
    for jobs in (1, 2):
        many = search.set_params(n_jobs=jobs).search_many(hints)
        single = [search.search("word0"), search.search(["word1", "word2"]),
                  search.search(documents=corpus.X[:3]), search.search("word9")]  # fmt: skip
        for a, b in zip(many, single, strict=True):
            np.testing.assert_array_equal(a.parameters, b.parameters)
            assert a.report.gap_snr == b.report.gap_snr
    search.set_params(n_jobs=None)


def test_a_saved_search_gives_identical_answers(search, tmp_path):
    path = tmp_path / "corpus.search"
    search.save(path)
    loaded = TopicSearch.load(path)
    assert on_disk(loaded.index_.Y)
    for hint in ("word0", ["word3", "word4"]):
        a, b = search.search(hint), loaded.search(hint)
        np.testing.assert_array_equal(a.parameters, b.parameters)
        assert a.weight == b.weight
        assert str(a.report) == str(b.report)
        np.testing.assert_array_equal(a.documents(5), b.documents(5))


def test_answers_do_not_depend_on_threads_or_on_the_layout_of_the_counts(corpus):
    one = TopicSearch(5, n_jobs=1).fit(corpus.X).search(3)
    two = TopicSearch(5, n_jobs=2).fit(sp.csc_matrix(corpus.X)).search(3)
    dense = TopicSearch(5).fit(corpus.X.toarray()).search(3)
    np.testing.assert_array_equal(one.parameters, two.parameters)
    np.testing.assert_array_equal(one.parameters, dense.parameters)


def test_weights_repeat_documents(corpus):
    X = corpus.X[:800]
    weight = np.where(np.arange(800) < 300, 2.0, 1.0)
    repeated = sp.vstack([X, X[:300]])
    options = {"n_components": 3, "concentration": 1.0}
    a = TopicSearch(**options).fit(X, sample_weight=weight).search(2)
    b = TopicSearch(**options).fit(repeated).search(2)
    np.testing.assert_allclose(a.parameters, b.parameters, atol=1e-7)
    assert a.weight == pytest.approx(b.weight, abs=1e-7)


def test_documents_of_one_topic_need_no_dirichlet_correction():
    corpus = make_single_topic_corpus(5000, 200, 4, mean_length=30, random_state=2)
    plain = TopicSearch(4, concentration=0.0, weighting="none").fit(corpus.X)
    for topic, words in telling_words(corpus.topics, 1).items():
        found = plain.search(words[0])
        assert np.abs(corpus.topics - found.parameters).sum(axis=1).argmin() == topic
        assert np.abs(corpus.topics[topic] - found.parameters).sum() < 0.25
        # the eigenvector of B(e_x) of the single-topic model
        index = plain.index_
        query = index.word(words[0])
        C = corpus.X.toarray()
        L = C.sum(axis=1)
        rest = C.copy()
        rest[:, words[0]] -= 1
        q = C[:, words[0]] / (L * (L - 1) * (L - 2)) / len(C)
        full = (rest * q[:, None]).T @ rest - np.diag(q @ rest)
        np.testing.assert_allclose(query.M, index.W.T @ full @ index.W, atol=1e-9)
        u = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w).direction
        top = np.linalg.eigh(index.W.T @ full @ index.W)[1][:, -1]
        assert abs(u @ top) == pytest.approx(1, abs=1e-8)


def test_large_corpora_run_in_single_precision(corpus):
    big = sp.vstack([corpus.X] * 4)
    assert big.nnz >= 500_000
    fast = TopicSearch(5, concentration=1.0).fit(big)
    assert fast.index_.Y.dtype == np.float32
    slow = TopicSearch(5, concentration=1.0).fit(corpus.X)
    for j in (0, 30):
        a, b = fast.search(j), slow.search(j)
        np.testing.assert_allclose(a.parameters, b.parameters, atol=1e-4)
        assert a.parameters.dtype == np.float64


def test_names_come_from_the_columns_of_a_frame(corpus):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(corpus.X.toarray(), columns=[f"w{j}" for j in range(300)])
    search = TopicSearch(5, concentration=1.0).fit(frame)
    found = search.search("w3")
    assert all(isinstance(word, str) for word in found.top_words())
    by_frame = search.search(documents=frame.iloc[:3])
    assert by_frame.weight > 0


def test_the_report_speaks(search):
    found = search.search("word0")
    assert "TopicComponent(weight=" in repr(found)
    assert "over the sampling noise" in found.report.full()
    assert str(found.report).startswith(("Trust this answer", "Do not trust this answer"))
    assert repr(found.report) == str(found.report)
    assert search.report_.spectrum[4] > search.report_.noise
    assert "Second moment" in search.report_.full()


def test_documents_that_arrive_can_be_searched_at_once():
    corpus = tm.datasets.make_lda_corpus(3000, 120, 4, random_state=4)
    X = corpus.X.tocsr()
    whole = tm.TopicSearch(4).fit(X)
    index = tm.TopicSearch(4).partial_fit(X[:2000])
    grown = tm.TopicSearch(4).partial_fit(X[:2000]).partial_fit(X[2000:2300])
    assert grown.index_.X.shape == (2300, 120)  # in the directions of the first 2,000
    np.testing.assert_array_equal(grown.index_.W, index.index_.W)
    again = tm.TopicSearch(4).fit(X[:2300])
    total = [np.sum(m.index_.omega * tuples(m.index_.X)) for m in (grown, again)]
    np.testing.assert_allclose(total, 1, rtol=1e-5)
    np.testing.assert_allclose(grown.index_.omega, again.index_.omega, rtol=1e-5)
    word = int(np.argmax(corpus.topics[1] / corpus.topics.sum(axis=0)))
    near = tm.metrics.recovery_error(
        grown.search(word).parameters[None], again.search(word).parameters[None]
    )
    assert near < 0.1
    for a in range(2300, 3000, 100):
        grown.partial_fit(X[a : a + 100])
    assert grown.index_.X.shape == (3000, 120)
    assert grown._prepared > 2000  # directions were found anew
    found, expected = (m.search(word).parameters[None] for m in (grown, whole))
    assert tm.metrics.recovery_error(found, expected) < 0.1
    before = grown.index_
    with pytest.raises(ValueError):  # noqa: PT011  of scikit-learn
        grown.partial_fit(X[:5, :7])
    assert grown.index_ is before


def tuples(X):
    L = np.asarray(X.sum(axis=1), dtype=float).ravel()
    return L * np.maximum(L - 1, 0) * np.maximum(L - 2, 0)


def test_units_and_weights_of_documents_that_arrive_are_those_of_the_first():
    X = tm.datasets.make_lda_corpus(2300, 60, 3, random_state=4).X.tocsr()
    plain = tm.TopicSearch(3, concentration=1.0).fit(X[:2000]).partial_fit(X[2000:])
    weighted = tm.TopicSearch(3, concentration=1.0).fit(X[:2000], sample_weight=np.full(2000, 0.01))
    weighted.partial_fit(X[2000:], sample_weight=np.full(300, 0.01))
    np.testing.assert_allclose(weighted.index_.weights, plain.index_.weights)
    np.testing.assert_allclose(weighted.index_.omega, plain.index_.omega, rtol=1e-6)
    with pytest.warns(tm.exceptions.InputWarning, match="real values"):
        real = tm.TopicSearch(3, concentration=1.0).fit(X[:2000] * 0.37)
    real.partial_fit(X[2000:] * 0.37)
    means = [real.index_.X[rows].data.mean() for rows in (slice(0, 2000), slice(2000, 2300))]
    assert means[0] == pytest.approx(means[1], rel=0.05)
