"""Without any place for a cache the library still works."""

import subprocess
import sys

NOWHERE = """
import numba.core.caching as caching

caching.CacheImpl._locator_classes = []
import numpy as np
import numba

try:
    numba.njit(cache=True)(lambda x: x)
except RuntimeError:
    pass
else:
    raise SystemExit("numba found a place after all")
import thirdmoment as tm

corpus = tm.datasets.make_lda_corpus(200, 60, 3)
tm.LatentDirichletAllocation(3).fit(corpus.X).transform(corpus.X)
data = tm.datasets.make_categorical_hmm(20, 30, n_symbols=5, n_components=2)
tm.CategoricalHMM(2, solver="joint-schur").fit(data.X, lengths=data.lengths).predict(data.X)
print("works")
"""


def test_no_place_for_a_cache():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NOWHERE],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "works", done.stderr[-2000:]
