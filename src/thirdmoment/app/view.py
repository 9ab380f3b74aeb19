"""What answers read of the topics: made once for a model, and anew when its topics change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Wording
from thirdmoment.app.documents import Documents
from thirdmoment.models.topics.averages import Averages, Grouping, averages

# Topics that a map places near each other; with fewer topics than that their distances are drawn.
NEIGHBOURS: Wording[int] = 10
FAMILIES: Wording[int] = 8  # colours of the page

RELEVANCE: Wording[float] = 0.6  # brings out what sets a topic apart


@dataclass(frozen=True, eq=False)
class Groupings:
    """Documents by group and by stretch of time; None where they have none."""

    groups: Grouping | None
    times: Grouping | None
    period: str

    def among(self, known: np.ndarray) -> Groupings:
        """The same of some documents alone, given as a mask (n,)."""
        groups, times = (
            None if by is None else by.among(known) for by in (self.groups, self.times)
        )
        return Groupings(groups, times, self.period)


def groupings(documents: Documents) -> Groupings:
    by_time = documents.by_time()
    times, period = by_time if by_time is not None else (None, "")
    return Groupings(documents.by_group(), times, period)


@dataclass(frozen=True, eq=False)
class View:
    """A topic model with the shares of its documents, and all that follows from the two."""

    model: Any
    shares: np.ndarray  # (n, k), no rows without documents
    labels: list[str]
    topics: np.ndarray  # (k, d)
    roots: np.ndarray  # (k, d) of the topics, for affinities
    mean: np.ndarray  # (d,)
    place: np.ndarray  # (k, 2) on the map, from 0 to 1
    kin: np.ndarray  # (k,) numbers of families of topics that share words, the largest family first
    groups: Averages | None
    times: Averages | None

    def renamed(self, model: Any) -> View:
        """The same topics under other names."""
        return replace(self, model=model, labels=model.topic_labels_)

    def affinity(self, law: np.ndarray) -> np.ndarray:
        """How far a word law (d,) shares its words with each topic (k,), 0 to 1."""
        root = np.sqrt(law).astype(np.float32)
        with single_threaded_blas():  # else its rounding depends on what other questions leave it
            return np.clip(self.roots @ root, 0.0, 1.0)


def make_view(model: Any, shares: np.ndarray, by: Groupings) -> View:
    """Everything that answers need to know of a model's topics."""
    topics = np.asarray(model.components_, dtype=np.float64)
    roots = np.sqrt(topics).astype(np.float32)
    weights = np.asarray(model.weights_, dtype=np.float64)
    return View(
        model=model,
        shares=shares,
        labels=model.topic_labels_,
        topics=topics,
        roots=roots,
        mean=weights @ topics,
        place=_map(np.sqrt(np.clip(1 - (roots @ roots.T).astype(np.float64), 0, 1))),
        kin=_families(roots, weights),
        groups=None if by.groups is None else averages(shares, by.groups),
        times=None if by.times is None else averages(shares, by.times),
    )


def _families(roots: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The family of each topic (k,), by Ward's clustering of the roots of their words (k, d)."""
    if len(weights) < 2:
        return np.zeros(len(weights), dtype=np.int64)
    from scipy.cluster.hierarchy import fcluster, ward

    branch = fcluster(ward(roots), FAMILIES, "maxclust") - 1
    order = np.argsort(-np.bincount(branch, weights), kind="stable")
    return np.argsort(order)[branch]


def _map(distance: np.ndarray) -> np.ndarray:
    """Places (k, 2) in the unit square: topics that share words are near each other."""
    k = len(distance)
    distance = (distance + distance.T) / 2
    np.fill_diagonal(distance, 0.0)
    centre = np.eye(k) - 1 / k
    values, vectors = np.linalg.eigh(-centre @ distance**2 @ centre / 2)
    place = np.zeros((k, 2))
    place[:, : min(k, 2)] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :2]
    place *= np.where(place[np.abs(place).argmax(axis=0), [0, 1]] < 0, -1, 1)  # one sign
    if k > NEIGHBOURS:
        from sklearn.manifold import TSNE

        start = 1e-4 * place / max(float(place[:, 0].std()), 1e-12)
        place = TSNE(
            metric="precomputed", init=start, perplexity=min(NEIGHBOURS, (k - 1) / 3),
            random_state=0,
        ).fit_transform(distance)  # fmt: skip
    low, high = place.min(axis=0), place.max(axis=0)
    return np.where(high > low, (place - low) / np.where(high > low, high - low, 1.0), 0.5)
