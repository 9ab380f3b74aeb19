"""
Rows near a few subspaces
=========================

Motions of rigid bodies, faces under changing light, signals of a few sources each: rows that lie
near one of several low-dimensional subspaces. `SubspaceClustering` finds the subspaces and the
groups at once, where k-means sees one cloud around the origin.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import thirdmoment as tm

rng = np.random.default_rng(0)
bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(5)]
labels = rng.integers(5, size=2000)
X = np.stack([bases[j] @ rng.standard_normal(3) for j in labels])
X += 0.1 * rng.standard_normal(X.shape)

model = tm.SubspaceClustering(n_components=5, subspace_dim=3).fit(X)
print(model.report_)

# %%
# Agreement with the true groups, one where they are equal and zero by chance.
by_distance = KMeans(5, n_init=10, random_state=0).fit_predict(X)
print(f"subspaces {adjusted_rand_score(labels, model.labels_):.2f}, "
      f"k-means {adjusted_rand_score(labels, by_distance):.2f}")  # fmt: skip

# %%
# The smallest angle between each two subspaces. Those near 90 degrees are easy to tell apart; rows
# near the common part of two that are close belong to both.
_ = model.plot(ax=plt.subplots(figsize=(5.5, 4.2), layout="constrained")[1])
