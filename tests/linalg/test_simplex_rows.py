"""The projection without sorting is the one by sorting."""

import numpy as np
import pytest

from thirdmoment.linalg import project_to_simplex


def by_sorting(row):
    u = np.sort(row)[::-1]
    excess = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
    tau = excess[np.flatnonzero(u > excess)[-1]]
    return np.maximum(row - tau, 0)


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("seed", range(5))
def test_rows_of_noise_ties_and_extremes(seed, library):
    xp = pytest.importorskip(library)
    rng = np.random.default_rng(seed)
    rows = np.stack([
        rng.normal(size=400) * 1e-3, rng.dirichlet(np.full(400, 0.1)), np.zeros(400),
        np.full(400, -7.0), np.r_[np.ones(3), np.zeros(397)], rng.normal(size=400) * 1e6,
        np.round(rng.normal(size=400), 1),
    ])  # fmt: skip
    found = np.asarray(project_to_simplex(xp.asarray(rows)))
    np.testing.assert_allclose(found, [by_sorting(row) for row in rows], atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1)
