"""Generators follow their laws; the docstring corpus is real, labelled and cached."""

import json

import numpy as np
import pytest

from thirdmoment.datasets import (
    docstrings,
    load_docstrings,
    make_lda_corpus,
    make_single_topic_corpus,
)


def test_lda_corpus_has_the_sizes_and_laws_it_says():
    corpus = make_lda_corpus(2000, 80, 3, mean_length=50, concentration=2.0)
    assert corpus.X.shape == (2000, 80)
    lengths = corpus.X.sum(axis=1)
    assert abs(lengths.mean() - 50) < 4 * np.sqrt(50 / 2000)
    assert lengths.min() >= 3
    np.testing.assert_allclose(corpus.concentration, np.array([0.5, 1.0, 1.5]) * 2 / 3)
    np.testing.assert_allclose(corpus.proportions.mean(axis=0), corpus.concentration / 2, atol=0.03)
    np.testing.assert_array_equal(corpus.topic_counts.sum(axis=0), corpus.X.sum(axis=0))


def test_seeds_fix_the_corpus():
    a, b = (make_lda_corpus(50, 30, 3, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(a.X.toarray(), b.X.toarray())
    c = make_lda_corpus(50, 30, 3, random_state=6)
    assert (a.X != c.X).nnz > 0


def test_single_topic_documents_have_one_topic():
    corpus = make_single_topic_corpus(100, 30, 4)
    assert set(np.unique(corpus.proportions)) == {0.0, 1.0}
    np.testing.assert_allclose(corpus.concentration.sum(), 1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv("THIRDMOMENT_CACHE", str(folder))
    yield load_docstrings(), folder
    patch.undo()


def test_docstrings_are_many_and_labelled_by_module(corpus):
    found, _ = corpus
    n, d = found.X.shape
    assert n > 3000
    assert d > 2000
    assert len(found.labels) == len(found.names) == n
    assert len(found.feature_names) == d
    assert found.X.sum(axis=1).min() >= 10
    assert {"scipy.stats", "sklearn.cluster", "numpy.random"} <= set(found.labels)
    assert max(label.count(".") for label in found.labels) == 1


def test_the_cache_is_keyed_by_versions_and_used(corpus, monkeypatch):
    found, folder = corpus
    (file,) = folder.glob("docstrings-*.json")
    assert np.__version__ in file.name
    monkeypatch.setattr(docstrings, "_collect", lambda: pytest.fail("the cache was not used"))
    again = load_docstrings()
    np.testing.assert_array_equal(again.names, found.names)


def test_a_damaged_cache_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings, "_collect", lambda: [("numpy:abs", "text")])
    path = tmp_path / "cache.json"
    path.write_text("{not json")
    assert docstrings._read_or_collect(path) == [("numpy:abs", "text")]
    assert json.loads(path.read_text()) == [["numpy:abs", "text"]]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(docstrings, "_collect", lambda: [("numpy:abs", "text")])
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert docstrings._read_or_collect(blocked / "cache.json") == [("numpy:abs", "text")]
