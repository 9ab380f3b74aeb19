"""Which total concentration a fit believes in (docs/decisions/concentration.md)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from thirdmoment._array import Array, like_one, to_numpy
from thirdmoment._constants import Choice, Limit, Wording
from thirdmoment.exceptions import InvalidInput, warn
from thirdmoment.models.base import check_components, check_positive
from thirdmoment.models.topics.estimator import TopicStart
from thirdmoment.moments.words import PairSums, WordSums
from thirdmoment.recovery.dirichlet import USUAL
from thirdmoment.recovery.order import LEAST, MOST, proportion_map, total_concentration
from thirdmoment.refinement.halves import Examined
from thirdmoment.refinement.topics import RefinedTopics, Shares, TopicRefiner
from thirdmoment.report import Finding
from thirdmoment.report.findings import unfinished
from thirdmoment.report.report import NAMED
from thirdmoment.streaming import AnyCorpus, fold

# Values that held-out documents may prefer where the model does not hold, and the gain of
# log-likelihood per word from which on they are heard.
GRID = np.geomspace(0.05, 8.0, 5)
HEARD: Choice[float] = 0.01  # log-likelihood per word that another value must gain

# A start is made again where the swept topics show a concentration below SMALL that is UNLIKE
# times smaller or larger than that of the moments.
SMALL, UNLIKE = 1.0, 2.0


# Documents with a larger concentration do not differ in their topics.
LARGEST: Limit[float] = 1e6


def given_concentration(value: str | float, k: int) -> float | None:
    """The total concentration that was asked for, None where it is to be found."""
    if isinstance(value, str):
        if value != "auto":
            raise InvalidInput(f"concentration={value!r} must be 'auto' or a positive number.")
        return None if check_components(k) >= 3 else 1.0
    alpha0 = check_positive("concentration", value)
    if alpha0 > LARGEST:
        raise InvalidInput(
            f"concentration={alpha0:.3g} is above {LARGEST:.0g}: documents would not differ in "
            "their topics at all. Give a smaller value."
        )
    return alpha0


class Concentration(NamedTuple):
    """A total concentration and what it rests on."""

    alpha0: float
    source: str  # "given", "moments", "documents", "held-out documents" or "usual value"


# Share of a topic from which on one document owns it.
OWNED: Wording[float] = 0.5


class Found(NamedTuple):
    """What a fit found."""

    start: TopicStart
    topics: RefinedTopics
    believed: Concentration
    examined: Examined | None = None

    def details(self) -> dict[str, Any]:
        """What the report tells of it."""
        return {
            "sweeps": self.topics.climb.sweeps,
            "returned": self.topics.chosen,
            "alpha0": self.believed.alpha0,
            "alpha0_from": self.believed.source,
            "moment_alpha0": self.start.alpha0,
        }

    def notes(self, limit: int) -> list[Finding]:
        """Sweeps that ended too early, with a warning, and documents that own a topic."""
        notes = []
        if not self.topics.climb.converged:
            text = (
                f"The fit was stopped at max_refine_iter={limit} while the topics still improved: "
                "each of the last sweeps lowered the perplexity of unseen documents by over 0.04%."
            )
            notes.append(unfinished(limit, text))
            warn(str(notes[0]), ConvergenceWarning)
        owned = np.flatnonzero(self.topics.shares.largest[self.topics.order] > OWNED)
        if len(owned):
            which = ", ".join(map(str, owned[:NAMED]))
            which += f" and {len(owned) - NAMED} more" if len(owned) > NAMED else ""
            text = f"More than half of topic {which} comes from one document."
            action = "Leave documents out, or cut them into parts, that fill a topic alone."
            notes.append(Finding("owned", text, action))
        return notes


def unrefined(topics: Array, shares: np.ndarray, named: int) -> RefinedTopics:
    """What the moments found, as it is."""
    chosen = Shares(shares, shares, 0 * shares)
    return RefinedTopics(topics, topics, topics, "start", chosen, named=named)


def settle_concentration(
    data: AnyCorpus,
    refiner: TopicRefiner,
    start: TopicStart,
    refined: RefinedTopics,
    rng: np.random.Generator,
) -> Found:
    """alpha0 of the refined topics, and a better start where the moments mistook it.

    The spread of the documents between the topics shows alpha0: of all documents where the model
    holds, elsewhere of the held-out ones, for topics fit their own documents too well. There a
    value under which held-out documents are completed clearly better is taken instead.
    """
    threads = refiner.n_threads
    if not refiner.trusted:
        return Found(start, refined, _heard(refiner, refined))
    if refined.chosen == "mean of both":
        swept = document_concentration(data, refined.swept, n_threads=threads)
        start, refined = _corrected(start, refined, swept, refiner, rng)
    alpha0 = document_concentration(data, refined.topics, n_threads=threads)
    return Found(start, refined, Concentration(alpha0, "documents"))


def _heard(refiner: TopicRefiner, refined: RefinedTopics) -> Concentration:
    """What held-out documents say, if any were held out and say something."""
    guard = refiner.guard
    if guard.in_sample:
        return Concentration(USUAL, "usual value")
    alpha0 = document_concentration(guard.documents(), refined.guarded, n_threads=refiner.n_threads)
    believed = Concentration(alpha0, "documents")
    if not LEAST < alpha0 < MOST:
        believed = Concentration(USUAL, "usual value")
    tried = [believed.alpha0, *GRID]
    scores = [guard.score(refined.guarded, value * refined.shares.documents) for value in tried]
    best = int(np.argmax(scores))
    if scores[best] <= scores[0] + HEARD:
        return believed
    return Concentration(float(tried[best]), "held-out documents")


def _corrected(
    start: TopicStart,
    refined: RefinedTopics,
    swept: float,
    refiner: TopicRefiner,
    rng: np.random.Generator,
) -> tuple[TopicStart, RefinedTopics]:
    """The start made again where the swept topics show quite another, small alpha0.

    Third moments hardly tell 0.01 from 0.1, for they see alpha0 + 2; likelihood does.
    """
    ratio = start.alpha0 / swept
    if start.moments is None or swept >= SMALL or 1 / UNLIKE <= ratio <= UNLIKE:
        return start, refined
    found = start.moments.at(swept, rng)
    again = start._replace(topics=found.topics, weights=found.weights, alpha0=swept, estimate=found)
    return again, refiner.with_start(refined, found.topics, found.weights)


def document_concentration(data: AnyCorpus, topics: Array, *, n_threads: int) -> float:
    """Total concentration that the documents' shares of given topics (k, d) show, in two passes.

    Every document counts alike, however long.
    """
    if len(topics) < 2:
        return USUAL
    A = proportion_map(topics)
    sums = fold(lambda: WordSums(topics.shape[1]), data, n_threads=n_threads)
    pairs = fold(lambda: PairSums(A), data, n_threads=n_threads)
    if not sums.totals[1] > 0:
        return USUAL
    mean = to_numpy(A.T @ like_one(A, sums.document_mean))
    return total_concentration(mean, to_numpy(pairs.finish(sums)))


def concentration_note(k: int, concentration: object) -> list[Finding]:
    """What to tell about the concentration."""
    if concentration != "auto" or k >= 3:
        return []
    text = (
        "With fewer than three topics the concentration cannot be seen in the moments; 1.0 was "
        "taken. Give concentration= if you know it."
    )
    return [Finding("concentration", text)]
