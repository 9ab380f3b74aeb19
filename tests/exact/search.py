"""Weighted rows whose moments are those of the population, to rounding error.

Fitting them is an end-to-end check: the estimator must give the parameters back.
"""

import itertools

import numpy as np
from scipy.special import gammaln


def gaussian_rows(means, weights, variances):
    """Rows with the moments up to the third of a spherical mixture; means (k, d)."""
    k, d = means.shape
    steps = np.sqrt(d) * np.concatenate([np.eye(d), -np.eye(d)])
    X = np.concatenate([means[i] + np.sqrt(variances[i]) * steps for i in range(k)])
    return X, np.repeat(weights / (2 * d), 2 * d)


def hermite_grid(d, nodes):
    """Product Gauss-Hermite nodes (m, d) and weights (m,) of the standard normal."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    points = np.array(list(itertools.product(x, repeat=d)))
    return points, np.array([np.prod(one) for one in itertools.product(w, repeat=d)])


def regression_rows(coefs, intercepts, weights, sigma, mean, root):
    """Rows (X, y) and weights with the moments of a mixed regression, x ~ N(mean, root rootᵀ).

    Exact for products of six factors of x and for three of the noise.
    """
    k, d = coefs.shape
    Z, wz = hermite_grid(d, 4)
    X = mean + Z @ root.T
    rows, targets, mass = [], [], []
    for i in range(k):
        for noise in (-sigma, sigma):
            rows.append(X)
            targets.append(X @ coefs[i] + intercepts[i] + noise)
            mass.append(weights[i] * wz / 2)
    return np.concatenate(rows), np.concatenate(targets), np.concatenate(mass)


def subspace_rows(bases, weights, sigma):
    """Rows with the moments up to the fifth of Gaussian subspaces; bases is a list of (d, p)."""
    d, _ = bases[0].shape
    Z, wz = hermite_grid(d, 3)
    rows, mass = [], []
    for U, w in zip(bases, weights, strict=True):
        values, vectors = np.linalg.eigh(U @ U.T + sigma**2 * np.eye(d))
        rows.append(Z @ (vectors * np.sqrt(values)).T)
        mass.append(w * wz)
    return np.concatenate(rows), np.concatenate(mass)


def lda_documents(topics, alpha, length=3):
    """All documents of a length (counts) with their probabilities under LDA; topics (k, d)."""
    k, d = topics.shape
    a0 = alpha.sum()
    found: dict[tuple, float] = {}
    for words in itertools.product(range(d), repeat=length):
        total = 0.0
        for assigned in itertools.product(range(k), repeat=length):
            times = np.bincount(assigned, minlength=k)
            log = gammaln(alpha + times).sum() - gammaln(alpha).sum()
            share = np.exp(log + gammaln(a0) - gammaln(a0 + length))
            total += share * np.prod([topics[t, w] for t, w in zip(assigned, words, strict=True)])
        counts = tuple(np.bincount(words, minlength=d))
        found[counts] = found.get(counts, 0.0) + total
    return np.array(list(found), dtype=float), np.array(list(found.values()))
