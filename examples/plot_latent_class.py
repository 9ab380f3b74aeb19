"""
Latent class analysis
=====================

Which kinds of answers does a questionnaire have? Set ``THIRDMOMENT_DATA`` to a folder with
``latent_class/election.csv`` (the R package poLCA has it) to see the traits that voters gave the
two candidates of 2000; without it a questionnaire with the same shape is drawn.
"""

# %%
import os
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import thirdmoment as tm

folder = Path(os.environ.get("THIRDMOMENT_DATA", "no folder"))
path = folder / "latent_class" / "election.csv"
if path.exists():
    import pandas as pd

    table = pd.read_csv(path).iloc[:, :12]
    items = list(table.columns)
    codes = table.apply(lambda column: column.astype("category").cat.codes)
    X = np.where(codes < 0, np.nan, codes).astype(float)
else:
    drawn = tm.datasets.make_categorical_mixture(1785, 4, 3, n_columns=12, random_state=1)
    items = [f"item {c}" for c in range(12)]
    X = drawn.X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.09] = np.nan

# %%
# The Bayesian criterion for one to six classes; missing cells are simply left out.
fits = {k: tm.CategoricalMixture(k).fit(X) for k in range(1, 7)}
for k, fit in fits.items():
    print(f"{k} classes: BIC {fit.bic(X):.0f}, start: {fit.report_.start}")

# %%
# What the classes answer: a bar a class and item, its categories one above the other.
model = fits[3]
_ = model.plot(ax=plt.subplots(figsize=(9, 3.6), layout="constrained")[1])

# %%
# On real answers the criterion keeps falling: every class more explains some habit of answering.
# Three classes are what one can look at. The mean answer to each item in each of them (0 is the
# first category, 3 the last):
answer = np.array([table @ np.arange(table.shape[1]) for table in model.probabilities_])
figure, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
for j, weight in enumerate(model.weights_):
    ax.plot(answer[:, j], "o-", label=f"class {j + 1}: {weight:.0%}")
ax.set_xticks(range(len(items)), items, rotation=60, ha="right")
ax.set(ylabel="mean answer", ylim=(-0.1, 3.1))
_ = ax.legend(frameon=False, ncols=3, loc="upper center")
