"""Sums by numbers in a fixed order: what is added, and where segments end."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from thirdmoment._array import ordered, ordered_sums, regular_rows
from thirdmoment._array import ordered as module

torch = pytest.importorskip("torch")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def test_many_entries_of_a_number_are_added_in_parts(monkeypatch):
    monkeypatch.setattr(sys.modules["thirdmoment._array.ordered"], "SEGMENT", 8)
    found = ordered(torch.as_tensor(np.repeat([0, 2, 3], [30, 1, 9])), 5)
    assert found.parts.tolist() == [0, 8, 16, 24, 30, 31, 39, 40]
    assert found.own.tolist() == [0, 4, 4, 5, 7, 7]
    assert sorted(found.rows.tolist()) == list(range(40))
    assert module is ordered


@pytest.mark.parametrize("q", [1, 3, 40])
def test_products_with_the_transpose_are_those_of_the_host(q):
    rng = np.random.default_rng(q)
    columns, values = rng.integers(0, 7, (60, 3)), rng.random((60, 3))
    A = rng.normal(size=(q, 60))
    wanted = regular_rows(columns, values, 9).left_dot(A)
    there = regular_rows(torch.as_tensor(columns), torch.as_tensor(values), 9)
    found = there.left_dot(torch.as_tensor(A))
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)
    np.testing.assert_array_equal(found.numpy(), there.left_dot(torch.as_tensor(A)).numpy())


@pytest.mark.parametrize(("m", "each", "q"), [(1, 1, 1), (700, 2, 3), (33, 5, 40)])
def test_products_of_rows_alike_are_those_of_the_host(m, each, q):
    rng = np.random.default_rng(q)
    columns, values = rng.integers(0, 7, (m, each)), rng.random((m, each))
    Q = rng.normal(size=(7, q))
    wanted = regular_rows(columns, values, 7).dot(Q)
    there = regular_rows(torch.as_tensor(columns), torch.as_tensor(values), 7)
    np.testing.assert_allclose(there.dot(torch.as_tensor(Q)).numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(there.dot_t(torch.as_tensor(Q.T)).numpy(), wanted.T, atol=1e-12)


@pytest.mark.skipif(not INTERPRETED, reason="kernels alone")
def test_kernels_add_what_is_asked():
    rng = np.random.default_rng(0)
    Y, numbers = rng.normal(size=(50, 4)), rng.integers(0, 6, 50)
    found = ordered_sums(torch.as_tensor(Y), ordered(torch.as_tensor(numbers), 6))
    np.testing.assert_allclose(found.numpy(), np.eye(6)[numbers].T @ Y, atol=1e-12)


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.skipif(INTERPRETED, reason="the kernels run already")
def test_the_kernels_run_in_the_interpreter_of_triton():
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    subprocess.run(command, check=True, env=env)
