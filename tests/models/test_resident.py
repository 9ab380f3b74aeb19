"""Many rows that are tensors, or sent to a device: the fit of the host, in its likelihood."""

import sys
import threading

import numpy as np
import pytest

import thirdmoment as tm
from thirdmoment.datasets import make_gaussian_mixture
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.gaussians import GaussianRows
from thirdmoment.likelihood.mixture import BothChunks, ExpectedSums
from thirdmoment.models.mixtures import gaussian_propose
from thirdmoment.moments.sequences import Symbols

torch = pytest.importorskip("torch")
streaming_fold = sys.modules["thirdmoment.streaming.fold"]

FEW_STEPS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N = 60_000  # a sample of the rows is not everything


@pytest.fixture(scope="module")
def rows():
    data = make_gaussian_mixture(N, 6, 3, random_state=0)
    scale = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 1.5])
    return data.X * scale, scale


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied", "block"])
def test_gaussians_of_tensors_are_those_of_the_host(rows, kind):
    X = rows[0]
    host = tm.GaussianMixture(3, covariance_type=kind).fit(X)
    there = tm.GaussianMixture(3, covariance_type=kind).fit(torch.as_tensor(X))
    sent = tm.GaussianMixture(3, covariance_type=kind, device="cpu").fit(X)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-6)
    assert there.lower_bound_ == sent.lower_bound_
    assert there.converged_
    np.testing.assert_allclose(there.means_, host.means_, atol=0.02)
    assert isinstance(there.means_, np.ndarray)
    scores = there.score_samples(torch.as_tensor(X))
    assert isinstance(scores, torch.Tensor)
    assert isinstance(sent.score_samples(X), np.ndarray)
    np.testing.assert_allclose(scores.numpy(), there.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(sent.score_samples(X), there.score_samples(X), rtol=1e-9)


def test_single_precision_gives_the_same_likelihood_and_results_in_it(rows):
    X = rows[0].astype(np.float32)
    host = tm.GaussianMixture(3, covariance_type="diag").fit(X)
    there = tm.GaussianMixture(3, covariance_type="diag").fit(torch.as_tensor(X))
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-6)
    assert there.means_.dtype == np.float32
    assert there.predict_proba(torch.as_tensor(X)).dtype == torch.float32


def test_the_sample_of_tensors_is_that_of_a_source(rows):
    from thirdmoment.models.tables import open_table

    X = rows[0]
    model = tm.GaussianMixture(3)
    there = open_table(model, torch.as_tensor(X), None, 3)
    source = open_table(model, tm.source(lambda: iter([X[:20_000], X[20_000:]])), None, 3)
    np.testing.assert_array_equal(there.X, source.X)
    np.testing.assert_allclose(there.look.mean, source.look.mean, rtol=1e-12)
    np.testing.assert_allclose(there.look.variance, source.look.variance, rtol=1e-12)


def test_sources_pass_over_a_device(rows):
    X = rows[0]
    source = tm.source(lambda: iter([X[:20_000], X[20_000:]]))
    host = tm.GaussianMixture(3, covariance_type="diag").fit(source)
    there = tm.GaussianMixture(3, covariance_type="diag", device="cpu").fit(source)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-6)


def test_constant_columns_and_large_locations(rows):
    X = np.column_stack([rows[0] + 1e6, np.full(N, 7.0)])
    host = tm.GaussianMixture(3, covariance_type="diag").fit(X)
    there = tm.GaussianMixture(3, covariance_type="diag").fit(torch.as_tensor(X))
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-6)
    assert np.all(there.means_[:, -1] == 7.0)


def test_rows_with_weights_and_few_rows_are_learned_on_the_host(rows):
    X, w = rows[0], np.random.default_rng(0).integers(1, 3, N)
    host = tm.GaussianMixture(3).fit(X, sample_weight=w)
    there = tm.GaussianMixture(3).fit(torch.as_tensor(X), sample_weight=torch.as_tensor(w))
    np.testing.assert_array_equal(there.means_, host.means_)
    few = tm.GaussianMixture(3).fit(torch.as_tensor(X[:1000]))
    np.testing.assert_array_equal(few.means_, tm.GaussianMixture(3).fit(X[:1000]).means_)


def test_what_is_wrong_is_said_in_a_sentence(rows):
    X = torch.as_tensor(rows[0]).clone()
    model = tm.GaussianMixture(3).fit(X)
    with pytest.raises(InvalidInput, match="expecting 6 features"):
        model.predict(X[:, :5])
    X[-1, 2] = torch.nan
    with pytest.raises(InvalidInput, match="NaN"):
        tm.GaussianMixture(3).fit(X)
    with pytest.raises(InvalidInput, match="NaN"):
        model.predict(X)
    with pytest.raises(InvalidInput, match="is no device"):
        tm.GaussianMixture(3, device="gpu please").fit(rows[0])
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInput, match="finds no GPU"):
            tm.GaussianMixture(3, device="cuda").fit(rows[0])
    dask = pytest.importorskip("dask.array")
    with pytest.raises(InvalidInput, match="leave device out"):
        tm.GaussianMixture(3, device="cpu").fit(dask.from_array(rows[0]))


def chain(n, k, rng):
    T = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.ones(k), size=k)
    levels, edges, states = rng.random(n), np.cumsum(T, axis=1), np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = min(np.searchsorted(edges[states[t - 1]], levels[t]), k - 1)
    return states


@pytest.mark.parametrize("kind", ["diag", "full", "spherical"])
def test_chains_of_vectors_are_those_of_the_host(kind):
    rng = np.random.default_rng(0)
    states = chain(40_000, 3, rng)
    X = 3 * rng.normal(size=(3, 3))[states] + rng.normal(size=(40_000, 3))
    lengths = [30_000, 9_000, 1_000]
    host = tm.GaussianHMM(3, covariance_type=kind).fit(X, lengths=lengths)
    there = tm.GaussianHMM(3, covariance_type=kind, device="cpu").fit(X, lengths=lengths)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(there.means_, host.means_, atol=1e-6)
    assert "_device" not in vars(there)


@FEW_STEPS
@pytest.mark.parametrize("d", [6, 400, 1200])
@pytest.mark.parametrize("refine", ["none", "auto"])
def test_chains_of_symbols_are_those_of_the_host(d, refine):
    data = tm.datasets.make_categorical_hmm(700, 50, n_symbols=d, n_components=3, random_state=1)
    own = {"refine": refine, "max_refine_iter": 20}
    host = tm.CategoricalHMM(3, **own).fit(data.X, lengths=data.lengths)
    X = torch.as_tensor(data.X)
    there = tm.CategoricalHMM(3, device="cpu", **own).fit(X, lengths=data.lengths)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(there.emissionprob_, host.emissionprob_, atol=1e-8)
    np.testing.assert_allclose(there.transmat_, host.transmat_, atol=1e-8)
    np.testing.assert_allclose(there.report_.trust, host.report_.trust, atol=1e-6)


def test_binary_chains_and_sources_of_sequences_run_on_a_device():
    rng = np.random.default_rng(0)
    states = chain(120_000, 3, rng)
    share = 0.1 + 0.8 * (np.arange(5) % 3 == np.arange(3)[:, None])
    X = (rng.random((120_000, 5)) < share[states]).astype(int)
    host = tm.BernoulliHMM(3).fit(X)
    there = tm.BernoulliHMM(3, device="cpu").fit(X)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)
    source = tm.source(lambda: iter(np.split(X.astype(float), 3)))
    host = tm.BernoulliHMM(3).fit(source)
    there = tm.BernoulliHMM(3, device="cpu").fit(source)
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)


KERNELS = [{}, {"views": [[0, 1], [2], [3]]}, {"kernel": ["rbf", "rbf", "rbf", "delta"]}]


@FEW_STEPS
@pytest.mark.parametrize("given", KERNELS, ids=str)
def test_kernel_mixtures_of_tensors_are_those_of_a_source(given):
    rng = np.random.default_rng(0)
    z = rng.choice(3, N, p=[0.5, 0.3, 0.2])
    X = 3 * rng.normal(size=(3, 4))[z] + rng.gamma(2.0, 1.0, size=(N, 4))
    X[:, 3] = np.rint(X[:, 3]) if given else X[:, 3]
    own = {"max_refine_iter": 4, **given}  # no more than over a source
    parts = np.array_split(X, 3)
    host = tm.KernelMixture(3, **own).fit(tm.source(lambda: iter(parts)))
    there = tm.KernelMixture(3, **own).fit(torch.as_tensor(X))
    np.testing.assert_allclose(there.weights_, host.weights_, atol=1e-9)
    assert there.score(X[:5000]) == pytest.approx(host.score(X[:5000]), rel=1e-9)
    sent = tm.KernelMixture(3, device="cpu", **own).fit(tm.source(lambda: iter(parts)))
    np.testing.assert_allclose(sent.weights_, host.weights_, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_classes_of_codes_are_those_of_the_host(missing):
    rng = np.random.default_rng(0)
    laws, z = rng.dirichlet(np.full(5, 0.5), size=(4, 12)), rng.integers(0, 4, N)
    X = (rng.random((N, 12, 1)) > np.cumsum(laws, axis=2)[z]).sum(axis=2).clip(max=4).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    host = tm.CategoricalMixture(4).fit(X)
    there = tm.CategoricalMixture(4, device="cpu").fit(torch.as_tensor(X))
    assert there.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(there.weights_, host.weights_, atol=1e-9)
    assert there.n_iter_ == host.n_iter_
    parts = np.array_split(X, 3)
    host = tm.CategoricalMixture(4).fit(tm.source(lambda: iter(parts)))
    there = tm.CategoricalMixture(4, device="cpu").fit(tm.source(lambda: iter(parts)))
    np.testing.assert_allclose(there.weights_, host.weights_, atol=1e-9)


def test_large_chunks_of_a_source_go_to_a_device_without_end_of_waiting(monkeypatch):
    """Threads that copy a chunk must not wait for those that wait for the copy."""
    from thirdmoment._array import devices

    monkeypatch.setattr(devices, "SENT", 20_000)
    X = np.random.default_rng(0).normal(size=(30_000, 4))
    source = tm.source(lambda: iter([X, X + 1, X - 1, X]))
    model = tm.GaussianMixture(2, device="cpu")
    fit = threading.Thread(target=model.fit, args=(source,), daemon=True)
    fit.start()
    fit.join(100)
    assert not fit.is_alive()
    assert model.means_.shape == (2, 4)


def test_rows_with_weights_come_to_the_host_whatever_they_need(rows):
    X, w = rows[0][:, :3], np.random.default_rng(0).integers(1, 3, N)
    tensor = torch.as_tensor(X).requires_grad_()  # as one of a GPU, NumPy cannot read it
    for model in (tm.GaussianMixture(3), tm.KernelMixture(3)):
        there = model.fit(tensor, sample_weight=w)
        assert there.weights_.sum() == pytest.approx(1)
    many = tm.GaussianMixture(3).fit(tensor)
    assert not many.predict_proba(tensor).requires_grad


def test_what_is_scored_is_checked_as_what_is_learned(rows):
    X = torch.as_tensor(rows[0])
    model = tm.GaussianMixture(3).fit(X)
    with pytest.raises(InvalidInput, match="complex"):
        model.predict(X + 1j)


def full(*_):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_mixtures_go_on_in_halves_where_memory_is_short_and_say_so(rows, kind, monkeypatch):
    X = torch.as_tensor(rows[0])
    plain = tm.GaussianMixture(3, covariance_type=kind).fit(X)
    assert not [one for one in plain.report_.findings if one.kind == "memory"]
    monkeypatch.setattr(gaussian_propose, "kept", lambda rows: rows)
    whole = ExpectedSums.update

    def short(sums, chunk):
        return full() if chunk.X.shape[0] > 20_000 else whole(sums, chunk)

    monkeypatch.setattr(ExpectedSums, "update", short)
    found = tm.GaussianMixture(3, covariance_type=kind).fit(X)
    assert found.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-6)
    (note,) = (one for one in found.report_.findings if one.kind == "memory")
    assert "halved" in note.text


def test_rows_that_do_not_fit_at_once_are_made_in_every_pass():
    class Rows:
        resident = True

        def __iter__(self):
            return iter([full()])

    rows = Rows()
    assert streaming_fold.kept(rows) is rows


def test_too_little_memory_is_a_sentence_or_brings_work_to_the_host(rows, monkeypatch):
    X = torch.as_tensor(rows[0])
    monkeypatch.setattr(ExpectedSums, "update", full)
    with pytest.raises(MemoryError, match="even in small blocks"):
        tm.GaussianMixture(3).fit(X)
    monkeypatch.setattr("thirdmoment.likelihood.tensor_chains.count", full)
    symbols = np.random.default_rng(0).integers(0, 4, (30_000, 1))
    found = tm.CategoricalHMM(2, device="cpu").fit(symbols)
    assert [one.kind for one in found.report_.findings].count("memory") == 1
    assert found.score(symbols) == tm.CategoricalHMM(2).fit(symbols).score(symbols)


def test_sequences_are_not_cut_and_pairs_of_chunks_are_cut_alike():
    symbols = Symbols(torch.arange(5000), np.array([0, 2000, 4500, 5000]), 7)
    part = symbols.sequences(1, 3)
    assert (part.codes[0], len(part.codes), part.first) == (2000, 3000, 2007)
    assert part.offsets.tolist() == [0, 2500, 3000]

    class Seen:
        def __init__(self):
            self.chunks = []

        def update(self, chunk):
            if len(chunk.codes) > 4000:
                full()
            self.chunks.append((chunk.first, len(chunk.codes)))
            return self

        def merge(self, other):
            self.chunks += other.chunks
            return self

    assert streaming_fold.fold(Seen, [symbols]).chunks == [(7, 2000), (2007, 3000)]
    one, two = (GaussianRows(torch.arange(8.0)[:, None] + s, torch.ones(8)) for s in (0, 10))
    part = streaming_fold.part_of(BothChunks(one, two), 2, 5)
    assert part.first.X[:, 0].tolist() == [2, 3, 4]
    assert part.second.X[:, 0].tolist() == [12, 13, 14]
    assert streaming_fold.rows_in(part) == 3


def test_a_start_by_hand_may_be_a_tensor(rows):
    X = rows[0][:2000]
    by_hand = torch.as_tensor(X[:3]).requires_grad_()
    assert tm.GaussianMixture(3, means_init=by_hand).fit(X).means_.shape == (3, 6)


def test_devices_that_cannot_be_used_are_refused_by_name(rows):
    with pytest.raises(InvalidInput, match="'meta' cannot be used here"):
        tm.GaussianMixture(3, device="meta").fit(rows[0])
