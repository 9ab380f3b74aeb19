"""Forward-backward and Viterbi against enumeration, in every form."""

import numpy as np
import pytest

from tests.exact.chains import brute_force
from thirdmoment.likelihood import chains as likelihood
from thirdmoment.likelihood import packed
from thirdmoment.likelihood.chains import (
    Chain,
    expected_counts,
    log_likelihoods,
    most_probable_paths,
    posteriors,
)
from thirdmoment.likelihood.packed import sequences

LENGTHS = [1, 5, 2, 6]


@pytest.fixture(scope="module")
def tiny():
    rng = np.random.default_rng(0)
    k, m, n = 3, 4, sum(LENGTHS)
    chain = Chain(
        rng.dirichlet(np.ones(k)),
        rng.dirichlet(np.ones(k), size=k),
        rng.random((m, k)),
        rng.integers(0, m, size=n),
    )
    where = sequences(LENGTHS)
    return chain, where, brute_force(*chain[:4], where.offsets)


def random_problem(n, k, lengths, seed=0):
    rng = np.random.default_rng(seed)
    T = 0.5 * rng.dirichlet(np.ones(k), size=k) + 0.5 * np.eye(k)
    table = rng.dirichlet(np.full(20, 0.3), size=k).T.copy()
    chain = Chain(np.full(k, 1 / k), T, table, rng.integers(0, 20, size=n))
    return chain, sequences(lengths)


def logarithms(chain):
    return Chain(np.log(chain.start), np.log(chain.T), np.log(chain.table), chain.code)


def test_compiled_recursions_equal_enumeration(tiny):
    chain, where, (gamma, pairs, values, _, _) = tiny
    found = expected_counts(chain, where)
    by_symbol = np.stack([gamma[chain.code == s].sum(axis=0) for s in range(4)])
    np.testing.assert_allclose(found.counts, by_symbol, atol=1e-13)
    np.testing.assert_allclose(found.transitions, pairs, atol=1e-13)
    np.testing.assert_allclose(found.log_likelihood, values, atol=1e-13)
    np.testing.assert_allclose(found.start, gamma[where.offsets[:-1]].sum(axis=0), atol=1e-13)
    np.testing.assert_allclose(posteriors(chain, where), gamma, atol=1e-13)


def test_viterbi_equals_enumeration(tiny):
    chain, where, (_, _, _, path, value) = tiny
    found, score = most_probable_paths(logarithms(chain), where)
    np.testing.assert_array_equal(found, path)
    np.testing.assert_allclose(score, value, atol=1e-13)


@pytest.mark.parametrize("longest", [1, 2, 3, None])
def test_packed_recursions_equal_enumeration_however_sequences_are_cut(tiny, longest):
    chain, where, (gamma, pairs, values, path, best) = tiny
    layout = packed.pack(where.offsets, longest=longest)
    rows = chain.table[chain.code]
    found = packed.forward_backward(rows, chain.T, chain.start, layout)
    np.testing.assert_allclose(found.posteriors, gamma, atol=1e-13)
    np.testing.assert_allclose(found.transitions, pairs, atol=1e-13)
    np.testing.assert_allclose(found.log_likelihood, values, atol=1e-13)
    states, score = packed.viterbi(np.log(rows), np.log(chain.T), np.log(chain.start), layout)
    np.testing.assert_array_equal(states, path)
    np.testing.assert_allclose(score, best, atol=1e-13)


def test_torch_gives_what_numpy_gives(tiny):
    torch = pytest.importorskip("torch")
    chain, where, (gamma, _, values, path, _) = tiny
    moved = Chain(*(torch.asarray(array) for array in chain[:3]), chain.code)
    found = expected_counts(moved, where)
    np.testing.assert_allclose(found.counts.numpy(), expected_counts(chain, where).counts)
    np.testing.assert_allclose(found.log_likelihood.numpy(), values)
    np.testing.assert_allclose(posteriors(moved, where).numpy(), gamma)
    value, last = log_likelihoods(moved, where, final=True)
    np.testing.assert_allclose(value.numpy(), values)
    np.testing.assert_allclose(last.numpy(), gamma[where.offsets[1:] - 1])
    logs = Chain(*(torch.log(array) for array in moved[:3]), chain.code)
    np.testing.assert_array_equal(most_probable_paths(logs, where)[0].numpy(), path)


def test_float32_agrees_to_its_precision():
    chain, where = random_problem(2000, 4, [500] * 4)
    layout = packed.pack(where.offsets, longest=100)
    single = [a.astype(np.float32) for a in (chain.table[chain.code], chain.T, chain.start)]
    found = packed.forward_backward(*single, layout)
    assert found.posteriors.dtype == np.float32
    np.testing.assert_allclose(found.posteriors, posteriors(chain, where), atol=2e-4)


def test_long_and_short_sequences_take_different_ways_to_one_answer(monkeypatch):
    chain, where = random_problem(3000, 5, [1000, 40, 1960])
    short = expected_counts(chain, where)
    monkeypatch.setattr(likelihood, "LONG", 500)
    monkeypatch.setattr(likelihood, "BLOCK", 130)
    monkeypatch.setattr(likelihood, "STRIP", 37)
    long = expected_counts(chain, where)
    np.testing.assert_allclose(long.counts, short.counts, rtol=1e-10)
    np.testing.assert_allclose(long.transitions, short.transitions, rtol=1e-10)
    np.testing.assert_allclose(long.start, short.start, rtol=1e-10)


@pytest.mark.parametrize("lengths", [[60_000, 500, 300], [200] * 400])
def test_results_do_not_depend_on_threads(lengths):
    chain, where = random_problem(sum(lengths), 5, lengths)
    one, two = (expected_counts(chain, where, n_threads=j) for j in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_million_steps_score_finite():
    chain, where = random_problem(1_000_000, 3, [1_000_000])
    tiny_laws = chain._replace(table=chain.table * 1e-90)
    value, _ = log_likelihoods(tiny_laws, where)
    plain, _ = log_likelihoods(chain, where)
    np.testing.assert_allclose(value, plain + 1e6 * np.log(1e-90), rtol=1e-12)
    assert np.isfinite(most_probable_paths(logarithms(chain), where)[1]).all()


def test_an_impossible_sequence_scores_minus_infinity_and_spoils_no_other():
    table = np.array([[1.0, 0.5], [0.0, 0.0]])  # the second symbol never occurs
    chain = Chain(np.array([0.5, 0.5]), np.full((2, 2), 0.5), table, np.array([0, 0, 1, 0, 0, 0]))
    where = sequences([2, 2, 2])
    value, _ = log_likelihoods(chain, where)
    assert value[1] == -np.inf
    np.testing.assert_allclose(value[[0, 2]], 2 * np.log(0.75))
    assert np.isfinite(posteriors(chain, where)).all()


@pytest.fixture(scope="module")
def reducible():
    """The state that explains the observations better is never entered."""
    chain = Chain(np.array([0.0, 1.0]), np.eye(2), np.array([[1.0, 0.1]]), np.zeros(2000, int))
    return chain, sequences([2000])


def test_states_out_of_reach_do_not_drown_the_others(reducible):
    chain, where = reducible
    found = expected_counts(chain, where)
    np.testing.assert_allclose(found.log_likelihood, 2000 * np.log(0.1))
    np.testing.assert_allclose(found.counts, [[0, 2000]])
    np.testing.assert_allclose(found.transitions, [[0, 0], [0, 1999]])
    np.testing.assert_allclose(posteriors(chain, where)[1000], [0, 1])
    np.testing.assert_allclose(log_likelihoods(chain, where, final=True)[1], [[0, 1]])


@pytest.mark.parametrize("longest", [100, None])
def test_packed_arrays_keep_states_out_of_reach_apart(reducible, longest):
    chain, where = reducible
    layout = packed.pack(where.offsets, longest=longest)
    found = packed.forward_backward(chain.table[chain.code], chain.T, chain.start, layout)
    np.testing.assert_allclose(found.log_likelihood, 2000 * np.log(0.1))


def test_likelihoods_too_small_for_a_float_are_taken_in_logarithms():
    """Both observations are e^-5000 in the only state that can be there."""
    logs = np.array([[0.0, -5000.0], [-5000.0, 0.0]])
    chain = Chain(np.array([0.0, 1.0]), np.eye(2), np.exp(logs), np.array([0, 0, 1]), logs)
    where = sequences([3])
    np.testing.assert_allclose(log_likelihoods(chain, where)[0], [-10_000])
    np.testing.assert_allclose(posteriors(chain, where), [[0, 1]] * 3)
    np.testing.assert_allclose(expected_counts(chain, where).transitions, [[0, 0], [0, 2]])


@pytest.mark.parametrize("length", [10, 60_000])
def test_logarithms_and_scaled_numbers_give_the_same(monkeypatch, length):
    chain, where = random_problem(2 * length, 3, [length, length])
    scaled = expected_counts(chain, where)
    monkeypatch.setattr(likelihood, "_forward", lambda *arguments: False)
    slow = expected_counts(chain, where)
    for a, b in zip(scaled, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_an_impossible_sequence_spoils_no_other_in_packed_arrays():
    table = np.array([[1.0, 0.5], [0.0, 0.0]])
    code, where = np.array([0, 0, 1, 0, 0, 0]), sequences([2, 2, 2])
    found = packed.forward_backward(
        table[code], np.full((2, 2), 0.5), np.array([0.5, 0.5]), packed.pack(where.offsets)
    )
    assert found.log_likelihood[1] == -np.inf
    np.testing.assert_allclose(found.log_likelihood[[0, 2]], 2 * np.log(0.75))
    assert np.isfinite(found.transitions).all()
    assert np.isfinite(found.posteriors).all()


def test_states_that_cannot_be_reached_get_no_posterior():
    T = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    chain = Chain(np.array([0.6, 0.4, 0.0]), T, np.ones((1, 3)), np.zeros(50, dtype=int))
    found = expected_counts(chain, sequences([50]))
    assert found.counts[0, 2] == 0
    np.testing.assert_allclose(found.counts.sum(), 50)
