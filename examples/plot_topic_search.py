"""
One topic from one word
=======================

Not twenty topics, but the one about this word: `TopicSearch` prepares a corpus once and answers a
word in milliseconds, without learning any other topic. Here the corpus is the docstrings of NumPy,
SciPy and scikit-learn as they are installed.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import thirdmoment as tm

corpus = tm.datasets.load_docstrings()
search = tm.TopicSearch(n_components=50).fit(corpus.X, feature_names=corpus.feature_names)
print(search.report_)

# %%
# Four words. Every answer says whether it is clear: whether the hint points at one topic, and if
# the words of that topic are one theme, which occur together and more than elsewhere.
words = ["eigenvalues", "spline", "clusters", "fft"]
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
for word, ax in zip(words, axes, strict=True):
    start = time.perf_counter()
    topic = search.search(word)
    seconds = time.perf_counter() - start
    top = topic.top_words(8)
    height = np.sort(topic.parameters)[::-1][: len(top)]
    ax.barh(top[::-1], height[::-1], color="#4878d0")
    verdict = "clear" if topic.informative else "unsure"
    ax.set_title(f"{word}: {verdict}, {1e3 * seconds:.0f} ms", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Several words speak together, negative ones exclude, and documents can be the hint as well: here
# the three functions that are most about the topic of "spline" lead back to it.
together = search.search(["random", "sample"], negative=["clusters"])
print(together.top_words(8), together.informative)
spline = search.search("spline")
best = spline.documents(3)
print([str(corpus.names[i]) for i in best])
print(search.search(documents=corpus.X[best]).top_words(8))

# %%
# A word that belongs to many topics gets an answer that says so.
print(search.search("computed").report)
