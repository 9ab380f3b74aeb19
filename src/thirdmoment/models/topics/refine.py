"""Refinement of topics by collapsed sweeps, guarded by documents that were held out.

A tenth of the documents takes no part in the sweeps. Their words, split in halves, are predicted
every few sweeps (document completion): the best topics by that score win, the start among them, so
refinement never returns less than it was given. Once the number of sweeps is settled the held-out
documents join for the last sweeps. Several starts are compared after a few sweeps each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import row_signs
from thirdmoment.metrics.alignment import align
from thirdmoment.metrics.topics import coherence_of, word_presence
from thirdmoment.refinement.collapsed import CollapsedCounts, Sweeper, topics_from
from thirdmoment.refinement.fold_in import completion_score, split_counts

ETA = 1.0  # prior count of a word in a topic during the sweeps
SMOOTHING = 0.05  # prior count in the topics that are returned
TRIAL_SWEEPS = 3  # sweeps before several starts are compared
CHECK_EVERY = 5  # sweeps between two looks at the held-out documents
JOINT_SWEEPS = 2  # last sweeps, with the held-out documents
GUARD_FROM = 200  # fewer documents are not split; the guard then scores the training documents
GUARD_STEPS = 20  # folding-in steps of the guard

Progress = Callable[[int, float], None]


class RefinedTopics(NamedTuple):
    """Refined topics and how they came about.

    With ``chosen`` other than "sweeps" the start is part of the answer; it was made without the
    held-out documents, and the caller may make it again with all of them (`with_start`).
    """

    topics: np.ndarray  # (k, d)
    shares: np.ndarray  # (k,) share of each topic among the words
    path: tuple[float, ...]  # score per word: start, every check, and the topics chosen
    sweeps: int
    chosen: str  # "start", "sweeps" or "mean of both"
    which: int  # which of the starts
    swept: np.ndarray  # (k, d) topics of the sweeps alone
    guarded: np.ndarray  # (k, d) what was chosen, before the held-out documents joined

    def with_start(self, topics: np.ndarray) -> RefinedTopics:
        """The same choice with a better start (k, d), in any order of topics."""
        if self.chosen == "sweeps":
            return self
        topics = topics[align(topics, self.topics)]
        topics = topics if self.chosen == "start" else (topics + self.swept) / 2
        return self._replace(topics=topics)


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
        self.in_sample = not held.any()
        rows = X if self.in_sample else X[held]
        self.weights = weights if self.in_sample else weights[held]
        self.first, self.second = (rows, rows) if self.in_sample else split_counts(rows, 0)

    def score(self, topics: np.ndarray, alpha: np.ndarray) -> float:
        score, words = completion_score(
            topics,
            alpha,
            self.first,
            self.second,
            weights=self.weights,
            n_steps=GUARD_STEPS,
            tol=1e-3,
            n_threads=self.n_threads,
        )
        return score / words if words > 0 else 0.0


def held_out(n: int, weights: np.ndarray) -> np.ndarray:
    """Mask (n,) of about a tenth of the documents, by a hash of the row number."""
    if int(np.sum(weights > 0)) < GUARD_FROM:
        return np.zeros(n, dtype=bool)
    bits = np.stack([row_signs(i * n, (i + 1) * n) > 0 for i in range(10)])
    number = (bits * (2 ** np.arange(10))[:, None]).sum(axis=0)
    return (number < 102) & (weights > 0)


class TopicRefiner:
    """Sweeps over one corpus from any number of starts."""

    def __init__(
        self,
        X: sp.csr_array,
        weights: np.ndarray,
        *,
        n_threads: int,
        progress: Progress | None = None,
    ) -> None:
        self.X, self.weights, self.n_threads, self.progress = X, weights, n_threads, progress
        held = held_out(X.shape[0], weights)
        self.guard = Guard(X, weights, held, n_threads)
        self.seen = np.where(held, 0.0, weights)  # weights without the held-out documents
        self.sweeper = Sweeper(X, self.seen, eta=ETA, n_threads=n_threads)

    def smoothed(self, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Topics with the prior count of every word that refined topics have."""
        return topics_from(self.sweeper.word_counts(topics, alpha), SMOOTHING)

    def refine(
        self, starts: Sequence[tuple[np.ndarray, np.ndarray]], *, max_sweeps: int, tol: float
    ) -> RefinedTopics:
        """Refine the best of ``starts`` = [(topics (k, d), alpha (k,)), ...].

        Stops when the held-out score gains less than ``tol`` a sweep, after ten sweeps at least.
        """
        trials = [self._begin(i, *start) for i, start in enumerate(starts)]
        sweeps = 0
        if len(trials) > 1:
            sweeps = min(TRIAL_SWEEPS, max_sweeps)
            trials = [self._advance(trial, sweeps) for trial in trials]
            trials = [self._most_promising(trials)]
        trial = trials[0]
        trial = trial._replace(path=(self.guard.score(trial.start, trial.alpha), *trial.path))
        while sweeps < max_sweeps:
            step = min(CHECK_EVERY, max_sweeps - sweeps)
            trial, sweeps = self._advance(trial, step), sweeps + step
            if self.progress is not None:
                self.progress(sweeps, trial.path[-1])
            if sweeps >= 2 * CHECK_EVERY and trial.path[-1] - trial.path[-2] < tol * step:
                break
        return self._finish(trial, sweeps)

    def choose_alpha0(self, refined: RefinedTopics) -> float:
        """Total concentration under which held-out documents are completed best."""
        if self.guard.in_sample:
            return 1.0
        grid = np.geomspace(0.05, 8.0, 5)
        scores = [self.guard.score(refined.guarded, alpha0 * refined.shares) for alpha0 in grid]
        return float(grid[int(np.argmax(scores))])

    def _begin(self, index: int, topics: np.ndarray, alpha: np.ndarray) -> Trial:
        counts = self.sweeper.start(topics, alpha)
        start = self.smoothed(topics, alpha)
        return Trial(index, alpha, start, counts)

    def _advance(self, trial: Trial, sweeps: int) -> Trial:
        """More sweeps and a check; the best counts of all checks are kept aside."""
        counts = trial.counts
        for _ in range(sweeps):
            counts = self.sweeper.sweep(counts, trial.alpha)
        score = self.guard.score(topics_from(counts.words, SMOOTHING), trial.alpha)
        trial = trial._replace(counts=counts, path=(*trial.path, score))
        if score <= trial.best_score:
            return trial
        kept = CollapsedCounts(counts.documents.copy(), counts.words)
        return trial._replace(best=kept, best_score=score)

    def _most_promising(self, trials: list[Trial]) -> Trial:
        """Best sum of held-out log-likelihood per word and coherence on the documents at hand.

        The likelihoods of good starts differ by less than what a reader sees between them, and
        coherence (NPMI of top words) is on the same scale (docs/decisions/refinement.md).
        """
        present = word_presence(self.X)

        def promise(trial: Trial) -> float:
            topics = topics_from(trial.counts.words, SMOOTHING)
            return trial.path[-1] + float(coherence_of(topics, present).mean())

        return max(trials, key=promise)

    def _finish(self, trial: Trial, sweeps: int) -> RefinedTopics:
        """Start, swept topics, or their mean, whichever scores best."""
        counts = trial.counts if trial.best is None else trial.best
        swept = topics_from(counts.words, SMOOTHING)
        topics = {"start": trial.start, "sweeps": swept, "mean of both": (trial.start + swept) / 2}
        scores = {
            "start": trial.path[0],
            "sweeps": trial.best_score,
            "mean of both": self.guard.score(topics["mean of both"], trial.alpha),
        }
        chosen = max(scores, key=lambda name: scores[name])
        shares = _shares(counts) if chosen != "start" else trial.alpha / trial.alpha.sum()
        path = trial.path if scores[chosen] == trial.path[-1] else (*trial.path, scores[chosen])
        result = RefinedTopics(
            topics[chosen], shares, path, sweeps, chosen, trial.which, swept, topics[chosen]
        )
        return self._join(result, trial, counts)

    def _join(self, refined: RefinedTopics, trial: Trial, counts: CollapsedCounts) -> RefinedTopics:
        """A few sweeps in which the held-out documents take part."""
        if refined.chosen == "start" or self.guard.in_sample:
            return refined
        everyone = Sweeper(self.X, self.weights, eta=ETA, n_threads=self.n_threads)
        for _ in range(JOINT_SWEEPS):
            counts = everyone.sweep(counts, trial.alpha)
        swept = topics_from(counts.words, SMOOTHING)
        topics = swept if refined.chosen == "sweeps" else (trial.start + swept) / 2
        return refined._replace(topics=topics, swept=swept, shares=_shares(counts))


def _shares(counts: CollapsedCounts) -> np.ndarray:
    shares = counts.words.sum(axis=0, dtype=np.float64) + 1e-3
    return shares / shares.sum()
