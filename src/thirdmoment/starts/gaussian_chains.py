"""Starts of hidden Markov models with Gaussian emissions: moments of windows, k-means labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from thirdmoment._constants import Choice
from thirdmoment.exceptions import UnusableMoments, without_frames
from thirdmoment.likelihood.gaussians import Block, Spherical
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.recovery.markov import chain_of
from thirdmoment.refinement.chains import Observations, family_statistics
from thirdmoment.refinement.spread import classes_of, k_means_labels, spread_centres
from thirdmoment.sizes import PART
from thirdmoment.starts.propose import SPREAD_STARTS
from thirdmoment.starts.start import Settings, Start
from thirdmoment.starts.stretches import stretches
from thirdmoment.starts.view_facts import Wanted, view_covariances
from thirdmoment.starts.windows import (
    ChainEstimate,
    VectorMoments,
    streamed_moments,
    vector_chains,
    vector_moments,
)
from thirdmoment.streaming import Streamed

# Products of columns are features up to this many columns, squares alone beyond.
PRODUCT_COLUMNS: Choice[int] = 8

# Kernel features for each state.
BUMPS: Choice[int] = 3

# Steps to either side that averaged rows take in.
AVERAGED: Choice[int] = 5


class WholeVectors(NamedTuple):
    """All sequences of a source."""

    rows: Streamed  # chunks with ``X``, ``offsets`` and ``start``
    units: Callable[[np.ndarray], np.ndarray]  # makes rows of X
    deviation: np.ndarray  # (d,) of the rows


def moment_starts(
    family: Any,
    rows: np.ndarray,
    offsets: np.ndarray,
    k: int,
    settings: Settings,
    whole: WholeVectors | None = None,
) -> list[Start]:
    """Starts from windows of standardised columns, and of their products where need be."""
    scale = rows.std(axis=0) if whole is None else whole.deviation
    scale = np.where(scale > 0, scale, 1.0)
    Z = rows / scale
    found: list[Start] = []
    problems: list[UnusableMoments] = []
    ways: tuple[tuple[str, Callable[[], Features]], ...] = (
        ("moments of windows", lambda: _as_they_are),
        ("moments of windows with products", lambda: lifted),
        ("moments of windows with kernel features", lambda: bumps(Z, k, settings.rng)),
    )
    for name, features in ways:
        make = features()
        q = make(Z[:1]).shape[1]
        if k > 1 + q:  # the constant is a feature too
            few = f"{q} features and a constant cannot separate n_components={k} states."
            problems.append(UnusableMoments(few))
            continue
        if whole is None:
            moments = vector_moments(make(Z), offsets)
        else:
            scaled = partial(_scaled, make, whole.units, scale)
            moments = streamed_moments(whole.rows, scaled, q, settings.n_threads)
        try:
            chains = vector_chains(moments, k, settings, name=name)
        except UnusableMoments as error:
            problems.append(without_frames(error))
            continue
        own = [_as_start(family, chain, moments, scale, settings) for chain in chains]
        if not settings.hedge or chains[0].facts.trusted(moments.total):
            return own  # what was tried before was not trusted
        found += own
    if not found:
        raise problems.pop(0)
    return found


Features = Callable[[np.ndarray], np.ndarray]


def _as_they_are(Z: np.ndarray) -> np.ndarray:
    return Z


def _scaled(make: Features, units: Features, scale: np.ndarray, X: np.ndarray) -> np.ndarray:
    return make(units(X) / scale)


def lifted(Z: np.ndarray) -> np.ndarray:
    """Columns and their products (MV-20), each of about unit variance: [z, z zᵀ/√2]."""
    d = Z.shape[1]
    if d <= PRODUCT_COLUMNS:
        i, j = np.triu_indices(d)
        more = Z[:, i] * Z[:, j] - (i == j)
    else:
        more = Z * Z - 1.0
    return np.concatenate([Z, more / np.sqrt(2)], axis=1)


def bumps(Z: np.ndarray, k: int, rng: np.random.Generator) -> Features:
    """What adds Gaussian kernels around spread-out rows to columns, three for each state."""
    part = Z[:: max(1, len(Z) // PART)]
    ones = np.ones(len(part))
    count = min(BUMPS * k, len(np.unique(part, axis=0)))
    labels = k_means_labels(part, ones, spread_centres(part, ones, count, rng))
    size = np.bincount(labels, minlength=count)
    centres = (np.eye(count)[labels].T @ part / np.maximum(size, 1)[:, None])[size > 0]
    apart = cdist(centres, centres)
    np.fill_diagonal(apart, np.inf)
    width = 2 * float(np.median(apart.min(axis=1))) if len(centres) > 1 else 1.0
    mean = _kernels(Z, centres, width).mean(axis=0)
    return partial(_bumped, centres, width, mean)


def _kernels(Z: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-0.5 * (cdist(Z, centres) / max(width, 1e-12)) ** 2)


def _bumped(centres: np.ndarray, width: float, mean: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.concatenate([Z, 2 * (_kernels(Z, centres, width) - mean)], axis=1)


def _as_start(
    family: Any,
    chain: ChainEstimate,
    moments: VectorMoments,
    scale: np.ndarray,
    settings: Settings,
) -> Start:
    """Means from the features, covariances by scores of past and future (MV-18)."""
    d, q, full = len(scale), chain.emissions.shape[1], isinstance(family, Block)
    now = 1 + q + np.arange(q)
    covariances, _ = view_covariances(
        moments.chunks, chain.views, [Wanted(now[:d], now, not full)], np.ones(1 + 3 * q),
        n_threads=settings.n_threads,
    )  # fmt: skip
    spread = covariances[0] * (scale[:, None] * scale if full else scale**2)
    if isinstance(family, Spherical):
        spread = spread.mean(axis=1)
    _, *emission = family.project((chain.start, chain.emissions[:, :d] * scale, spread))
    return Start((chain.start, chain.T, *emission), chain.name, chain.facts)


def label_starts(
    family: Any,
    data: Observations,
    rows: np.ndarray,
    k: int,
    rng: np.random.Generator,
    *,
    count: int | None = None,
) -> list[Start]:
    """Starts from k-means labels: their emissions, and how often one follows another.

    The states of the first are as wide as their labels, those of all others as wide as all data,
    which leaves EM more freedom; every third sees rows averaged over a few steps; from the fourth
    on transitions are random, so that each start goes its own way.
    """
    Z = rows / np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    offsets, ones = data.where.offsets, np.ones(len(rows))
    whole = _from_labels(family, data, np.zeros(len(rows), dtype=int), 1)
    found = []
    for i in range(SPREAD_STARTS if count is None else count):
        seen = _averaged(Z, offsets) if i % 3 == 2 else Z
        labels = classes_of(seen, ones, k, rng, most=PART)
        start, T, means, spread = _from_labels(family, data, labels, k)
        if i > 0:
            spread = np.repeat(whole[3], k, axis=0)
        if i > 2:
            T = 0.999 * rng.dirichlet(np.full(k, 1 / k), size=k) + 0.001 / k
        found.append(Start((start, T, means, spread), f"k-means {i}"))
    lasting = [
        Start(_from_labels(family, data, labels, k), name)
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
