"""All that a GPU does for models, on one that the host plays: nothing meets what is elsewhere."""

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm

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


@pytest.fixture(scope="module")
def corpus():
    return tm.datasets.make_lda_corpus(1500, 200, 5)


def counts_there(X):
    parts = (torch.as_tensor(part, device="cuda") for part in (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(*parts, X.shape, device="cuda")


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
