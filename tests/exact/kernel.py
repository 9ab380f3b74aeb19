"""Finite populations of views: every row with its probability as its weight."""

import itertools

import numpy as np


def finite_population(rng, k=3, sizes=(5, 4, 6), *, shared=False):
    """Places (a view a list), tables P_v (k, d_v), weights, all rows and their probabilities."""
    if shared:
        sizes = (sizes[0],) * len(sizes)
    places = [np.sort(rng.uniform(-3, 3, d)) for d in sizes]
    tables = [rng.dirichlet(np.full(d, 0.7), size=k) for d in sizes]
    if shared:
        places, tables = [places[0]] * len(sizes), [tables[0]] * len(sizes)
    weights = rng.dirichlet(np.full(k, 5.0))
    codes = np.array(list(itertools.product(*(range(d) for d in sizes))))
    law = np.ones((k, len(codes)))
    for v, table in enumerate(tables):
        law = law * table[:, codes[:, v]]
    X = np.stack([places[v][codes[:, v]] for v in range(len(sizes))], axis=1)
    return places, tables, weights, X, weights @ law


def dirichlet_population(rng, k=3, sizes=(5, 4, 6), *, a0=1.5, shared=False):
    """The same where every view picks its component from Dirichlet proportions."""
    places, tables, weights, X, _ = finite_population(rng, k, sizes, shared=shared)
    alpha = a0 * weights
    sizes = [len(place) for place in places]
    codes = np.array(list(itertools.product(*(range(d) for d in sizes))))
    law = np.zeros(len(codes))
    for picks in itertools.product(range(k), repeat=len(sizes)):
        counts = np.bincount(picks, minlength=k)
        chance = np.prod([np.prod(alpha[h] + np.arange(c)) for h, c in enumerate(counts)])
        chance /= np.prod(a0 + np.arange(len(sizes)))
        part = np.full(len(codes), chance)
        for v, h in enumerate(picks):
            part = part * tables[v][h, codes[:, v]]
        law += part
    return places, tables, alpha, X, law
