"""
Children and tilted vessels
===========================

405 children drew the water line in eight tilted vessels; recorded is the angle between their line
and the horizontal. Which groups of children are there, and how does each of them err? No family of
densities fits such data (exact answers, answers parallel to the vessel, guesses), which is why it
became the standard example of nonparametric mixtures.

The data comes with the R package mixtools; give its folder by the environment variable
``MIXTOOLS_DATA``. Without it, the example draws children of the same kinds.
"""

# %%
import os
from pathlib import Path

import numpy as np

import thirdmoment as tm

HOURS = [11, 4, 2, 7, 10, 5, 1, 8]
TILT = np.array([30, 60, -60, -30, 60, 30, -30, -60])  # a line parallel to the vessel


def children():
    folder = os.environ.get("MIXTOOLS_DATA")
    if folder and (Path(folder) / "Waterdata.csv").exists():
        return np.loadtxt(Path(folder) / "Waterdata.csv", delimiter=",", skiprows=1)[:, 2:]
    rng = np.random.default_rng(0)
    kind = rng.choice(4, size=405, p=[0.45, 0.38, 0.12, 0.05])
    exact = rng.normal(0, 3.5, (405, 8))
    roughly = rng.normal(0.15 * TILT, 16, (405, 8))
    lost = np.where(rng.random((405, 8)) < 0.6, rng.normal(TILT, 6), rng.uniform(-90, 90, (405, 8)))
    parallel = rng.normal(TILT, 2, (405, 8))
    return np.choose(kind[:, None], [roughly, exact, lost, parallel])


X = children()
model = tm.KernelMixture(n_components=3).fit(X)
print(model.report_)

# %%
# Mean and standard deviation of each group's answers: one answers within a few degrees, one errs by
# some twenty either way, and one tends to draw the line parallel to the vessel.
mean = np.stack([model.expectation(lambda x: x[:, 0], v) for v in range(8)], axis=1)
square = np.stack([model.expectation(lambda x: x[:, 0] ** 2, v) for v in range(8)], axis=1)
print("parallel to the vessel:", TILT)
for h in range(3):
    print(f"group {h}, {model.weights_[h]:.0%}: means", mean[h].round(0).astype(int))
    print("      standard deviations", np.sqrt(square[h] - mean[h] ** 2).round(0).astype(int))

# %%
# Four of the eight vessels. The curves add up to the density of all children; where a group has
# two humps, some of its children err the other way.
_ = model.plot_components(views=[0, 1, 2, 3])
