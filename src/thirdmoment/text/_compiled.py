"""Loops over all tokens of a corpus."""

from __future__ import annotations

import numpy as np

from thirdmoment._array.compile import compiled


@compiled(writes=("partner", "lead"))
def vote(
    ids: np.ndarray, ends: np.ndarray, often: np.ndarray, partner: np.ndarray, lead: np.ndarray
) -> None:
    """The neighbour that a word has most of the time, if there is one (Boyer and Moore).

    ``partner`` (2, words) is the candidate behind and before each word, ``lead`` (2, words) how far
    it leads: who stands there more than half of the time is the candidate in the end. Both are
    carried from chunk to chunk.
    """
    begin = 0
    for end in ends:
        for p in range(begin, end - 1):
            a, b = ids[p], ids[p + 1]
            if not (often[a] and often[b]):
                continue
            for side, word, other in ((0, a, b), (1, b, a)):
                if lead[side, word] == 0:
                    partner[side, word] = other
                    lead[side, word] = 1
                elif partner[side, word] == other:
                    lead[side, word] += 1
                else:
                    lead[side, word] -= 1
        begin = end


@compiled(writes=("count",))
def tally(ids: np.ndarray, ends: np.ndarray, partner: np.ndarray, count: np.ndarray) -> None:
    """How often each word stands with its candidates, added to ``count`` (2, words)."""
    begin = 0
    for end in ends:
        for p in range(begin, end - 1):
            a, b = ids[p], ids[p + 1]
            if partner[0, a] == b:
                count[0, a] += 1
            if partner[1, b] == a:
                count[1, b] += 1
        begin = end
