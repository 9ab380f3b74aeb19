"""All that a GPU does for models, on one that the host plays: nothing meets what is elsewhere."""

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment._array import tensor_rows, torch_rows
from thirdmoment._array.devices import is_full
from thirdmoment.likelihood.categories import Categories, CodedRows, one_hot
from thirdmoment.likelihood.documents import completed, split_counts
from thirdmoment.likelihood.packed import sequences
from thirdmoment.likelihood.tensor_chains import TensorSequences
from thirdmoment.models.topics.tensors import _range_of
from thirdmoment.refinement.chains import Observations, expectation
from thirdmoment.refinement.collapsed import TensorSweeper, document_sums

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="Triton is not installed: the GPU would run other steps")

from tests.simulated import CUDA, There, simulated_gpu  # noqa: E402

N = 60_000
LENGTHS = np.full(N // 100, 100)


def drawn(kind):
    """Rows of two or three components, or of a chain of two states."""
    rng = np.random.default_rng(0)
    if kind == "rows":
        z = rng.choice(3, N, p=[0.5, 0.3, 0.2])
        return 3 * rng.normal(size=(3, 4))[z] + rng.normal(size=(N, 4))
    if kind == "codes":
        laws, z = rng.dirichlet(np.full(5, 0.5), size=(3, 12)), rng.integers(0, 3, N)
        return (rng.random((N, 12, 1)) > np.cumsum(laws, axis=2)[z]).sum(axis=2).clip(max=4)
    state = np.cumsum(rng.random(N) < 0.15) % 2
    if kind == "symbols":
        return np.where(state == 1, rng.integers(0, 4, N), rng.integers(2, 6, N))[:, None]
    if kind == "bits":
        return (rng.random((N, 5)) < np.where(state[:, None] == 1, 0.8, 0.3)).astype(int)
    return state[:, None] * 2.0 + rng.normal(size=(N, 3))


MODELS = {
    "spherical": (tm.GaussianMixture(3), "rows"),
    "diag": (tm.GaussianMixture(3, covariance_type="diag"), "rows"),
    "full": (tm.GaussianMixture(3, covariance_type="full"), "rows"),
    "tied": (tm.GaussianMixture(3, covariance_type="tied"), "rows"),
    "codes": (tm.CategoricalMixture(3), "codes"),
    "kernels": (tm.KernelMixture(3, max_refine_iter=3), "rows"),
    "symbols": (tm.CategoricalHMM(2), "symbols"),
    "bits": (tm.BernoulliHMM(2), "bits"),
    "chain": (tm.GaussianHMM(2), "chain"),
    "full chain": (tm.GaussianHMM(2, covariance_type="full"), "chain"),
}


@pytest.fixture(autouse=True)
def alone():
    """Memory has to be given back at once, not when garbage is collected."""
    gc.disable()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tests run side by side
    yield
    torch.set_num_threads(threads)
    gc.enable()


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_gpu_are_worked_on_there(name):
    model, kind = MODELS[name]
    X = drawn(kind)
    given = {"lengths": LENGTHS} if "HMM" in type(model).__name__ else {}
    host = model.set_params(device="cpu").fit(X, **given).score(X, **given)
    with simulated_gpu() as gpu:
        model.set_params(device=None).fit(torch.as_tensor(X, device="cuda"), **given)
        assert gpu.used == 0
        there = torch.as_tensor(X, device="cuda")
        assert model.score(there, **given) == pytest.approx(host, rel=1e-9)
        for answer in (model.score_samples(there, **given), model.predict(there, **given)):
            assert isinstance(answer, There)
        assert sum(gpu.calls.values()) > 100
        del there, answer
        assert gpu.used == 0
        sent = model.set_params(device="cuda").fit(X, **given).score(X, **given)
        assert gpu.used == 0
    assert sent == pytest.approx(host, rel=1e-9)


def memory_notes(model):
    return [one.text for one in model.report_.findings if one.kind == "memory"]


@pytest.mark.parametrize("name", ["symbols", "bits", "chain"])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_one_sequence_is_fitted_in_a_small_gpu_or_on_the_host(name, share):
    model, kind = MODELS[name]
    X = drawn(kind)
    with simulated_gpu() as gpu:
        there = torch.as_tensor(X, device="cuda")
        held = gpu.used
        model.set_params(device=None).fit(there)
    whole = model.score(X)
    with simulated_gpu(memory=held + int(share * (gpu.peak - held))):
        model.fit(torch.as_tensor(X, device="cuda"))
    assert model.score(X) == pytest.approx(whole, rel=1e-9)
    assert len(memory_notes(model)) == 1


def test_rows_are_scored_in_a_small_gpu():
    model, kind = MODELS["full"]
    X = drawn(kind)
    model.set_params(device=None).fit(X)
    with simulated_gpu(memory=4 * X.nbytes) as small:
        there = torch.as_tensor(X, device="cuda")
        for scored in (model.score_samples, model.predict_proba):
            np.testing.assert_allclose(scored(there).cpu(), scored(X), rtol=1e-9, atol=1e-12)
        assert small.refusals > 0


# Shares of the memory that a fit takes beside the rows, with which it goes on: in halves, or with
# too little even for them on the host.
ENOUGH = [
    *(("spherical", 0.7), ("diag", 0.5), ("full", 0.6), ("codes", 0.5), ("codes", 0.2)),
    *(("kernels", 0.65), ("kernels", 0.3)),
    *(("symbols", 0.4), ("symbols", 0.3), ("chain", 0.8), ("chain", 0.1), ("full chain", 0.35)),
]


@pytest.mark.parametrize(("name", "share"), ENOUGH)
def test_a_fit_goes_on_in_a_small_gpu_and_says_so(name, share):
    model, kind = MODELS[name]
    X = drawn(kind)
    given = {"lengths": LENGTHS} if "HMM" in type(model).__name__ else {}
    with simulated_gpu() as gpu:
        there = torch.as_tensor(X, device="cuda")
        held = gpu.used
        model.set_params(device=None).fit(there, **given)
        whole = model.score(there, **given)
    assert memory_notes(model) == []
    with simulated_gpu(memory=held + int(share * (gpu.peak - held))) as small:
        there = torch.as_tensor(X, device="cuda")
        model.fit(there, **given)
        assert small.refusals > 0
    (note,) = memory_notes(model)
    assert "halved or kept on the host" in note
    assert model.score(X, **given) == pytest.approx(whole, rel=1e-9)


@pytest.fixture(scope="module")
def corpus():
    return tm.datasets.make_lda_corpus(1500, 200, 5)


def counts_there(X):
    parts = (torch.as_tensor(part, device="cuda") for part in (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(*parts, X.shape, device="cuda", check_invariants=False)


@pytest.mark.parametrize("given", [{}, {"concentration": 1.0}, {"refine": "none"}], ids=str)
def test_topics_of_a_gpu_are_those_of_the_host(corpus, given):
    host = tm.LatentDirichletAllocation(5, **given).fit(corpus.X)
    wanted = tm.metrics.recovery_error(host.components_, corpus.topics)
    with simulated_gpu() as gpu:
        X = counts_there(sp.csr_array(corpus.X))
        model = tm.LatentDirichletAllocation(5, **given).fit(X)
        assert model.transform(X).device == model.score_samples(X).device == CUDA
        assert model.score(X) == pytest.approx(host.score(corpus.X), abs=1e-3)
        assert isinstance(model.transform(corpus.X), np.ndarray)
        model.set_params(device="cuda").fit(corpus.X)
        assert gpu.calls["gram"] > 0
        assert (gpu.calls["sweep"] > 0) == (given.get("refine") != "none")
        del X
        assert gpu.used == 0
    found = tm.metrics.recovery_error(model.components_, corpus.topics)
    assert found == pytest.approx(wanted, rel=0.05)


def test_kernel_mixtures_of_a_gpu_are_nearly_those_of_the_host():
    """Of many rows there they are fitted as a source is, from a sample."""
    X = drawn("rows")
    host = tm.KernelMixture(3).fit(X).score(X)
    with simulated_gpu():
        found = tm.KernelMixture(3).fit(torch.as_tensor(X, device="cuda"))
    assert found.score(X) == pytest.approx(host, rel=1e-4)


def test_all_words_for_a_full_gpu_are_understood():
    told = ["CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "Triton Error [CUDA]: out of memory"]  # fmt: skip
    for text in told:
        assert is_full(RuntimeError(text))
    assert not is_full(RuntimeError("CUDA error: an illegal memory access was encountered"))


@pytest.fixture
def fixed_order():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("given", [{}, {"refine": "none"}], ids=str)
def test_topics_are_summed_in_a_fixed_order_where_torch_is_told_so(corpus, given, fixed_order):
    """No kernel that adds where others add, and no function of torch that refuses to."""
    X = sp.csr_array(corpus.X)
    host = tm.LatentDirichletAllocation(5, **given).fit(X)
    with simulated_gpu() as gpu:
        model = tm.LatentDirichletAllocation(5, **given).fit(counts_there(X))
        assert not {"gram", "tdot", "sweep"} & set(gpu.calls)
        assert (gpu.calls["sweep_words"] > 0) == (given == {})
        assert gpu.calls["sums"] > 0
    found, wanted = (tm.metrics.recovery_error(m.components_, corpus.topics) for m in (model, host))
    assert found == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize("name", ["diag", "codes", "kernels", "symbols", "chain"])
def test_rows_are_summed_in_a_fixed_order_where_torch_is_told_so(name, fixed_order):
    model, kind = MODELS[name]
    X = drawn(kind)
    given = {"lengths": LENGTHS} if "HMM" in type(model).__name__ else {}
    host = model.set_params(device="cpu").fit(X, **given).score(X, **given)
    with simulated_gpu():
        model.set_params(device=None).fit(torch.as_tensor(X, device="cuda"), **given)
    assert model.score(X, **given) == pytest.approx(host, rel=1e-9)


def test_topics_are_learned_in_a_small_gpu(monkeypatch):
    monkeypatch.setattr(torch_rows, "HELD", 100_000)  # no step alone takes most of the memory
    X = sp.csr_array(tm.datasets.make_lda_corpus(12_000, 100, 10, mean_length=12).X)
    model = tm.LatentDirichletAllocation(12, concentration=1.0, max_refine_iter=6)
    with simulated_gpu() as gpu:
        there = counts_there(X)
        held = gpu.used
        whole = model.fit(there).score(X)
    assert memory_notes(model) == []
    for share in (0.8, 0.4):
        with simulated_gpu(memory=held + int(share * (gpu.peak - held))):
            model.fit(counts_there(X))
        (note,) = memory_notes(model)
        assert "halved or kept on the host" in note
        assert model.score(X) == pytest.approx(whole, rel=1e-6)
    with simulated_gpu(memory=held), pytest.raises(MemoryError, match="too little memory"):
        model.fit(counts_there(X))


def taken_apart(X):
    return X[torch.arange(X.shape[0], device="cuda") % 10 == 0].data.cpu()


def stand_together(X):
    return X.joint_presence(np.arange(40).reshape(4, 10))


def halved(X):
    return split_counts(X, 0)[0].data.cpu()


def scored(X):
    topics = np.random.default_rng(0).dirichlet(np.ones(200), 10)
    return completed(topics, np.full(10, 0.1), X, 0, n_steps=5)[0].cpu()


def checked(X):
    return np.array(_range_of(X.data))


def summed(X):
    weights = torch.ones(X.shape[0], dtype=torch.float64, device="cuda")
    shares = torch.full((X.shape[0], 10), 0.5, device="cuda")
    return np.stack(document_sums(shares, weights))


@pytest.mark.parametrize("step", [taken_apart, stand_together, halved, scored, checked, summed])
def test_a_step_that_has_no_room_is_made_in_halves(step):
    with simulated_gpu() as gpu:
        corpus = tm.datasets.make_lda_corpus(8000, 200, 10, mean_length=60)
        X = tensor_rows(sp.csr_array(corpus.X), "cuda")
        held = gpu.peak = gpu.used
        whole, wanted = gpu.peak, step(X)
        X._numbers = None
        gpu.memory = held + int(0.8 * (gpu.peak - whole))
        found = step(X)
        assert gpu.refusals > 0
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_expected_counts_of_chains_are_made_in_halves():
    rng = np.random.default_rng(0)
    code, lengths = rng.integers(0, 6, 3000), np.array([1200, 300, 1, 999, 500])
    where, family = sequences(lengths), Categories(np.array([6]), 0.01)
    rows = [CodedRows(one_hot(np.arange(6)[:, None], family.sizes), np.ones(6))]
    parameters = np.full(2, 0.5), np.full((2, 2), 0.5), rng.dirichlet(np.ones(6), 2)
    with simulated_gpu() as gpu:
        like = torch.zeros(1, dtype=torch.float64, device="cuda")
        there = TensorSequences(where, like, torch.as_tensor(code, device="cuda"), 6)
        data = Observations(rows, code, where, there=there)
        sums, value = expectation(family, data, parameters)
        gpu.memory = gpu.used + int(0.7 * (gpu.peak - gpu.used))
        halves, again = expectation(family, data, parameters)
        assert gpu.refusals > 0
    assert again == pytest.approx(value, rel=1e-12)
    for one, other in zip(halves, sums, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_counts_of_documents_go_to_the_host_and_come_back():
    corpus, n, k = tm.datasets.make_lda_corpus(5000, 50, 10, mean_length=12), 5000, 10
    alpha = np.full(k, 0.1)
    with simulated_gpu() as gpu:
        X = tensor_rows(sp.csr_array(corpus.X), "cuda")
        sweeper = TensorSweeper(X, torch.ones(n, device="cuda", dtype=torch.float64), eta=0.1)
        whole = sweeper.start(corpus.topics, alpha)
        for _ in range(3):
            whole = sweeper.sweep(whole, alpha)
        words, documents = whole.words.cpu(), whole.documents.cpu()
        sums = document_sums(whole.documents, sweeper.weights)
        kept = whole.kept().documents
        assert kept.device == CUDA
        del whole, kept
        gpu.memory = gpu.used + n * k * 4 * 3 // 4  # three quarters of them
        counts = sweeper.start(corpus.topics, alpha)
        assert counts.documents.device.type == "cpu"
        for step in range(3):
            gpu.memory = None if step == 2 else gpu.memory
            counts = sweeper.sweep(counts, alpha)
            assert counts.documents.device.type == ("cuda" if step == 2 else "cpu")
        np.testing.assert_allclose(counts.words.cpu(), words, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(counts.documents.cpu(), documents, rtol=1e-4, atol=1e-4)
        gpu.memory = gpu.used + 1000
        assert counts.kept().documents.device.type == "cpu"
        gpu.memory = None
        for one, other in zip(document_sums(counts.documents, sweeper.weights), sums, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)


def test_topics_of_a_source_and_searches_use_the_gpu(corpus):
    names = [f"word{j}" for j in range(200)]
    with simulated_gpu() as gpu:
        source = tm.source(lambda: iter(np.split(corpus.X.toarray(), 3)))
        model = tm.LatentDirichletAllocation(5, device="cuda").fit(source)
        assert gpu.calls["gram"] > 0
        search = tm.TopicSearch(5, device="cuda").fit(corpus.X, feature_names=names)
    assert tm.metrics.recovery_error(model.components_, corpus.topics) < 0.2
    word = int(corpus.topics[2].argmax())
    found = search.search(names[word]).parameters
    assert np.abs(found - corpus.topics[2]).sum() < 0.3


def test_what_a_gpu_refuses_is_refused_here():
    """Or all the other tests would show nothing."""
    with simulated_gpu() as gpu:
        x = torch.ones(3, 3, device="cuda")
        assert (x.device.type, x.shape, float(x.sum())) == ("cuda", (3, 3), 9.0)
        for wrong in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.ones((3, 3)) @ x):
            with pytest.raises(TypeError, match="numpy"):
                wrong()
        torch.use_deterministic_algorithms(True)
        index = torch.arange(3, device="cuda")
        for sums in (lambda: x.cumsum(0), lambda: torch.bincount(index, x[0])):
            with pytest.raises(RuntimeError, match="deterministic"):
                sums()
        torch.use_deterministic_algorithms(False)
        for other in (torch.ones(3, 3), np.ones((3, 3))):
            with pytest.raises((RuntimeError, TypeError)):
                x + other
        assert gpu.waits == 1
        assert type(x.cpu()) is torch.Tensor
    with simulated_gpu(memory=100) as gpu:
        whole = torch.ones(3, 3, device="cuda")
        rows = whole[1:]  # a view
        assert gpu.used == 36
        with pytest.raises(torch.OutOfMemoryError):
            torch.cat([whole, whole])
        assert gpu.refusals == 1
        del whole
        assert gpu.used == 36
        del rows
        assert gpu.used == 0
