"""
Unmixing signals: cumulants against FastICA
===========================================

Three signals mixed in five channels. Skewed sources are separated by third cumulants; symmetric
ones have none, and ``order="auto"`` finds out. With noise on every channel ICA is biased, while
three or more noisy views of the same factors are not.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import FastICA

import thirdmoment as tm

rng = np.random.default_rng(0)
n = 20_000


def mismatch(found, truth):
    """Mean angle between mixing vectors and their best partners, in degrees."""
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    truth = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    best = np.abs(found @ truth.T).max(axis=0).clip(max=1)
    return np.degrees(np.arccos(best)).mean()


sources = {
    "skewed": rng.exponential(size=(n, 3)),
    "symmetric": np.stack([rng.uniform(-1, 1, n), rng.laplace(size=n), rng.choice([-1, 1], n)], 1),
}
mixing = rng.standard_normal((3, 5))
for name, S in sources.items():
    X = S @ mixing
    ours = tm.IndependentFactors(3).fit(X)
    peer = FastICA(3, random_state=0).fit(X)
    print(f"{name}: order {ours.order_}, {mismatch(ours.components_, mixing):.2f} degrees; "
          f"FastICA {mismatch(peer.mixing_.T, mixing):.2f}")  # fmt: skip

# %%
# What each factor does to each channel (the symmetric sources).
_ = ours.plot()

# %%
# Noise of unequal strength on twenty channels. As one observation the noisy channels pull the
# subspace of an ICA towards themselves; as four views of five channels they hardly matter. (With
# equal noise everywhere one observation is the better choice: every channel counts for all.)
levels = [0.0, 0.25, 0.5, 0.75, 1.0]
looks = rng.standard_normal((3, 20))
strength = rng.uniform(0, 2, size=20) ** 2
views = [list(range(5 * v, 5 * v + 5)) for v in range(4)]
curves = {"four views": [], "one observation": [], "FastICA": []}
for level in levels:
    X = sources["skewed"] @ looks + level * strength * rng.standard_normal((n, 20))
    fits = [tm.IndependentFactors(3, views=views).fit(X), tm.IndependentFactors(3).fit(X)]
    found = [fit.components_ for fit in fits] + [FastICA(3, random_state=0).fit(X).mixing_.T]
    for values, components in zip(curves.values(), found, strict=True):
        values.append(mismatch(components, looks))
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for (name, values), style in zip(curves.items(), ("o-", "s-", "^--"), strict=True):
    ax.plot(levels, values, style, label=name)
ax.set(xlabel="noise level", ylabel="mean angle to the truth (degrees)")
_ = ax.legend(frameon=False)
