"""What a reading and a newcomer's trial of the searches found, each as a test."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
import threadpoolctl

from thirdmoment import (
    GaussianSearch,
    MixedLinearRegression,
    RegressionSearch,
    SubspaceClustering,
    SubspaceSearch,
    TopicSearch,
)
from thirdmoment.datasets import make_gaussian_mixture, make_lda_corpus
from thirdmoment.exceptions import InputWarning, InvalidInput, ThirdMomentError


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(2000, 300, 4)


def subspaces(scale=1.0, k=4, p=3, n=4000):
    rng = np.random.default_rng(0)
    bases = [np.linalg.qr(rng.standard_normal((20, p)))[0] for _ in range(k)]
    labels = rng.integers(k, size=n)
    X = np.stack([bases[j] @ rng.standard_normal(p) for j in labels])
    return scale * (X + 0.1 * rng.standard_normal(X.shape)), labels, bases


@pytest.mark.parametrize("scale", [1e-80, 0.1, 10.0, 1e80])
def test_units_do_not_change_a_subspace_or_its_weight(scale):
    X, labels, bases = subspaces(scale)
    found = SubspaceSearch(4, 3).fit(X).search(X[labels == 2][:6])
    assert np.linalg.svd(found.parameters.T @ bases[2], compute_uv=False).min() > 0.99
    assert found.weight == pytest.approx(0.25, abs=0.03)
    assert found.report.details["variance"] == pytest.approx(scale**2, rel=0.15)
    assert found.informative


def test_a_near_line_is_no_trap_in_one_dimension():
    X, _, bases = subspaces(p=1, k=3)
    search = SubspaceSearch(3, 1).fit(X)
    found = search.search(direction=bases[0][:, 0] + 0.7 * bases[1][:, 0])
    assert abs(found.parameters[:, 0] @ bases[0][:, 0]) > 0.99
    assert not found.report.details["third_rule"]
    once, thrice = X[:1], np.repeat(X[:1], 3, axis=0)
    many = SubspaceSearch(3, 1).fit(X)
    np.testing.assert_allclose(
        np.abs(many.search(once).parameters), np.abs(many.search(thrice).parameters), atol=1e-8
    )
    empty = np.column_stack([X, np.zeros(len(X))])
    with pytest.raises(InvalidInput, match="no part in the data"):
        SubspaceSearch(3, 1).fit(empty).search(direction=np.eye(21)[20])


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 123.456])
def test_constant_columns_are_recognised_whatever_their_value(constant):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((5000, 3))
    slopes = np.array([[2.0, 0, 1], [0, 2, -1]])
    y = (X * slopes[rng.integers(2, size=5000)]).sum(axis=1) + 0.3 * rng.standard_normal(5000)
    wide = np.column_stack([X, np.full(5000, constant)])
    with pytest.warns(InputWarning, match="span 3 dimensions"):
        model = MixedLinearRegression(2).fit(wide, y)
    assert np.abs(model.coef_).max() < 3
    with pytest.warns(InputWarning, match="span 3 dimensions"):
        RegressionSearch(2).fit(wide, y)


def test_units_of_columns_and_of_y_do_not_matter():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((5000, 3))
    X[:, 1] += X[:, 0]
    slopes = np.array([[2.0, 0, 1], [0, 2, -1]])
    y = (X * slopes[rng.integers(2, size=5000)]).sum(axis=1) + 0.3 * rng.standard_normal(5000)
    unit = np.array([1, 1e-9, 1e3])
    plain = MixedLinearRegression(2).fit(X, y)
    for scale in (1e-60, 1e110):
        model = MixedLinearRegression(2).fit(X * unit, y * scale)
        np.testing.assert_allclose(model.coef_ * unit / scale, plain.coef_, atol=1e-4)
        assert model.lower_bound_ == pytest.approx(plain.lower_bound_ - np.log(scale), abs=1e-4)
        assert model.score(X * unit, y * scale) == pytest.approx(model.lower_bound_, abs=1e-4)


def test_small_weights_are_weights_not_rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 3))
    y = (X * np.array([[2.0, 0, 1], [0, 2, -1]])[rng.integers(2, size=3000)]).sum(axis=1)
    light = RegressionSearch(2).fit(X, y, sample_weight=np.full(3000, 1 / 3000))
    plain = RegressionSearch(2).fit(X, y)
    hint = {"direction": np.array([2.0, 0, 1])}
    np.testing.assert_allclose(
        light.search(**hint).parameters, plain.search(**hint).parameters, atol=1e-8
    )


@pytest.mark.parametrize("offset", [10.0, 1e4, 1e8])
def test_an_offset_changes_nothing_in_a_gaussian_search(offset):
    data = make_gaussian_mixture(2000, 10, 4)
    rows = data.X[data.labels == 1][:5]
    plain = GaussianSearch(4).fit(data.X)
    moved = GaussianSearch(4).fit(data.X + offset)
    a, b = plain.search(rows), moved.search(rows + offset)
    np.testing.assert_allclose(b.parameters - offset, a.parameters, atol=1e-6 * offset)
    assert b.weight == pytest.approx(a.weight, abs=1e-5)
    assert moved.report_.snr == pytest.approx(plain.report_.snr, rel=1e-4)
    direction = data.means[1]
    assert moved.search(direction=direction).report.gap_snr == pytest.approx(
        plain.search(direction=direction).report.gap_snr, rel=1e-3
    )


def test_too_few_components_are_told_with_every_answer():
    data = make_gaussian_mixture(5000, 10, 5, random_state=1)
    search = GaussianSearch(3).fit(data.X)
    assert "more than 3 components" in str(search.report_)
    for j in range(5):
        found = search.search(data.X[data.labels == j][:5])
        assert not found.informative
    assert GaussianSearch(5).fit(data.X).report_.warnings == ()
    corpus = make_lda_corpus(8000, 200, 8, concentration=1.0)
    broad = TopicSearch(4, concentration=1.0).fit(corpus.X)
    assert "more than 4 components" in str(broad.report_)
    assert not broad.search(int(corpus.topics[0].argmax())).informative


def test_labels_that_are_explained_worse_than_by_all_rows_are_another_component():
    from sklearn.datasets import make_blobs

    X, labels = make_blobs(3000, 2, centers=3, random_state=3)
    found = GaussianSearch(2).fit(X).search(X[labels == 0][0])  # two columns, three groups
    assert found.report.label_score <= 0
    assert any("no better than" in reason for reason in found.report.warnings)


def test_noise_free_groups_can_be_assigned():
    X = np.repeat([[0.0, 0, 0], [4, 0, 0], [0, 4, 1]], 100, axis=0)
    search = GaussianSearch(3).fit(X)
    found = search.search_many([X[0], X[100], X[200]])
    np.testing.assert_array_equal(search.assign(X, found), np.repeat([0, 1, 2], 100))
    assert np.isfinite([one.report.label_score for one in found]).all()
    with pytest.raises(InvalidInput, match="No component"):
        search.assign(X, [])


def test_frames_of_labels_are_checked_by_name():
    pd = pytest.importorskip("pandas")
    data = make_gaussian_mixture(1000, 4, 3)
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    search = GaussianSearch(3).fit(frame)
    assert search.search(frame.head(5)).weight > 0
    with pytest.raises(ValueError, match="feature names"):
        search.search(frame[list("dcba")].head(5))
    assert SubspaceSearch(2, 1).fit(frame).search(frame.head(3)).weight > 0
    assert search.search(frame.iloc[0]).weight > 0


def test_one_component_has_no_next_one(corpus):
    found = TopicSearch(1).fit(corpus.X).search(3)
    assert found.report.gap_snr == np.inf
    assert found.report.stability == 1
    X = make_gaussian_mixture(500, 4, 1).X
    whole = GaussianSearch(1).fit(X)
    assert whole.report_.warnings == ()
    assert all(whole.search(X[i : i + 3]).informative for i in range(10))


def test_rows_of_weight_zero_keep_their_numbers(corpus):
    weight = np.ones(2000)
    weight[:1000] = 0
    search = TopicSearch(4).fit(corpus.X, sample_weight=weight)
    found = search.search(0)
    assert found.documents(5).min() >= 1000
    assert found.shares().shape == (2000,)
    rows = found.documents(3)
    by_row = search.search(documents=rows)
    by_count = search.search(documents=corpus.X[rows])
    np.testing.assert_allclose(by_row.parameters, by_count.parameters)
    with pytest.raises(InvalidInput, match="names rows"):
        search.search(documents=[1, 5000])


def test_a_loaded_search_can_be_saved_over_its_own_file(corpus, tmp_path):
    path = tmp_path / "a.search"
    TopicSearch(4).fit(corpus.X).save(path)
    loaded = TopicSearch.load(path)
    before = loaded.search(3).parameters
    TopicSearch(3).fit(corpus.X).save(path)  # the mapped file is replaced, not overwritten
    np.testing.assert_array_equal(loaded.search(3).parameters, before)
    loaded.save(path)
    np.testing.assert_array_equal(TopicSearch.load(path).search(3).parameters, before)
    assert [p.name for p in tmp_path.iterdir()] == ["a.search"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        loaded.save(tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.search", "folder"]
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InvalidInput, match="no saved model"):
        TopicSearch.load(tmp_path / "empty")


def test_real_values_equal_the_full_contraction(corpus):
    X = sp.csr_array(corpus.X) * 0.37
    with pytest.warns(InputWarning):
        search = TopicSearch(4).fit(X)
    for j in (0, 5, 40):
        fast, slow = search.index_.word(j), search.index_.direction(np.eye(300)[j])
        np.testing.assert_allclose(fast.M, slow.M, atol=1e-9 * np.abs(slow.M).max())


def test_names_may_be_integers_or_a_vocabulary(corpus):
    order = np.random.default_rng(0).permutation(300)
    plain = TopicSearch(4).fit(corpus.X)
    numbered = TopicSearch(4).fit(corpus.X, feature_names=order)
    target = int(np.flatnonzero(order == 81)[0])
    np.testing.assert_array_equal(numbered.search(81).parameters, plain.search(target).parameters)
    vocabulary = {f"w{j}": j for j in order}
    named = TopicSearch(4).fit(corpus.X, feature_names=vocabulary)
    np.testing.assert_array_equal(named.search("w81").parameters, plain.search(81).parameters)
    with pytest.raises(InvalidInput, match="every column from 0 to 299 once"):
        TopicSearch(4).fit(corpus.X, feature_names=dict.fromkeys(vocabulary, 0))
    for word in (True, [[1]], None, 1.5):
        with pytest.raises(InvalidInput):
            named.search([word])
    with pytest.raises(InvalidInput, match="fit was given no words"):
        plain.search("space")
    with pytest.raises(InvalidInput, match="give a list"):
        named.search_many("w1")
    with pytest.raises(InvalidInput, match="those of words"):
        named.search(documents=corpus.X[:2], weights=[1.0])


def test_documents_may_come_in_several_shapes(corpus):
    search = TopicSearch(4, concentration=1.0).fit(corpus.X)
    rows = [corpus.X[[i]] for i in (3, 4)]
    stacked = search.search(documents=corpus.X[[3, 4]]).parameters
    np.testing.assert_allclose(search.search(documents=rows).parameters, stacked)
    np.testing.assert_allclose(search.search(documents=[3, 4]).parameters, stacked)
    mask = np.isin(np.arange(2000), [3, 4])
    np.testing.assert_allclose(search.search(documents=mask).parameters, stacked)
    with pytest.raises(InvalidInput, match="row numbers or one document"):
        search.search(documents=np.arange(300))
    with pytest.raises(InvalidInput, match="No document"):
        search.search(documents=[])
    one = search.search(documents=corpus.X[[3]].toarray()[0]).parameters
    np.testing.assert_allclose(one, search.search(documents=corpus.X[[3]]).parameters)
    with pytest.raises(InvalidInput, match="CountVectorizer"):
        search.search(documents=["some text"])


def test_relevance_brings_out_what_sets_a_topic_apart(corpus):
    search = TopicSearch(4, concentration=1.0).fit(corpus.X)
    found = search.search(int(corpus.topics[1].argmax()))
    lift = found.parameters / np.maximum(search.index_.mean, 1e-12)
    plain, apart = found.top_words(15), found.top_words(15, relevance=0.3)
    assert np.mean(lift[apart]) > np.mean(lift[plain])
    assert plain == list(np.argsort(-found.parameters, kind="stable")[:15])
    for wrong in (np.nan, -1, 2, "a"):
        with pytest.raises(InvalidInput, match="relevance"):
            found.top_words(3, relevance=wrong)


def test_few_rows_determine_their_flat():
    X = np.array([[1.0, 2, 3], [3, -1, 0.5]])
    model = SubspaceClustering(2, 1).fit(X)
    assert sorted(model.labels_) == [0, 1]
    assert model.noise_variance_ < 1e-20


def test_threads_of_the_user_leave_blas_as_it_was(corpus):
    search = TopicSearch(4).fit(corpus.X)

    def threads():
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()
                if pool["user_api"] == "blas"]  # fmt: skip

    before = threads()
    workers = [
        threading.Thread(target=lambda: [search.search(3) for _ in range(30)]) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert threads() == before


def test_answers_can_be_compared_and_kept_in_sets(corpus):
    search = TopicSearch(4).fit(corpus.X)
    a, b = search.search(3), search.search(3)
    assert a != b
    assert len({a, b, a}) == 2


@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
@pytest.mark.parametrize("kind", ["gaussian", "regression", "subspace"])
def test_random_rows_give_answers_or_the_library_s_own_errors(kind):
    rng = np.random.default_rng(11)
    answered = 0
    for _ in range(60):
        n, d = int(rng.integers(3, 120)), int(rng.integers(1, 6))
        k = int(rng.integers(1, d + 1))
        scale = 10.0 ** rng.integers(-60, 60)
        X = rng.choice([rng.standard_normal((n, d)), rng.integers(0, 3, (n, d)) * 1.0])
        X = X * scale + rng.choice([0.0, 5.0]) * scale
        y = rng.choice([X[:, 0], rng.standard_normal(n), np.zeros(n)])
        try:
            if kind == "gaussian":
                found = GaussianSearch(k).fit(X).search(X[:2])
            elif kind == "regression":
                found = RegressionSearch(k).fit(X, y).search(X[:5], y[:5])
            else:
                found = SubspaceSearch(k, 1).fit(X).search(X[:2])
        except ThirdMomentError:
            continue
        answered += 1
        assert found.informative == (not found.report.warnings)
        assert np.isfinite(found.parameters).all() or not found.informative
    assert answered >= 15


def test_a_concentration_found_and_the_same_given_answer_alike():
    """One corpus that the moments are trusted on, one (twice the topics) that they are not."""
    for topics in (10, 20):
        corpus = make_lda_corpus(2000, 300, topics, mean_length=60, concentration=0.3)
        found = TopicSearch(10).fit(corpus.X)
        assert found.index_.trusted == (topics == 10)
        given = TopicSearch(10, concentration=found.concentration_).fit(corpus.X)
        np.testing.assert_allclose(given.report_.spectrum, found.report_.spectrum, rtol=1e-12)
        for word in np.argsort(-found.index_.mean)[:5]:
            a, b = found.search(int(word)), given.search(int(word))
            np.testing.assert_allclose(a.parameters, b.parameters, atol=1e-12)
            assert a.report.warnings == b.report.warnings


@pytest.mark.parametrize("alpha0", [0.3, 1.0, 3.0])
def test_the_concentration_of_the_model_is_found(alpha0):
    corpus = make_lda_corpus(5000, 500, 8, concentration=alpha0)
    search = TopicSearch(8).fit(corpus.X)
    assert search.concentration_ == pytest.approx(alpha0, rel=0.25)
    known = TopicSearch(8, concentration=alpha0).fit(corpus.X)
    telling = corpus.topics / (corpus.topics.sum(axis=0) + 0.01)
    errors = []
    for target in range(8):
        word = int(telling[target].argmax())
        errors.append(
            [
                np.abs(s.search(word).parameters - corpus.topics[target]).sum()
                for s in (search, known)
            ]
        )
    ours, best = np.median(errors, axis=0)
    assert ours < 1.15 * best


@pytest.mark.parametrize("alpha0", [1.0, 3.0])
def test_two_topics_do_not_show_their_concentration_to_a_search(alpha0):
    search = TopicSearch(2).fit(make_lda_corpus(3000, 300, 2, concentration=alpha0).X)
    assert search.concentration_ == 1.0


def test_noise_free_topics_are_trusted():
    search = TopicSearch(6, concentration=0.0).fit(np.repeat(np.eye(6) * 10, 50, axis=0))
    assert search.index_.trusted
    found = search.search(2)
    assert found.informative
    np.testing.assert_allclose(found.parameters, np.eye(6)[2], atol=1e-8)


def test_reasons_are_about_the_topic_that_is_returned():
    """A negative word that the answer does not hold is not called held, and so for agreement."""
    corpus = make_lda_corpus(1500, 400, 20, mean_length=60)
    search = TopicSearch(8).fit(corpus.X)
    mean = search.index_.mean
    frequent = np.argsort(-mean)[:40]
    rng = np.random.default_rng(0)
    for _ in range(60):
        word, other = (int(j) for j in rng.choice(frequent, 2, replace=False))
        apart = search.search(word, negative=other)
        told = any("still holds" in reason for reason in apart.report.warnings)
        assert told == (apart.parameters[other] > mean[other])
        both = search.search([word, other])
        agree = all(both.parameters[j] > mean[j] for j in (word, other))
        assert any("do not agree" in reason for reason in both.report.warnings) != agree


def test_answers_from_documents_and_directions_are_read_on_text_too():
    corpus = make_lda_corpus(1500, 400, 20, mean_length=60)
    search = TopicSearch(8).fit(corpus.X)
    for found in (search.search(vector=np.eye(400)[5]), search.search(documents=[1, 2])):
        assert {"coherence", "lift", "overlap"} <= set(found.report.details)
