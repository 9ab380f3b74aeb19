"""
Clusters that are not Gaussian
==============================

Three measurements of each row, two groups: one Gaussian, one that starts at a threshold and decays
exponentially. A Gaussian mixture has no such shape and bends what it has; a kernel mixture learns
the densities themselves.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt
from scipy import stats

import thirdmoment as tm

data = tm.datasets.make_shaped_mixture(4000, 2, random_state=1)
model = tm.KernelMixture(n_components=2, bandwidth="cv").fit(data.X)
gaussian = tm.GaussianMixture(n_components=2, covariance_type="diag").fit(data.X)
print(model.report_)

# %%
# The exponential component by both, against the truth.
x = np.linspace(*np.quantile(data.X[:, 0], [0.02, 0.995]), 600)
truth = data.density(x, view=0)[1]
ours = model.density(x, view=0, component=0)
h = np.argmax(gaussian.weights_)
width = np.sqrt(gaussian.covariances_[h, 0])
theirs = stats.norm.pdf(x, gaussian.means_[h, 0], width)
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.fill_between(x, truth, color="#b8c4d6", label="truth")
ax.plot(x, ours, color="#1f3a5f", label="kernel mixture")
ax.plot(x, theirs, color="#d1495b", linestyle="--", label="Gaussian mixture")
ax.set(xlabel="first measurement", ylabel="density", title="The heavier component")
ax.legend(frameon=False)
_ = ax.spines[["top", "right"]].set_visible(False)

# %%
# All views and components at once, with each component's share of the histogram behind its curve.
_ = model.plot_components()

# %%
# Expectations of any function, without smoothing: mean, spread and a probability in each component.
mean = model.expectation(lambda x: x[:, 0], view=0)
second = model.expectation(lambda x: x[:, 0] ** 2, view=0)
print("means", mean.round(2), "standard deviations", np.sqrt(second - mean**2).round(2))
print("Pr(x > 3)", model.expectation(lambda x: x[:, 0] > 3, view=0).round(3))
