"""Topics that words point at: the search for one topic as the start of a fit of all.

A few words name a topic. The search kernel finds the topic they point at, and this topic takes the
place of the one it is nearest to among those of the moments; the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._constants import Choice
from thirdmoment.metrics.alignment import align
from thirdmoment.recovery.search import whitened_search, word_distribution
from thirdmoment.refinement.collapsed import two_part_step
from thirdmoment.starts.topic_index import TopicIndex

# Weights of a topic that a likelihood step believes in.
LEAST_WEIGHT: Choice[float] = 0.01
MOST_WEIGHT: Choice[float] = 0.5

Near = tuple[sp.csr_array, np.ndarray]


def near_documents(index: TopicIndex, plus: Sequence[int], minus: Sequence[int] = ()) -> Near:
    """Documents that hold a word of the hint and no negative one, and their weights."""
    rows = index.documents_with(plus, minus)
    return index.X[rows], index.weights[rows]


def sharpened(index: TopicIndex, law: np.ndarray, weight: float, near: Near | None) -> np.ndarray:
    """A word law (d,) after a likelihood step on the documents near the hint, if given."""
    if near is None:
        return law
    share = float(np.clip(np.nan_to_num(weight), LEAST_WEIGHT, MOST_WEIGHT))
    return two_part_step(*near, law, share, index.mean)


def topic_of_words(index: TopicIndex, columns: Sequence[int]) -> np.ndarray:
    """The topic (d,) that some words point at."""
    query = index.words(columns, np.ones(len(columns)))
    found = whitened_search(query.M, index.m_w, index.unwhitener, query.v_w)
    law = word_distribution(found)[0]
    near = None if index.trusted else near_documents(index, columns)
    return sharpened(index, law, found.weight, near)


class Placed(NamedTuple):
    """Topics of which the first are those that were named."""

    topics: np.ndarray  # (k, d)
    order: np.ndarray  # (k,) which of the given topics stand, or stood, there


def place_first(topics: np.ndarray, named: np.ndarray, *, keep: bool) -> Placed:
    """Named topics (s, d) before the topics (k, d) that are left without their nearest ones.

    With ``keep`` the nearest ones themselves come first, as they are.
    """
    nearest = align(topics, named)
    rest = np.setdiff1d(np.arange(len(topics)), nearest)
    order = np.concatenate([nearest, rest])
    found = topics[order].copy()
    if not keep:
        found[: len(named)] = named
    return Placed(found, order)
