"""Compiled loops over documents: collapsed sweeps, one topic against the rest."""

import numpy as np

from thirdmoment._array.compile import compiled
from thirdmoment.likelihood._compiled import APART


@compiled(fastmath=True, writes=("N", "out"))
def collapsed_rows(start, stop, indptr, indices, data, weights, N, words, scale, alpha, eta, out):  # type: ignore[no-untyped-def]
    """One synchronous collapsed sweep over documents start..stop-1 (see collapsed.py).

    N (n, k) expected topic counts of the documents, replaced; words (d, k) word-topic counts of
    the last sweep, only read; scale (k,) = 1/(topic totals + d·eta); out (d, k) += new counts.
    """
    k = scale.shape[0]
    scratch = np.empty((3, k + 2 * APART), N.dtype)[:, APART : APART + k]
    h, g, counts = scratch[0], scratch[1], scratch[2]
    one, tiny, nothing = N.dtype.type(1), N.dtype.type(1e-12), N.dtype.type(1e-30)
    for a in range(start, stop):
        for j in range(k):
            h[j] = N[a, j] + alpha[j]
            counts[j] = 0
        weight = weights[a]
        for p in range(indptr[a], indptr[a + 1]):
            row = words[indices[p]]
            total = nothing
            for j in range(k):
                g[j] = h[j] * (row[j] + eta) * scale[j]
                total += g[j]
            inverse = one / total
            total = nothing
            for j in range(k):
                own = g[j] * inverse
                g[j] = max(h[j] - own, tiny) * max(row[j] - own + eta, tiny) * scale[j]
                total += g[j]
            inverse = data[p] / total
            for j in range(k):
                counts[j] += g[j] * inverse
            if weight > 0:
                new = out[indices[p]]
                inverse *= weight
                for j in range(k):
                    new[j] += g[j] * inverse
        for j in range(k):
            N[a, j] = counts[j]


@compiled(fastmath=True)
def two_part_rows(weights, indptr, indices, data, ratio, n_steps, out):  # type: ignore[no-untyped-def]
    """out[j] += expected count of word j from a topic, over weighted documents.

    A document is h parts topic and 1 - h parts background, ``ratio`` (d,) is topic over background;
    n_steps folding-in steps find its h.
    """
    longest = 0
    for i in range(weights.shape[0]):
        longest = max(longest, indptr[i + 1] - indptr[i])
    near = np.empty(longest)
    for i in range(weights.shape[0]):
        first, size = indptr[i], indptr[i + 1] - indptr[i]
        odds = 1.0  # h / (1 - h)
        length = 0.0
        for p in range(size):
            near[p] = ratio[indices[first + p]]
            length += data[first + p]
        for _ in range(n_steps):
            own = 1.0
            for p in range(size):
                mine = odds * near[p]
                own += data[first + p] * mine / (mine + 1)
            odds = own / (length + 2 - own)
        for p in range(size):
            mine = odds * near[p]
            out[indices[first + p]] += weights[i] * data[first + p] * mine / (mine + 1)
