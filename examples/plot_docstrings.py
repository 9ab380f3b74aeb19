"""
Topics of docstrings
====================

A real corpus that everybody has: the docstrings of the installed NumPy, SciPy and scikit-learn.
"""

# %%
# Load the counts and fit. Nothing needs tuning; the number of topics is the only choice.
import time

import numpy as np
from matplotlib import pyplot as plt

import thirdmoment as tm

corpus = tm.datasets.load_docstrings()
start = time.perf_counter()
lda = tm.LatentDirichletAllocation(n_components=20)
lda.fit(corpus.X, feature_names=corpus.feature_names)
print(f"{corpus.X.shape[0]:,} documents in {time.perf_counter() - start:.1f} s")

# %%
# The topics, heaviest first.
figure = plt.figure(figsize=(13, 7.5), layout="constrained")
lda.plot_topics(figure=figure)

# %%
# How large they are.
lda.plot(ax=plt.figure(figsize=(6.5, 4), layout="constrained").subplots())

# %%
# What the fit says about itself: which topics to trust, which to leave out, what to do next. The
# picture shows what the moments saw alone: eigenvalues below the dashed line are noise to them, and
# likelihood found these topics.
print(lda.report_)
lda.report_.plot(plt.figure(figsize=(6, 3.5), layout="constrained").subplots())

# %%
# Each document is a mixture of topics. The modules are labels the model never saw; here is the
# topic that fills each of them most.
H = lda.transform(corpus.X)
for label in ("scipy.stats", "scipy.linalg", "scipy.signal", "sklearn.cluster", "numpy.random"):
    share = H[corpus.labels == label].mean(axis=0)
    best = int(np.argmax(share))
    words = " ".join(lda.top_words(6)[best])
    print(f"{label:16s} {share[best]:.0%} of topic {best}: {words}")
