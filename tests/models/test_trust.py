"""Trust of topics and of the components of every model; names of words."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics.words import ranked_words, shared_words
from thirdmoment.refinement import topic_halves
from thirdmoment.refinement.chains import two_halves
from thirdmoment.refinement.topic_halves import topic_trust, two_parts, word_overlap


@pytest.fixture(scope="module")
def corpus():
    return tm.datasets.make_lda_corpus(1500, 120, 4, mean_length=60)


@pytest.fixture(scope="module")
def fitted(corpus):
    names = [f"word{j}" for j in range(120)]
    return tm.LatentDirichletAllocation(4).fit(corpus.X, feature_names=names)


def test_word_overlap_by_hand():
    first = np.zeros((1, 20))
    first[0, :10] = 1
    second = np.roll(first, 3, axis=1)
    np.testing.assert_allclose(word_overlap(first, second), [0.7])


def test_halves_hang_on_content_alone(corpus):
    first, second = two_parts(corpus.X, 3)
    order = np.random.default_rng(0).permutation(corpus.X.shape[0])
    np.testing.assert_array_equal(two_parts(corpus.X[order], 3)[0], first[order])
    np.testing.assert_array_equal(first, ~second)
    assert 0.4 < first.mean() < 0.6


def test_halves_of_very_many_documents_are_parts_of_them(corpus, monkeypatch):
    n = corpus.X.shape[0]
    monkeypatch.setattr(topic_halves, "ENOUGH_DOCUMENTS", n // 15)
    first, second = two_parts(corpus.X, 3)  # five times as many as three topics need
    assert not (first & second).any()
    assert (first | second).mean() == pytest.approx(0.25, abs=0.05)


def test_topics_that_are_there_are_trusted_and_made_up_ones_are_not(corpus):
    made_up = np.random.default_rng(0).dirichlet(np.full(120, 0.05), size=4)
    found = [
        topic_trust(corpus.X, np.ones(1500), topics, np.full(4, 0.25), eta=0.1).mean()
        for topics in (corpus.topics, made_up)
    ]
    assert found[0] > 0.6
    assert found[0] > found[1] + 0.1


def test_rivals_that_differ_lower_the_trust(corpus):
    options = {"alpha": np.full(4, 0.25), "eta": 0.1}
    same = topic_trust(corpus.X, np.ones(1500), corpus.topics, rivals=[corpus.topics], **options)
    other = np.roll(corpus.topics, 60, axis=1)
    differs = topic_trust(corpus.X, np.ones(1500), corpus.topics, rivals=[other], **options)
    assert np.all(differs < same)


def test_trust_of_topics_is_in_the_report(fitted):
    np.testing.assert_array_equal(fitted.topic_trust_, fitted.report_.trust)
    assert np.all(fitted.topic_trust_ > 0.5)
    assert ", word" in fitted.report_.name(0)


def test_trust_does_not_hang_on_the_order_of_documents(corpus):
    order = np.random.default_rng(1).permutation(corpus.X.shape[0])
    a, b = (tm.LatentDirichletAllocation(4).fit(X) for X in (corpus.X, corpus.X[order]))
    np.testing.assert_allclose(a.topic_trust_, b.topic_trust_)


def test_a_topic_of_one_document_is_not_trusted(corpus):
    own = np.zeros((1, 140))
    own[0, 120:] = 200
    X = sp.csr_array(sp.vstack([sp.hstack([corpus.X, sp.csr_array((1500, 20))]), own]))
    model = tm.LatentDirichletAllocation(5).fit(X)
    owned = int(np.argmax(model.components_[:, 120:].sum(axis=1)))
    assert model.topic_trust_[owned] < 0.1
    assert any(f"half of topic {owned} comes" in text for text in model.report_.warnings)


def test_words_without_topics_are_grave(corpus):
    p = np.asarray(corpus.X.sum(axis=0)).ravel() / corpus.X.sum()
    X = np.random.default_rng(0).multinomial(60, p, size=1500)
    report = tm.LatentDirichletAllocation(4).fit(X).report_
    assert report.level == "grave"
    assert report.findings[0].kind == "no gain"


def test_few_documents_are_told():
    X = np.random.default_rng(0).poisson(1.0, size=(30, 20))
    model = tm.LatentDirichletAllocation(4).fit(X)
    assert np.isnan(model.topic_trust_).all()
    assert model.report_.level == "care"
    assert "fewer than 10 documents for each topic" in str(model.report_)


def test_names_reach_top_words_and_the_vocabulary(corpus, fitted):
    assert fitted.vocabulary_["word7"] == 7
    assert fitted.top_words(1)[0][0].startswith("word")
    backwards = {f"word{j}": j for j in reversed(range(120))}
    again = tm.LatentDirichletAllocation(4).fit(corpus.X, feature_names=backwards)
    assert again.top_words(3) == fitted.top_words(3)
    assert again.top_words(3, backwards) == fitted.top_words(3)
    plain = tm.SingleTopicModel(2).fit(corpus.X)
    assert plain.vocabulary_[5] == 5
    assert all(isinstance(word, int) for word in plain.top_words(2)[0])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"] * 119, "119 names, but X has 120"),
        (["a"] * 120, "'a' twice"),
        ({"a": 0, "b": 5}, "every column from 0 to 119"),
        ("words", "one for each column"),
        ({f"w{j}" for j in range(120)}, "a set, which has no order"),
    ],
)
def test_wrong_names_are_refused_before_the_fit(corpus, names, text):
    for model in (tm.LatentDirichletAllocation(4), tm.SingleTopicModel(2), tm.TopicSearch(4)):
        with pytest.raises(InvalidInput, match=text):
            model.fit(corpus.X, feature_names=names)


def test_names_in_the_place_of_the_target(corpus):
    with pytest.raises(InvalidInput, match="feature_names="):
        tm.LatentDirichletAllocation(4).fit(corpus.X, ["a"] * 120)


@pytest.mark.parametrize("relevance", [0.0, 0.6, 1.0])
def test_relevance_by_hand(fitted, relevance):
    topics, weights = fitted.components_, fitted.weights_
    mean = weights @ topics
    score = relevance * np.log(topics[1]) + (1 - relevance) * np.log(topics[1] / mean)
    expected = [f"word{j}" for j in np.argsort(-score, kind="stable")[:5]]
    assert fitted.top_words(5, relevance=relevance)[1] == expected
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        fitted.top_words(5, relevance=1.5)


def test_words_that_never_occur_come_last():
    order = ranked_words(np.array([0.5, 0.0, 0.5]), np.array([0.6, 0.0, 0.4]), 3, 0.5)
    assert order.tolist() == [2, 0, 1]


def test_words_that_lead_too_many_topics_are_named():
    topics = np.full((9, 200), 1e-4)
    for h in range(9):
        topics[h, 20 * h + 10 : 20 * h + 20] = 0.1
    topics[:4, :2] = 0.5
    names = [f"w{j}" for j in range(200)]
    (found,) = shared_words(topics, names)
    assert found.action == "Remove w0, w1, and fit again."
    assert shared_words(topics, list(range(200))) == []  # columns without names
    topics[3, 0] = 0  # w1 alone still leads four
    assert shared_words(topics, names) == []


def test_halves_of_sequences_are_disjoint_and_whole():
    lengths = np.array([500, 3, 1200, 40])
    (a, m), (b, n) = two_halves(lengths, 2, np.random.default_rng(0))
    assert len(a) == m.sum()
    assert len(b) == n.sum()
    assert sorted([*a, *b]) == list(range(1743))
    assert two_halves(np.array([50]), 2, np.random.default_rng(0)) is None


MODELS = {
    "gaussian": (lambda k: tm.GaussianMixture(k), 3),
    "kernel": (lambda k: tm.KernelMixture(k), 3),
    "views": (lambda k: tm.MultiViewMixture(k), 3),
    "chain": (lambda k: tm.GaussianHMM(k), 3),
    "subspaces": (lambda k: tm.SubspaceClustering(k, 1, affine=True), 3),
}


@pytest.mark.parametrize("name", MODELS)
def test_blobs_are_trusted_by_every_model(name):
    make, k = MODELS[name]
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 3, 90), 10)
    X = rng.normal(size=(900, 6)) * 0.5 + 4 * rng.normal(size=(3, 6))[states]
    if name == "subspaces":  # lines instead of points
        X += 5 * rng.normal(size=(900, 1)) * np.eye(6)[states]
    report = make(k).fit(X).report_
    assert report.level == "good", str(report)
    assert np.all(report.trust > 0.8)


def test_states_without_memory_are_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)) + 5 * rng.integers(0, 2, size=(2000, 1))
    report = tm.GaussianHMM(2).fit(X).report_
    assert report.level in ("care", "grave")
    assert "order is ignored" in report.findings[0].text
    assert "mixture" in report.findings[0].action


def test_one_line_is_no_mixture_of_regressions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=600)
    report = tm.MixedLinearRegression(3).fit(X, y).report_
    assert report.level in ("care", "grave")


def test_gaussian_factors_are_not_stable_and_skewed_ones_are():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 6))
    skewed = tm.IndependentFactors(4).fit(rng.exponential(size=(4000, 4)) @ mixing).report_
    assert skewed.level == "good"
    gaussian = tm.IndependentFactors(4).fit(rng.normal(size=(4000, 4)) @ mixing).report_
    assert gaussian.level in ("care", "grave")
    assert gaussian.trust.min() < skewed.trust.min()


def test_a_wide_sparse_table_is_checked_as_it_was_fitted():
    """Variances only: halves must not form covariances of hundreds of columns."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, 1.0, size=(2, 600))
    X = sp.csr_array(rng.poisson(0.2 * rates[rng.integers(2, size=600)]).astype(float))
    report = tm.MultiViewMixture(2).fit(X).report_
    assert report.level in ("good", "care", "grave")
    assert not np.isnan(report.trust).any()


def test_rows_that_stand_for_many_are_in_both_halves():
    """Whole rows in one half would leave other laws in the other."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=2000)
    p = np.array([[0.9, 0.85, 0.9], [0.1, 0.15, 0.1]])
    answers = (rng.random((2000, 3)) < p[labels]).astype(float)
    rounded = np.rint(rng.normal(size=(2000, 3)) + 4 * labels[:, None])
    for model, X in ((tm.CategoricalMixture(2), answers), (tm.KernelMixture(2), rounded),
                     (tm.GaussianMixture(2), rounded)):  # fmt: skip
        report = model.fit(X).report_
        assert report.level == "good", str(report)


def test_sequences_that_alternate_fall_into_both_halves():
    rng = np.random.default_rng(0)
    parts, lengths = [], []
    for number in range(100):
        places = [0.0] if number % 2 else [6.0, 12.0]
        states = np.repeat(rng.choice(places, 6), 10)
        parts.append(states[:, None] + rng.normal(size=(60, 1)))
        lengths.append(60)
    report = tm.GaussianHMM(3).fit(np.concatenate(parts), lengths=lengths).report_
    assert report.level == "good", str(report)


@pytest.mark.parametrize("seed", range(4))
def test_subspaces_of_noise_are_not_trusted(seed):
    X = np.random.default_rng(seed).normal(size=(600, 6))
    assert tm.SubspaceClustering(3, 2).fit(X).report_.level == "grave"


@pytest.mark.parametrize("seed", [3, 10, 11])
def test_subspaces_are_matched_before_they_are_compared(seed):
    rng = np.random.default_rng(seed)
    dims, labels = [1, 2, 3], rng.integers(3, size=900)
    bases = [np.linalg.qr(rng.normal(size=(12, p)))[0] for p in dims]
    X = np.stack([bases[h] @ rng.normal(size=dims[h]) for h in labels])
    X += 0.02 * rng.normal(size=X.shape)
    report = tm.SubspaceClustering(3, dims).fit(X).report_
    assert np.all(report.trust > 0.8)


@pytest.mark.parametrize("copies", ["rows", "weights"])
def test_documents_that_are_all_equal_are_refused(copies):
    X, weights = np.array([[3.0, 2, 1, 4, 1, 2]]), None
    if copies == "rows":
        X = np.tile(X, (200, 1))
    else:
        X, weights = np.concatenate([X, X]), np.full(2, 100.0)
    for model in (
        tm.LatentDirichletAllocation(2),
        tm.SingleTopicModel(2),
        tm.PoissonTopicModel(2, refine="auto"),
    ):
        with pytest.raises(InvalidInput, match="All documents are equal"):
            model.fit(X, sample_weight=weights)


def test_checks_do_not_draw_from_the_state_of_the_user():
    state = np.random.RandomState(3)
    model = tm.GaussianMixture(2, random_state=state)
    model._own_rng()
    assert state.randint(10**6) == np.random.RandomState(3).randint(10**6)
    fixed = tm.GaussianMixture(2, random_state=5)
    assert fixed._own_rng().integers(10**6) == fixed._own_rng().integers(10**6)
    assert fixed._own_rng().integers(10**6) != fixed._rng().integers(10**6)


def test_later_batches_leave_nothing_checked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 3)) + 6 * rng.integers(2, size=(12_000, 1))
    model = tm.GaussianMixture(2).partial_fit(X[:6000])
    assert model.report_.level == "good"
    model.partial_fit(X[6000:])
    assert str(model.report_) == "Not checked: later batches have changed the fit."


def test_a_limit_of_no_steps_is_no_lack_of_data(corpus):
    report = tm.SingleTopicModel(3, max_refine_iter=0).fit(corpus.X).report_
    assert report.level == "unknown"


def test_copies_of_documents_add_no_trust(corpus):
    once, twice = (
        tm.LatentDirichletAllocation(6).fit(corpus.X, sample_weight=np.full(1500, weight))
        for weight in (1.0, 2.0)
    )
    assert twice.topic_trust_.mean() < once.topic_trust_.mean() + 0.1


def test_a_vectorizer_gives_its_words():
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(["a cat and a dog", "a dog and a bird", "bonds and stocks"] * 40)
    model = tm.LatentDirichletAllocation(2)
    for names in (vectorizer, vectorizer.get_feature_names_out, vectorizer.vocabulary_):
        assert "dog" in model.fit(X, feature_names=names).vocabulary_


def test_names_of_a_frame_and_names_given_must_agree():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X = pandas.DataFrame(np.random.default_rng(0).poisson(2.0, (100, 4)), columns=list("abcd"))
    with pytest.raises(InvalidInput, match="Column 1 of X is named 'b'"):
        tm.LatentDirichletAllocation(2).fit(X, feature_names=list("acbd"))


def test_a_generator_is_no_corpus():
    with pytest.raises(InvalidInput, match="X is a generator"):
        tm.LatentDirichletAllocation(2).fit(text for text in ["a b", "c d"])


@pytest.mark.parametrize("unit", [1.0, 2.54])
def test_a_rounded_column_is_as_many_rows_as_it_has(unit):
    rng = np.random.default_rng(0)
    ages = np.rint(np.concatenate([rng.normal(25, 4, 1000), rng.normal(60, 6, 1000)]))
    report = tm.GaussianMixture(2).fit(unit * ages[:, None]).report_
    assert report.level == "good", str(report)


def test_sorted_groups_are_not_called_one_state():
    """Three stretches: too few changes of state to tell anything about their order."""
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 5.0, 10.0], 50)[:, None] + rng.normal(size=(150, 1))
    report = tm.GaussianHMM(3).fit(X).report_
    assert "Use one state" not in str(report)


def test_values_of_all_sizes_are_no_lattice():
    X = np.array([[0.0], [1e-200], [1e150], [2e150], [5.0]])
    assert np.isfinite(tm.GaussianMixture(2).fit(X).weights_).all()
