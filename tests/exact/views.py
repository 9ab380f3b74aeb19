"""Exact population moments of multi-view mixtures for tests."""

import numpy as np

from thirdmoment.moments.views import Core


def random_views(rng, sizes=(6, 5, 7), k=4, *, kind="real"):
    """Means M_v (d_v, k) of three views and weights (k,)."""
    if kind == "categorical":
        means = [rng.dirichlet(np.full(d, 0.7), size=k).T for d in sizes]
    else:
        means = [rng.standard_normal((d, k)) for d in sizes]
    return means, rng.dirichlet(np.full(k, 5.0))


def population_core(means, weights):
    """Core moments of the three views in full coordinates."""
    pairs = {
        (u, v): (means[u] * weights) @ means[v].T for u in range(3) for v in range(3) if u != v
    }
    triple = np.einsum("j,aj,bj,cj->abc", weights, *means)
    return Core(tuple(M @ weights for M in means), pairs, triple)


def hmm_views(rng, d=6, k=3):
    """Three consecutive observations of an HMM as views of the middle state (MV-23)."""
    emissions = rng.dirichlet(np.full(d, 0.5), size=k).T
    T = (0.5 * rng.dirichlet(np.ones(k), size=k) + 0.5 * np.eye(k)).T
    pi = rng.dirichlet(np.full(k, 3.0))
    w = T @ pi
    return [emissions @ np.diag(pi) @ T.T @ np.diag(1 / w), emissions, emissions @ T], w


def match(estimate, truth):
    """Largest error over views after one common permutation of the columns."""
    from scipy.optimize import linear_sum_assignment

    stacked, true = np.concatenate(estimate), np.concatenate(truth)
    cost = ((true[:, :, None] - stacked[:, None, :]) ** 2).sum(axis=0)
    order = linear_sum_assignment(cost)[1]
    return order, float(np.abs(stacked[:, order] - true).max())
