"""Claims about kernel mixtures on real data; skipped where the data is not there."""

from pathlib import Path

import numpy as np
import pytest

from thirdmoment import KernelMixture

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TILT = np.array([30, 60, -60, -30, 60, 30, -30, -60])

needs_data = pytest.mark.skipif(not DATA.exists(), reason="the real data is not on this machine")
pytestmark = [
    needs_data,
    pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.MomentWarning"),
]


def means_and_spreads(model):
    views = range(len(model.view_groups_))
    first = np.stack([model.expectation(lambda x: x[:, 0], v) for v in views], axis=1)
    second = np.stack([model.expectation(lambda x: x[:, 0] ** 2, v) for v in views], axis=1)
    return first, np.sqrt(second - first**2)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("k", [3, 4])
def test_children_answer_exactly_roughly_or_parallel_to_the_vessel(k, seed):
    X = np.loadtxt(DATA / "mixtools" / "Waterdata.csv", delimiter=",", skiprows=1)[:, 2:]
    mean, spread = means_and_spreads(KernelMixture(k, random_state=seed).fit(X))
    exact = np.argmin(np.abs(mean).max(axis=1))
    assert np.abs(mean[exact]).max() < 5  # degrees, in all eight vessels
    assert spread[exact].max() < 8
    slope = mean @ TILT / (TILT @ TILT)
    assert slope.max() > 0.4  # one group leans with the vessel
    assert np.median(slope) < 0.3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_children_react_fast_middling_or_slowly_in_all_six_trials(seed):
    X = np.loadtxt(DATA / "mixtools" / "RTdata.csv", delimiter=",", skiprows=1)
    mean, _ = means_and_spreads(KernelMixture(3, random_state=seed).fit(X))
    mean = mean[np.argsort(mean.mean(axis=1))]
    assert np.all(np.diff(mean, axis=0) > 200)  # milliseconds between groups, in every trial


@pytest.mark.slow
def test_wide_bandwidths_find_the_gated_cells_of_a_sample_not_used_in_development():
    with np.load(DATA / "flow_mouse_bal" / "cells.npz", allow_pickle=True) as file:
        cells = dict(file)
    columns = list(cells["columns"])
    chosen = [columns.index(c) for c in ("CD8", "TCRyd", "TCRb", "CD4", "CD19", "CD3")]
    X = np.arcsinh(cells["X"][:, chosen].astype(float) / 150)
    gated = cells["label"] != list(cells["label_names"]).index("Unlabeled")
    model = KernelMixture(5, views=[[0, 1], [2, 3], [4, 5]], bandwidth="wide").fit(X)
    found, truth = model.predict(X)[gated], cells["label"][gated]
    purity = sum(np.bincount(truth[found == h]).max(initial=0) for h in range(5)) / len(truth)
    assert purity > 0.85
