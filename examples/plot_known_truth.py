"""
Known truth: moments, refinement and variational Bayes
======================================================

Corpora drawn from the model tell how far an estimate is from the truth. The error of the moments
falls like one over the root of the number of documents; the mean of moments and sweeps stays below
it; variational Bayes from a random start can stop at a local optimum.
"""

# %%
# Mean L1 distance of a topic from the truth (0 to 2) for growing corpora, with the oracle that
# counts words with their true topics.
import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import LatentDirichletAllocation as VariationalBayes

import thirdmoment as tm
from thirdmoment.metrics import recovery_error

sizes = [500, 1000, 2000, 4000, 8000]
errors = {"moments": [], "moments + sweeps": [], "oracle": []}
for n in sizes:
    corpus = tm.datasets.make_lda_corpus(n, 500, 6, mean_length=80, random_state=0)
    plain = tm.LatentDirichletAllocation(6, refine="none").fit(corpus.X)
    full = tm.LatentDirichletAllocation(6).fit(corpus.X)
    oracle = corpus.topic_counts / corpus.topic_counts.sum(axis=1, keepdims=True)
    for name, topics in zip(errors, (plain.components_, full.components_, oracle), strict=True):
        errors[name].append(recovery_error(topics, corpus.topics))

# %%
# Variational Bayes on the smallest corpora only: it is slow.
vb = []
for n in sizes[:3]:
    corpus = tm.datasets.make_lda_corpus(n, 500, 6, mean_length=80, random_state=0)
    peer = VariationalBayes(6, max_iter=20, random_state=0).fit(corpus.X)
    topics = peer.components_ / peer.components_.sum(axis=1, keepdims=True)
    vb.append(recovery_error(topics, corpus.topics))

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), style in zip(errors.items(), ("o-", "s-", "k--"), strict=True):
    ax.loglog(sizes, values, style, label=name)
ax.loglog(sizes[:3], vb, "^-", color="#d1495b", label="scikit-learn, 20 iterations")
ax.set(xlabel="documents", ylabel="mean L1 error of a topic")
ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
ax.minorticks_off()
ax.legend(frameon=False)

# %%
# The slope of the moments on this plot is near -1/2.
print(f"slope {np.polyfit(np.log(sizes), np.log(errors['moments']), 1)[0]:.2f}")
