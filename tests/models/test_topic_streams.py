"""Topics of sources: what the same rows give in memory, in bounded memory."""

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InvalidInput
from thirdmoment.metrics import recovery_error
from thirdmoment.models.topics import streamed
from thirdmoment.streaming import Chunk
from thirdmoment.streaming.source import from_matrix

CORPUS = make_lda_corpus(3000, 150, 4, random_state=1)
X = sp.csr_array(CORPUS.X)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLED", 800)


def in_chunks(rows, size):
    return tm.source(lambda: (rows[i : i + size] for i in range(0, rows.shape[0], size)))


@pytest.mark.parametrize("weighting", ["auto", "none"])
def test_moments_do_not_depend_on_where_the_rows_are(weighting):
    def fitted(data):
        return tm.LatentDirichletAllocation(4, refine="none", weighting=weighting).fit(data)

    plain = fitted(X)
    same = fitted(from_matrix(X))  # the boundaries of the fit in memory
    for name in ("components_", "weights_", "concentration_"):
        np.testing.assert_allclose(getattr(same, name), getattr(plain, name), atol=1e-9)
    for size in (333, 3000):
        other = fitted(in_chunks(X, size))
        np.testing.assert_allclose(other.components_, plain.components_, atol=1e-7)
        assert other.mean_length_ == pytest.approx(plain.mean_length_)


def test_copies_of_documents_are_in_one_half_as_in_memory():
    twice = sp.csr_array(sp.vstack([X[:1500], X[:1500]]))
    plain = tm.LatentDirichletAllocation(4, refine="none").fit(twice)
    other = tm.LatentDirichletAllocation(4, refine="none").fit(in_chunks(twice, 700))
    np.testing.assert_allclose(other.components_, plain.components_, atol=1e-7)
    ours, theirs = (m.report_.details["unexplained_over_noise"] for m in (other, plain))
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_refined_topics_are_nearly_those_of_all_documents():
    plain = tm.LatentDirichletAllocation(4).fit(X)
    stream = tm.LatentDirichletAllocation(4).fit(in_chunks(X, 500))
    alone = tm.LatentDirichletAllocation(4).fit(X[:800])
    test = make_lda_corpus(500, 150, 4, random_state=1).X
    assert stream.score(test) == pytest.approx(plain.score(test), rel=5e-3)
    errors = [recovery_error(m.components_, CORPUS.topics) for m in (plain, stream, alone)]
    assert errors[1] < (errors[0] + errors[2]) / 2
    assert np.isfinite(stream.topic_trust_).all()


def test_the_sample_is_the_same_however_the_source_is_cut():
    found = []
    for size in (170, 1000):
        seen = streamed.Look()
        for a in range(0, X.shape[0], size):
            seen.merge(streamed.Look().update(Chunk(X[a : a + size], a)))
        found.append(seen.sample.rows())
    assert found[0].shape == (800, 150)
    assert (found[0] != found[1]).nnz == 0


def test_every_pass_is_told():
    model = tm.LatentDirichletAllocation(4).fit(in_chunks(X, 500))
    passes = model.report_.details["stream_passes"]
    kinds = [one["what"] for one in passes]
    assert kinds[:2] == ["Look", "WordSums"]
    assert kinds.count("TripleSums") == 1
    assert 1 <= kinds.count("SweptCounts") <= 5
    assert all(one["seconds"] > 0 and one["bytes"] == 12 * X.nnz for one in passes)


def test_small_sources_are_read_into_memory():
    model = tm.LatentDirichletAllocation(4).fit(in_chunks(X[:700], 100))
    plain = tm.LatentDirichletAllocation(4).fit(X[:700])
    np.testing.assert_array_equal(model.components_, plain.components_)
    assert "stream_passes" not in model.report_.details


def test_what_a_stream_cannot_hold_is_refused_and_nothing_changes():
    model = tm.LatentDirichletAllocation(4).fit(X)
    before = model.components_
    bad = X.copy()
    bad.data = bad.data.copy()
    bad.data[-5] = -1
    cases = [
        (in_chunks(bad, 500), "negative values"),
        (in_chunks(X * 0.5, 500), "real values where word counts"),
        (in_chunks(X * 0, 500), "holds no words"),
    ]
    for source, message in cases:
        with pytest.raises(InvalidInput, match=message):
            model.fit(source)
    with pytest.raises(InvalidInput, match="leave sample_weight out"):
        model.fit(in_chunks(X, 500), sample_weight=np.ones(3000))
    assert model.components_ is before


def test_a_source_that_changes_in_a_later_pass_is_refused():
    passes = iter([X, X, X, X[::-1]])
    source = tm.source(lambda: iter([next(passes)]))
    with pytest.raises(InvalidInput, match="gives other rows than in its first pass"):
        tm.LatentDirichletAllocation(4).fit(source)


def test_words_seeds_and_texts_come_along(tmp_path):
    words = [f"w{j}" for j in range(150)]
    named = words[int(np.argmax(CORPUS.topics[2] ** 2 / CORPUS.topics.sum(axis=0)))]
    source = tm.source(X, vocabulary=words)
    model = tm.LatentDirichletAllocation(4).fit(source, seeds={"second": [named]})
    assert model.topic_labels_[0] == "second"
    assert np.argmin(np.abs(CORPUS.topics - model.components_[0]).sum(axis=1)) == 2
    model.save(tmp_path / "a.tm")
    np.testing.assert_array_equal(tm.load(tmp_path / "a.tm").transform(source), model.transform(X))


def test_an_interrupt_in_a_pass_leaves_the_model_as_it_was():
    count = [0]

    def batches():
        count[0] += 1
        yield X[:1500]
        if count[0] == 5:
            raise KeyboardInterrupt
        yield X[1500:]

    model = tm.LatentDirichletAllocation(4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(tm.source(batches))
    assert not hasattr(model, "components_")


def test_empty_documents_and_copies_do_not_fill_the_sample():
    """Keys by content would take all copies of a document, or none."""
    empty = sp.csr_array((2000, 150))
    found = tm.LatentDirichletAllocation(4).fit(in_chunks(sp.csr_array(sp.vstack([X, empty])), 500))
    assert recovery_error(found.components_, CORPUS.topics) < 0.3
    copies = sp.csr_array(sp.vstack([X, *[X[:1]] * 900]))
    seen = streamed.Look().update(Chunk(copies, 0)).sample.rows()
    share = np.mean([(row != X[[0]]).nnz == 0 for row in (seen[[i]] for i in range(800))])
    assert share == pytest.approx(901 / 3900, abs=0.06)


def test_single_precision_and_names_come_back():
    import pandas as pd

    source = in_chunks(sp.csr_array(X, dtype=np.float32), 500)
    assert (
        tm.LatentDirichletAllocation(4, refine="none").fit(source).components_.dtype == np.float32
    )
    frame = pd.DataFrame(X.toarray(), columns=[f"w{j}" for j in range(150)])
    for rows in (frame, frame[:600]):  # streamed, and read into memory
        chunks = tm.source(lambda rows=rows: (rows[i : i + 500] for i in range(0, len(rows), 500)))
        model = tm.LatentDirichletAllocation(4).fit(chunks)
        assert model.words_[:2] == ["w0", "w1"]
        with pytest.raises(ValueError, match="feature names"):
            model.transform(frame[frame.columns[::-1]])
