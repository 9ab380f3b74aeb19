"""
Components of any shape through three views
===========================================

Four components with skewed noise that no Gaussian describes. Three groups of columns that are
independent given the component are enough to find all means, weights and covariances.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import thirdmoment as tm
from thirdmoment.metrics import align

rng = np.random.default_rng(0)
k, n = 4, 30_000
means = 2 * rng.standard_normal((k, 12))
mixing = np.linalg.qr(rng.standard_normal((3, 4, 4)))[0]  # columns of a view are correlated
labels = rng.choice(k, size=n, p=[0.4, 0.3, 0.2, 0.1])
noise = np.einsum("vij,avj->avi", mixing, rng.exponential(1.5, size=(n, 3, 4)) - 1.5)
X = means[labels] + noise.reshape(n, 12)
views = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]

model = tm.MultiViewMixture(n_components=k, views=views).fit(X)
print(model.report_)

# %%
# Mean and spread of every column in every component, next to those of all rows.
_ = model.plot(ax=plt.subplots(figsize=(8, 3.8), layout="constrained")[1])

# %%
# Means and covariances against the truth, component by component.
found = np.concatenate(model.means_, axis=1)
order = align(found, means, metric="euclidean")
truth = 1.5**2 * np.eye(4)  # rotated noise of equal variances
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for j in range(k):
    label = f"component {j + 1}: {model.weights_[order[j]]:.0%}"
    left.scatter(means[j], found[order[j]], s=18, label=label)
    spread = [np.diagonal(model.covariances_[v][order[j]]) for v in range(3)]
    right.scatter(np.full(12, j + 1), np.concatenate(spread), s=18)
left.plot([-5, 5], [-5, 5], "k--", lw=1)
left.set(xlabel="true mean", ylabel="recovered mean")
left.legend(frameon=False)
right.axhline(truth[0, 0], color="k", ls="--", lw=1)
_ = right.set(xlabel="component", ylabel="recovered variances", xticks=range(1, k + 1), ylim=(0, 4))
