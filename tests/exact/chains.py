"""Exact laws of small hidden Markov models, by enumerating all paths and observations."""

import itertools

import numpy as np
import scipy.sparse as sp

from thirdmoment.moments.sequences import AdjacentCounts, Windows


def random_chain(d, k, seed, *, persistence=0.4):
    """(start (k,), T (k, k), laws (k, d)), well separated."""
    rng = np.random.default_rng(seed)
    T = (1 - persistence) * rng.dirichlet(np.ones(k), size=k) + persistence * np.eye(k)
    return rng.dirichlet(np.ones(k)), T, rng.dirichlet(np.full(d, 0.5), size=k)


def window_law(start, T, laws, positions, steps):
    """Mean over ``positions`` of the joint law (d,)*steps of the observations from there on."""
    total = 0.0
    for t in positions:
        state = start @ np.linalg.matrix_power(T, t)
        message = state[:, None] * laws  # (k, d)
        for _ in range(steps - 1):
            moved = np.tensordot(T, message, axes=(0, 0))  # next state first
            message = moved[..., None] * laws.reshape(len(laws), *(1,) * (moved.ndim - 1), -1)
        total = total + message.sum(axis=0)
    return total / len(positions)


def exact_windows(start, T, laws, lengths, reach=1):
    """Pooled law of windows of sequences with the given lengths, as weighted distinct windows."""
    d = laws.shape[1]
    steps = 2 * reach + 1
    positions = [t for n in lengths for t in range(n - steps + 1)]
    law = window_law(start, T, laws, positions, steps)
    codes = np.array(list(itertools.product(range(d), repeat=steps)))
    radix = d ** np.arange(reach)[::-1]
    views = np.stack(
        [codes[:, :reach] @ radix, codes[:, reach], codes[:, reach + 1 :] @ radix], axis=1
    )
    sizes = np.array([d**reach, d, d**reach])
    return Windows(views, law.ravel(), np.zeros(law.size), sizes)


def exact_adjacent(start, T, laws, lengths):
    """Law of neighbours over all adjacent pairs, and of first observations."""
    d = laws.shape[1]
    found = AdjacentCounts(d)
    positions = [t for n in lengths for t in range(n - 1)]
    found.pairs = sp.csr_array(window_law(start, T, laws, positions, 2))
    found.first = start @ laws
    return found


def brute_force(start, T, table, code, offsets):
    """Posteriors, transitions, log-likelihoods, best paths and their values, by enumeration."""
    k = len(start)
    gammas, pairs, values, paths, bests = [], np.zeros((k, k)), [], [], []
    for a, z in itertools.pairwise(offsets):
        gamma, moves, total, best = np.zeros((z - a, k)), np.zeros((k, k)), 0.0, (-1.0, ())
        for path in itertools.product(range(k), repeat=int(z - a)):
            p = start[path[0]] * table[code[a], path[0]]
            for t in range(1, z - a):
                p *= T[path[t - 1], path[t]] * table[code[a + t], path[t]]
            total += p
            for t, state in enumerate(path):
                gamma[t, state] += p
            for i, j in itertools.pairwise(path):
                moves[i, j] += p
            best = max(best, (p, path))
        gammas.append(gamma / total)
        pairs += moves / total
        values.append(np.log(total))
        paths.extend(best[1])
        bests.append(np.log(best[0]))
    return np.concatenate(gammas), pairs, np.array(values), np.array(paths), np.array(bests)
