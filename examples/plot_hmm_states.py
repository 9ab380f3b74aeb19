"""
Hidden states of a series, and its next steps
=============================================

A series switches between three regimes. The model is learned without restarts, the most probable
path names the regime of every day, and the forecast says what comes next and how sure that is.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import thirdmoment as tm

data = tm.datasets.make_gaussian_hmm(
    1, 600, n_features=2, n_components=3, separation=2.0, persistence=0.94, random_state=5
)
model = tm.GaussianHMM(n_components=3).fit(data.X)
print(model.report_)

# %%
# The series over bands of its most probable states, which are numbered by how often they are
# visited, and how many days are in the right regime.
path = model.predict(data.X)
order = tm.metrics.align(model.means_, data.emission, metric="sqeuclidean")
print(f"{np.mean(order[data.states] == path):.0%} of days right")
ax = model.plot_path(data.X, column=1)
_ = ax.set(xlabel="day", ylabel="second column")

# %%
# How the regimes follow each other. A circle is as large as its regime is frequent, and its number
# is the probability to stay.
_ = model.plot()

# %%
# The forecast widens to the law of the whole series as the chain forgets where it was.
ahead = model.forecast(data.X, n_steps=60)
mean, spread = ahead.mean[0, :, 1], np.sqrt(ahead.variance[0, :, 1])
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.plot(range(500, 600), data.X[500:, 1], ".", color="0.4", label="observed")
ax.plot(range(600, 660), mean, label="expected")
ax.fill_between(range(600, 660), mean - 2 * spread, mean + 2 * spread, alpha=0.2, label="± 2 sd")
ax.set(xlabel="day", ylabel="second column")
_ = ax.legend(frameon=False, ncols=3)
