"""
A picture of every model
========================

Every model has ``plot``: the picture that people of its field draw first. It takes ``ax`` and
returns the axes, so that pictures stand side by side and can be changed.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import thirdmoment as tm

rng = np.random.default_rng(0)
figure, axes = plt.subplots(3, 3, figsize=(15, 12.5), layout="constrained")

# %%
# Mixtures: ellipses of Gaussians in the two columns that tell them apart best, the answers of
# latent classes, the density of components of any shape.
cloud = tm.datasets.make_gaussian_mixture(3000, 5, 4, separation=3.0, random_state=1)
tm.GaussianMixture(4, covariance_type="full").fit(cloud.X).plot(cloud.X, ax=axes[0, 0])

table = tm.datasets.make_categorical_mixture(4000, 3, 3, n_columns=6, random_state=1)
tm.CategoricalMixture(3).fit(table.X).plot(ax=axes[0, 1])

shapes = tm.datasets.make_shaped_mixture(n_samples=4000, n_components=3)
tm.KernelMixture(3).fit(shapes.X).plot(view=0, ax=axes[0, 2])

# %%
# Chains: the graph of transitions, and a series over the bands of its most probable states.
series = tm.datasets.make_gaussian_hmm(
    1, 600, n_features=2, n_components=3, separation=2.0, persistence=0.94, random_state=5
)
chain = tm.GaussianHMM(3).fit(series.X)
chain.plot(ax=axes[1, 0])
chain.plot_path(series.X, column=1, ax=axes[1, 1])

# %%
# Regressions: rows in the colour of their line; with more columns y is drawn without what the
# others do.
X = rng.standard_normal((3000, 4))
slopes, labels = rng.standard_normal((3, 4)), rng.integers(3, size=3000)
y = (X * slopes[labels]).sum(axis=1) + 0.3 * rng.standard_normal(3000)
tm.MixedLinearRegression(3).fit(X, y).plot(X, y, column=1, ax=axes[1, 2])

# %%
# Views: mean and spread of every column. Subspaces: the angles between them. Factors: what each
# does to every column.
tm.MultiViewMixture(3).fit(tm.datasets.make_gaussian_mixture(3000, 9, 3).X).plot(ax=axes[2, 0])

bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(4)]
rows = np.stack([bases[j] @ rng.standard_normal(3) for j in rng.integers(4, size=1000)])
rows += 0.05 * rng.standard_normal(rows.shape)
tm.SubspaceClustering(4, 3).fit(rows).plot(ax=axes[2, 1])

mixed = rng.exponential(size=(4000, 4)) @ rng.standard_normal((4, 9))
tm.IndependentFactors(4).fit(mixed).plot(ax=axes[2, 2])

names = ["GaussianMixture", "CategoricalMixture", "KernelMixture", "GaussianHMM: plot",
         "GaussianHMM: plot_path", "MixedLinearRegression", "MultiViewMixture",
         "SubspaceClustering", "IndependentFactors"]  # fmt: skip
for ax, name in zip(axes.ravel(), names, strict=True):
    ax.set_title(name, loc="left", fontsize=9, color="0.4")

# %%
# Topics have bars of their top words (``plot_topics``), of their sizes (``plot``) and a tree
# (``plot_hierarchy``).
corpus = tm.datasets.load_docstrings()
lda = tm.LatentDirichletAllocation(8).fit(corpus.X, feature_names=corpus.feature_names)
_ = lda.plot(ax=plt.subplots(figsize=(6.5, 3), layout="constrained")[1])
