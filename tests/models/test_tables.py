"""Fitted models as tables: names of columns, similarity, hierarchy, topics made one."""

import numpy as np
import pandas as pd
import pytest

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InvalidInput

CORPUS = make_lda_corpus(1500, 80, 5, random_state=3)
WORDS = [f"w{j}" for j in range(80)]


@pytest.fixture(scope="module")
def model():
    return tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS)


def test_similarity_is_the_affinity_of_all_pairs(model):
    table = model.similarity_frame()
    expected = [[np.sqrt(p * q).sum() for q in model.components_] for p in model.components_]
    np.testing.assert_allclose(table.to_numpy(), expected, atol=1e-12)
    assert list(table.columns) == list(table.index) == model.topic_labels_


def test_the_hierarchy_joins_the_most_similar_topics_first(model):
    table, near = model.hierarchy_frame(), model.similarity_frame().to_numpy().copy()
    assert len(table) == 4
    np.fill_diagonal(near, 0)
    first = sorted(map(int, np.unravel_index(near.argmax(), near.shape)))
    assert table.topics[0] == first
    assert table.distance[0] == pytest.approx(np.sqrt(1 - near.max()))
    assert table.distance.is_monotonic_increasing
    assert table.topics.iloc[-1] == list(range(5))
    for row in table.itertuples():
        assert sorted(row.left + row.right) == row.topics
    assert len(table["words"][0].split()) == 5


def test_the_tree_is_drawn_with_the_names_of_topics(model):
    figure = model.plot_hierarchy()
    shown = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert sorted(shown) == sorted(model.topic_labels_)


def test_one_topic_of_two_explains_what_both_did(model, tmp_path):
    shares = model.transform(CORPUS.X)
    renamed = tm.LatentDirichletAllocation(5).fit(CORPUS.X, feature_names=WORDS)
    renamed.rename({3: "kept", 1: "gone"})
    one = renamed.merge([1, 4], name="both")
    assert one.n_components == len(one.components_) == 4
    assert (one.topic_labels_[1], one.topic_labels_[3]) == ("both", "kept")
    size = model.word_share_[[1, 4]]
    expected = (size[0] * model.components_[1] + size[1] * model.components_[4]) / size.sum()
    np.testing.assert_allclose(one.components_[1], expected, atol=1e-12)
    for name in ("weights_", "word_share_", "concentration_"):
        was, now = getattr(model, name), getattr(one, name)
        np.testing.assert_allclose(now, [was[0], was[1] + was[4], was[2], was[3]])
    assert np.isnan(one.topic_trust_[1])
    assert not np.isnan(one.topic_trust_[[0, 2, 3]]).any()
    together = one.transform(CORPUS.X)
    np.testing.assert_allclose(together[:, 1], shares[:, 1] + shares[:, 4], atol=0.12)
    assert abs((together[:, 1] - shares[:, 1] - shares[:, 4]).mean()) < 0.01
    assert one.get_feature_names_out().shape == (4,)
    one.save(tmp_path / "one.tm")
    loaded = tm.load(tmp_path / "one.tm")
    np.testing.assert_array_equal(loaded.transform(CORPUS.X[:9]), together[:9])
    assert loaded.topic_labels_ == one.topic_labels_
    assert renamed.topic_labels_[1] == "gone"  # the model itself is as it was
    np.testing.assert_array_equal(renamed.components_, model.components_)


def test_names_point_at_topics_to_merge(model):
    named = model.merge([0, model.topic_labels_[2]])
    np.testing.assert_array_equal(named.components_, model.merge([2, 0]).components_)
    single = tm.SingleTopicModel(3).fit(CORPUS.X).merge([0, 1])
    assert single.predict_proba(CORPUS.X[:5]).shape == (5, 2)


@pytest.mark.parametrize("topics", [[0], "ab", 3, [0, 0], [0, 9], [0, "no such topic"]])
def test_what_cannot_be_merged_is_refused(model, topics):
    with pytest.raises(InvalidInput):
        model.merge(topics)


def test_independent_rates_are_not_merged():
    with pytest.raises(InvalidInput, match="vary each on their own"):
        tm.PoissonTopicModel(3).fit(CORPUS.X).merge([0, 1])


def blobs(seed=0):
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0, 0], [6, 0, 3], [0, 7, -4]])
    own = rng.integers(3, size=900)
    return pd.DataFrame(means[own] + rng.normal(size=(900, 3)), columns=["size", "age", "cost"])


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_means_and_deviations_of_a_gaussian_mixture(kind):
    model = tm.GaussianMixture(3, covariance_type=kind).fit(blobs())
    table = model.components_frame()
    assert list(table.columns[:2]) == ["weight", "trust"]
    np.testing.assert_array_equal(table[["mean size", "mean age", "mean cost"]], model.means_)
    np.testing.assert_allclose(table[["sd size", "sd age", "sd cost"]], 1.0, atol=0.15)


def frames():
    rng = np.random.default_rng(0)
    X = blobs()
    codes = pd.DataFrame(rng.integers(2, size=(300, 4)), columns=list("abcd"))
    y = np.where(rng.random(900) < 0.5, 1, -1) * (X.to_numpy() @ [1.0, 2, 3])
    return [
        (tm.MultiViewMixture(3).fit(X), "mean size"),
        (tm.CategoricalMixture(2).fit(codes), "c = 1"),
        (tm.KernelMixture(3).fit(X), "mean age"),
        (tm.IndependentFactors(2).fit(X), "age"),
        (tm.GaussianHMM(3).fit(X), "sd cost"),
        (tm.CategoricalHMM(2).fit(codes[["a"]]), "a = 0"),
        (tm.BernoulliHMM(2).fit(codes), "d"),
        (tm.MixedLinearRegression(2).fit(X, y), "noise sd"),
        (tm.SubspaceClustering(2, 1).fit(X), "share size"),
        (tm.LatentDirichletAllocation(3).fit(CORPUS.X, feature_names=WORDS), "w7"),
        (tm.GaussianMixture(2, covariance_type="block").fit(X), "sd age"),
    ]


@pytest.mark.filterwarnings("ignore")
def test_every_model_has_a_table_of_its_components():
    for fitted, column in frames():
        table = fitted.components_frame()
        assert column in table, (type(fitted).__name__, list(table))
        assert len(table) == fitted.n_components
        assert np.isfinite(table.drop(columns="trust", errors="ignore").to_numpy()).all()
        if "to 0" in table:
            assert np.allclose(table[[f"to {j}" for j in range(len(table))]].sum(axis=1), 1)


def test_words_called_weight_and_trust_hide_nothing():
    words = ["weight", "trust", *WORDS[2:]]
    model = tm.LatentDirichletAllocation(3).fit(CORPUS.X, feature_names=words)
    table = model.components_frame()
    np.testing.assert_array_equal(table["weight"], model.weights_)
    np.testing.assert_array_equal(table["trust"], model.topic_trust_)
    np.testing.assert_array_equal(table["weight_"], model.components_[:, 0])


def test_a_merged_model_has_no_report_of_the_old_topics(model):
    one = model.merge([0, 1])
    assert "topics were merged after the fit" in str(one.report_)
    assert len(one.components_frame()["trust"]) == 4


def test_searches_have_no_table():
    search = tm.TopicSearch(3).fit(CORPUS.X)
    with pytest.raises(InvalidInput, match="each search finds one"):
        search.components_frame()


def named(model, name):
    return model.rename({0: name})


@pytest.mark.parametrize("name", ["group", "time", "topic", "share", "topic 1"])
def test_a_topic_may_be_called_like_a_column(name):
    rows, groups = ["apple pear plum", "screen sound bass"] * 20, ["a", "b"] * 20
    corpus = tm.text.read(rows, group=groups, phrases=False)
    model = named(tm.LatentDirichletAllocation(2).fit(corpus), name)
    table = model.documents_frame(corpus)
    assert list(table["group"]) == groups
    shares = model.transform(corpus)
    columns = [
        column for column in table if column not in ("id", "group", "topic", "label", "share")
    ]
    np.testing.assert_array_equal(table[columns], shares)


def test_words_of_a_frame_are_no_groups():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.poisson(1.0, size=(60, 4)), columns=["groups", "times", "ids", "pear"])
    model = tm.LatentDirichletAllocation(2).fit(frame)
    assert list(model.documents_frame(frame)) == ["topic", "label", "share", "topic 0", "topic 1"]
    with pytest.raises(InvalidInput, match="have no groups"):
        model.by_group(frame)


def test_a_mark_of_a_single_column_keeps_its_name():
    rain = np.random.default_rng(0).integers(2, size=300)
    model = tm.BernoulliHMM(2).fit(pd.DataFrame({"rain": rain}))
    np.testing.assert_array_equal(model.components_frame()["rain"], model.emissionprob_[:, 0])


def test_coherence_asks_for_the_words_of_the_fit():
    corpus = tm.text.read(["apple pear plum", "screen sound bass"] * 20, phrases=False)
    model = tm.LatentDirichletAllocation(2).fit(corpus)
    other = tm.source(corpus.X[:, ::-1], vocabulary=corpus.words[::-1])
    with pytest.raises(InvalidInput, match="other words"):
        model.topics_frame(other)
    labels = model.topic_labels_
    with pytest.raises(InvalidInput, match="Two topics would have the name"):
        model.rename({0: labels[1]})


def test_groups_and_times_of_any_kind():
    corpus = tm.text.read(["apple pear plum", "screen sound bass"] * 20, phrases=False)
    model = tm.LatentDirichletAllocation(2).fit(corpus)
    numbered = model.by_group(corpus, np.arange(40) % 12)
    assert list(dict.fromkeys(numbered["group"])) == list(range(12))
    missing = model.by_group(corpus, [pd.NA, *["a"] * 39])
    assert set(missing["documents"]) == {39}
    for times in (
        [None, *["2020-03-01"] * 39],
        np.array(["NaT", *["2020-03-01"] * 39], dtype="datetime64[s]"),
    ):
        found = model.over_time(corpus, times)
        assert set(found["time"]) == {"2020"}
        assert set(found["documents"]) == {39}
    with pytest.raises(InvalidInput, match="'soon' is no date"):
        model.over_time(corpus, [None, *["soon"] * 39])


def test_equal_documents_show_one_topic():
    corpus = tm.text.read(["apple pear plum"] * 20, phrases=False)
    for model in (tm.LatentDirichletAllocation(2), tm.SingleTopicModel(2), tm.PoissonTopicModel(2)):
        with pytest.raises(InvalidInput, match=r"All documents are equal.*n_components=2"):
            model.fit(corpus)
        assert not hasattr(model, "components_")
