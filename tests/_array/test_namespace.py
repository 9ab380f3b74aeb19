"""Lazy imports and host copies."""

import subprocess
import sys

import numpy as np
import pytest

from thirdmoment._array import random_normal, to_numpy


def test_import_loads_no_optional_package():
    code = (
        "import sys, thirdmoment; "
        "print([m for m in ('torch','dask','matplotlib','typer','starlette') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_draws_are_the_same_for_every_backend():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ours = random_normal(np.random.default_rng(3), (4, 2), like=np.empty(0))
    theirs = random_normal(np.random.default_rng(3), (4, 2), like=torch.empty(0).double())
    np.testing.assert_array_equal(ours, to_numpy(theirs))


def test_host_copies_of_strict_arrays():
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    np.testing.assert_array_equal(to_numpy(xp.asarray([1.0, 2.0])), [1.0, 2.0])
