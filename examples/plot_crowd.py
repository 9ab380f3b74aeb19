"""
Crowd labels: who is right?
===========================

Many annotators, few labels an item, unequal skill: the Dawid-Skene model is a categorical mixture
whose columns are the annotators. It learns how each of them errs and weighs their votes. Set
``THIRDMOMENT_DATA`` to a folder with ``crowd/web_labels.csv.gz`` for a real crowd; without it one
is drawn.
"""

# %%
import os
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import thirdmoment as tm
from thirdmoment.metrics import align

folder = Path(os.environ.get("THIRDMOMENT_DATA", "no folder"))
if (folder / "crowd" / "web_labels.csv.gz").exists():
    import pandas as pd

    table = pd.read_csv(folder / "crowd" / "web_labels.csv.gz")
    known = pd.read_csv(folder / "crowd" / "web_truth.csv.gz")
    labels = np.full((table["item"].max(), table["worker"].max()), np.nan)
    labels[table["item"] - 1, table["worker"] - 1] = table["label"] - 1
    items, truth = known["item"].to_numpy() - 1, known["label"].to_numpy() - 1
else:
    rng = np.random.default_rng(0)
    truth, items = rng.integers(5, size=2000), np.arange(2000)
    skill = rng.beta(2, 2, size=120)
    wrong = (truth[:, None] + rng.integers(1, 5, size=(2000, 120))) % 5
    labels = np.where(rng.random((2000, 120)) < skill, truth[:, None], wrong).astype(float)
    labels[rng.random(labels.shape) > 0.06] = np.nan  # about seven labels an item

classes = int(np.nanmax(labels)) + 1
model = tm.CategoricalMixture(classes, n_categories=classes).fit(labels)
print(model.report_.start)

# %%
# Components have no names: each is called after the label that its items were given most.
votes = np.stack([(labels == c).sum(axis=1) for c in range(classes)], axis=1)
given = model.predict_proba(labels).T @ (votes / votes.sum(axis=1, keepdims=True))
name = np.argsort(align(given / given.sum(axis=1, keepdims=True), np.eye(classes)))
found = name[model.predict(labels)]
print(f"wrong: {np.mean(found[items] != truth):.1%}, "
      f"majority vote: {np.mean(votes.argmax(axis=1)[items] != truth):.1%}")  # fmt: skip

# %%
# What the model thinks of each annotator, against how often it was right.
chance = np.argsort(name)
skill = np.array([np.mean([law[chance[c], c] for c in range(classes)])
                  for law in model.probabilities_])  # fmt: skip
mine = labels[items]
given = np.isfinite(mine)
hits = ((mine == truth[:, None]) & given).sum(axis=0)
right = hits / np.maximum(given.sum(axis=0), 1)
figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
ax.scatter(right, skill, s=8 + 2 * np.isfinite(labels).sum(axis=0) ** 0.5, alpha=0.6)
ax.plot([0, 1], [0, 1], "k--", lw=1)
_ = ax.set(xlabel="share of right labels", ylabel="skill that the model found")
