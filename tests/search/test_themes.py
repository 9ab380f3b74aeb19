"""The verdict of the words of an answer: each reason, with values worked out by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.exact.search import lda_documents
from thirdmoment import TopicSearch
from thirdmoment.datasets import load_docstrings, make_lda_corpus
from thirdmoment.recovery.search import whitened_search
from thirdmoment.search.themes import Theme, read_theme, theme_doubts

CLEAR = Theme(coherence=0.3, lift=2.0, rank=1, overlap=1.0)


def test_a_clear_theme_raises_no_doubt():
    assert theme_doubts(CLEAR) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"coherence": 0.1}, r"mean NPMI 0.1, 0.15 wanted\): there is no clear theme"),
        ({"coherence": np.nan}, "there is no clear theme"),
        ({"coherence": 0.7}, r"mean NPMI 0.7, at most 0.6 wanted\): this looks like a text that"),
        ({"lift": 1.5}, r"mean log lift 1.5, 1.7 wanted\): the word has no theme"),
        ({"rank": 11}, "The hint comes only 11th among the words"),
        ({"documents": 14}, r"Only 14 documents hold it \(15 wanted\)"),
        ({"overlap": 0.4}, "Only 40% of the top words stay under half or twice the concentration"),
    ],
)
def test_each_doubt_says_what_was_found(change, text):
    import re

    (found,) = theme_doubts(CLEAR._replace(**change))
    assert re.search(text, found)


@pytest.fixture(scope="module")
def text():
    """More topics than the search is told: the moments are not borne out."""
    corpus = make_lda_corpus(1500, 400, 20, mean_length=60)
    return TopicSearch(8).fit(corpus.X), corpus


def test_words_are_read_from_the_documents(text):
    search, corpus = text
    index = search.index_
    law = np.zeros(400)
    law[[3, 7, 11]] = [0.5, 0.3, 0.2]
    other = np.zeros(400)
    other[[3, 7, 20]] = [0.5, 0.3, 0.2]
    theme = read_theme(law, index, [7], [law, other])
    assert theme.rank == 2
    # of ten places, three words and seven zeros (in column order) and the same but for one word
    assert theme.overlap == pytest.approx(0.9)
    present = (corpus.X[:, [3, 7]].toarray() > 0).mean(axis=0)
    np.testing.assert_allclose(index.present(np.array([3, 7])).toarray().mean(axis=0), present)


def test_answers_on_text_carry_their_theme(text):
    search, _ = text
    found = search.search(5)
    for name in ("coherence", "lift", "overlap"):
        assert np.isfinite(found.report.details[name])
    assert found.informative == (not found.report.warnings)
    assert found.parameters.sum() == pytest.approx(1)
    assert found.parameters.min() >= 0


def test_words_of_few_documents_are_never_clear(text):
    search, corpus = text
    held = np.diff(corpus.X.tocsc().indptr)
    some = np.random.default_rng(0).permutation(np.flatnonzero((held >= 5) & (held < 60)))[:40]
    answers = {j: search.search(int(j)) for j in some}
    assert not any(found.informative for j, found in answers.items() if held[j] < 15)
    for j, found in answers.items():
        assert any(text.startswith("Only") and "documents hold it" in text
                   for text in found.report.warnings) == (held[j] < 15)  # fmt: skip
    assert {held[j] < 15 for j in some} == {False, True}


def test_documents_of_a_hint_hold_its_words_and_no_negative_one(text):
    search, corpus = text
    has = corpus.X.toarray() > 0
    rows = search.index_.documents_with([5, 9], [2])
    np.testing.assert_array_equal(rows, np.flatnonzero((has[:, 5] | has[:, 9]) & ~has[:, 2]))


@pytest.mark.parametrize("other", [0.3, 1.0, 4.0])
def test_another_concentration_within_the_index_is_that_of_another_fit(other):
    """In an exact population the k directions do not depend on the concentration assumed."""
    rng = np.random.default_rng(3)
    topics, alpha = rng.dirichlet(np.full(5, 0.6), size=3), np.array([0.9, 0.5, 0.3])
    X, probability = lda_documents(topics, alpha)
    fits = [
        TopicSearch(3, concentration=a0, weighting="none").fit(X, sample_weight=1e6 * probability)
        for a0 in (2.0, other)
    ]
    here, there = (fit.index_ for fit in fits)
    for word in range(5):
        a = here.under(other, here.word(word))
        query = there.word(word)
        b = whitened_search(query.M, there.m_w, there.unwhitener, query.v_w)
        np.testing.assert_allclose(a.component, b.component, atol=1e-7)
        assert a.weight == pytest.approx(b.weight, abs=1e-7)
        assert a.scores[0] == pytest.approx(b.scores[0], abs=1e-7)


def test_a_query_combines_linearly(text):
    search, _ = text
    first, second = search.index_.word(1), search.index_.word(2)
    both = first.combined([second], np.array([0.5, 2.0]))
    np.testing.assert_allclose(both.M, 0.5 * first.M + 2 * second.M)
    assert both.mean_score == pytest.approx(0.5 * first.mean_score + 2 * second.mean_score)


def test_a_saved_search_answers_alike(text, tmp_path):
    search, _ = text
    search.save(tmp_path / "corpus.search")
    again = TopicSearch.load(tmp_path / "corpus.search")
    a, b = search.search([5, 9], negative=2), again.search([5, 9], negative=2)
    np.testing.assert_array_equal(a.parameters, b.parameters)
    assert a.report.warnings == b.report.warnings


def test_real_values_are_sharpened_too():
    X = sp.csr_array(make_lda_corpus(600, 100, 12, mean_length=40).X)
    with pytest.warns(UserWarning, match="real values"):
        search = TopicSearch(5).fit(X * 0.7)
    assert search.search(3).parameters.sum() == pytest.approx(1)


def test_few_documents_find_others_of_their_package():
    corpus = load_docstrings()
    search, labels = TopicSearch(30).fit(corpus.X), np.array(corpus.labels)
    found = []
    for name in ("scipy.stats", "numpy.random", "scipy.spatial", "sklearn.preprocessing"):
        rows = np.random.default_rng(0).choice(np.flatnonzero(labels == name), 8, replace=False)
        order = [i for i in search.search(documents=rows).documents(28) if i not in rows]
        found.append(np.mean(labels[order[:20]] == name))
    # of moments alone one of these is never found, another one in every fiftieth document
    assert np.mean(found) > 0.7
    assert min(found) > 0.3
