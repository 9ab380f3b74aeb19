"""Refinement of topics by collapsed sweeps, watched by documents that were held out.

A tenth of the documents takes no part in the sweeps. Their words, split in halves, are predicted
every few sweeps (document completion): by that score the sweeps end, the best of several starts
is chosen, and the best of all checks is kept. Then the held-out documents join for the last sweeps.
Which documents are held out, and how they are split, hangs on their content alone.

Where the moments are trusted (the model explains them up to their noise), the answer is the mean
of the start and of the swept topics, which make different errors of about the same size, unless
the held-out documents clearly prefer the swept topics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    add_rows,
    array_namespace,
    as_rows,
    is_tensors,
    row_keys,
    scrambled,
    shifted,
    to_numpy,
)
from thirdmoment._constants import Choice
from thirdmoment.likelihood.documents import SMOOTHING, completion_scores, split_counts
from thirdmoment.metrics.alignment import align
from thirdmoment.metrics.topics import coherence_of, word_presence
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.collapsed import (
    CollapsedCounts,
    document_sums,
    sweeper_of,
    topics_from,
)
from thirdmoment.refinement.halves import CLEARLY, Examined, Gain, Pieces
from thirdmoment.refinement.topic_halves import topic_trust
from thirdmoment.streaming import Corpus, corpus

TRIAL_SWEEPS: Choice[int] = 3  # sweeps before several starts are compared
CHECK_EVERY: Choice[int] = 5  # sweeps between two looks at the held-out documents
JOINT_SWEEPS: Choice[int] = 2  # last sweeps, with the held-out documents
# Fewer documents are not split; the guard then scores the training documents.
GUARD_FROM: Choice[int] = 200
# From this many documents on the share that is held out is halved each time they double.
MANY: Choice[int] = 500_000
# Share of the corpus from which on a document and its copies are not held out.
COMMON: Choice[float] = 0.01
# A start from all but this share of the documents has an error larger by half of it.
FEW: Choice[float] = 0.03
GUARD_STEPS: Choice[int] = 20  # folding-in steps of the guard
# Log-likelihood per word plus NPMI within which the first of several starts is taken.
AS_GOOD: Choice[float] = 0.01
CONVERGED: Choice[float] = 0.002  # gain of held-out log-likelihood per word in five sweeps, at most

Progress = Callable[[int, float], None]


class Sweeps(NamedTuple):
    """How topics are swept (docs/decisions/refinement.md)."""

    eta: float  # prior count of a word in a topic
    share: float  # part of the Dirichlet parameters that documents are drawn to their mean with
    least: int  # sweeps before the held-out documents may end them


# Where the model holds, little smoothing is best, and the topics gain when the held-out documents
# no longer show it; text gains coherence from more smoothing.
TRUSTED, UNTRUSTED = Sweeps(0.1, 0.3, 25), Sweeps(1.0, 1.0, 10)


class Climb(NamedTuple):
    """How the sweeps went."""

    path: tuple[float, ...] = ()  # score per word: start, every check, and the best of them
    sweeps: int = 0
    converged: bool = True
    rivals: tuple[Array, ...] = ()  # topics (k, d) of the other starts after their trial


class Shares(NamedTuple):
    """How topics share the corpus, each (k,)."""

    documents: np.ndarray  # share of each topic in the mean document
    words: np.ndarray  # share of each topic among all words
    largest: np.ndarray  # share that one document has in a topic, at most


class RefinedTopics(NamedTuple):
    """Refined topics, where the documents are, and how they came about."""

    start: Array  # (k, d)
    swept: Array  # (k, d)
    guarded: Array  # (k, d) the swept topics before the held-out documents joined
    chosen: str  # "start", "sweeps" or "mean of both"
    shares: Shares
    climb: Climb = Climb()
    which: int = 0  # which of the starts
    named: int = 0  # how many of the first topics keep their place

    @property
    def order(self) -> np.ndarray:
        """Topics that were named first, then the others, heaviest first."""
        rest = canonical_order(self.shares.documents[self.named :])
        return np.concatenate([np.arange(self.named), self.named + rest])

    @property
    def topics(self) -> Array:
        """What was chosen (k, d)."""
        if self.chosen == "mean of both":
            return (self.start + self.swept) / 2
        return self.start if self.chosen == "start" else self.swept


class Trial(NamedTuple):
    """A start under refinement, and the best counts that a check has seen."""

    which: int
    alpha: np.ndarray
    start: np.ndarray  # smoothed starting topics (k, d)
    counts: CollapsedCounts
    path: tuple[float, ...] = ()
    best: CollapsedCounts | None = None
    best_score: float = -np.inf


class Guard:
    """Mean log-likelihood per word of documents that the sweeps do not see.

    With too few documents to spare any, the training documents themselves are scored, whole.
    """

    def __init__(
        self, X: sp.csr_array, weights: np.ndarray, held: np.ndarray, n_threads: int
    ) -> None:
        self.n_threads = n_threads
        self.in_sample = not bool(held.any())
        rows = X if self.in_sample else X[held]
        weights = weights if self.in_sample else weights[held]
        self.tensors = is_tensors(rows)
        self.first, self.second = (rows, rows) if self.in_sample else split_counts(rows, 0)
        self.rows, self.counts = rows, weights
        words = weights * self.second.sum(axis=1)
        self.weights = weights / max(float(words.sum()), 1e-300)

    def documents(self) -> Corpus:
        """The whole documents, as chunks for moments."""
        return corpus(self.rows, self.counts)

    def each(self, topics: Array, alpha: np.ndarray) -> np.ndarray:
        """What each document adds to the score."""
        return to_numpy(self.weights * self._scores(topics, alpha))

    def _scores(self, topics: Array, alpha: np.ndarray) -> Array:
        """Log-likelihood of the second half of each document."""
        return completion_scores(
            topics,
            alpha,
            self.first,
            self.second,
            n_steps=GUARD_STEPS,
            tol=1e-3,
            n_threads=self.n_threads,
        )

    def gain(self, topics: np.ndarray, alpha: np.ndarray, frequent: np.ndarray) -> Gain:
        """Log-likelihood of a word over that by the frequencies (d,) of all words alone."""
        scores = to_numpy(self._scores(topics, alpha))
        logs = np.log(frequent / frequent.sum())
        plain = self.second.dot(logs[:, None])[:, 0] if self.tensors else self.second @ logs
        pieces = Pieces(to_numpy(self.counts), to_numpy(self.second.sum(axis=1)))
        against = "by word counts alone"
        return pieces.mean_gain(scores - to_numpy(plain), against=against, unit="word")

    def score(self, topics: np.ndarray, alpha: np.ndarray) -> float:
        return float(self.each(topics, alpha).sum())


def held_out(X: sp.csr_array, weights: np.ndarray) -> np.ndarray:
    """Mask (n,) of about a tenth of the documents, of many 50,000 to 100,000, by their content.

    Equal documents are held out together, and a document more or less changes no other's lot (but
    where it doubles what many are). Documents that are more than a hundredth of the corpus with
    their copies are never held out.
    """
    n = int((weights > 0).sum())
    if n < GUARD_FROM:
        return weights != weights
    if is_tensors(X):
        return _held_tensors(X, weights, n)
    keys, copies = np.unique(row_keys(as_rows(X)), return_inverse=True)
    common = np.bincount(copies, weights=weights) > COMMON * weights.sum()
    held = held_keys(keys, n) & ~common
    return held[copies] & (weights > 0)


def many_of(held: Array) -> bool:
    """Whether a start that knew nothing of those held out would gain from them."""
    return float(held.sum()) > FEW * held.shape[0]


def _held_tensors(X: Any, weights: Array, n: int) -> Array:
    xp = array_namespace(weights)
    keys, copies = xp.unique_inverse(row_keys(X))
    common = add_rows(weights[:, None], copies, len(keys))[:, 0] > COMMON * weights.sum()
    held = held_keys(keys, n) & ~common
    return xp.take(held, copies) & (weights > 0)


def held_keys(keys: Array, n: int = 0) -> Array:
    """Which of n documents are held out by their keys: 102 of 1024, of many the half of it."""
    halved = max((n // MANY).bit_length() - 1, 0)
    return shifted(scrambled(keys), 54 - halved) < 102


class TopicRefiner:
    """Sweeps over one corpus from any number of starts, which know nothing of ``held`` (n,)."""

    def __init__(
        self,
        X: sp.csr_array,
        weights: np.ndarray,
        held: np.ndarray,
        *,
        trusted: bool,
        n_threads: int,
        progress: Progress | None = None,
    ) -> None:
        self.X, self.weights, self.n_threads, self.progress = X, weights, n_threads, progress
        self.trusted, self.priors = trusted, TRUSTED if trusted else UNTRUSTED
        self.guard = Guard(X, weights, held, n_threads)
        seen = array_namespace(weights).where(held, 0.0, weights)
        self.sweeper = sweeper_of(X, seen, eta=self.priors.eta, n_threads=n_threads)

    def smoothed(self, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Topics with the prior count of every word that refined topics have."""
        return topics_from(self.sweeper.word_counts(topics, alpha), SMOOTHING)

    def refine(
        self, starts: Sequence[tuple[np.ndarray, np.ndarray]], *, max_sweeps: int, tol: float
    ) -> RefinedTopics:
        """Refine the best of ``starts`` = [(topics (k, d), alpha (k,)), ...].

        Stops when the held-out score gains less than ``tol`` a sweep, after the least number.
        """
        trials = [self._begin(i, *start) for i, start in enumerate(starts)]
        sweeps = 0
        if len(trials) > 1:
            sweeps = min(TRIAL_SWEEPS, max_sweeps)
            trials = [self._advance(trial, sweeps) for trial in trials]
        trial = self._most_promising(trials) if len(trials) > 1 else trials[0]
        rivals = tuple(
            topics_from(one.counts.words, SMOOTHING) for one in trials if one is not trial
        )
        del trials  # their counts are large
        trial = trial._replace(path=(self.guard.score(trial.start, trial.alpha), *trial.path))
        step = sweeps
        while sweeps < max_sweeps:
            step = min(CHECK_EVERY, max_sweeps - sweeps)
            trial, sweeps = self._advance(trial, step), sweeps + step
            if self.progress is not None:
                self.progress(sweeps, trial.path[-1])
            enough = sweeps >= self.priors.least
            if enough and trial.path[-1] - trial.path[-2] < tol * step:
                break
        gain = trial.path[-1] - trial.path[-2] if step else 0.0
        converged = gain <= max(tol, CONVERGED / CHECK_EVERY) * step
        return self._finish(trial, Climb(trial.path, sweeps, converged, rivals))

    def with_start(
        self, refined: RefinedTopics, topics: Array, weights: np.ndarray
    ) -> RefinedTopics:
        """The same with a better start, topics (k, d) and shares (k,) in any order."""
        start = self.smoothed(topics, weights)
        return refined._replace(start=start[align(start, refined.swept, metric="cosine")])

    def examine(self, found: RefinedTopics, alpha0: float) -> Examined:
        """Trust in each topic, heaviest first, and what held-out documents say of them."""
        alpha, topics = alpha0 * found.shares.documents, found.topics
        trust = topic_trust(
            self.X,
            self.weights,
            topics,
            self.priors.share * alpha,
            eta=self.priors.eta,
            rivals=found.climb.rivals,
            n_threads=self.n_threads,
        )
        # what is left of a topic without its largest document
        trust = np.minimum(trust, 1 - found.shares.largest)
        trust = trust[found.order]
        if self.guard.in_sample or len(trust) == 1:
            return Examined(trust, ())
        rows = self.X if is_tensors(self.X) else as_rows(self.X)
        frequent = to_numpy(rows.weighted_sum(self.sweeper.weights)) + SMOOTHING
        return Examined(trust, (self.guard.gain(found.guarded, alpha, frequent),))

    def _begin(self, index: int, topics: np.ndarray, alpha: np.ndarray) -> Trial:
        alpha = self.priors.share * alpha
        counts = self.sweeper.start(topics, alpha)
        start = self.smoothed(topics, alpha)
        return Trial(index, alpha, start, counts)

    def _advance(self, trial: Trial, sweeps: int) -> Trial:
        """More sweeps and a check; the best counts of all checks are kept aside."""
        counts = trial.counts
        if trial.best is counts:  # sweeps write over them
            trial = trial._replace(best=counts.kept())
        for _ in range(sweeps):
            counts = self.sweeper.sweep(counts, trial.alpha)
        score = self.guard.score(topics_from(counts.words, SMOOTHING), trial.alpha)
        trial = trial._replace(counts=counts, path=(*trial.path, score))
        if score <= trial.best_score:
            return trial
        return trial._replace(best=counts, best_score=score)

    def _most_promising(self, trials: list[Trial]) -> Trial:
        """Best sum of held-out log-likelihood per word and coherence on the documents at hand.

        The likelihoods of good starts differ by less than what a reader sees between them, and
        coherence (NPMI of top words) is on the same scale. Of starts that are about as good the
        first is taken, so that a document more or less does not change the choice
        (docs/decisions/refinement.md).
        """
        present = self.X if is_tensors(self.X) else word_presence(self.X)

        def promise(trial: Trial) -> float:
            topics = topics_from(trial.counts.words, SMOOTHING)
            return trial.path[-1] + float(coherence_of(topics, present).mean())

        promises = [promise(trial) for trial in trials]
        return next(
            t for t, p in zip(trials, promises, strict=True) if p >= max(promises) - AS_GOOD
        )

    def _finish(self, trial: Trial, climb: Climb) -> RefinedTopics:
        """The swept topics, or their mean with a trusted start; all documents join at the end."""
        counts = trial.counts if trial.best is None else trial.best
        guarded = topics_from(counts.words, SMOOTHING)
        chosen = self._choice(trial, guarded) if climb.sweeps else "start"
        if chosen != "start" and not self.guard.in_sample:
            everyone = sweeper_of(
                self.X, self.weights, eta=self.priors.eta, n_threads=self.n_threads
            )
            for _ in range(JOINT_SWEEPS):
                counts = everyone.sweep(counts, trial.alpha)
        path = trial.path if trial.path[-1] >= trial.best_score else (*trial.path, trial.best_score)
        return RefinedTopics(
            trial.start,
            topics_from(counts.words, SMOOTHING),
            guarded,
            chosen,
            self._shares(counts),
            climb._replace(path=path),
            trial.which,
        )

    def _choice(self, trial: Trial, swept: np.ndarray) -> str:
        if not self.trusted:
            return "sweeps"
        mean = self.guard.each((trial.start + swept) / 2, trial.alpha)
        loss = self.guard.each(swept, trial.alpha) - mean
        error = float(np.sqrt(np.sum((loss - loss.mean()) ** 2)))
        return "sweeps" if float(loss.sum()) > CLEARLY * error else "mean of both"

    def _shares(self, counts: CollapsedCounts) -> Shares:
        """In the mean document every one counts alike, however long."""
        found, xp = document_sums(counts.documents, self.weights), array_namespace(counts.words)
        words = to_numpy(xp.sum(counts.words, axis=0, dtype=xp.float64))
        largest = found.most / np.maximum(found.whole, 1e-300)
        return Shares(proportions(found.even), proportions(words), largest)


def proportions(totals: np.ndarray) -> np.ndarray:
    """Shares of totals (k,), none of them zero."""
    shares = totals + 1e-3 * max(float(totals.mean()), 1e-300) / len(totals)
    return shares / shares.sum()
