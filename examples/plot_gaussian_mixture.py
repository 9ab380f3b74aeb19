"""
Overlapping Gaussians without restarts
======================================

Twelve overlapping groups in twelve dimensions. EM from random starts ends in a different place each
time; the moments place all groups at once, and EM from there ends where EM from the truth does.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt
from sklearn.mixture import GaussianMixture as Peer

import thirdmoment as tm
from thirdmoment.metrics import align

data = tm.datasets.make_gaussian_mixture(20_000, 12, 12, separation=1.8, random_state=3)


def error(means):
    order = align(means, data.means, metric="euclidean")
    return np.linalg.norm(means[order] - data.means, axis=1).mean()


model = tm.GaussianMixture(n_components=12).fit(data.X)
print(model.report_)

# %%
# Ten random starts of scikit-learn, and EM started at the truth.
peers = [
    Peer(12, covariance_type="spherical", init_params="random_from_data", random_state=seed,
         max_iter=300).fit(data.X)
    for seed in range(10)
]  # fmt: skip
oracle = Peer(12, covariance_type="spherical", means_init=data.means, max_iter=300, tol=1e-6).fit(
    data.X
)

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.scatter([p.lower_bound_ for p in peers], [error(p.means_) for p in peers],
           color="#d1495b", label="scikit-learn, ten starts")  # fmt: skip
ax.scatter(oracle.score(data.X), error(oracle.means_), marker="*", s=180, color="k",
           label="EM from the truth")  # fmt: skip
ax.scatter(model.score(data.X), error(model.means_), marker="D", color="#00798c",
           label="moments, then EM")  # fmt: skip
ax.set(xlabel="mean log-likelihood", ylabel="mean distance of a mean from the truth")
_ = ax.legend(frameon=False)

# %%
# The components in the two columns that tell them apart best: ellipses hold half and nine tenths of
# each.
_ = model.plot(data.X, ax=plt.subplots(figsize=(6.5, 5), layout="constrained")[1])

# %%
# The spectrum of the second moment tells how many groups the data shows above the noise.
_ = model.report_.plot()
