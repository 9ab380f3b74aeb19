"""Exact laws of windows give hidden Markov models back."""

import itertools

import numpy as np
import pytest

from tests.exact.chains import exact_adjacent, exact_windows, random_chain, window_law
from thirdmoment._array import DenseRows
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.metrics import align
from thirdmoment.moments.sequences import AdjacentCounts, Symbols
from thirdmoment.moments.views import Sample
from thirdmoment.starts.contexts import context_chain
from thirdmoment.starts.gaussian_chains import bumps, lifted
from thirdmoment.starts.start import Settings
from thirdmoment.starts.symbols import SymbolMoments, symbol_chains, symbol_data
from thirdmoment.starts.view_facts import Wanted, view_covariances
from thirdmoment.starts.windows import VectorMoments, vector_chains


def settings(solver="auto", *, weighted=True, hedge=False, seed=0):
    return Settings(solver, weighted, hedge, 1, np.random.default_rng(seed))


def exact_moments(chain, lengths, k, how, reach=1):
    """Moments that know the law itself instead of a sample."""
    d = chain[2].shape[1]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    found = SymbolMoments(symbol_data(np.arange(offsets[-1]) % d, offsets, d), k, how)
    found.reach, found.windows = reach, exact_windows(*chain, lengths, reach)
    found.adjacent = exact_adjacent(*chain, lengths)
    return found


def assert_same_chain(found, chain, atol=1e-8):
    start, T, laws = chain
    order = align(found.emissions, laws, metric="sqeuclidean")
    np.testing.assert_allclose(found.emissions[order], laws, atol=atol)
    np.testing.assert_allclose(found.T[np.ix_(order, order)], T, atol=atol)
    np.testing.assert_allclose(found.start[order], start, atol=atol)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("solver", ["tensor", "power", "eig", "schur", "joint-schur", "joint"])
def test_exact_windows_give_the_chain_back(solver, weighted):
    chain = random_chain(6, 3, 3)
    how = settings(solver, weighted=weighted)
    moments = exact_moments(chain, [3, 3, 5, 4, 2], 3, how)  # any lengths, no stationarity
    assert_same_chain(moments.solve(how), chain)


@pytest.mark.parametrize("solver", ["tensor", "joint"])
def test_longer_windows_give_the_same_chain(solver):
    chain = random_chain(4, 3, 5)
    how = settings(solver)
    assert_same_chain(exact_moments(chain, [6, 7], 3, how, reach=2).solve(how), chain)


@pytest.mark.parametrize("weighted", [True, False])
def test_fewer_symbols_than_states_need_longer_windows(weighted):
    """MV-26: two symbols, three states, windows of two steps."""
    T = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    chain = (np.array([0.5, 0.3, 0.2]), T, np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]))
    how = settings("joint", weighted=weighted)
    offsets = np.array([0, 5, 13])
    assert SymbolMoments(symbol_data(np.arange(13) % 2, offsets, 2), 3, how).reach == 2
    found = exact_moments(chain, [5, 8], 3, how, reach=2).solve(how)
    order = align(found.emissions, chain[2], metric="sqeuclidean")
    np.testing.assert_allclose(found.emissions[order], chain[2], atol=1e-8)
    np.testing.assert_allclose(found.T[np.ix_(order, order)], T, atol=1e-8)


def test_sequences_too_short_for_longer_windows_name_the_remedy():
    moments = SymbolMoments(symbol_data(np.arange(7) % 2, np.array([0, 3, 7]), 2), 3, settings())
    with pytest.raises(UnusableMoments, match="Lower n_components, or give longer sequences"):
        symbol_chains(moments)


def atoms(chain, values, lengths):
    """Moments of vectors that take finitely many values, with their exact weights."""
    positions = [t for n in lengths for t in range(n - 2)]
    law = window_law(*chain, positions, 3)
    codes = np.array(list(itertools.product(range(len(values)), repeat=3)))
    rows = np.concatenate([np.ones((len(codes), 1)), *(values[c] for c in codes.T)], axis=1)
    weights = 1e12 * law.ravel()  # so many that no variance is in doubt
    chunks = [Sample(DenseRows(rows), weights, 0, np.zeros(law.size))]
    start, _, laws = chain
    pairs = window_law(*chain, [t for n in lengths for t in range(n - 1)], 2)
    lifted_values = np.concatenate([np.ones((len(values), 1)), values], axis=1)
    pairs = lifted_values.T @ pairs @ lifted_values
    return VectorMoments(chunks, start @ laws @ values, pairs, float(weights.sum()))


@pytest.mark.parametrize("solver", ["tensor", "joint"])
@pytest.mark.parametrize(("d", "k"), [(3, 3), (2, 3), (4, 2)])
def test_exact_windows_of_vectors_give_means_covariances_and_chain(solver, d, k):
    """The constant feature lets k reach d + 1."""
    start, T, laws = random_chain(6, k, 10 * d + k)
    values = np.random.default_rng(d).standard_normal((6, d))
    moments = atoms((start, T, laws), values, [3, 5])
    means = laws @ values
    found = vector_chains(moments, k, settings(solver))[0]
    order = align(found.emissions, means, metric="sqeuclidean")
    np.testing.assert_allclose(found.emissions[order], means, atol=1e-8)
    np.testing.assert_allclose(found.T[np.ix_(order, order)], T, atol=1e-8)
    np.testing.assert_allclose(found.start[order], start, atol=1e-8)
    now = 1 + d + np.arange(d)
    cov, _ = view_covariances(
        moments.chunks, found.views, [Wanted(now, now, False)], np.ones(1 + 3 * d), n_threads=1
    )
    centred = values[None] - means[:, None]
    exact = np.einsum("kv,kvi,kvj->kij", laws, centred, centred)
    # feasible covariances are kept as they are
    np.testing.assert_allclose(cov[0][order], exact, atol=1e-8)


def test_products_of_columns_tell_more_states_than_columns_apart():
    """MV-20: four states on a line, seen through x and x²."""
    start, T, laws = random_chain(7, 3, 4)
    values = np.linspace(-1, 2, 7)[:, None]
    features = lifted(values)
    assert features.shape == (7, 2)
    moments = atoms((start, T, laws), features, [3, 4])
    means = laws @ features
    found = vector_chains(moments, 3, settings("auto"))[0]
    order = align(found.emissions, means, metric="sqeuclidean")
    np.testing.assert_allclose(found.emissions[order], means, atol=1e-8)
    np.testing.assert_allclose(found.T[np.ix_(order, order)], T, atol=1e-8)


def test_kernel_features_tell_any_number_of_states_apart():
    """Four states on one column, whose squares alone would show three."""
    start, T, laws = random_chain(9, 4, 8)
    values = np.linspace(-2, 2, 9)[:, None]
    features = bumps(values, 2, np.random.default_rng(0))(values)
    moments = atoms((start, T, laws), features, [3, 4])
    means = laws @ features
    found = vector_chains(moments, 4, settings("auto"))[0]
    order = align(found.emissions, means, metric="sqeuclidean")
    np.testing.assert_allclose(found.emissions[order], means, atol=1e-8)  # condition about 1e4
    np.testing.assert_allclose(found.T[np.ix_(order, order)], T, atol=1e-8)


def test_rare_symbols_are_read_off_scores(monkeypatch):
    """With very many symbols only frequent ones stand in windows; the laws cover all."""
    monkeypatch.setattr("thirdmoment.starts.symbols.MOST_CODES", 20)
    monkeypatch.setattr("thirdmoment.starts.symbols.KEPT_SYMBOLS", 12)
    from thirdmoment.datasets import make_categorical_hmm

    errors = []
    for n in (2_000, 50_000):
        data = make_categorical_hmm(
            n, 20, n_symbols=30, n_components=3, persistence=0.7, random_state=1
        )
        offsets = np.concatenate([[0], np.cumsum(data.lengths)])
        moments = SymbolMoments(symbol_data(data.X[:, 0], offsets, 30), 3, settings("tensor"))
        assert moments.d == 13
        laws = moments.solve(moments.settings).emissions
        order = align(laws, data.emission, metric="sqeuclidean")
        errors.append(np.abs(laws[order] - data.emission).sum(axis=1).mean())
    assert errors[1] < 0.4 * errors[0]  # √25 = 5 times less, with room for chance
    assert errors[1] < 0.05


def test_symbols_with_like_neighbours_form_classes():
    """Two classes that alternate strictly, four symbols each."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, size=2000) + 4 * (np.arange(2000) % 2)
    adjacent = AdjacentCounts(8).update(Symbols(code, np.array([0, 2000])))
    share = np.bincount(code) / 2000
    _, T, emissions = context_chain(adjacent, share, 2, rng)
    even = emissions[:, :4].sum(axis=1)
    np.testing.assert_allclose(np.sort(even), [0.25, 0.75], atol=0.02)
    assert T[0, 1] > T[0, 0]
    np.testing.assert_allclose(T.sum(axis=1), 1)
