"""Compiled recursions of hidden Markov models; the same in plain arrays is in packed.py.

Observations of all sequences stand one after another. ``edge`` marks the first (1) and the last (2)
of each sequence; ``table[code[t]]`` are the likelihoods of observation t in each state, so that
symbols need one row each and vectors one row an observation. Recursions are scaled; `forward` and
`combine` tell when numbers get too small for that, and `logarithmic` then does the same work in
logarithms. Matrices are padded with empty states to an even number, which helps the compiler.
"""

import numpy as np

from thirdmoment._array.compile import compiled
from thirdmoment._constants import Floor, Work

# Sums below this have lost digits, or will.
SMALL: Floor[float] = 1e-200

# reassociation and fused products, but infinities and NaN as they are
FAST = {"reassoc", "contract", "nsz", "arcp"}

# Scratch arrays keep this many numbers between them and their neighbours in memory. The compiler
# checks at run time that arrays are a vector's length apart and otherwise adds up one by one: with
# neighbours that happen to be near, sums would differ in the last bit between threads.
APART: Work[int] = 64


@compiled(fastmath=True, writes=("H",))
def fold_in_rows(start, stop, indptr, indices, data, words, prior, n_steps, tol, H):  # type: ignore[no-untyped-def]
    """Rows start..stop-1 of H: n_steps times H <- H ⊙ (R Cᵀ) + prior, normalised."""
    k = words.shape[1]
    counts = np.empty(k + 2 * APART)[APART : APART + k]
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
            if norm <= 0.0:  # an empty document without a prior
                break
            moved = 0.0
            for j in range(k):
                new = counts[j] / norm
                moved += abs(new - H[a, j])
                H[a, j] = new
            if moved <= tol:
                break


@compiled(fastmath=True)
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


@compiled(fastmath=FAST, writes=("alpha", "value"))
def forward(begin, end, edge, code, table, incoming, start, k, alpha, value, number):  # type: ignore[no-untyped-def]
    """α_t ∝ (α_{t-1} T) ∘ b_t, rows of ``alpha`` for begin..end-1, each summing to one.

    ``incoming`` is Tᵀ. ``value[number]`` and on get log-likelihoods of the sequences. Returns
    whether all sums kept their digits.
    """
    sound = True
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
        if not total > SMALL:  # NaN too
            sound = False
            total = 1.0
            for j in range(width):
                row[j] = 1.0 / k if j < k else 0.0
        inverse = 1.0 / total
        for j in range(width):
            before[j] = row[j] * inverse
            out[j] = before[j]
        product *= total
        if product < 1e-100 or product > 1e100:
            log_sum += np.log(product)
            product = 1.0
        if edge[t] & 2:
            value[number] = log_sum + np.log(product)
            number += 1
            log_sum, product = 0.0, 1.0
    return sound


@compiled(fastmath=FAST, writes=("beta", "norm"))
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
        if total > SMALL:
            inverse = 1.0 / total
            for j in range(width):
                after[j] = row[j] * inverse
                out[j] = after[j]
        else:
            for j in range(width):
                after[j] = 1.0 / k if j < k else 0.0
                out[j] = after[j]


@compiled(fastmath=FAST, writes=("counts", "first", "A", "V"))
def combine(begin, end, base, edge, code, table, alpha, beta, norm, place, counts, first, A, V):  # type: ignore[no-untyped-def]
    """Posteriors γ_t ∝ α_t ∘ β_t of begin..end-1 added to rows ``place[t]`` of ``counts``.

    ``alpha``, ``beta`` and ``norm`` begin at observation ``base``. The factors of the expected
    transitions go to A and V: A_t[i] T[i, j] V_t[j] is Pr(state i at t, j at t+1 | sequence), zero
    at the end of a sequence. ``first`` (k,) takes the posteriors of first states. Returns whether
    all sums kept their digits.
    """
    width, sound = first.shape[0], True
    for t in range(begin, end):
        a, z = alpha[t - base], beta[t - base]
        share = 0.0
        for j in range(width):
            share += a[j] * z[j]
        if not share > SMALL:
            sound = False
            share = 1.0
        inverse = 1.0 / share
        out = counts[place[t]]
        for j in range(width):
            out[j] += a[j] * z[j] * inverse
        if edge[t] & 1:
            for j in range(width):
                first[j] += a[j] * z[j] * inverse
        left, right = A[t - begin], V[t - begin]
        if edge[t] & 2 or not norm[t - base] > SMALL:
            sound = sound and edge[t] & 2 > 0
            for j in range(width):
                left[j] = 0.0
                right[j] = 0.0
        else:
            scale = inverse / norm[t - base]
            b, after = table[code[t + 1]], beta[t + 1 - base]
            for j in range(width):
                left[j] = a[j] * scale
                right[j] = b[j] * after[j]
    return sound


@compiled(inner=True)
def log_sum(row):  # type: ignore[no-untyped-def]
    """log Σ exp(row), -inf for a row of -inf."""
    top = row.max()
    if not np.isfinite(top):
        return top
    total = 0.0
    for x in row:
        total += np.exp(x - top)
    return top + np.log(total)


@compiled(writes=("value",))
def logarithmic(begin, end, edge, code, logs, log_T, log_start, place, sums, value, number):  # type: ignore[no-untyped-def]
    """Forward, backward and combination in logarithms: slow, and right for any numbers.

    ``sums`` are the expected visits (rows ``place[t]``), transitions and first states. Where an
    observation is impossible the sequence has value -inf, and the recursions go on without it.
    """
    counts, pairs, first = sums
    k = log_start.shape[0]
    alpha, norm, row = np.empty((end - begin, k)), np.empty(end - begin), np.empty(k)
    total = 0.0
    for t in range(begin, end):
        here = alpha[t - begin]
        for j in range(k):
            if edge[t] & 1:
                here[j] = log_start[j]
            else:
                for i in range(k):
                    row[i] = alpha[t - begin - 1, i] + log_T[i, j]
                here[j] = log_sum(row)
        for j in range(k):
            row[j] = here[j] + logs[code[t], j]
        norm[t - begin] = log_sum(row)
        total = norm[t - begin] + (0.0 if edge[t] & 1 else total)
        if np.isfinite(norm[t - begin]):
            here[:] = row - norm[t - begin]
        if edge[t] & 2:
            value[number] = total
            number += 1
    after, z = np.zeros(k), np.zeros(k)  # β of the next and of this observation, Σ exp(α + β) = 1
    for t in range(end - 1, begin - 1, -1):
        here = alpha[t - begin]
        if edge[t] & 2:
            z[:] = 0.0
        else:
            lost = not np.isfinite(norm[t - begin + 1])
            for i in range(k):
                for j in range(k):
                    seen = 0.0 if lost else logs[code[t + 1], j] - norm[t - begin + 1]
                    row[j] = log_T[i, j] + seen + after[j]
                    pairs[i, j] += np.exp(here[i] + row[j])
                z[i] = log_sum(row)
        for j in range(k):
            share = np.exp(here[j] + z[j])
            counts[place[t], j] += share
            if edge[t] & 1:
                first[j] += share
        after[:] = z


@compiled(writes=("back", "path", "value"))
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
