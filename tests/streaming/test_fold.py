"""The fold: one code path for every source of chunks."""

import numpy as np
import scipy.sparse as sp

from thirdmoment.streaming import corpus, documents, fold


class Sum:
    def __init__(self):
        self.total = []

    def update(self, chunk):
        self.total.append(chunk)
        return self

    def merge(self, other):
        self.total += other.total
        return self


def test_chunks_are_merged_in_order_on_any_number_of_threads():
    for n_threads in (1, 2, 4):
        assert fold(Sum, range(40), n_threads=n_threads).total == list(range(40))


def test_no_chunks_give_the_neutral_element():
    assert fold(Sum, []).total == []


def test_a_generator_is_walked_once():
    assert fold(Sum, (i for i in range(5)), n_threads=2).total == [0, 1, 2, 3, 4]


def test_a_corpus_keeps_rows_weights_and_halves():
    X = sp.random_array((3000, 200), density=0.5, format="csr", rng=np.random.default_rng(0))
    weights = np.arange(3000.0)
    data = corpus(X, weights)
    assert len(data.chunks) > 1
    rebuilt = sp.vstack([chunk.rows.scipy() for chunk in data])
    assert (rebuilt != X).nnz == 0
    np.testing.assert_array_equal(np.concatenate([c.weights for c in data]), weights)
    signs = np.concatenate([c.signs for c in data])
    np.testing.assert_array_equal(signs, documents(X).signs)
    single = data.astype("float32")
    assert single.chunks[0].rows.dtype == np.float32
    assert single.shape == data.shape
