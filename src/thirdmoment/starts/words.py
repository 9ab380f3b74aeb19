"""Starts of topic models: moments of words, or documents far from each other.

Documents far from what the topics at hand explain become the next topics, chosen as k-means++
chooses its centres, by Hellinger distance and with the fit's own generator. With no topics at hand
this is a start of its own; with those of the largest usable rank it adds what is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thirdmoment._array import (
    Array,
    array_namespace,
    like_one,
    single_threaded_blas,
    to_numpy,
)
from thirdmoment._constants import Choice, Work
from thirdmoment.decomposition import Decomposition
from thirdmoment.decomposition.tensor import simultaneous
from thirdmoment.exceptions import InvalidInput, RankDeficientMoment, UnusableMoments
from thirdmoment.linalg import Eigenpairs, operator_norm, top_eigenpairs, whitening_from
from thirdmoment.linalg.eigen import random_start
from thirdmoment.linalg.whiten import Whitening, unwhitener
from thirdmoment.moments.word_triples import TriplesProduct
from thirdmoment.moments.words import (
    Corrections,
    PairsProduct,
    RawMoments,
    TripleSums,
    WordSums,
    dirichlet_corrections,
)
from thirdmoment.recovery.dirichlet import USUAL
from thirdmoment.recovery.order import canonical_order
from thirdmoment.recovery.topics import TopicEstimate, recover_tensors, recover_topics
from thirdmoment.starts.start import Settings
from thirdmoment.starts.word_components import (
    UNTRUSTED_ALPHA0,
    Solved,
    both_halves,
    decompose_at,
    in_memory,
    leading,
    solve,
    solve_ranks,
    two_halves,
)
from thirdmoment.streaming import AnyCorpus, fold

# Above this many components the k×k×k tensor is not formed (TF-8).
FORMED_LIMIT: Work[int] = 256

# Words whose topics are made together.
ROWS: Work[int] = 8192

# Smallest share of a topic at the start, in units of an even share.
LEAST_SHARE: Choice[float] = 0.01

# Without a drop of the spectrum after k, a few components more are fitted and the heaviest kept.
DROP: Choice[float] = 0.8

# Residual, next to its eigenvalue, of a subspace that goes on from that of most documents: at twice
# as much one product is enough for few documents, and their topics lose a hundredth
# (docs/decisions/gpu.md).
NEAR_TOL: Choice[float] = 1e-2

# Weights of documents and scaling of words with weighting="auto" (docs/decisions/weighting.md).
HALF_LENGTH: Choice[float] = 200.0
WORD_POWER: Choice[float] = 0.25

# Products run in float32 from this many stored counts on (docs/decisions/precision.md).
SINGLE_PRECISION_FROM: Work[int] = 500_000


class MomentOptions(NamedTuple):
    """How the moments are weighted and solved (docs/decisions/weighting.md)."""

    solver: str = "auto"
    half_length: float = 0.0  # documents weigh L/(L + half_length)
    word_power: float = 0.0  # words are scaled by mean^(-word_power) before whitening
    overfit: bool = False  # fit more components where the spectrum shows no drop after k
    n_threads: int = 1
    single_precision: bool = False


def moment_options(weighting: str, solver: str, n_threads: int, nnz: int) -> MomentOptions:
    """``"none"`` is the plain estimator of the paper; ``"auto"`` evens the sampling noise."""
    single = nnz >= SINGLE_PRECISION_FROM
    if weighting == "none":
        return MomentOptions(solver, n_threads=n_threads, single_precision=single)
    return MomentOptions(solver, HALF_LENGTH, WORD_POWER, True, n_threads, single)


class WordMoments(NamedTuple):
    """Everything the moments told about a corpus."""

    estimates: tuple[TopicEstimate, ...]  # k topics, heaviest first; one for each rank fitted
    solved: Solved
    core: CoreMoments
    spectrum: np.ndarray
    noise: float
    passes: int
    subspace_residual: float

    @property
    def estimate(self) -> TopicEstimate:
        """The estimate at rank k."""
        return self.estimates[0]

    @property
    def alpha0(self) -> float:
        """Total concentration of the estimates."""
        return self.solved.alpha0

    @property
    def decomposition(self) -> Decomposition:
        """That of rank k."""
        return self.solved.pieces[0][0]

    @property
    def trusted(self) -> bool:
        """Whether k components explain the third moment up to its sampling noise."""
        return self.solved.trusted

    def at(self, alpha0: float, rng: np.random.Generator) -> TopicEstimate:
        """The estimate at rank k under another concentration, without a pass over the data."""
        if self.core.raw is None:
            return self.estimate
        raw = leading(self.core.raw, self.core.k)
        piece = decompose_at((raw, rng), alpha0, self.core.solver)
        return self.core.recover(*piece, alpha0)


def moment_start(
    corpus: AnyCorpus,
    k: int,
    rng: np.random.Generator,
    *,
    alpha0: float | None,
    options: MomentOptions,
    before: WordMoments | None = None,
) -> WordMoments:
    """Topics of a corpus by moments; ``alpha0=None`` estimates the total concentration.

    ``before`` are the moments of most of these documents: the eigensolver goes on from there, and
    the noise is not gauged again.
    """
    with single_threaded_blas():
        moments, first = TopicMoments(corpus, options), USUAL if alpha0 is None else alpha0
        if before is None:
            pairs = moments.top_pairs(k, rng, first)
            noise, noise_passes = moments.split_half_noise(rng, first)
        else:
            pairs = moments.top_pairs(k, rng, first, near=before.core.B)
            noise, noise_passes = before.noise, 0
        ranks = _ranks(pairs, k, options)
        white = _whitening(pairs, max(ranks), moments.scale)
        spectrum, found = to_numpy(pairs.values), pairs._replace(vectors=None)
        del pairs  # its vectors are as large as the whitening, and so is the un-whitener
        white = white._replace(B=None)
        if k > FORMED_LIMIT:
            alpha0 = USUAL if alpha0 is None else alpha0
            raw, solved = None, Solved(alpha0, [moments.matrix_free(white, rng, alpha0)])
        elif len(ranks) > 1:
            raw = in_memory(moments.triples(white).finish(moments.sums))
            alpha0 = UNTRUSTED_ALPHA0 if alpha0 is None else alpha0
            how = Settings(options.solver, options.overfit, True, options.n_threads, rng)
            solved = solve_ranks(raw, ranks, alpha0, how)
        else:
            raw, solved = _third_moment(moments, white, alpha0, rng)
        B = unwhitener(white.W, white.eigenvalues, moments.scale)
        core = CoreMoments(raw, B, moments.sums.document_mean, options.solver, k)
    passes = 1 + found.products + noise_passes + moments.triple_passes
    del moments, white
    estimates = tuple(core.recover(*piece, solved.alpha0) for piece in solved.pieces)
    return WordMoments(estimates, solved, core, spectrum, noise, passes, found.residual)


def settle(
    moments: TopicMoments,
    pairs: Eigenpairs,
    k: int,
    rng: np.random.Generator,
    alpha0: float | None,
) -> Solved | None:
    """What the third moment says at rank k, None where the spectrum does not drop after k."""
    if k > FORMED_LIMIT or len(_ranks(pairs, k, moments.options)) > 1:
        return None
    return _third_moment(moments, _whitening(pairs, k, moments.scale), alpha0, rng)[1]


def _third_moment(
    moments: TopicMoments, white: Whitening, alpha0: float | None, rng: np.random.Generator
) -> tuple[RawMoments, Solved]:
    """The third moment in whitened coordinates, with its noise, and its components."""
    sums = moments.triples(white, halves=True)
    halves = two_halves(sums, moments.sums, n_threads=moments.options.n_threads)
    if halves is None:
        raw = in_memory(sums.finish(moments.sums))
    else:
        raw = both_halves(halves, moments.sums)
    return raw, solve(raw, halves, alpha0, rng, moments.options.solver)


class CoreMoments(NamedTuple):
    """What topics are made from, in few dimensions: no pass over the data is needed any more."""

    raw: RawMoments | None  # None where the tensor is not formed
    B: Array  # (d, r) un-whitener of the coordinates of ``raw``, in the precision of products
    mean: np.ndarray  # (d,) mean word distribution, every document alike
    solver: str
    k: int

    def recover(self, found: Decomposition, unwhitener: np.ndarray, alpha0: float) -> TopicEstimate:
        """The k heaviest topics of a decomposition."""
        if not isinstance(self.B, np.ndarray):
            xp = array_namespace(self.B)
            C = like_one(found.vectors, unwhitener) @ found.vectors
            left = xp.astype(self.B, xp.float64)[:, : len(C)]
            v = (left @ xp.astype(like_one(self.B, C), xp.float64)).T
            mean = like_one(v, self.mean)
            kept = heaviest(recover_tensors(found.eigenvalues, v, mean, alpha0), self.k)
            # single precision, as all products there
            return kept._replace(topics=xp.astype(kept.topics, self.B.dtype))
        C = to_numpy(unwhitener) @ to_numpy(found.vectors).astype(np.float64)
        v = np.empty((C.shape[1], len(self.B)))
        for a in range(0, len(self.B), ROWS):  # B may be in single precision
            rows = self.B[a : a + ROWS, : len(unwhitener)].astype(np.float64)
            v[:, a : a + ROWS] = (rows @ C).T
        return heaviest(recover_topics(found.eigenvalues, v, self.mean, alpha0), self.k)


def heaviest(estimate: TopicEstimate, k: int) -> TopicEstimate:
    """The k components with the largest raw weights, in canonical order.

    A raw weight above one belongs to a vanishing λ: such a component is absent and comes last.
    Shares get a small floor, so that no topic starts its refinement empty.
    """
    raw = estimate.raw_weights
    kept = canonical_order(np.where(raw <= 1, raw, -1.0))[:k]
    weights = np.maximum(estimate.weights[kept], LEAST_SHARE / k)
    weights /= weights.sum()
    order = canonical_order(weights)
    return estimate.reordered(kept[order])._replace(weights=weights[order])


class TopicMoments:
    """The passes over one corpus with one weighting."""

    def __init__(self, corpus: AnyCorpus, options: MomentOptions) -> None:
        self.options = options
        self.triple_passes = 0
        d = corpus.shape[1]
        self.sums = fold(
            lambda: WordSums(d, options.half_length), corpus, n_threads=options.n_threads
        )
        if not (self.sums.totals[2] > 0 and np.isfinite(self.sums.sums).all()):
            raise UnusableMoments(
                f"Only {self.sums.documents[2]} documents with three or more words are left to "
                "learn from, or their counts are beyond the range of floating point. Give more or "
                "longer documents."
            )
        self.dtype = np.float32 if options.single_precision else np.float64
        self.corpus = corpus.astype("float32") if options.single_precision else corpus
        self.empty = self.corpus.empty(self.dtype)
        self.scale = like_one(self.empty, word_scale(self.sums.mean, options.word_power))

    def top_pairs(
        self,
        k: int,
        rng: np.random.Generator,
        alpha0: float,
        *,
        products: int | None = None,
        near: Array | None = None,
    ) -> Eigenpairs:
        """Leading eigenpairs of diag(scale) Pairs diag(scale), by so many products if given.

        ``near`` (d, r) has the un-whitener of nearly the same documents.
        """
        b2 = dirichlet_corrections(alpha0).b2

        def apply(Q: Array) -> Array:
            return self._product(Q).pairs(self.sums, b2)

        def start() -> Array:  # nobody else's: it goes when it is no longer needed
            block = random_start(rng, self.corpus.shape[1], k, like=self.empty)
            if near is not None:
                block[:, : near.shape[1]] = like_one(block, near) * self.scale[:, None]
            return block

        if products is not None:
            return top_eigenpairs(apply, start(), k, tol=0.0, max_products=products)
        if near is not None:
            return top_eigenpairs(apply, start(), k, tol=NEAR_TOL)
        return top_eigenpairs(apply, start(), k)

    def split_half_noise(
        self, rng: np.random.Generator, alpha0: float, *, max_products: int = 12
    ) -> tuple[float, int]:
        """Sampling error ‖P̂ - P‖₂ of the scaled Pairs by split halves (N-11)."""
        b2, tilt = dirichlet_corrections(alpha0).b2, self.sums.pair_tilt

        def apply(Q: Array) -> Array:
            return self._product(Q, tilt=tilt).split_difference(self.sums, b2)

        start = random_start(rng, self.corpus.shape[1], 4, like=self.empty, oversampling=4)
        return operator_norm(apply, start, max_products=max_products)

    def pairs(self, W: Array, alpha0: float) -> Array:
        """Pairs·W (d, k) for any thin W, one pass."""
        product = fold(
            lambda: PairsProduct(W, self.options.half_length),
            self.corpus,
            n_threads=self.options.n_threads,
        )
        return product.pairs(self.sums, dirichlet_corrections(alpha0).b2)

    def _product(self, Q: Array, *, tilt: float | None = None) -> PairsProduct:
        half_length, scale = self.options.half_length, self.scale
        return fold(
            lambda: PairsProduct(Q, half_length, tilt=tilt, scale=scale),
            self.corpus,
            n_threads=self.options.n_threads,
        )

    def triples(self, white: Whitening, *, halves: bool = False) -> TripleSums:
        """Third moment in the whitened coordinates, one pass."""
        self.triple_passes += 1
        return fold(
            lambda: TripleSums(white.W, self.options.half_length, halves=halves),
            self.corpus,
            n_threads=self.options.n_threads,
        )

    def matrix_free(
        self, white: Whitening, rng: np.random.Generator, alpha0: float
    ) -> tuple[Decomposition, np.ndarray]:
        """Simultaneous power iterations without the k×k×k tensor (TF-8, TF-15)."""
        k = white.W.shape[1]
        if self.options.solver not in ("auto", "tensor"):
            raise InvalidInput(
                f"solver={self.options.solver!r} forms a tensor of {k}³ entries; above "
                f"{FORMED_LIMIT} components use solver='auto'."
            )
        b = dirichlet_corrections(alpha0)

        def apply(V: Array) -> Array:
            return self._triples_map(white.W, V, b)

        shaped = like_one(self.empty, np.zeros((k, k)))
        found = simultaneous(shaped, rng, apply=apply, tol=1e-6)
        return found, np.eye(k)

    def _triples_map(self, W: Array, V: Array, b: Corrections) -> Array:
        self.triple_passes += 1
        block = np.ascontiguousarray(W @ V)
        product = fold(
            lambda: TriplesProduct(block, self.options.half_length),
            self.corpus,
            n_threads=self.options.n_threads,
        )
        return W.T @ product.triples(self.sums, b)


def word_scale(mean: np.ndarray, power: float) -> np.ndarray:
    """Scaling of words that evens the sampling noise of Pairs, with mean one over seen words."""
    seen = mean > 0
    scale = np.ones_like(mean)
    if power:
        scale[seen] = mean[seen] ** -power
        scale[seen] /= scale[seen].mean()
    return scale


def _ranks(pairs: Eigenpairs, k: int, options: MomentOptions) -> list[int]:
    """Ranks to try: k, and a few more where the spectrum shows no drop after k."""
    values = to_numpy(pairs.values)
    found = len(values)
    if found < k:
        raise RankDeficientMoment(rank=found, k=k, smallest=0.0, floor=0.0)
    if not options.overfit or k > FORMED_LIMIT or found == k or values[k] <= DROP * values[k - 1]:
        return [k]
    usable = k + int(np.sum(values[k:] > 0.2 * values[k - 1]))
    return sorted({round(r) for r in np.linspace(k, usable, 4)})


def _whitening(pairs: Eigenpairs, rank: int, scale: np.ndarray) -> Whitening:
    return whitening_from(pairs.values[:rank], pairs.vectors[:, :rank], scale=scale)
