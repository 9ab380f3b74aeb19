"""Files of every format are the same rows, in chunks of any size; what is broken is named."""

import gzip
import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput
from thirdmoment.io import entries, sources
from thirdmoment.streaming import Source


def counts(n=300, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.2, size=(n, d)) * (rng.random((n, 1)) < 0.9)
    X[-1, -1], X[3] = 1, 0
    return sp.csr_array(X.astype(float))


X = counts()


def docword(matrix):
    table = matrix.tocoo()
    lines = [f"{r + 1} {c + 1} {int(v)}" for r, c, v in zip(*table.coords, table.data, strict=True)]
    return "\n".join([*map(str, (*matrix.shape, matrix.nnz)), *lines, ""])


def ldac(matrix):
    lines = []
    for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        pairs = zip(matrix.indices[a:b], matrix.data[a:b], strict=True)
        lines.append(" ".join([str(b - a), *(f"{j}:{int(v)}" for j, v in pairs)]))
    return "\n".join(lines) + "\n"


def written(folder):
    """The same counts in every format, plain and compressed."""
    (folder / "docword.a.txt").write_text(docword(X))
    (folder / "a.ldac").write_text(ldac(X))
    scipy.io.mmwrite(folder / "a.mtx", X.astype(int))
    small = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    dump_svmlight_file(small, np.zeros(X.shape[0]), str(folder / "a.svmlight"), zero_based=False)
    sp.save_npz(folder / "a.npz", X)
    np.save(folder / "a.npy", X.toarray())
    for name in ("docword.a.txt", "a.ldac", "a.mtx", "a.svmlight"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    return sorted(path for path in folder.iterdir())


@pytest.mark.parametrize("block", [64, 1000, 1 << 20])
def test_all_formats_give_the_same_rows_however_they_are_cut(tmp_path, monkeypatch, block):
    monkeypatch.setattr(entries, "BLOCK", max(block, 400))
    monkeypatch.setattr(sources, "CHUNK", block)
    for path in written(tmp_path):
        found = tm.source(path)
        for _ in range(2):
            start = 0
            for chunk in found:
                assert chunk.start == start
                own = chunk.rows.toarray() if sp.issparse(chunk.rows) else chunk.rows
                np.testing.assert_array_equal(own, X[start : start + len(own)].toarray())
                start += len(own)
            assert start == X.shape[0] == found.n_rows, path.name
        assert found.shape == X.shape


def test_svmlight_files_are_read_as_scikit_learn_reads_them(tmp_path):
    text = "1 qid:3 1:0.25 7:-3e-5 # a comment\n-1 2:1.2345678901234567890 3:4\n\n0 9:1e300\n"
    (tmp_path / "a.svm").write_text(text)
    expected = load_svmlight_file(str(tmp_path / "a.svm"))[0].toarray()
    np.testing.assert_array_equal(tm.source(tmp_path / "a.svm").gather().toarray(), expected)


@pytest.mark.parametrize(
    "line", ["1 2: 4:", "1 2 3", "1 1:2:3:4", "1 :2::3", "53:94", "1 2:", "1 2:3:"]
)
@pytest.mark.parametrize("beside", ["1 1:1\n", "1 1:1 # a comment\n"])  # the fast and the slow way
def test_lines_that_are_no_pairs_are_refused_both_ways(line, beside, tmp_path):
    (tmp_path / "a.svm").write_text(beside + line + "\n")
    with pytest.raises(InvalidInput, match=r"a\.svm is not a sound svmlight file"):
        tm.source(tmp_path / "a.svm").gather()


def test_comments_and_rows_without_entries_are_read(tmp_path):
    (tmp_path / "a.svm").write_text("# head\n" * 200_000 + "1 1:2\n2\n")
    np.testing.assert_array_equal(tm.source(tmp_path / "a.svm").gather().toarray(), [[2.0], [0.0]])
    (tmp_path / "b.svm").write_text("1\n2\n")
    assert tm.source(tmp_path / "b.svm").gather().shape == (2, 1)


def test_several_files_have_one_first_column_and_one_width(tmp_path):
    (tmp_path / "1.svm").write_text("1 0:5 2:7\n")
    (tmp_path / "2.svm").write_text("1 1:5 4:7\n")
    expected = [[5.0, 0, 7, 0, 0], [0, 5, 0, 0, 7]]
    np.testing.assert_array_equal(tm.source(tmp_path).gather().toarray(), expected)
    other = tmp_path / "words"
    other.mkdir()
    (other / "1.ldac").write_text("2 0:5 2:7\n")
    (other / "vocab.txt").write_text("\n".join(f"w{j}" for j in range(9)))
    assert tm.source(other / "1.ldac").gather().shape == (1, 9)  # the last words may be unused


def test_entries_beyond_the_announced_rows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK", 10)
    monkeypatch.setattr(entries, "BLOCK", 60)
    lines = "".join(f"{i} 1 1\n" for i in range(1, 200))
    (tmp_path / "docword.a.txt").write_text(f"50\n20\n199\n{lines}")
    with pytest.raises(InvalidInput, match="is not one of 1 to 50"):
        tm.source(tmp_path / "docword.a.txt").gather()


def test_threads_of_blas_are_as_they_were_between_two_chunks(tmp_path):
    import threadpoolctl

    (tmp_path / "docword.a.txt").write_text(docword(X))
    before = [one["num_threads"] for one in threadpoolctl.threadpool_info()]
    rows = iter(tm.source(tmp_path / "docword.a.txt"))
    next(rows)
    assert [one["num_threads"] for one in threadpoolctl.threadpool_info()] == before


def test_one_buffer_for_all_batches_is_copied():
    def batches():
        buffer = np.zeros((2, 2))
        for i in range(3):
            buffer[:] = i
            yield buffer

    assert tm.source(batches).gather()[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_dense_and_sparse_batches_are_gathered_together():
    found = tm.source(lambda: iter([np.eye(2), sp.csr_array(np.eye(2))])).gather()
    np.testing.assert_array_equal(found.toarray(), np.vstack([np.eye(2)] * 2))


def test_numbers_are_what_python_reads(monkeypatch):
    rng = np.random.default_rng(0)
    some = [repr(float(x)) for x in rng.normal(size=300) * 10.0 ** rng.integers(-30, 30, 300)]
    some += [
        f"{x:.{p}g}" for x, p in zip(rng.normal(size=500), rng.integers(1, 17, 500), strict=True)
    ]
    some += [str(x) for x in rng.integers(-(2**60), 2**60, 100)] + ["-0", "+7", ".5", "5.", "1E+2"]
    for begin in range(0, len(some), 7):  # blocks that the fast and those that the slow way reads
        text = (" ".join(some[begin : begin + 7]) + "\n").encode()
        found = np.concatenate([block.values for block in entries.numbers(io.BytesIO(text))])
        np.testing.assert_array_equal(found, [float(x) for x in some[begin : begin + 7]])
    for wrong in (b"1 2x\n", b"1 -\n", b"1 1e\n", b"1 1-2\n", b"1:2\n", b"0x10\n", b"1,5\n"):
        with pytest.raises(ValueError, match="could not convert"):
            list(entries.numbers(io.BytesIO(wrong)))


def test_a_folder_of_blocks_is_read_in_the_order_of_its_numbers(tmp_path):
    for i in range(12):
        sp.save_npz(tmp_path / f"block-{i}.npz", X[25 * i : 25 * (i + 1)])
    (tmp_path / "notes.txt").write_text("not rows")
    (tmp_path / "vocab.txt").write_text("\n".join(f"w{j}" for j in range(X.shape[1])))
    for given in (tmp_path, tmp_path / "block-*.npz", str(tmp_path)):
        found = tm.source(given)
        np.testing.assert_array_equal(found.gather().toarray(), X.toarray())
        assert found.words[3] == "w3"
    sp.save_npz(tmp_path / "block-12.npz", X[:, :-1])
    with pytest.raises(InvalidInput, match=r"block-12\.npz has 39 columns instead of 40"):
        tm.source(tmp_path)


def test_matrices_and_memory_maps_are_not_copied(tmp_path):
    dense = np.arange(12.0).reshape(6, 2)
    chunk = next(iter(tm.source(dense)))
    assert np.shares_memory(chunk.rows, dense)
    assert np.shares_memory(next(iter(tm.source(X))).rows.data, X.data)
    np.save(tmp_path / "a.npy", dense)
    held = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert np.shares_memory(next(iter(tm.source(held))).rows, held)


def test_a_generator_is_refused_with_both_remedies():
    with pytest.raises(InvalidInput, match=r"source\(lambda: generator\(\)\).*partial_fit"):
        tm.source(x for x in [X])


def test_chunks_of_another_width_or_with_nan_are_named():
    good = [np.ones((2, 3)) for _ in range(40)]
    wide = [*good[:5], np.ones((2, 4))]
    with pytest.raises(InvalidInput, match="Chunk 5 of logs has 4 columns instead of 3"):
        tm.source(lambda: wide, name="logs").gather()
    bad = [*good]
    bad[37] = np.array([[1.0, 2, 3], [4, np.nan, 6]])
    with pytest.raises(InvalidInput, match=r"Chunk 37 of logs holds NaN .* \(row 1, column 1"):
        tm.source(lambda: bad, name="logs").gather()
    bad[37] = sp.csr_array(bad[37])
    with pytest.raises(InvalidInput, match=r"Chunk 37 of logs holds NaN .* \(row 1, column 1"):
        tm.source(lambda: bad, name="logs").gather()
    with pytest.raises(InvalidInput, match="gives no rows"):
        tm.source(lambda: iter([])).gather()
    with pytest.raises(InvalidInput, match="returned a NoneType, not an iterator"):
        tm.source(lambda: None).gather()
    once = iter([np.ones((2, 2))])
    with pytest.raises(InvalidInput, match="not made anew"):
        tm.source(lambda: once).gather()
    with pytest.raises(InvalidInput, match="is no table: it has 1 dimensions"):
        tm.source(lambda: iter([np.ones(3)])).gather()
    with pytest.raises(InvalidInput, match="holds <U1 instead of numbers"):
        tm.source(lambda: iter([np.array([["a"]])])).gather()


def test_values_whose_sum_overflows_are_finite():
    assert tm.source(lambda: [np.full((2, 2), 1e308)]).gather().shape == (2, 2)


@pytest.mark.parametrize(
    "later", [[X[:100]], [X[:100], X[100:199]], [X[:100], X[101:201]], [X[:100], X[100:200], X[:1]]]
)
def test_a_source_that_changes_between_passes_is_refused(later):
    passes = iter([[X[:1]], [X[:100], X[100:200]], later])  # the first is asked for its width
    found = Source(lambda: iter(next(passes)))
    for _ in found:
        pass
    with pytest.raises(InvalidInput, match="gives other rows than in its first pass"):
        for _ in found:
            pass


def test_one_iterator_for_all_passes_is_refused():
    rest = iter([X[:100], X[100:200]])
    found = Source(lambda: rest, width=X.shape[1])
    for _ in found:
        pass
    with pytest.raises(InvalidInput, match="not made anew"):
        for _ in found:
            pass


BROKEN = {
    "docword.a.txt": ("2\n3\n2\n2 1 1\n1 1 1\n", "not in the order of the rows"),
    "docword.b.txt": ("2\n3\n2\n1 1 1\n3 1 1\n", "document 3 is not one of 1 to 2"),
    "docword.c.txt": ("2\n3\n1\n1 4 1\n", "word 4 is not one of 1 to 3"),
    "docword.d.txt": ("9\n3\n2\n0 1 1\n1 1 1\n", "not in the order"),
    "docword.e.txt": ("2\n3\n1\n1 1 1.5\n", "not whole"),
    "docword.f.txt": (
        "1000000000000\n3\n1000000000000\n900000000000 1 1\n",
        "900000000000 documents",
    ),
    "a.svm": ("1 5\n", "not of the form number column:value"),
    "b.svm": ("1 1.5:2\n", "not whole numbers"),
    "c.svm": ("1 99999999999:2\n", "cannot be"),
    "d.svm": ("1 1:hello\n", "d.svm is not a sound svmlight file"),
    "e.svm": ("1 -4:2\n", "not whole numbers"),
    "a.ldac": ("3 1:1 2:1\n", "another number of words"),
    "a.mtx": ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 1\n", "reads it whole"),
    "a.npy": ("hello", "a.npy is not a sound npy file"),
    "a.npz": ("hello", "a.npz is not a sound npz file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_sentence(name, tmp_path):
    text, message = BROKEN[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        tm.source(tmp_path / name).gather()


def test_a_truncated_gzip_is_named(tmp_path):
    whole = gzip.compress(docword(X).encode())
    (tmp_path / "docword.cut.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match=r"docword\.cut\.txt\.gz is not a sound docword file"):
        tm.source(tmp_path / "docword.cut.txt.gz").gather()


def test_what_is_no_source_is_said(tmp_path):
    with pytest.raises(InvalidInput, match=r"A dict is no source of rows"):
        tm.source({})
    with pytest.raises(FileNotFoundError):
        tm.source(tmp_path / "nothing.npz")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InvalidInput, match=r"format of a\.txt is not told by its name"):
        tm.source(tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match="format='csv' must be one of docword"):
        tm.source(tmp_path / "a.txt", format="csv")
    with pytest.raises(InvalidInput, match="no files of rows"):
        tm.source(tmp_path)


def test_topics_of_a_source_are_those_of_its_matrix(tmp_path):
    corpus = tm.datasets.make_lda_corpus(400, 60, 3)
    for i in range(4):
        sp.save_npz(tmp_path / f"{i}.npz", corpus.X[100 * i : 100 * (i + 1)])
    (tmp_path / "vocab.txt").write_text("\n".join(f"w{j}" for j in range(60)))
    whole = tm.LatentDirichletAllocation(3).fit(corpus.X)
    read = tm.LatentDirichletAllocation(3).fit(tm.source(tmp_path))
    np.testing.assert_array_equal(read.components_, whole.components_)
    assert read.top_words(1)[0][0].startswith("w")
    np.testing.assert_array_equal(read.transform(tm.source(tmp_path)), whole.transform(corpus.X))


def test_models_without_words_take_sources_of_either_kind(tmp_path):
    corpus = tm.datasets.make_lda_corpus(300, 40, 3)
    model = tm.LatentDirichletAllocation(3)
    shares = model.fit_transform(tm.source(corpus.X))  # no words on either side
    named = tm.source(corpus.X, vocabulary=[f"w{j}" for j in range(40)])
    np.testing.assert_array_equal(model.transform(named), shares)
    other = tm.source(corpus.X, vocabulary=[f"v{j}" for j in range(40)])
    with pytest.raises(InvalidInput, match="other words"):
        tm.LatentDirichletAllocation(3).fit(named).transform(other)
    rows = np.random.default_rng(0).normal(size=(90, 2)) + np.repeat([[0, 0], [9, 9]], 45, axis=0)
    mixture = tm.GaussianMixture(2).fit(tm.source(rows))
    np.testing.assert_array_equal(mixture.means_, tm.GaussianMixture(2).fit(rows).means_)


def test_folders_come_in_the_order_of_their_names(tmp_path):
    for folder in ("b2021", "a2020", "a2003"):
        for part in (2, 10, 1):
            place = tmp_path / folder
            place.mkdir(exist_ok=True)
            np.save(place / f"part-{part}.npy", np.full((1, 1), int(folder[1:]) * 100.0 + part))
    rows = tm.source(str(tmp_path / "*" / "*.npy")).gather()[:, 0]
    assert rows.tolist() == sorted(rows.tolist())


def test_missing_numbers_are_told_with_their_file(tmp_path):
    for i in range(3):
        X = sp.csr_array(np.ones((2, 3)))
        X.data[3] = np.nan if i == 1 else 1.0
        sp.save_npz(tmp_path / f"b{i}.npz", X)
    with pytest.raises(InvalidInput, match=r"Chunk 0 of b1.npz holds NaN .*row 1, column 0"):
        tm.source(tmp_path).gather()


def test_vocabularies_with_marks_and_long_words(tmp_path):
    (tmp_path / "docword.a.txt").write_text("1\n3\n1\n1 2 4\n")
    long = "x" * 5000
    (tmp_path / "vocab.a.txt").write_text(f"apple\n{long}\npear\n", encoding="utf-8-sig")
    found = tm.source(tmp_path / "docword.a.txt").words
    assert found == ["apple", long, "pear"]


def test_strange_numbers_and_rows_are_told_with_their_file(tmp_path):
    (tmp_path / "a.svmlight").write_text("1 1:1_0\n")
    with pytest.raises(InvalidInput, match=r"a.svmlight.*underscore"):
        tm.source(tmp_path / "a.svmlight").gather()
    (tmp_path / "docword.b.txt").write_text("2\n2\n2\n0 1 1\n1 1 1\n")
    with pytest.raises(InvalidInput, match=r"docword.b.txt is not .*counted from one"):
        tm.source(tmp_path / "docword.b.txt").gather()
    (tmp_path / "X.MTX").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n")
    assert tm.datasets.load_bag_of_words(tmp_path / "X.MTX").X.toarray() == [[2]]


def test_blocks_on_disk_are_mapped_and_checked(tmp_path):
    from thirdmoment.io.matrices import mapped_npz

    X = sp.random_array((400, 50), density=0.2, format="csr", rng=np.random.default_rng(0))
    sp.save_npz(tmp_path / "a.npz", X, compressed=False)
    sp.save_npz(tmp_path / "b.npz", X, compressed=True)
    assert (mapped_npz(tmp_path / "a.npz") != X).nnz == 0
    assert mapped_npz(tmp_path / "b.npz") is None
    for kind in (np.float32, np.int64):
        sp.save_npz(tmp_path / "c.npz", X.astype(kind), compressed=False)
        assert (tm.source(tmp_path / "c.npz").gather() != X.astype(kind)).nnz == 0
    whole = bytearray((tmp_path / "a.npz").read_bytes())
    rng = np.random.default_rng(1)
    for _ in range(60):
        broken = bytearray(whole)
        broken[rng.integers(len(broken))] ^= 1 << int(rng.integers(8))
        (tmp_path / "d.npz").write_bytes(broken)
        try:
            found = tm.source(tmp_path / "d.npz").gather()
        except InvalidInput:
            continue
        assert found.shape == X.shape  # a bit that nothing reads
        assert (found != X).nnz == 0
    (tmp_path / "d.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput):
        tm.source(tmp_path / "d.npz")
