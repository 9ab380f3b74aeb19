"""Signal directions and noise of rows with spherical components, for any number of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thirdmoment.linalg import operator_norm, top_eigenpairs
from thirdmoment.linalg.eigen import random_start
from thirdmoment.moments.gaussian import (
    SphericalWhitening,
    leading_whitening,
    spherical_whitening,
)
from thirdmoment.moments.views import CrossProduct, LineSums, PairSums, Sample
from thirdmoment.streaming import fold

# Up to this many columns the covariance is formed; beyond, it is only applied to thin blocks.
FORMED_COLUMNS = 300


def signal_directions(
    chunks: Sequence[Sample], k: int, rng: np.random.Generator, *, n_threads: int
) -> tuple[SphericalWhitening, float]:
    """The k - 1 leading directions of the covariance, and the error of its estimate (N-11)."""
    d = chunks[0].rows.shape[1]
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
