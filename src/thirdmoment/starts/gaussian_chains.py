"""Starts of hidden Markov models with Gaussian emissions: moments of windows, k-means labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.gaussians import Block, Spherical
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.recovery.markov import chain_of
from thirdmoment.refinement.chains import Observations, family_statistics
from thirdmoment.refinement.spread import classes_of, k_means_labels, spread_centres
from thirdmoment.starts.propose import Candidate
from thirdmoment.starts.stretches import stretches
from thirdmoment.starts.view_facts import view_covariances
from thirdmoment.starts.window_facts import clear_of_noise, window_facts
from thirdmoment.starts.windows import VectorStart, vector_moments, vector_starts

# Products of columns are features up to this many columns, squares alone beyond.
PRODUCT_COLUMNS = 8

# Kernel features for each state.
BUMPS = 3

# Rows that k-means looks at, and the starts from its labels that race against unclear moments.
LABEL_ROWS = 20_000
LABEL_STARTS = 6

# Steps to either side that averaged rows take in.
AVERAGED = 5


def moment_starts(
    family: Any,
    rows: np.ndarray,
    offsets: np.ndarray,
    k: int,
    solver: str,
    rng: np.random.Generator,
    *,
    weighted: bool,
    hedge: bool,
    n_threads: int,
) -> list[Candidate]:
    """Candidates from windows of standardised columns, and of their products where need be."""
    scale = rows.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    Z = rows / scale
    d = Z.shape[1]
    found: list[VectorStart] = []
    problem: UnusableMoments | None = None
    for name, features in (
        ("moments of windows", lambda: Z),
        ("moments of windows with products", lambda: lifted(Z)),
        ("moments of windows with kernel features", lambda: bumps(Z, k, rng)),
    ):
        made = features()
        if k > 1 + made.shape[1]:  # the constant is a feature too
            problem = problem or UnusableMoments(
                f"{made.shape[1]} features and a constant cannot separate n_components={k} states."
            )
            continue
        try:
            found += vector_starts(
                vector_moments(made, offsets), k, solver, rng,
                weighted=weighted, hedge=hedge, n_threads=n_threads, name=name,
            )  # fmt: skip
        except UnusableMoments as error:
            problem = problem or error
        if found and (not hedge or clear_of_noise(found[0].view, k, found[0].windows)):
            break
    if not found:
        assert problem is not None
        raise problem
    return [_candidate(family, start, d, scale, n_threads) for start in found]


def lifted(Z: np.ndarray) -> np.ndarray:
    """Columns and their products (MV-20), each of about unit variance: [z, z zᵀ/√2]."""
    d = Z.shape[1]
    if d <= PRODUCT_COLUMNS:
        i, j = np.triu_indices(d)
        more = Z[:, i] * Z[:, j] - (i == j)
    else:
        more = Z * Z - 1.0
    return np.concatenate([Z, more / np.sqrt(2)], axis=1)


def bumps(Z: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Columns and Gaussian kernels around spread-out rows, three for each state."""
    part = Z[:: max(1, len(Z) // LABEL_ROWS)]
    ones = np.ones(len(part))
    count = min(BUMPS * k, len(np.unique(part, axis=0)))
    labels = k_means_labels(part, ones, spread_centres(part, ones, count, rng))
    size = np.bincount(labels, minlength=count)
    centres = (np.eye(count)[labels].T @ part / np.maximum(size, 1)[:, None])[size > 0]
    apart = cdist(centres, centres)
    np.fill_diagonal(apart, np.inf)
    width = 2 * float(np.median(apart.min(axis=1))) if len(centres) > 1 else 1.0
    kernels = np.exp(-0.5 * (cdist(Z, centres) / max(width, 1e-12)) ** 2)
    return np.concatenate([Z, 2 * (kernels - kernels.mean(axis=0))], axis=1)


def _candidate(
    family: Any, start: VectorStart, d: int, scale: np.ndarray, n_threads: int
) -> Candidate:
    """Means from the features, covariances by scores of past and future (MV-18)."""
    q = start.means.shape[1]
    now = 1 + q + np.arange(q)
    unit = np.ones(1 + 3 * q)
    full = isinstance(family, Block)
    covariances, _ = view_covariances(
        start.chunks, start.view, [(now[:d], now)], unit, [not full], n_threads=n_threads
    )
    cov = covariances[0]
    means = start.means[:, :d] * scale
    if full:
        spread = cov * scale[:, None] * scale
    else:
        spread = cov * scale**2
    if isinstance(family, Spherical):
        spread = spread.mean(axis=1)
    _, *emission = family.project((start.start, means, spread))
    parameters = (start.start, start.T, *emission)
    return Candidate(
        parameters, start.name, window_facts(start.view, np.zeros(len(means)), start.windows)
    )


def label_starts(
    family: Any,
    data: Observations,
    rows: np.ndarray,
    k: int,
    rng: np.random.Generator,
    *,
    count: int | None = None,
) -> list[Candidate]:
    """Starts from k-means labels: their emissions, and how often one follows another.

    The first state is as wide as its label, all others begin as wide as all data, which leaves EM
    more freedom; every third sees rows averaged over a few steps; from the fourth on transitions
    are random, so that each start goes its own way.
    """
    Z = rows / np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    offsets, ones = data.where.offsets, np.ones(len(rows))
    whole = _from_labels(family, data, np.zeros(len(rows), dtype=int), 1)
    found = []
    for i in range(LABEL_STARTS if count is None else count):
        seen = _averaged(Z, offsets) if i % 3 == 2 else Z
        labels = classes_of(seen, ones, k, rng, most=LABEL_ROWS)
        start, T, means, spread = _from_labels(family, data, labels, k)
        if i > 0:
            spread = np.repeat(whole[3], k, axis=0)
        if i > 2:
            T = 0.999 * rng.dirichlet(np.full(k, 1 / k), size=k) + 0.001 / k
        found.append(Candidate((start, T, means, spread), f"k-means {i}", None))
    lasting = [
        Candidate(_from_labels(family, data, labels, k), name, None)
        for name, labels in stretches(Z, offsets, k, rng)
    ]
    kept = None if count is None else max(count - len(lasting), 1)
    return [*found[:kept], *lasting][:count]


def _averaged(Z: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Mean over `AVERAGED` steps to either side, within sequences."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    t = np.arange(len(Z))
    low = np.maximum(t - AVERAGED, offsets[owner])
    high = np.minimum(t + AVERAGED + 1, offsets[owner + 1])
    total = np.concatenate([np.zeros((1, Z.shape[1])), np.cumsum(Z, axis=0)])
    return (total[high] - total[low]) / (high - low)[:, None]


def _from_labels(family: Any, data: Observations, labels: np.ndarray, k: int) -> Parameters:
    """One M-step as if the labels were the states, every transition seen once more."""
    sums = family_statistics(family, data, np.eye(k)[labels])
    emission = family.maximise(sums)[1:]
    return *chain_of(labels, data.where.offsets, k), *emission
