"""Compiled loops over documents: folding in, collapsed sweeps."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, fastmath=True)
def fold_in_rows(start, stop, indptr, indices, data, words, prior, n_steps, tol, H):  # type: ignore[no-untyped-def]
    """Rows start..stop-1 of H: n_steps times H <- H ⊙ (R Cᵀ) + prior, normalised."""
    k = words.shape[1]
    counts = np.empty(k)
    for a in range(start, stop):
        for _ in range(n_steps):
            for j in range(k):
                counts[j] = 0.0
            for p in range(indptr[a], indptr[a + 1]):
                row = words[indices[p]]
                total = 0.0
                for j in range(k):
                    total += H[a, j] * row[j]
                ratio = data[p] / total
                for j in range(k):
                    counts[j] += ratio * row[j]
            norm = 0.0
            for j in range(k):
                counts[j] = counts[j] * H[a, j] + prior[j]
                norm += counts[j]
            moved = 0.0
            for j in range(k):
                new = counts[j] / norm
                moved += abs(new - H[a, j])
                H[a, j] = new
            if moved <= tol:
                break


@njit(nogil=True, cache=True, fastmath=True)
def log_likelihood_rows(start, stop, indptr, indices, data, words, H, out):  # type: ignore[no-untyped-def]
    """out[a] = Σ_j x_aj log(H C)_aj."""
    k = words.shape[1]
    for a in range(start, stop):
        total = 0.0
        for p in range(indptr[a], indptr[a + 1]):
            row = words[indices[p]]
            mix = 0.0
            for j in range(k):
                mix += H[a, j] * row[j]
            total += data[p] * np.log(mix)
        out[a] = total


@njit(nogil=True, cache=True, fastmath=True)
def collapsed_rows(start, stop, indptr, indices, data, weights, N, words, scale, alpha, eta, out):  # type: ignore[no-untyped-def]
    """One synchronous collapsed sweep over documents start..stop-1 (see collapsed.py).

    N (n, k) expected topic counts of the documents, replaced; words (d, k) word-topic counts of
    the last sweep, only read; scale (k,) = 1/(topic totals + d·eta); out (d, k) += new counts.
    """
    k = scale.shape[0]
    h, g, counts = np.empty(k, N.dtype), np.empty(k, N.dtype), np.empty(k, N.dtype)
    one, tiny = N.dtype.type(1), N.dtype.type(1e-12)
    for a in range(start, stop):
        for j in range(k):
            h[j] = N[a, j] + alpha[j]
            counts[j] = 0
        weight = weights[a]
        for p in range(indptr[a], indptr[a + 1]):
            row = words[indices[p]]
            total = tiny
            for j in range(k):
                g[j] = h[j] * (row[j] + eta) * scale[j]
                total += g[j]
            inverse = one / total
            total = tiny
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


@njit(nogil=True, cache=True)
def digamma(x):  # type: ignore[no-untyped-def]
    """ψ(x) for x > 0 by recurrence and the asymptotic series."""
    shift = 0.0
    while x < 6.0:
        shift -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f / 240)))
    return shift + np.log(x) - 0.5 / x - series


@njit(nogil=True, cache=True)
def dirichlet_numerators(N, weights, alpha, out):  # type: ignore[no-untyped-def]
    """out[:k] += Σ_a w_a (ψ(N_aj + α_j) - ψ(α_j)), out[k] += Σ_a w_a (ψ(L_a + α0) - ψ(α0))."""
    n, k = N.shape
    total = 0.0
    for j in range(k):
        total += alpha[j]
    base = np.empty(k)
    for j in range(k):
        base[j] = digamma(alpha[j])
    base0 = digamma(total)
    for a in range(n):
        length = 0.0
        for j in range(k):
            length += N[a, j]
            if N[a, j] > 1e-6:
                out[j] += weights[a] * (digamma(N[a, j] + alpha[j]) - base[j])
        if length > 0:
            out[k] += weights[a] * (digamma(length + total) - base0)
