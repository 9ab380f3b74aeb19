"""Lazy imports and host copies."""

import subprocess
import sys

import numpy as np
import pytest

from thirdmoment._array import posterior_of, random_normal, to_numpy


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


def test_shares_are_exact_where_the_first_component_is_far():
    torch = pytest.importorskip("torch")
    joint = np.array([[-np.inf, -1e20, -1e7], [-1.3, -1.3, -1.3]])
    wanted = posterior_of(joint.copy())
    for kind in (torch.float64, torch.float32):
        found = posterior_of(torch.tensor(joint, dtype=kind))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=2e-7)
