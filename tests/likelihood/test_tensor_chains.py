"""Chains on a device: the E-step of the compiled loops, by steps and by kernels."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from thirdmoment.likelihood import packed, tensor_chains
from thirdmoment.likelihood.chains import Chain, expected_counts
from thirdmoment.likelihood.packed import blocks_of_sequences, sequences
from thirdmoment.likelihood.tensor_chains import TensorSequences

torch = pytest.importorskip("torch")

# states, symbols, lengths, longest block (None: as it comes)
CASES = [
    (3, 5, [7, 1, 30, 12, 2, 9] * 4, None),
    (20, 11, [40] * 20 + [3, 1], None),
    (5, 7, [200, 90, 1, 33], 16),
    (2, 3, [1500], 100),
]


@pytest.fixture(params=CASES, ids=lambda case: f"k={case[0]}")
def drawn(request, monkeypatch):
    k, d, lengths, longest = request.param
    rng = np.random.default_rng(k)
    T, start = rng.dirichlet(np.ones(k), size=k), rng.dirichlet(np.ones(k))
    table, code = rng.dirichlet(np.ones(k), size=d), rng.integers(0, d, sum(lengths))
    if longest is not None:
        plain, pack = blocks_of_sequences, packed.pack
        monkeypatch.setattr(tensor_chains, "blocks_of_sequences", lambda own: plain(own, longest))
        monkeypatch.setattr(packed, "pack", lambda own: pack(own, longest=longest))
    return start, T, table, code, sequences(np.array(lengths))


@pytest.mark.parametrize("own", [False, True], ids=["symbols", "rows of their own"])
def test_an_e_step_is_that_of_the_host(drawn, own):
    start, T, table, code, where = drawn
    here = Chain(start, T, table[code] if own else table, None if own else code)
    wanted = expected_counts(here, where)
    like = torch.zeros(1, dtype=torch.float64)
    shown = None if own else torch.as_tensor(code.astype(np.int32))
    there = TensorSequences(where, like, shown, 0 if own else len(table))
    given = here._replace(table=torch.as_tensor(here.table)) if own else here
    found = expected_counts(given, where, there=there)
    assert isinstance(found.counts, torch.Tensor if own else np.ndarray)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-10, atol=1e-10)


def test_numbers_too_small_to_be_scaled_are_left_to_the_host():
    rng = np.random.default_rng(0)
    n, k = 60, 3
    T, start = np.eye(k), np.array([1.0, 0.0, 0.0])  # the others are never reached
    rows = rng.random((n, k)) * 1e-3
    rows[30:, 0] = 0.0  # impossible from here on
    where, like = sequences(np.array([n])), torch.zeros(1, dtype=torch.float64)
    logs = np.log(np.maximum(rows, 1e-300))
    wanted = expected_counts(Chain(start, T, rows, None, logs), where)
    there = TensorSequences(where, like)
    given = Chain(start, T, torch.as_tensor(rows), None, torch.as_tensor(logs))
    found = expected_counts(given, where, there=there)
    np.testing.assert_array_equal(np.asarray(found.counts), wanted.counts)
    np.testing.assert_array_equal(found.log_likelihood, wanted.log_likelihood)


@pytest.mark.filterwarnings(
    "ignore:(overflow|invalid value) encountered:RuntimeWarning"
)  # as a GPU
@pytest.mark.parametrize("share", [1e-12, 0.0])
def test_states_that_drown_are_left_to_the_host(share):
    n = 300
    logs = np.zeros((n, 2))
    logs[:, 0] = -30
    logs[0] = 0, -800
    start, T = np.array([1 - share, share]), np.eye(2)
    where = sequences(np.array([n]))
    there = TensorSequences(where, torch.zeros(1, dtype=torch.float64))
    wanted = expected_counts(Chain(start, T, np.exp(logs), None, logs), where)
    given = Chain(start, T, torch.as_tensor(np.exp(logs)), None, torch.as_tensor(logs))
    found = expected_counts(given, where, there=there)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-10, atol=1e-10)


def test_kernels_that_a_gpu_has_no_room_for_are_left_to_plain_steps(drawn, monkeypatch):
    class OutOfResources(Exception):
        """As Triton's, by its name."""

    def refused(*_):
        raise OutOfResources("shared memory")

    start, T, table, code, where = drawn
    there = TensorSequences(
        where,
        torch.zeros(1, dtype=torch.float64),
        torch.as_tensor(code.astype(np.int32)),
        len(table),
    )
    wanted = expected_counts(Chain(start, T, table, code), where)
    monkeypatch.setattr(tensor_chains, "has_kernels", lambda _: True)
    monkeypatch.setattr(tensor_chains, "_counted_by_kernels", refused)
    found = tensor_chains.count(start, T, table, there)
    np.testing.assert_allclose(found.counts, wanted.counts, rtol=1e-10, atol=1e-10)


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the kernels run already")
def test_the_kernels_run_in_the_interpreter_of_triton():
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    subprocess.run(command, check=True, env=env)
