"""Moment starts of spherical Gaussian mixtures: signal directions, whitened triples, variances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment._constants import Choice, Work
from thirdmoment.decomposition import choose_solver, decompose
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.linalg import operator_norm, top_eigenpairs
from thirdmoment.linalg.eigen import random_start
from thirdmoment.moments.gaussian import (
    SphericalTriples,
    SphericalWhitening,
    leading_whitening,
    spherical_whitening,
)
from thirdmoment.moments.views import CrossProduct, LineSums, PairSums, Sample
from thirdmoment.recovery.spherical import (
    MomentFit,
    StandardMoments,
    component_variances,
    fit_to_moments,
    move_components,
    recover_spherical,
)
from thirdmoment.starts.gaussian import GaussianData
from thirdmoment.starts.start import MomentFacts, Settings
from thirdmoment.starts.views import width_of
from thirdmoment.streaming import Streamed, fold

# Up to this many columns the covariance is formed; beyond, it is only applied to thin blocks.
FORMED_COLUMNS: Work[int] = 300


def signal_directions(
    chunks: Sequence[Sample] | Streamed, k: int, rng: np.random.Generator, *, n_threads: int
) -> tuple[SphericalWhitening, float]:
    """The k - 1 leading directions of the covariance, and the error of its estimate (N-11)."""
    d = width_of(chunks)
    if d <= FORMED_COLUMNS:
        sums = fold(lambda: PairSums(d), chunks, n_threads=n_threads)
        return spherical_whitening(sums, k), float(np.linalg.norm(sums.noise, 2))
    lines = fold(lambda: LineSums(d), chunks, n_threads=n_threads)
    mean, tilt = lines.first / lines.total, lines.tilt / lines.total
    trace = lines.square / lines.total - float(mean @ mean)
    level = trace / d  # taken off, so that "leading" is against the noise

    def pairs(Q: np.ndarray, *, halves: bool = False) -> np.ndarray:
        return fold(lambda: CrossProduct(Q, halves=halves), chunks, n_threads=n_threads).finish()

    def signal(Q: np.ndarray) -> np.ndarray:
        return pairs(Q) - np.outer(mean, mean @ Q) - level * Q

    def noise(Q: np.ndarray) -> np.ndarray:
        return (pairs(Q, halves=True) - tilt * pairs(Q)) / max(1 - tilt**2, 1e-12)

    eigen = top_eigenpairs(
        signal, random_start(rng, d, k, like=np.empty(0)), max(k - 1, 1), tol=1e-3, max_products=12
    )
    size, _ = operator_norm(noise, random_start(rng, d, 1, like=np.empty(0), oversampling=3))
    values, vectors = np.asarray(eigen.values) + level, np.asarray(eigen.vectors)
    return leading_whitening(mean, values, vectors, trace, k), size


# Distinct moment solutions that the likelihood may choose from.
MOST_STARTS: Choice[int] = 6


def spherical_starts(
    data: GaussianData, k: int, settings: Settings, *, common: bool
) -> list[tuple[Parameters, MomentFacts]]:
    """(weights, means, variances) from the noise-corrected moments (SR-9 to SR-12)."""
    samples, d, rng, n_threads = data.samples(), data.X.shape[1], settings.rng, settings.n_threads
    if k > d:
        raise UnusableMoments(
            f"{d} columns can show at most {d} spherical components, fewer than n_components={k}."
        )
    white, noise = signal_directions(samples, k, rng, n_threads=n_threads)
    triples = fold(lambda: SphericalTriples(white), samples, n_threads=n_threads)
    T, t = triples.finish(common_variance=common)
    solver = choose_solver(settings.solver)
    found = decompose(T, solver, rng)
    plain = recover_spherical(found, white.mean, white.E, white.eta)
    total = data.total
    fits = [MomentFit(plain.weights, (plain.means - white.mean) @ white.E, np.nan)]
    if settings.weighted and k > 1:
        fits = _weighted_fits(T, white, fits[0], total, rng)
    facts = MomentFacts(
        np.concatenate([white.spectrum[:1], white.spectrum]),  # the constant counts as the first
        noise,
        found.residual,
        plain.raw_weights,
        np.zeros(k),
        solver,
        {
            "passes": 2,
            "noise_variance": white.sigma2,
            "decomposition": found.status.value,
            "moment_misfit": tuple(fit.misfit for fit in fits),
        },
        2 * white.sigma2 * float(np.sqrt(d / total)),
    )
    starts: list[tuple[Parameters, MomentFacts]] = []
    for fit in fits:
        whitened = np.concatenate([fit.centres / np.sqrt(white.eta), np.ones((k, 1))], axis=1)
        variances = np.full(k, white.sigma2)
        if not common:
            near = 2.0 if settings.hedge else 100.0
            variances = component_variances(fit.weights, whitened, t, white.sigma2, within=near)
        starts.append(((fit.weights, white.mean + fit.centres @ white.E.T, variances), facts))
    return starts


def _weighted_fits(
    T: np.ndarray,
    white: SphericalWhitening,
    start: MomentFit,
    total: float,
    rng: np.random.Generator,
) -> list[MomentFit]:
    """Fits to the moments in standardised coordinates, weighted for their noise."""
    eta = white.eta
    size = np.sqrt(eta + white.sigma2)  # standard deviation of each signal direction
    shrink = np.sqrt(eta) / size
    third = T[:-1, :-1, :-1] * (
        shrink[:, None, None] * shrink[None, :, None] * shrink[None, None, :]
    )
    moments = StandardMoments(np.diag(shrink**2), third, total)
    first = fit_to_moments(moments, start._replace(centres=start.centres / size))
    fits = move_components(moments, first, rng)[:MOST_STARTS]
    return [fit._replace(centres=fit.centres * size) for fit in fits]
