"""Compiled products of a CSR block with a thin dense block (see rows.py for the reference).

Serial and without the GIL: parallelism is ours, over fixed row blocks (threads.py). Each function
is compiled at its first call for the dtype at hand and cached on disk.
"""

import numpy as np

from thirdmoment._array.compile import compiled


@compiled()
def csr_dot(indptr, indices, data, Q, out):  # type: ignore[no-untyped-def]
    """out = X Q."""
    q = Q.shape[1]
    for a in range(indptr.shape[0] - 1):
        row = out[a]
        row[:] = 0
        for p in range(indptr[a], indptr[a + 1]):
            value = data[p]
            column = Q[indices[p]]
            for c in range(q):
                row[c] += value * column[c]


@compiled()
def csr_tdot_add(indptr, indices, data, weights, Y, out):  # type: ignore[no-untyped-def]
    """out += Xᵀ (weights ⊙ Y)."""
    q = Y.shape[1]
    row = np.empty(q, Y.dtype)
    for a in range(indptr.shape[0] - 1):
        w = weights[a]
        if w == 0:
            continue
        for c in range(q):
            row[c] = w * Y[a, c]
        for p in range(indptr[a], indptr[a + 1]):
            value = data[p]
            column = out[indices[p]]
            for c in range(q):
                column[c] += value * row[c]


@compiled()
def csr_gram_add(indptr, indices, data, weights, Q, out):  # type: ignore[no-untyped-def]
    """out += Xᵀ (weights ⊙ (X Q)), each row of X read once from memory."""
    q = Q.shape[1]
    row = np.empty(q, Q.dtype)
    for a in range(indptr.shape[0] - 1):
        w = weights[a]
        if w == 0:
            continue
        row[:] = 0
        for p in range(indptr[a], indptr[a + 1]):
            value = data[p]
            column = Q[indices[p]]
            for c in range(q):
                row[c] += value * column[c]
        for p in range(indptr[a], indptr[a + 1]):
            value = w * data[p]
            column = out[indices[p]]
            for c in range(q):
                column[c] += value * row[c]
