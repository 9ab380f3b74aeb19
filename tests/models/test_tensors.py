"""Topics of counts that are tensors: the same as on the host, wherever the tensors are."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment._array import devices
from thirdmoment.exceptions import InputWarning, InvalidInput
from thirdmoment.models.topics import streamed
from thirdmoment.moments.words import TripleSums

torch = pytest.importorskip("torch")
tensor_rows = pytest.importorskip("thirdmoment._array.torch_rows").tensor_rows


def as_tensor(X, dtype=np.float32):
    X = sp.csr_array(X)
    return torch.sparse_csr_tensor(
        torch.as_tensor(X.indptr), torch.as_tensor(X.indices),
        torch.as_tensor(X.data.astype(dtype)), X.shape, check_invariants=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    return tm.datasets.make_lda_corpus(1500, 200, 5)


FITS = [{"refine": "none", "weighting": "none"}, {"refine": "none"}, {"concentration": 1.0}, {}]


@pytest.mark.parametrize("given", FITS, ids=str)
def test_a_fit_of_tensors_is_the_fit_of_the_host(drawn, given):
    host = tm.LatentDirichletAllocation(5, **given).fit(drawn.X)
    dense = torch.as_tensor(drawn.X.toarray())
    for X, device in ((as_tensor(drawn.X), None), (dense, None), (drawn.X, "cpu")):
        found = tm.LatentDirichletAllocation(5, device=device, **given).fit(X)
        np.testing.assert_allclose(found.components_, host.components_, atol=2e-6)
        np.testing.assert_allclose(found.weights_, host.weights_, atol=1e-5)
        assert found.n_iter_ == host.n_iter_
        np.testing.assert_allclose(found.report_.refine_path, host.report_.refine_path, rtol=1e-5)
        if given.get("refine") != "none":
            np.testing.assert_allclose(found.topic_trust_, host.topic_trust_, atol=0.02)


def test_what_a_model_says_of_tensors_follows_them(drawn):
    host = tm.LatentDirichletAllocation(5).fit(drawn.X)
    X = as_tensor(drawn.X)
    shares = host.transform(X)
    assert isinstance(shares, torch.Tensor)
    np.testing.assert_allclose(shares.numpy(), host.transform(drawn.X), atol=1e-3)
    assert isinstance(host.score_samples(X), torch.Tensor)
    assert host.score(X) == pytest.approx(host.score(drawn.X), abs=1e-4)
    assert host.perplexity(X) == pytest.approx(host.perplexity(drawn.X), rel=1e-4)
    moved = tm.LatentDirichletAllocation(5, device="cpu").fit(drawn.X)
    assert isinstance(moved.transform(drawn.X), np.ndarray)


def test_weights_of_tensors_are_those_of_the_host(drawn):
    weights = np.random.default_rng(0).integers(0, 3, drawn.X.shape[0]).astype(float)
    given = {"concentration": 1.0, "max_refine_iter": 5}
    host = tm.LatentDirichletAllocation(5, **given).fit(drawn.X, sample_weight=weights)
    model = tm.LatentDirichletAllocation(5, **given)
    found = model.fit(as_tensor(drawn.X), sample_weight=weights)
    np.testing.assert_allclose(found.components_, host.components_, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda X: X * -1, "Negative values"),
        (lambda X: X * 0.5, "real values"),
        (lambda X: X * 1e13, "counts go to"),
        (lambda X: X[:3], "cannot show n_components=5"),
        (lambda X: X * 0, "shorter than three words"),
    ],
)
def test_tensors_that_are_no_counts_are_refused(drawn, change, text):
    X = as_tensor(change(sp.csr_array(drawn.X, dtype=float)))
    with pytest.raises(InvalidInput, match=text):
        tm.LatentDirichletAllocation(5).fit(X)


def test_indices_outside_the_matrix_are_refused(drawn):
    X = as_tensor(drawn.X)
    X = torch.sparse_csr_tensor(
        X.crow_indices(), X.col_indices() + 10**6, X.values(), X.shape, check_invariants=False
    )
    with pytest.raises(InvalidInput, match="outside"):
        tm.LatentDirichletAllocation(5).fit(X)


def test_devices_that_are_not_there_are_told_in_a_sentence(drawn):
    with pytest.raises(InvalidInput, match="is no device"):
        tm.LatentDirichletAllocation(5, device="tpu please").fit(drawn.X)
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInput, match="finds no GPU"):
            tm.LatentDirichletAllocation(5, device="cuda").fit(drawn.X)
    with pytest.raises(InvalidInput, match="leave device out"):
        tm.LatentDirichletAllocation(5, device="cpu").fit(drawn.X, seeds={"a": [0, 1]})


def test_batches_are_learned_on_the_host(drawn):
    with pytest.raises(InvalidInput, match="on the host"):
        tm.LatentDirichletAllocation(5, device="cpu").partial_fit(drawn.X)
    found = tm.LatentDirichletAllocation(5).partial_fit(as_tensor(drawn.X))
    wanted = tm.LatentDirichletAllocation(5).partial_fit(sp.csr_array(drawn.X, dtype=np.float32))
    np.testing.assert_array_equal(found.components_, wanted.components_)


def test_words_stored_twice_in_a_document_count_once(drawn):
    X = sp.coo_array(drawn.X)
    counts = X.data.astype(int)
    row, column = np.repeat(X.coords[0], counts), np.repeat(X.coords[1], counts)
    order = np.argsort(row, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=X.shape[0]))])
    parts = np.ones(len(row), np.float32), column[order].astype(np.int32), ends
    apart = sp.csr_array(parts, shape=X.shape)
    host = tm.LatentDirichletAllocation(5, concentration=1.0).fit(drawn.X)
    tensor = torch.sparse_csr_tensor(
        torch.as_tensor(ends), torch.as_tensor(parts[1]), torch.as_tensor(parts[0]), X.shape,
        check_invariants=False,
    )  # fmt: skip
    for given, device in ((apart, "cpu"), (tensor, None)):
        found = tm.LatentDirichletAllocation(5, concentration=1.0, device=device).fit(given)
        np.testing.assert_allclose(found.report_.refine_path, host.report_.refine_path, rtol=1e-5)
        assert found.perplexity(given) == pytest.approx(host.perplexity(drawn.X), rel=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.to_sparse_coo(),
        lambda X: X.to_sparse_csc(),
        lambda X: X.to_sparse_bsr((2, 2)),
        lambda X: X.clone().requires_grad_(),
        lambda X: X.to(torch.bfloat16),
    ],
    ids=["coo", "csc", "bsr", "with a graph", "bfloat16"],
)
def test_tensors_of_any_layout_are_counts(drawn, change):
    X = change(torch.as_tensor(drawn.X.toarray().astype(np.float32)))
    wanted = tm.LatentDirichletAllocation(5, refine="none").fit(as_tensor(drawn.X))
    found = tm.LatentDirichletAllocation(5, refine="none").fit(X)
    np.testing.assert_allclose(found.components_, wanted.components_, atol=1e-6)
    assert isinstance(tm.SingleTopicModel(5).fit(X).predict_proba(X), torch.Tensor)
    search = tm.TopicSearch(5, concentration=1.0).fit(X, feature_names=[str(j) for j in range(200)])
    assert search.search("3").parameters.shape == (200,)


def test_weights_of_tensors_are_checked_as_on_the_host(drawn):
    X = as_tensor(drawn.X)
    for wrong, text in ((np.full(1500, np.inf), "infinity"), ("many", "could not convert")):
        for given, device in ((X, None), (drawn.X, "cpu"), (drawn.X, None)):
            model = tm.LatentDirichletAllocation(5, device=device)
            with pytest.raises(ValueError, match=text):
                model.fit(given, sample_weight=wrong)
    model = tm.LatentDirichletAllocation(5, refine="none")
    plain = model.fit(X).components_
    np.testing.assert_array_equal(model.fit(X, sample_weight=2.0).components_, plain)
    with pytest.raises(InvalidInput, match="complex"):
        model.fit(torch.as_tensor(drawn.X.toarray()) + 0j)


def test_a_model_of_a_device_is_saved(drawn, tmp_path):
    model = tm.LatentDirichletAllocation(5, device=torch.device("cpu"), refine="none").fit(drawn.X)
    model.save(tmp_path / "topics.tm")
    again = tm.load(tmp_path / "topics.tm")
    assert again.device == "cpu"
    np.testing.assert_array_equal(again.transform(drawn.X), model.transform(drawn.X))


def test_layouts_of_cupy_become_rows(drawn):
    """Its matrices by columns have the attributes of those by rows."""
    X = sp.csc_array(drawn.X[:7])

    class Matrix:
        indptr, indices, data, shape, dtype = X.indptr, X.indices, X.data, X.shape, X.dtype
        tocsr = staticmethod(lambda: sp.csr_array(X))

    Matrix.__module__ = "cupyx.scipy.sparse._csc"
    found = tensor_rows(Matrix(), "cpu")
    np.testing.assert_array_equal(found.toarray().numpy(), X.toarray())


def test_a_search_takes_batches_of_tensors(drawn):
    host = tm.TopicSearch(5, concentration=1.0).fit(drawn.X).partial_fit(drawn.X[:100])
    for batch in (as_tensor(drawn.X[:100]), torch.as_tensor(drawn.X[:100].toarray())):
        found = tm.TopicSearch(5, concentration=1.0).fit(drawn.X).partial_fit(batch)
        ours, theirs = found.search(3).parameters, host.search(3).parameters
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_dense_tensors_are_taken_without_a_warning_of_torch():
    """It warns once, so that only a new process shows it."""
    script = (
        "import torch, thirdmoment as tm\n"
        "X = torch.as_tensor(tm.datasets.make_lda_corpus(300, 60, 3).X.toarray())\n"
        "tm.LatentDirichletAllocation(3, refine='none').fit(X)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_complex_counts_are_refused_by_searches_too(drawn):
    with pytest.raises(InvalidInput, match="complex64 instead of counts"):
        tm.TopicSearch(3).fit(as_tensor(drawn.X).to_dense().to(torch.complex64))


def test_too_little_memory_is_told(drawn, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    monkeypatch.setattr(tm.LatentDirichletAllocation, "_starts", full)
    with pytest.raises(MemoryError, match="even in small blocks"):
        tm.LatentDirichletAllocation(5).fit(as_tensor(drawn.X))


def test_blocks_shrink_where_memory_is_short_and_the_report_says_so(drawn, monkeypatch):
    whole = TripleSums.update

    def short(sums, chunk):
        if chunk.rows.shape[0] > 1000:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        return whole(sums, chunk)

    given = {"concentration": 1.0, "refine": "none"}
    plain = tm.LatentDirichletAllocation(5, **given).fit(as_tensor(drawn.X))
    assert not [one for one in plain.report_.findings if one.kind == "memory"]
    monkeypatch.setattr(TripleSums, "update", short)
    found = tm.LatentDirichletAllocation(5, **given).fit(as_tensor(drawn.X))
    np.testing.assert_allclose(found.components_, plain.components_, atol=1e-5)
    (note,) = (one for one in found.report_.findings if one.kind == "memory")
    assert "on the host once" in note.text
    assert "on the host once" in found.report_.full()


def test_topics_of_a_source_pass_over_a_device(drawn, monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLED", 400)
    host = tm.LatentDirichletAllocation(5, concentration=1.0).fit(tm.source(drawn.X))
    there = tm.LatentDirichletAllocation(5, concentration=1.0, device="cpu").fit(tm.source(drawn.X))
    np.testing.assert_allclose(there.components_, host.components_, atol=1e-4)
    assert there.report_.details["stream_passes"][-1]["what"] == "SweptCounts"


def test_a_search_is_prepared_on_a_device_and_answers_on_the_host(drawn):
    names = [f"word{j}" for j in range(200)]
    host = tm.TopicSearch(5, concentration=1.0).fit(drawn.X, feature_names=names)
    word = names[drawn.topics[2].argmax()]
    for X, device in ((as_tensor(drawn.X), None), (drawn.X, "cpu")):
        found = tm.TopicSearch(5, concentration=1.0, device=device).fit(X, feature_names=names)
        ours, theirs = found.search(word), host.search(word)
        np.testing.assert_allclose(ours.parameters, theirs.parameters, atol=1e-4)
        assert ours.weight == pytest.approx(theirs.weight, rel=1e-3)
        assert ours.report.gap_snr == pytest.approx(theirs.report.gap_snr, rel=1e-2)
        assert isinstance(found.index_.W, np.ndarray)


def test_unusable_moments_start_otherwise():
    X = np.random.default_rng(0).integers(0, 3, (40, 6))
    found = tm.LatentDirichletAllocation(5).fit(as_tensor(X))
    assert found.components_.shape == (5, 6)


def test_real_values_of_the_host_are_brought_into_units_first(drawn):
    X = sp.csr_array(drawn.X, dtype=float) * 0.37
    with pytest.warns(InputWarning, match="real values"):
        host = tm.LatentDirichletAllocation(5, concentration=1.0).fit(X)
    model = tm.LatentDirichletAllocation(5, concentration=1.0, device="cpu")
    with pytest.warns(InputWarning, match="real values"):
        model.fit(X)
    assert model.input_unit_ == host.input_unit_
    # other documents are held out: keys of real values hang on their last digits
    found, known = (tm.metrics.recovery_error(m.components_, drawn.topics) for m in (model, host))
    assert found == pytest.approx(known, rel=0.1)


def test_what_is_wrong_with_counts_of_the_host_is_told_as_on_the_host(drawn):
    X = sp.csr_array(drawn.X, dtype=float)
    X.data[7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        tm.LatentDirichletAllocation(5, device="cpu").fit(X)


def test_values_that_are_no_counts_are_refused_by_name():
    X = np.random.default_rng(0).poisson(1.0, (50, 8)).astype(float)
    for value, text in ((np.nan, "NaN"), (np.inf, "largest entry"), (-1.0, "Negative")):
        X[3, 2] = value
        with pytest.raises(InvalidInput, match=text):
            tm.LatentDirichletAllocation(2).fit(as_tensor(X, np.float64))


def test_equal_documents_show_no_topics():
    X = torch.as_tensor(np.tile([3.0, 1.0, 2.0], (50, 1)))
    with pytest.raises(InvalidInput, match="All documents are equal"):
        tm.LatentDirichletAllocation(2).fit(X)


def test_rows_of_tensors_can_be_taken_apart(drawn):
    X = sp.csr_array(drawn.X, dtype=float)
    rows = tensor_rows(X)
    mask = np.random.default_rng(0).random(X.shape[0]) > 0.6
    np.testing.assert_array_equal(rows[mask].toarray(), X[mask].toarray())
    np.testing.assert_array_equal(rows.part(20, 90).toarray(), X[20:90].toarray())
    np.testing.assert_array_equal(rows.owners(torch.arange(rows.nnz)), rows.numbers)
    np.testing.assert_array_equal(rows[mask].sum(axis=1), X[mask].sum(axis=1))


def test_words_stand_together_in_tensors_as_on_the_host(drawn):
    X = sp.csr_array(drawn.X, dtype=float)
    groups = np.array([[0, 3, 5], [5, 199, 3]])
    present = X.toarray() > 0
    joint = np.einsum("nkt,nku->ktu", present[:, groups] * 1.0, present[:, groups] * 1.0)
    np.testing.assert_array_equal(tensor_rows(X).joint_presence(groups), joint)


@pytest.mark.parametrize("shape", [(5,), (70_000,), (9_000, 3)])
def test_arrays_of_the_host_are_sent_whole(shape, monkeypatch):
    monkeypatch.setattr(devices, "SENT", 10_000)
    array = np.random.default_rng(0).standard_normal(shape)
    array.flags.writeable = False
    found = devices.sent(array, torch.device("cpu"), torch.float32)
    np.testing.assert_array_equal(found, array.astype(np.float32))


KERNELS = """
import numpy as np, scipy.sparse as sp, torch, os
from thirdmoment._array.torch_rows import tensor_rows
from thirdmoment.likelihood import tensor_documents as documents
from thirdmoment.refinement.collapsed import TensorSweeper
rng = np.random.default_rng(0)
A = rng.poisson(0.3, (40, 30)).astype(float)
A[3] = 0
X = tensor_rows(sp.csr_array(A), "cuda" if torch.cuda.is_available() else "cpu")
assert X.compiled is not None
same = lambda a, b, **k: np.testing.assert_allclose(a.cpu(), b, **{"rtol": 1e-5, **k})
Q, w, Y = rng.random((30, 5)), rng.random(40), rng.random((40, 5))
w[5] = 0
same(X.dot(Q), A @ Q)
same(X.tdot(w, Y), A.T @ (w[:, None] * Y))
same(X.gram(w, Q), A.T @ (w[:, None] * (A @ Q)))
same(X.astype("float64").dot(Q), A @ Q, rtol=1e-12)
same(X.sum(axis=1), A.sum(axis=1), rtol=1e-12)
same(X.weighted_sum(w), A.T @ w, rtol=1e-12)
out = torch.ones(30, 5, device=X.device)
X.tdot(w, Y, out)
same(out, 1 + A.T @ (w[:, None] * Y))
topics, alpha = rng.dirichlet(np.ones(30), 5), np.full(5, 0.3)
weights = torch.as_tensor(1.0 * (rng.random(40) > 0.2), device=X.device)
def everything():
    H = documents.fold_in(topics, alpha, X, n_steps=9, tol=1e-3)
    sweeper = TensorSweeper(X, weights, eta=0.1)
    counts = sweeper.sweep(sweeper.start(topics, alpha), alpha)
    return H, documents.word_log_likelihood(topics, H, X), counts.words, counts.documents
kernels = everything()
torch.use_deterministic_algorithms(True)
same(X.tdot(w, Y), A.T @ (w[:, None] * Y))
same(X.gram(w, Q), A.T @ (w[:, None] * (A @ Q)))
same(X.gram(w, Q, out), 1 + A.T @ (w[:, None] * (Y + A @ Q)))
same(X.weighted_sum(w), A.T @ w, rtol=1e-12)
for a, b in zip(kernels, everything(), strict=True):
    same(a, b.cpu(), rtol=2e-5, atol=2e-6)
torch.use_deterministic_algorithms(False)
os.environ["TRITON_INTERPRET"] = "0"
X, weights = tensor_rows(X, "cpu"), weights.cpu()
assert X.compiled is None
for a, b in zip(kernels, everything(), strict=True):
    same(a, b, rtol=2e-5, atol=2e-6)
"""


def test_kernels_do_what_plain_operations_do():
    pytest.importorskip("triton", reason="Triton is not installed: its kernels are not run")
    where = "" if torch.cuda.is_available() else "os.environ['TRITON_INTERPRET'] = '1'"
    script = f"import os; {where}\n{textwrap.dedent(KERNELS)}"
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_finds_what_the_host_finds(drawn):
    host = tm.LatentDirichletAllocation(5).fit(drawn.X)
    for X, device in ((as_tensor(drawn.X).cuda(), None), (drawn.X, "cuda")):
        found = tm.LatentDirichletAllocation(5, device=device).fit(X)
        ours, theirs = (
            tm.metrics.recovery_error(m.components_, drawn.topics) for m in (found, host)
        )
        assert ours == pytest.approx(theirs, rel=0.05)
    assert found.transform(drawn.X).shape == (1500, 5)
