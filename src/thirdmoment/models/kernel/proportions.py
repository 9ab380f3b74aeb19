"""Views that pick their own component from Dirichlet proportions: likelihood and posterior mean.

Given the densities, Pr(x) = E_θ Π_v Σ_h θ_h p_v(x_v|h) is a sum over the components of all views,
with probability Π_h α_h(α_h+1)...(α_h+c_h-1) / (a0(a0+1)...(a0+l-1)) for counts c. It runs over
components instead, with the set of views already explained as the state: exact, 3^l k a row.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

# Sets of more views than this are not walked through.
MOST_VIEWS = 8


def log_dirichlet_mixture(logs: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """log Pr(x) (n,) from log p_v(x_v|h) (views, k, n) and α (k,)."""
    views, k, n = logs.shape
    top = logs.max(axis=1, keepdims=True)  # (views, 1, n)
    p = np.exp(logs - top)
    sets = 1 << views
    member = [[v for v in range(views) if S >> v & 1] for S in range(sets)]
    done = np.zeros((sets, n))
    done[0] = 1.0
    for h in range(k):
        own = np.ones((sets, n))
        for S in range(1, sets):
            v = member[S][-1]
            own[S] = own[S ^ (1 << v)] * p[v, h] * (alpha[h] + len(member[S]) - 1)
        done = _joined(done, own)
    a0 = float(alpha.sum())
    norm = gammaln(a0 + views) - gammaln(a0)
    return np.log(np.maximum(done[-1], 1e-300)) + top[:, 0].sum(axis=0) - norm


def _joined(done: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Σ over ways to split a set in the part explained before and the part of this component."""
    out = np.zeros_like(done)
    for S in range(len(done)):
        part = S
        while True:
            out[S] += done[S ^ part] * own[part]
            if part == 0:
                break
            part = (part - 1) & S
    return out


def expected_proportions(logs: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """E[θ | x] (n, k): E[θ_h Π...] is α_h/a0 times the likelihood with one more count at h."""
    k = len(alpha)
    whole = log_dirichlet_mixture(logs, alpha)
    found = np.empty((logs.shape[2], k))
    for h in range(k):
        more = alpha + (np.arange(k) == h)
        found[:, h] = alpha[h] / alpha.sum() * np.exp(log_dirichlet_mixture(logs, more) - whole)
    return found / found.sum(axis=1, keepdims=True)
