"""
Two regressions in one cloud
============================

Every row follows one of several linear regressions and nobody says which. `MixedLinearRegression`
reads the slopes off the moments of x and y and finishes with a short EM. In the classical
experiment on tone perception a musician tuned an adjustable tone: the answers follow the stretched
overtones on some trials and stay at an octave on others. Give the folder of the mixtools data by
the environment variable ``MIXTOOLS_DATA``; without it the example draws answers of both kinds.
"""

# %%
import os
from pathlib import Path

import numpy as np

import thirdmoment as tm

rng = np.random.default_rng(0)


def tones():
    folder = os.environ.get("MIXTOOLS_DATA")
    if folder and (Path(folder) / "tonedata.csv").exists():
        return np.loadtxt(Path(folder) / "tonedata.csv", delimiter=",", skiprows=1).T
    x = rng.uniform(1.35, 3.0, 150)
    octave = rng.random(150) < 0.7
    tuned = np.where(
        octave, 2 + 0.05 * rng.standard_normal(150), x + 0.1 * rng.standard_normal(150)
    )
    return x, tuned


# %%
# First where the moments apply: ten Gaussian columns and three regressions. No restart, and the
# error of EM started at the truth.
X = rng.standard_normal((20_000, 10))
slopes = rng.standard_normal((3, 10))
labels = rng.integers(3, size=len(X))
y = (X * slopes[labels]).sum(axis=1) + 0.5 * rng.standard_normal(len(X))
model = tm.MixedLinearRegression(n_components=3).fit(X, y)
print(model.report_)
order = tm.metrics.align(model.coef_, slopes)
print("largest error of a slope:", abs(model.coef_[order] - slopes).max().round(3))

# %%
# One column of ten: y without what the other nine do, in the colour of the regression of each row.
_ = model.plot(X, y, column=2)

# %%
# One column cannot show two regressions by its moments: the fit starts from lines through few rows
# instead, and says so.
stretch, tuned = tones()
two = tm.MixedLinearRegression(n_components=2).fit(stretch[:, None], tuned)
print("start:", two.report_.start)
print(two.report_)

# %%
# Colours are the more probable regression of each trial.
ax = two.plot(stretch[:, None], tuned)
_ = ax.set(xlabel="stretch of the overtones", ylabel="tuned ratio")
