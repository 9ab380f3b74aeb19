"""The moment start of the topic models: moments -> whiten -> decompose -> recover."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from thirdmoment._array import Array, to_numpy
from thirdmoment.decomposition import Decomposition, decompose
from thirdmoment.decomposition.tensor import simultaneous
from thirdmoment.linalg import Eigenpairs, operator_norm, top_eigenpairs, whitening_from
from thirdmoment.linalg.eigen import random_start
from thirdmoment.moments.words import (
    PairsProduct,
    RawMoments,
    TripleSums,
    TriplesProduct,
    WordSums,
    adjusted_moments,
    change_basis,
    dirichlet_corrections,
)
from thirdmoment.recovery.concentration import estimate_concentration
from thirdmoment.recovery.topics import TopicEstimate, recover_topics
from thirdmoment.streaming import Corpus, fold

# Above this many components the k×k×k tensor is not formed (TF-8).
FORMED_LIMIT = 256

# Concentration assumed while the subspace is found; the subspace does not depend on it (TF-12).
GUESS = 1.0


class MomentOptions(NamedTuple):
    """How the moments are weighted and solved."""

    solver: str = "auto"
    half_length: float = 0.0  # documents weigh L/(L + half_length)
    word_power: float = 0.0  # words are scaled by mean^(-word_power) before whitening
    extra: int = 0  # components fitted beyond k, of which the heaviest k are kept
    n_threads: int = 1
    single_precision: bool = False


class TopicStart(NamedTuple):
    """Everything the moments told about a corpus."""

    estimate: TopicEstimate
    alpha0: float
    decomposition: Decomposition
    spectrum: np.ndarray
    noise: float
    sums: WordSums
    passes: int
    subspace_residual: float
    profile: object | None = None


def moment_start(
    corpus: Corpus,
    k: int,
    rng: np.random.Generator,
    *,
    alpha0: float | None,
    options: MomentOptions,
) -> TopicStart:
    """Topics of a corpus by moments; ``alpha0=None`` estimates the total concentration."""
    sums = fold(
        lambda: WordSums(corpus.shape[1], options.half_length),
        corpus,
        n_threads=options.n_threads,
    )
    scale = word_scale(sums.mean, options.word_power)
    corpus = corpus.astype("float32") if options.single_precision else corpus
    guess = GUESS if alpha0 is None else alpha0
    pairs = top_pairs(corpus, sums, scale, k + options.extra, rng, guess, options)
    noise, noise_passes = split_half_noise(corpus, sums, scale, rng, options)
    kk = min(k + options.extra, pairs.values.shape[0])
    whitening = whitening_from(pairs.values[:kk], pairs.vectors[:, :kk], scale=scale)
    raw = _float64(
        fold(
            lambda: TripleSums(whitening.W, options.half_length),
            corpus,
            n_threads=options.n_threads,
        ).finish(sums)
    )
    profile = None
    if alpha0 is None:
        profile = estimate_concentration(partial(_solve, raw))
        alpha0 = profile.alpha0
    found, B = _decompose(raw, alpha0, options.solver, rng)
    estimate = recover_topics(
        found.eigenvalues, found.vectors, to_numpy(whitening.B) @ B, sums.mean, alpha0
    )
    return TopicStart(
        estimate, alpha0, found, to_numpy(pairs.values), noise, sums,
        2 + pairs.products + noise_passes, pairs.residual, profile,
    )


def word_scale(mean: np.ndarray, power: float) -> np.ndarray:
    """Scaling of words that evens the sampling noise of Pairs, with mean one over seen words."""
    seen = mean > 0
    scale = np.ones_like(mean)
    if power:
        scale[seen] = mean[seen] ** -power
        scale[seen] /= scale[seen].mean()
    return scale


def top_pairs(
    corpus: Corpus,
    sums: WordSums,
    scale: np.ndarray,
    k: int,
    rng: np.random.Generator,
    alpha0: float,
    options: MomentOptions,
) -> Eigenpairs:
    """Leading eigenpairs of diag(scale) Pairs diag(scale), applied chunk by chunk."""
    b2 = dirichlet_corrections(alpha0).b2
    dtype = np.float32 if options.single_precision else np.float64
    s = scale.astype(dtype)[:, None]

    def apply(Q: Array) -> Array:
        product = fold(
            lambda: PairsProduct(s * Q, options.half_length), corpus, n_threads=options.n_threads
        )
        return s * product.pairs(sums, b2)

    start = random_start(rng, corpus.shape[1], k, like=np.empty(0, dtype))
    return top_eigenpairs(apply, start, k)


def split_half_noise(
    corpus: Corpus, sums: WordSums, scale: np.ndarray, rng: np.random.Generator,
    options: MomentOptions,
) -> tuple[float, int]:
    """Sampling error ‖P̂ - P‖₂ of the scaled Pairs by split halves (N-11)."""
    dtype = np.float32 if options.single_precision else np.float64
    s = scale.astype(dtype)[:, None]

    def apply(Q: Array) -> Array:
        product = fold(
            lambda: PairsProduct(s * Q, options.half_length, split=True),
            corpus,
            n_threads=options.n_threads,
        )
        return s * product.split_difference(sums)

    start = random_start(rng, corpus.shape[1], 4, like=np.empty(0, dtype), oversampling=0)
    return operator_norm(apply, start)


def _float64(raw: RawMoments) -> RawMoments:
    return RawMoments(*(to_numpy(part).astype(np.float64) for part in raw))


def _whitened(raw: RawMoments, alpha0: float) -> tuple[np.ndarray, np.ndarray]:
    """Whitened tensor at alpha0 and the un-whitener of the k dimensions.

    The symmetric root keeps the coordinates of neighbouring alpha0 close, so that one's components
    start the next.
    """
    b = dirichlet_corrections(alpha0)
    pairs, _ = adjusted_moments(raw, b)
    values, E = np.linalg.eigh((pairs + pairs.T) / 2)
    white = whitening_from(values[::-1], E[:, ::-1])
    C, B = white.W @ E[:, ::-1].T, white.B @ E[:, ::-1].T
    return adjusted_moments(change_basis(raw, C), b)[1], B


def _solve(raw: RawMoments, alpha0: float, basis: np.ndarray | None) -> Decomposition | None:
    from thirdmoment.decomposition.tensor import jacobi
    from thirdmoment.exceptions import RankDeficientMoment

    try:
        T, _ = _whitened(raw, alpha0)
    except RankDeficientMoment:
        return None
    return jacobi(T, start=basis, tol=1e-6)


def _decompose(
    raw: RawMoments, alpha0: float, solver: str, rng: np.random.Generator
) -> tuple[Decomposition, np.ndarray]:
    T, B = _whitened(raw, alpha0)
    return decompose(T, solver, rng), B
