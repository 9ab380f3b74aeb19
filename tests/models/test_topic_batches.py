"""Batches one after another: as good as all documents at once, and nothing is kept for ever."""

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InputWarning, InvalidInput
from thirdmoment.metrics import align, recovery_error
from thirdmoment.models.topics import streamed
from thirdmoment.starts.word_stream import StreamMoments
from thirdmoment.starts.words import moment_options, moment_start
from thirdmoment.streaming import corpus, documents

CORPUS = make_lda_corpus(6000, 200, 4, random_state=2)
X = sp.csr_array(CORPUS.X)


@pytest.fixture
def few_kept(monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLED", 1500)


def learned(batches, **options):
    model = tm.LatentDirichletAllocation(4)
    for batch in batches:
        model.partial_fit(batch, **options)
    return model


def cut(rows, size=500):
    return [rows[i : i + size] for i in range(0, rows.shape[0], size)]


def test_one_batch_is_a_fit():
    once = tm.LatentDirichletAllocation(4).partial_fit(X[:1000], feature_names=map(str, range(200)))
    plain = tm.LatentDirichletAllocation(4).fit(X[:1000])
    np.testing.assert_array_equal(once.components_, plain.components_)
    assert once.n_seen_ == 1000
    assert once.top_words(1)[0][0] == str(plain.top_words(1)[0][0])


def test_moments_of_a_stream_are_those_of_all_documents():
    """With a basis of all words nothing is lost: the same topics as in as many passes as needed."""
    small = make_lda_corpus(1500, 12, 3, random_state=0).X
    options = moment_options("none", "auto", 1, small.nnz)
    rng = np.random.default_rng(0)
    stream = StreamMoments(corpus(small[:400]), 3, rng, options)
    for batch in cut(sp.csr_array(small)[400:], 300):
        stream, captured = stream.with_batch(documents(batch))
        assert captured > 0.5
    found = stream.estimate(1.0, rng)
    whole = moment_start(corpus(small), 3, rng, alpha0=1.0, options=options)
    np.testing.assert_allclose(found.estimate.topics, whole.estimate.topics, atol=1e-8)
    np.testing.assert_allclose(found.estimate.weights, whole.estimate.weights, atol=1e-8)


def test_batches_beyond_those_kept_are_nearly_as_good_as_a_fit(few_kept):
    stream = learned(cut(X))
    plain = tm.LatentDirichletAllocation(4).fit(X)
    first = tm.LatentDirichletAllocation(4).fit(X[:1500])
    errors = [recovery_error(m.components_, CORPUS.topics) for m in (plain, stream, first)]
    assert errors[1] < 1.5 * errors[0] < errors[2]
    order = align(stream.components_, plain.components_)
    np.testing.assert_allclose(stream.weights_[order], plain.weights_, atol=0.02)
    assert stream.concentration_.sum() == pytest.approx(plain.concentration_.sum(), rel=0.1)
    assert stream._batches["kept"] is None
    assert stream.n_seen_ == 6000
    assert "later batches have changed the fit" in str(stream.report_)


def test_documents_are_not_kept(few_kept):
    import pickle

    short, long = (len(pickle.dumps(learned(cut(X[:n])))) for n in (3000, 6000))
    assert long < 1.01 * short


def test_batches_sorted_by_topic_are_told(few_kept):
    """The first documents hold one half of the words, the later ones the other."""
    empty = sp.csr_array(X[:2000].shape)
    ordered = [sp.hstack([X[:2000], empty]), sp.hstack([empty, X[2000:4000]])]
    with pytest.warns(InputWarning, match=r"unlike the documents before it.*Shuffle"):
        learned(cut(sp.csr_array(sp.vstack(ordered))))


def test_sums_do_not_mind_the_order_of_batches(few_kept):
    """Documents of nearly one topic each, sorted: what the first ones hint at is enough."""
    pure = make_lda_corpus(6000, 200, 4, random_state=2, concentration=0.1)
    ordered = np.argsort(np.argmax(pure.proportions, axis=1), kind="stable")
    errors = [
        recovery_error(learned(cut(sp.csr_array(pure.X)[order])).components_, pure.topics)
        for order in (np.arange(6000), ordered)
    ]
    assert errors[1] < 2 * errors[0]


def test_shuffled_batches_are_not_told(few_kept, recwarn):
    learned(cut(X))
    assert not [one for one in recwarn if "unlike" in str(one.message)]


def test_a_batch_that_fails_changes_nothing(few_kept):
    model = learned(cut(X[:3000]))
    before = {name: value for name, value in vars(model).items() if name != "_learned"}
    topics, state = model.components_.copy(), model._batches["added"].words.copy()
    for bad in (X[:5, :-1], -X[:5], X[:5] * 0.5, np.full((3, 200), np.nan)):
        with pytest.raises(ValueError):  # noqa: PT011  of scikit-learn, or ours
            model.partial_fit(bad)
    for bad in (0, 2, "much"):
        with pytest.raises(InvalidInput, match="decay"):
            model.partial_fit(X[:5], decay=bad)
    assert {name: value for name, value in vars(model).items() if name != "_learned"} == before
    np.testing.assert_array_equal(model.components_, topics)
    np.testing.assert_array_equal(model._batches["added"].words, state)


def test_decay_follows_a_stream_that_drifts(few_kept):
    other = make_lda_corpus(6000, 200, 4, random_state=9)
    stream = cut(X[:3000]) + cut(sp.csr_array(other.X))
    with pytest.warns(InputWarning, match="unlike"):
        steady = learned(stream)
    with pytest.warns(InputWarning, match="unlike"):
        moving = learned(stream, decay=0.5)
    errors = [recovery_error(model.components_, other.topics) for model in (steady, moving)]
    assert errors[1] < errors[0]


def test_a_fit_ends_the_stream_and_saved_models_have_no_documents(few_kept, tmp_path):
    model = learned(cut(X[:1000]))
    model.save(tmp_path / "a.tm")
    loaded = tm.load(tmp_path / "a.tm")
    np.testing.assert_array_equal(loaded.transform(X[:9]), model.transform(X[:9]))
    assert (tmp_path / "a.tm").stat().st_size < 100_000
    assert loaded.partial_fit(X[:800]).n_seen_ == 800  # anew
    model.fit(X)
    assert not hasattr(model, "n_seen_")
    assert model.partial_fit(X[:800]).n_seen_ == 800


def test_a_first_batch_of_any_size_is_a_fit(few_kept):
    for model in (tm.LatentDirichletAllocation(4), tm.SingleTopicModel(4)):
        plain = type(model)(4).fit(X[:3000])
        model.partial_fit(X[:3000])
        np.testing.assert_array_equal(model.components_, plain.components_)
        model.partial_fit(X[3000:3500])
        assert model.n_seen_ == 3500
        assert model._batches["kept"] is None
        with pytest.raises(InvalidInput, match="begun with 4 topics"):
            model.set_params(n_components=5).partial_fit(X[3500:4000])


def test_a_constant_weight_changes_nothing():
    found = []
    for weight in (1.0, 100.0):
        model = tm.LatentDirichletAllocation(4)
        for batch in (X[:1200], X[1200:1300]):
            model.partial_fit(batch, sample_weight=np.full(batch.shape[0], weight))
        found.append(model)
    assert found[1]._batches["added"].n == pytest.approx(100 * found[0]._batches["added"].n)
    np.testing.assert_allclose(found[0].components_, found[1].components_, atol=1e-3)
