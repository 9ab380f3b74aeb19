"""Windows of sequences: borders, merge law, laws against enumeration."""

import numpy as np

from tests.exact.chains import exact_adjacent, exact_windows, random_chain
from thirdmoment.datasets.synthetic import draw_states
from thirdmoment.moments.sequences import (
    AdjacentCounts,
    Symbols,
    WindowCounts,
    centres,
    halves,
    pair_sums,
    vector_windows,
    view_shares,
    window_rows,
)
from thirdmoment.moments.views import PairSums


def test_windows_never_cross_the_border_of_a_sequence():
    offsets = np.array([0, 2, 5, 6, 10])
    np.testing.assert_array_equal(centres(offsets, 1), [3, 7, 8])
    np.testing.assert_array_equal(centres(offsets, 2), [])
    codes = np.arange(10) % 5
    found = WindowCounts(5).update(Symbols(codes, offsets)).finish()
    seen = {tuple(row) for row in found.codes.tolist()}
    assert seen == {(2, 3, 4), (1, 2, 3), (2, 3, 4)}
    assert found.counts.sum() == 3


def test_any_cut_between_sequences_gives_the_same_windows():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, size=40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = rng.integers(0, 4, size=offsets[-1])
    for make in (lambda: WindowCounts(4, 1), lambda: WindowCounts(4, 2), lambda: AdjacentCounts(4)):
        whole = make().update(Symbols(codes, offsets))
        cut = make()
        for a, b in ((0, 7), (7, 8), (8, 40)):
            part = codes[offsets[a] : offsets[b]]
            cut.merge(make().update(Symbols(part, offsets[a : b + 1] - offsets[a], offsets[a])))
        if isinstance(whole, AdjacentCounts):
            np.testing.assert_array_equal(whole.pairs.toarray(), cut.pairs.toarray())
            np.testing.assert_array_equal(whole.first, cut.first)
        else:
            for a, b in zip(whole.finish(), cut.finish(), strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_table_and_a_sort_count_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    chunk = Symbols(rng.integers(0, 5, size=300), np.array([0, 300]))
    table = WindowCounts(5).update(chunk).finish()
    monkeypatch.setattr("thirdmoment.moments.sequences.TABLE_CELLS", 1)
    for a, b in zip(table, WindowCounts(5).update(chunk).finish(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_pooled_windows_converge_to_their_law():
    chain = random_chain(4, 2, 0)
    lengths = [3, 5, 4]
    rng = np.random.default_rng(2)
    codes, sizes = [], []
    for length in lengths:
        states = draw_states(chain[0], chain[1], 40_000, length, rng)
        edges = np.cumsum(chain[2], axis=1)
        drawn = (rng.random(states.shape)[..., None] > edges[states]).sum(axis=-1)
        codes.append(drawn.ravel())
        sizes += [length] * 40_000
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    chunk = Symbols(np.concatenate(codes), offsets)
    found = WindowCounts(4).update(chunk).finish()
    exact = exact_windows(*chain, lengths)
    law = np.zeros(4**3)
    law[found.codes @ [16, 4, 1]] = found.counts / found.counts.sum()
    # binomial standard errors of 240,000 windows, inflated twice for their overlap
    bound = 5 * 2 * np.sqrt(exact.counts / found.counts.sum()) + 1e-12
    assert np.all(np.abs(law - exact.counts) < bound)
    pairs = AdjacentCounts(4).update(chunk).pairs.toarray()
    exact_pairs = exact_adjacent(*chain, lengths).pairs.toarray()
    assert np.all(np.abs(pairs / pairs.sum() - exact_pairs) < 10 * np.sqrt(exact_pairs / 360_000))


def test_second_moments_of_windows_equal_those_of_their_rows():
    rng = np.random.default_rng(3)
    windows = WindowCounts(3).update(Symbols(rng.integers(0, 3, 500), np.array([0, 500]))).finish()
    scale = rng.random(9) + 0.5
    fast = pair_sums(windows, scale)
    slow = PairSums(9).update(window_rows(windows, scale, 0, len(windows.counts)))
    np.testing.assert_allclose(fast.pairs, slow.pairs, atol=1e-14)
    np.testing.assert_allclose(fast.noise, slow.noise, atol=1e-14)
    np.testing.assert_allclose(fast.mean, slow.mean, atol=1e-14)
    np.testing.assert_allclose(np.concatenate(view_shares(windows)) * scale, fast.mean)


def test_halves_hold_whole_sequences_and_long_pieces():
    offsets = np.array([0, 50, 1000])
    signs = halves(np.arange(1000), offsets)
    assert len(set(signs[:50])) == 1
    pieces = signs[50:].reshape(-1, 50)
    assert np.all(np.abs(pieces.sum(axis=1)) == 50)
    assert set(signs) == {1.0, -1.0}


def test_vector_windows_stand_side_by_side():
    features = np.arange(12.0).reshape(6, 2)
    offsets = np.array([0, 6])
    sample = vector_windows(features, offsets, centres(offsets, 1))
    rows = sample.rows.toarray()
    np.testing.assert_array_equal(rows[0], [1, 0, 1, 2, 3, 4, 5])
    assert rows.shape == (4, 7)
