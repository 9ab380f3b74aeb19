"""Every format round-trips; damaged files are refused with their name."""

import gzip
import io
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from thirdmoment.exceptions import InvalidInput
from thirdmoment.io import entries, load_bag_of_words

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


@pytest.mark.parametrize("field", ["integer", "real", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("suffix", ["mtx", "mtx.gz"])
def test_matrix_market_files_are_read_as_scipy_reads_them(tmp_path, field, symmetry, suffix):
    Y = X[:3] + X[:3].T if symmetry == "symmetric" else X
    scipy.io.mmwrite(tmp_path / "a.mtx", Y, field=field, symmetry=symmetry, comment="two\nlines")
    expected = scipy.io.mmread(tmp_path / "a.mtx").toarray()
    if suffix.endswith("gz"):
        (tmp_path / "a.mtx.gz").write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
    np.testing.assert_array_equal(load_bag_of_words(tmp_path / f"a.{suffix}").X.toarray(), expected)


def test_dense_matrix_market_files_and_long_files_in_blocks(tmp_path, monkeypatch):
    scipy.io.mmwrite(tmp_path / "dense.mtx", X.toarray())
    np.testing.assert_array_equal(
        load_bag_of_words(tmp_path / "dense.mtx").X.toarray(), X.toarray()
    )
    (tmp_path / "docword.txt").write_text(docword(X))
    for size in (7, 8, 9, 64):  # lines are cut anywhere
        monkeypatch.setattr(entries, "BLOCK", size)
        found = load_bag_of_words(tmp_path / "docword.txt").X
        np.testing.assert_array_equal(found.toarray(), X.toarray())


MARKET = "%%MatrixMarket matrix coordinate "
HOSTILE = {
    "docword.a.txt": ("1000000000000\n5\n1\n1 1 1\n", "1000000000000 documents"),
    "docword.b.txt": ("2\n3\n1\n-1 1 1\n", "document -1 is not one of 1 to 2"),
    "docword.c.txt": ("2\n3\n1\n1 0 1\n", "word 0 is not one of 1 to 3"),
    "docword.d.txt": ("2\n3\n1\n1 99999999999999999999 1\n", "docword.d.txt is not"),
    "docword.e.txt": ("2\n3\n1\n1 1 1\n1 2 1\n", "announces 1 lines, but there are more"),
    "docword.f.txt": ("2\n3\n1\n1 1 nan\n", "docword.f.txt is not"),
    "docword.g.txt": ("2\n99999999999\n1\n1 1 1\n", "99999999999 words cannot be"),
    "docword.h.txt": ("", "header is missing"),
    "docword.i.txt": ("2\n3\n2\n1 1 1\n1 1\n", "docword.i.txt is not"),
    "docword.j.txt": ("-2\n3\n0\n", "-2 documents"),
    "docword.l.txt": ("2\n3\n7\n" + 7 * "1 1 1\n", "2 documents and 3 words have no 7 entries"),
    "docword.m.txt": ("2\n3\n-1\n", "have no -1 entries"),
    "docword.k.txt": ("2\n3\n1\n1 1\n", "2 numbers instead of 3"),
    "a.mtx": (MARKET + "complex general\n1 1 1\n1 1 2 3\n", "'complex'"),
    "b.mtx": (
        MARKET + "real general\n9999999 9999999 1000000000000\n1 1 2\n",
        "announces 1000000000000",
    ),
    "c.mtx": (MARKET + "real general\n5 5 1\n1.5 1 2\n", "not numbers 1, 2, 3"),
    "d.mtx": (MARKET + "real general\n5 5 1\n1e300 nan 2\n", "not numbers 1, 2, 3"),
    "e.mtx": (MARKET + "real hermitian\n5 5 1\n1 1 2\n", "'hermitian'"),
    "f.mtx": (MARKET + "real symmetric\n5 4 1\n1 1 2\n", "f.mtx is not"),
    "g.mtx": ("%%MatrixMarket matrix array real general\n100000 100000\n1\n", "announces"),
    "h.mtx": ("hello", "first line"),
    "i.mtx": (MARKET + "real general\n", "header is missing"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_in_one_sentence(name, tmp_path):
    text, message = HOSTILE[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        load_bag_of_words(tmp_path / name)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InvalidInput, match=re.escape(f"{name}.gz is not")):
        load_bag_of_words(tmp_path / f"{name}.gz")


def peak_of(call):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", [b"1 1 1\n", b" ", b"\n", b"7"])
@pytest.mark.parametrize("name", ["docword.bomb.txt.gz", "bomb.mtx.gz"])
def test_a_small_file_that_unfolds_without_end_costs_one_block(body, name, tmp_path):
    head = b"2\n3\n4\n"
    if name.startswith("bomb"):
        head = (MARKET + "real general\n2 3 4\n").encode()
    with gzip.open(tmp_path / name, "wb", compresslevel=9) as file:
        file.write(head)
        for _ in range(64):
            file.write(body * (1_000_000 // len(body)))
    assert (tmp_path / name).stat().st_size < 300_000
    assert peak_of(lambda: load_bag_of_words(tmp_path / name)) < 60e6


def crafted_npz(path, **arrays):
    good = {"indices": X.indices, "indptr": X.indptr, "data": X.data, "shape": X.shape}
    np.savez_compressed(path, **{**good, "format": b"csr", **arrays})


def test_arrays_in_npz_files_must_be_what_they_say(tmp_path):
    path = tmp_path / "a.npz"
    crafted_npz(path, data=X.data.astype(complex))
    with pytest.raises(InvalidInput, match="complex"):
        load_bag_of_words(path)
    crafted_npz(path, indices=X.indices - 1)
    with pytest.raises(InvalidInput, match="sound sparse matrix"):
        load_bag_of_words(path)
    coo = {"row": np.array([0]), "col": np.array([0]), "data": np.ones(1), "format": b"coo"}
    crafted_npz(path, **coo, shape=(10**12, 3))
    with pytest.raises(InvalidInput, match="1000000000000 documents"):
        load_bag_of_words(path)
    crafted_npz(path, data=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match=r"a\.npz is not"):
        load_bag_of_words(path)


def test_an_array_whose_header_promises_terabytes_is_not_allocated(tmp_path):
    path = tmp_path / "a.npz"
    crafted_npz(path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    parts["data.npy"] = header.getvalue() + b"\0" * 80
    with zipfile.ZipFile(path, "w") as new:
        for name, content in parts.items():
            new.writestr(name, content)
    assert peak_of(lambda: load_bag_of_words(path)) < 10e6
    for cut in (10, 200, 400):
        (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:cut])
        with pytest.raises(InvalidInput, match=r"cut\.npz is not"):
            load_bag_of_words(tmp_path / "cut.npz")


def test_a_vocabulary_that_is_no_text(tmp_path):
    sp.save_npz(tmp_path / "counts.npz", X)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe\n\xfa\nb")
    with pytest.raises(InvalidInput, match=r"vocab\.txt"):
        load_bag_of_words(tmp_path / "counts.npz")


def test_a_gzipped_vocabulary_is_read(tmp_path):
    (tmp_path / "docword.tiny.txt").write_text("1\n3\n1\n1 2 4\n")
    (tmp_path / "vocab.tiny.txt.gz").write_bytes(gzip.compress(b"alpha\nbeta\r\ngamma\n"))
    found = load_bag_of_words(tmp_path / "docword.tiny.txt")
    assert found.feature_names.tolist() == ["alpha", "beta", "gamma"]


def test_a_vocabulary_without_end_is_refused_in_little_memory(tmp_path):
    (tmp_path / "docword.tiny.txt").write_text("1\n3\n1\n1 2 4\n")
    vocabulary = tmp_path / "words.gz"
    vocabulary.write_bytes(gzip.compress(b"word\n" * 20_000_000, compresslevel=1))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="more than 3 words"):
        load_bag_of_words(tmp_path / "docword.tiny.txt", vocabulary=vocabulary)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"alpha\nbeta\ngamma\n")[:-12])
    with pytest.raises(InvalidInput, match=r"cut\.gz"):
        load_bag_of_words(tmp_path / "docword.tiny.txt", vocabulary=cut)


def test_lines_of_all_systems_and_words_of_no_length(tmp_path):
    (tmp_path / "docword.tiny.txt").write_text("1\n3\n1\n1 2 4\n")
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_bytes(b"alpha\rbeta\rgamma\r")
    found = load_bag_of_words(tmp_path / "docword.tiny.txt", vocabulary=vocabulary)
    assert found.feature_names.tolist() == ["alpha", "beta", "gamma"]
    vocabulary.write_bytes(b"a" * 25_000 + b"\n")
    with pytest.raises(InvalidInput, match="more than 10000 letters"):
        load_bag_of_words(tmp_path / "docword.tiny.txt", vocabulary=vocabulary)
