"""Every format round-trips; damaged files are refused with their name."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from thirdmoment.exceptions import InvalidInput
from thirdmoment.io import load_bag_of_words

X = sp.csr_array(np.array([[2.0, 0, 1], [0, 5, 0], [0, 0, 0], [1, 1, 1]]))


def docword(matrix):
    table = matrix.tocoo()
    lines = [f"{r + 1} {c + 1} {int(v)}" for r, c, v in zip(*table.coords, table.data, strict=True)]
    return "\n".join([*map(str, (*matrix.shape, matrix.nnz)), *lines, ""])


def test_uci_files_plain_and_compressed(tmp_path):
    (tmp_path / "docword.tiny.txt").write_text(docword(X))
    (tmp_path / "vocab.tiny.txt").write_text("alpha\nbeta\ngamma\n")
    with gzip.open(tmp_path / "docword.tiny.txt.gz", "wt") as file:
        file.write(docword(X))
    for name in ("docword.tiny.txt", "docword.tiny.txt.gz"):
        found = load_bag_of_words(tmp_path / name)
        np.testing.assert_array_equal(found.X.toarray(), X.toarray())
        assert list(found.feature_names) == ["alpha", "beta", "gamma"]


def test_matrix_market_and_npz(tmp_path):
    scipy.io.mmwrite(tmp_path / "counts.mtx", X)
    sp.save_npz(tmp_path / "counts.npz", X)
    for name in ("counts.mtx", "counts.npz"):
        found = load_bag_of_words(tmp_path / name)
        np.testing.assert_array_equal(found.X.toarray(), X.toarray())
        assert found.feature_names is None


def test_a_vocabulary_of_another_file_is_refused(tmp_path):
    sp.save_npz(tmp_path / "counts.npz", X)
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(InvalidInput, match=r"2 words but counts.npz has 3 columns"):
        load_bag_of_words(tmp_path / "counts.npz")


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing.npz"):
        load_bag_of_words(tmp_path / "nothing.npz")
    (tmp_path / "docword.bad.txt").write_text("2\n3\n5\n1 1 2\n")
    with pytest.raises(InvalidInput, match=r"docword.bad.txt is not .* announces 5 lines"):
        load_bag_of_words(tmp_path / "docword.bad.txt")
