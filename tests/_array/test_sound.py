"""Sparse matrices that point outside themselves are refused at every door, before any reading."""

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment._array import check_sparse
from thirdmoment.exceptions import InvalidInput

GOOD = tm.datasets.make_lda_corpus(60, 40, 3, random_state=0).X


def broken(kind):
    X = sp.csr_array(GOOD, copy=True)
    if kind == "too large":
        X.indices[10] = 10**5
    elif kind == "negative":
        X.indices[10] = -3
    elif kind == "not ascending":
        X.indptr[4], X.indptr[5] = X.indptr[5] + 1, X.indptr[4]
    elif kind == "too long":
        X.indptr[-1] = 10**6
    elif kind == "csc":
        X = X.tocsc()
        X.indices[10] = 10**5
    elif kind == "coo":
        X = X.tocoo()
        X.coords[1][10] = 10**5
    return X


KINDS = ["too large", "negative", "not ascending", "too long", "csc", "coo"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_damage_is_seen(kind):
    with pytest.raises(InvalidInput, match=r"indices must be <|not a sound sparse matrix"):
        check_sparse(broken(kind))
    check_sparse(GOOD)


@pytest.mark.parametrize("kind", KINDS)
def test_every_door(kind, tmp_path):
    X = broken(kind)
    lda = tm.LatentDirichletAllocation(3).fit(GOOD)
    search = tm.TopicSearch(3).fit(GOOD)
    doors = [
        tm.LatentDirichletAllocation(3).fit,
        tm.SingleTopicModel(3).fit,
        tm.PoissonTopicModel(3).fit,
        tm.MultiViewMixture(2).fit,
        tm.TopicSearch(3).fit,
        lda.transform,
        lda.score,
        lda.perplexity,
        lambda X: search.search(documents=X),
        lambda X: search.search(documents=[GOOD[:1], X]),
        lambda X: tm.metrics.npmi_coherence(lda.components_, X),
        lambda X: tm.metrics.perplexity(lda.components_, X),
    ]
    for door in doors:
        with pytest.raises(InvalidInput, match=r"indices must be <|not a sound sparse matrix"):
            door(X)


def test_a_file_that_was_tampered_with(tmp_path):
    path = tmp_path / "counts.npz"
    X = broken("too large")
    np.savez(path, indices=X.indices, indptr=X.indptr, data=X.data, shape=X.shape, format=b"csr")
    with pytest.raises(InvalidInput, match=r"counts\.npz"):
        tm.datasets.load_bag_of_words(path)


def test_a_saved_search_that_was_tampered_with(tmp_path):
    for part in ("X", "rows"):
        search = tm.TopicSearch(3).fit(GOOD)
        array = search.index_.X.indices if part == "X" else search.index_.rows
        array[10] = 10**5
        search.save(tmp_path / "search")
        with pytest.raises(InvalidInput, match=r"indices must be <|not a sound sparse matrix"):
            tm.TopicSearch.load(tmp_path / "search")
