"""Compiled recursions of hidden Markov models; the same in plain arrays is in packed.py.

Observations of all sequences stand one after another. ``edge`` marks the first (1) and the last (2)
of each sequence; ``table[code[t]]`` are the likelihoods of observation t in each state, so that
symbols need one row each and vectors one row an observation. All recursions are scaled, never in
logarithms, except Viterbi's. Matrices are padded to a multiple of four states with zeros: loops of
fixed small steps is what the compiler makes fast.
"""

import numpy as np
from numba import njit

# reassociation and fused products, but infinities and NaN as they are
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(nogil=True, cache=True, fastmath=FAST)
def forward(begin, end, edge, code, table, incoming, start, k, alpha, value, number):  # type: ignore[no-untyped-def]
    """α_t ∝ (α_{t-1} T) ∘ b_t, rows of ``alpha`` for begin..end-1, each summing to one.

    ``incoming`` is Tᵀ. ``value[number]`` and on get log-likelihoods of the sequences. Where an
    observation is impossible, that is -inf, and the recursion goes on from even shares.
    """
    width = start.shape[0]
    before, row = np.empty(width), np.empty(width)
    log_sum, product = 0.0, 1.0
    for t in range(begin, end):
        b = table[code[t]]
        total = 0.0
        if edge[t] & 1:
            for j in range(width):
                row[j] = start[j] * b[j]
                total += row[j]
        else:
            for j in range(width):
                mass = 0.0
                for i in range(width):
                    mass += before[i] * incoming[j, i]
                row[j] = mass * b[j]
                total += row[j]
        out = alpha[t - begin]
        if total > 0.0:
            inverse = 1.0 / total
            for j in range(width):
                before[j] = row[j] * inverse
                out[j] = before[j]
        else:
            for j in range(width):
                before[j] = 1.0 / k if j < k else 0.0
                out[j] = before[j]
        if total < 1e-100:
            log_sum += np.log(total)
        else:
            product *= total
            if product < 1e-100 or product > 1e100:
                log_sum += np.log(product)
                product = 1.0
        if edge[t] & 2:
            value[number] = log_sum + np.log(product)
            number += 1
            log_sum, product = 0.0, 1.0


@njit(nogil=True, cache=True, fastmath=FAST)
def backward(begin, end, edge, code, table, T, k, beta, norm):  # type: ignore[no-untyped-def]
    """β_t ∝ T (b_{t+1} ∘ β_{t+1}), rows of ``beta`` that sum to one, and their sums before."""
    width = T.shape[0]
    after, row = np.empty(width), np.empty(width)
    for t in range(end - 1, begin - 1, -1):
        out = beta[t - begin]
        total = 0.0
        if not edge[t] & 2:
            b = table[code[t + 1]]
            for j in range(width):
                after[j] *= b[j]
            for i in range(width):
                mass = 0.0
                for j in range(width):
                    mass += T[i, j] * after[j]
                row[i] = mass
                total += mass
        norm[t - begin] = total
        if total > 0.0:
            inverse = 1.0 / total
            for j in range(width):
                after[j] = row[j] * inverse
                out[j] = after[j]
        else:
            for j in range(width):
                after[j] = 1.0 / k if j < k else 0.0
                out[j] = after[j]


@njit(nogil=True, cache=True, fastmath=FAST)
def combine(begin, end, base, edge, code, table, alpha, beta, norm, place, counts, first, A, V):  # type: ignore[no-untyped-def]
    """Posteriors γ_t ∝ α_t ∘ β_t of begin..end-1 added to rows ``place[t]`` of ``counts``.

    ``alpha``, ``beta`` and ``norm`` begin at observation ``base``. The factors of the expected
    transitions go to A and V: A_t[i] T[i, j] V_t[j] is Pr(state i at t, j at t+1 | sequence), zero
    at the end of a sequence. ``first`` (k,) takes the posteriors of first states.
    """
    width = first.shape[0]
    for t in range(begin, end):
        a, z = alpha[t - base], beta[t - base]
        share = 0.0
        for j in range(width):
            share += a[j] * z[j]
        inverse = 1.0 / share if share > 0.0 else 0.0
        out = counts[place[t]]
        for j in range(width):
            out[j] += a[j] * z[j] * inverse
        if edge[t] & 1:
            for j in range(width):
                first[j] += a[j] * z[j] * inverse
        left, right = A[t - begin], V[t - begin]
        if edge[t] & 2 or not norm[t - base] > 0.0:
            for j in range(width):
                left[j] = 0.0
                right[j] = 0.0
        else:
            scale = inverse / norm[t - base]
            b, after = table[code[t + 1]], beta[t + 1 - base]
            for j in range(width):
                left[j] = a[j] * scale
                right[j] = b[j] * after[j]


@njit(nogil=True, cache=True)
def viterbi(begin, end, edge, code, log_table, log_T, log_start, back, path, value, number):  # type: ignore[no-untyped-def]
    """Most probable states of the sequences in begin..end-1, and their log-probabilities."""
    k = log_start.shape[0]
    best, row = np.empty(k), np.empty(k)
    for t in range(begin, end):
        b = log_table[code[t]]
        if edge[t] & 1:
            for j in range(k):
                row[j] = log_start[j] + b[j]
        else:
            for j in range(k):
                top, source = best[0] + log_T[0, j], 0
                for i in range(1, k):
                    mass = best[i] + log_T[i, j]
                    if mass > top:
                        top, source = mass, i
                back[t - begin, j] = source
                row[j] = top + b[j]
        for j in range(k):
            best[j] = row[j]
        if edge[t] & 2:
            state = 0
            for j in range(1, k):
                if best[j] > best[state]:
                    state = j
            value[number] = best[state]
            number += 1
            s = t
            path[s] = state
            while not edge[s] & 1:
                state = back[s - begin, state]
                s -= 1
                path[s] = state
