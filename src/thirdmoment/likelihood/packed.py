"""Sequences of any lengths, packed so that all of them take a step together.

Sequences are cut into blocks of at most L observations. Blocks stand in the order of their length,
so that at step t the first S_t of them are still running: a step is one matrix product with no
padding. Blocks of one long sequence are linked by their transfer matrices N = diag(b_0) T diag(b_1)
T ... diag(b_L): first every block's N (one more product a step, k columns wide), then the messages
from block to block, then all blocks side by side. Python counts steps and links, never
observations: about 3 √n of them for one sequence of n. Numbers are scaled, not logarithmic: where a
state out of reach explains a long stretch far better than those in reach, their posteriors drown
(the compiled form sees that and turns to logarithms).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from thirdmoment._array import Array, add_rows, array_namespace
from thirdmoment._constants import Work
from thirdmoment.moments.sequences import whole_sequences

# Tasks take whole sequences up to about this many observations.
TASK_SIZE: Work[int] = 25_000

# From this length on a sequence is worked on by itself, its recursions side by side.
LONG: Work[int] = 50_000

# More states than this are worked on step by step on a GPU too.
WIDEST: Work[int] = 128

FIRST, LAST = 1, 2  # marks of ``edge``


class Task(NamedTuple):
    """Observations [begin, end) of whole sequences, the first of which has this number."""

    begin: int
    end: int
    number: int


class Sequences(NamedTuple):
    """Where sequences begin and end among n observations."""

    offsets: np.ndarray  # (S + 1,)
    edge: np.ndarray  # (n,) uint8: 1 first, 2 last observation of a sequence, 3 both
    tasks: tuple[Task, ...]  # fixed by the data alone

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def n(self) -> int:
        return int(self.offsets[-1])


def sequences(lengths: np.ndarray) -> Sequences:
    """Sequences of the given lengths, which are positive."""
    lengths = np.asarray(lengths, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    edge = np.zeros(int(offsets[-1]), dtype=np.uint8)
    edge[offsets[:-1]] |= FIRST
    edge[offsets[1:] - 1] |= LAST
    parts = whole_sequences(offsets, TASK_SIZE)
    tasks = tuple(Task(int(offsets[a]), int(offsets[b]), a) for a, b in parts)
    return Sequences(offsets, edge, tasks)


Links = tuple[tuple[np.ndarray, np.ndarray], ...]


class Blocks(NamedTuple):
    """Pieces of sequences, the longest first."""

    begin: np.ndarray  # (B,) first observation of each
    length: np.ndarray  # (B,) how many it has
    sequence: np.ndarray  # (B,)
    first: np.ndarray  # blocks that begin a sequence, in the order of sequences
    links: Links  # (blocks, their predecessors) a rank


class Packing(NamedTuple):
    """Observations in the order of the steps, and blocks in the order of their lengths."""

    order: np.ndarray  # (n,) observation of each packed row
    inverse: np.ndarray  # (n,) packed row of each observation
    steps: tuple[tuple[int, int], ...]  # packed rows [a, b) of each step
    links: Links
    first: np.ndarray  # blocks that begin a sequence, in the order of sequences
    length: np.ndarray  # (B,) observations of each block
    sequence: np.ndarray  # (B,)


class Posterior(NamedTuple):
    """What forward-backward finds."""

    posteriors: Array  # (n, k)
    transitions: Array  # (k, k)
    start: Array  # (k,)
    log_likelihood: Array  # (S,)
    least: Array  # smallest number that anything was divided by


def blocks_of_sequences(offsets: np.ndarray, longest: int | None = None) -> Blocks:
    """Blocks of at most ``longest`` observations; by default long enough to make links rare."""
    lengths = np.diff(offsets)
    if longest is None:
        longest = max(512, int(np.sqrt(lengths.max(initial=1))))
    count = -(-lengths // longest)
    sequence = np.repeat(np.arange(len(lengths)), count)
    rank = np.arange(len(sequence)) - np.repeat(np.cumsum(count) - count, count)
    begin = offsets[:-1][sequence] + rank * longest
    length = np.minimum(longest, offsets[1:][sequence] - begin)
    order = np.argsort(-length, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    by_rank = np.argsort(rank, kind="stable")
    ends = np.searchsorted(rank[by_rank], np.arange(count.max(initial=1) + 1))
    links = tuple(
        (place[by_rank[a:b]], place[by_rank[a:b] - 1]) for a, b in itertools.pairwise(ends[1:])
    )
    return Blocks(begin[order], length[order], sequence[order], place[rank == 0], links)


def pack(offsets: np.ndarray, *, longest: int | None = None) -> Packing:
    """Blocks of sequences in the order of the steps."""
    begin, length, sequence, first, links = blocks_of_sequences(offsets, longest)
    running = len(length) - np.searchsorted(length[::-1], np.arange(1, length.max() + 1))
    edges = np.concatenate([[0], np.cumsum(running)])
    rows = np.concatenate([begin[:size] + t for t, size in enumerate(running)])
    inverse = np.empty_like(rows)
    inverse[rows] = np.arange(len(rows))
    steps = tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    return Packing(rows, inverse, steps, links, first, length, sequence)


def forward_backward(rows: Array, T: Array, start: Array, layout: Packing) -> Posterior:
    """Scaled forward-backward of likelihoods ``rows`` (n, k)."""
    xp = array_namespace(rows)
    b = rows[layout.order]
    entry, leave = _messages(b, T, start, layout)
    alpha, norm = _forward(b, T, entry, layout)
    pairs, gamma = xp.zeros_like(T), xp.zeros_like(b)
    beta, least = leave, [xp.min(norm)]
    for t in range(len(layout.steps) - 1, -1, -1):
        a, z = layout.steps[t]
        if t + 1 < len(layout.steps):
            a1, z1 = layout.steps[t + 1]
            weighted = b[a1:z1] * beta[: z1 - a1]
            moved = weighted @ T.T
            share = xp.sum(alpha[a : a + z1 - a1] * moved, axis=1)
            pairs = pairs + alpha[a : a + z1 - a1].T @ _over(weighted, share)
            total = xp.sum(moved, axis=1)
            beta = xp.concat([_over(moved, total), leave[z1 - a1 : z - a]])
            least.append(xp.min(total))
        product = alpha[a:z] * beta[: z - a]
        total = xp.sum(product, axis=1)
        gamma[a:z] = _over(product, total)
        least.append(xp.min(total))
    ends = _last_rows(layout)
    for blocks, before in layout.links:  # transitions from block to block
        weighted = b[: len(layout.length)][blocks] * beta[blocks]
        share = xp.sum(alpha[ends[before]] * (weighted @ T.T), axis=1)
        pairs = pairs + alpha[ends[before]].T @ _over(weighted, share)
    possible = xp.where(norm > 0, norm, xp.ones_like(norm))
    logs = xp.where(norm > 0, xp.log(possible), xp.full_like(norm, -np.inf))
    value = add_rows(logs[layout.inverse][:, None], _owner(layout), len(layout.first))[:, 0]
    gamma = gamma[layout.inverse]
    firsts = xp.sum(gamma[layout.order[layout.first]], axis=0)
    return Posterior(gamma, pairs * T, firsts, value, xp.min(xp.stack(least)))


def _owner(layout: Packing) -> np.ndarray:
    """Sequence of each observation (n,)."""
    packed = np.concatenate([layout.sequence[: z - a] for a, z in layout.steps])
    return packed[layout.inverse]


def _last_rows(layout: Packing) -> np.ndarray:
    """Packed row of the last observation of each block."""
    begins = np.array([a for a, _ in layout.steps])
    return begins[layout.length - 1] + np.arange(len(layout.length))


def _messages(b: Array, T: Array, start: Array, layout: Packing) -> tuple[Array, Array]:
    """Distribution of the state before each block's first observation, and β at its last (B, k)."""
    if not layout.links:
        return outer_messages(T, start, len(layout.length))
    return messages(*_transfers(b, T, layout), T, start, layout.links)


def outer_messages(T: Array, start: Array, size: int) -> tuple[Array, Array]:
    """Those of blocks that are whole sequences."""
    xp = array_namespace(T)
    entry = xp.zeros((size, T.shape[0]), dtype=T.dtype, device=getattr(T, "device", None)) + start
    return entry, xp.ones_like(entry) / T.shape[0]


def messages(N: Array, size_of: Array, T: Array, start: Array, links: Links) -> tuple[Array, Array]:
    """The messages from what blocks make of each state (B, k, k), and the logarithms of its rows'
    sizes (B, k).
    """
    xp = array_namespace(N)
    entry, leave = outer_messages(T, start, N.shape[0])
    for blocks, before in links:
        weighted = _times_exp(entry[before], size_of[before])
        moved = (weighted[:, None, :] @ N[before])[:, 0, :] @ T
        entry[blocks] = _over(moved, xp.sum(moved, axis=1))
    for blocks, before in reversed(links):
        ended = _times_exp((N[blocks] @ leave[blocks][:, :, None])[:, :, 0], size_of[blocks])
        moved = ended @ T.T
        leave[before] = _over(moved, xp.sum(moved, axis=1))
    return entry, leave


def _over(rows: Array, totals: Array) -> Array:
    """Rows divided by their totals, those of (nearly) zero left as they are."""
    xp = array_namespace(rows)
    least = 1e3 * float(xp.finfo(rows.dtype).smallest_normal)
    return rows / xp.where(totals > least, totals, xp.ones_like(totals))[..., None]


def _times_exp(rows: Array, logs: Array) -> Array:
    """rows ∘ exp(logs) up to a factor for each row, set by what is not zero."""
    xp = array_namespace(rows)
    low = xp.where(rows > 0, logs, xp.full_like(logs, -np.inf))
    top = xp.max(low, axis=1)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return rows * xp.exp(xp.clip(logs - top[:, None], -745.0, 0.0))


def _transfers(b: Array, T: Array, layout: Packing) -> tuple[Array, Array]:
    """N = diag(b_0) T diag(b_1) ... of each block (B, k, k), rows scaled to sum to one.

    The second result has the logarithms of what rows were divided by (B, k).
    """
    xp = array_namespace(b)
    a, z = layout.steps[0]
    eye = xp.eye(T.shape[0], dtype=b.dtype, device=getattr(b, "device", None))
    N = eye[None] * b[a:z][:, None, :]
    logs = xp.zeros_like(b[a:z])
    for a, z in layout.steps[1:]:
        moved = (N[: z - a] @ T) * b[a:z][:, None, :]
        total = xp.sum(moved, axis=2)
        N[: z - a] = _over(moved, total)
        logs[: z - a] = logs[: z - a] + xp.log(xp.where(total > 0, total, xp.ones_like(total)))
    return N, logs


def _forward(b: Array, T: Array, entry: Array, layout: Packing) -> tuple[Array, Array]:
    """α of all packed rows, each summing to one, and what it summed to."""
    xp = array_namespace(b)
    alpha = xp.zeros_like(b)
    norm = xp.zeros_like(b[:, 0])
    for t, (a, z) in enumerate(layout.steps):
        before = entry if t == 0 else alpha[layout.steps[t - 1][0] :][: z - a] @ T
        moved = before * b[a:z]
        total = xp.sum(moved, axis=1)
        possible = total > 0
        alpha[a:z] = xp.where(possible[:, None], _over(moved, total), 1 / T.shape[0])
        norm[a:z] = total
    return alpha, norm


def viterbi(rows: Array, T: Array, start: Array, layout: Packing) -> tuple[Array, Array]:
    """Most probable paths (n,) and their log-probabilities (S,); all arguments logarithms."""
    xp = array_namespace(rows)
    b = rows[layout.order]
    entry = _best_entries(b, T, start, layout)
    back = xp.zeros(b.shape, dtype=xp.int64, device=getattr(b, "device", None))
    best = entry + b[: len(entry)]
    ends = xp.zeros_like(best)
    for t, (a, z) in enumerate(layout.steps):
        if t > 0:
            through = best[: z - a][:, :, None] + T[None]
            back[a:z] = xp.argmax(through, axis=1)
            best = xp.max(through, axis=1) + b[a:z]
        done = slice(layout.steps[t + 1][1] - layout.steps[t + 1][0], z - a) if (
            t + 1 < len(layout.steps)
        ) else slice(0, z - a)  # fmt: skip
        ends[done] = best[done]
    state = xp.argmax(ends, axis=1)  # right for last blocks; others are set from their successors
    last = _final_blocks(layout)
    value = xp.max(ends[last], axis=1)
    origin = _origins(back, layout)
    for blocks, before in reversed(layout.links):
        first = origin[blocks, state[blocks]]
        state[before] = xp.argmax(ends[before] + T.T[first], axis=1)
    path = xp.zeros_like(back[:, 0])
    for t in range(len(layout.steps) - 1, -1, -1):
        a, z = layout.steps[t]
        path[a:z] = state[: z - a]
        moved = xp.take_along_axis(back[a:z], state[: z - a][:, None], axis=1)[:, 0]
        state = xp.concat([moved, state[z - a :]]) if t > 0 else state
    return path[layout.inverse], value


def _final_blocks(layout: Packing) -> np.ndarray:
    """Last block of each sequence."""
    last = layout.first.copy()
    for blocks, _ in layout.links:
        last[layout.sequence[blocks]] = blocks
    return last


def _origins(back: Array, layout: Packing) -> Array:
    """First state of the best path through a block that ends in each state (B, k)."""
    xp = array_namespace(back)
    k = back.shape[1]
    states = xp.arange(k, dtype=back.dtype, device=getattr(back, "device", None))
    origin = xp.zeros_like(back[: len(layout.length)]) + states
    for t in range(len(layout.steps) - 1, 0, -1):
        a, z = layout.steps[t]
        origin[: z - a] = xp.take_along_axis(back[a:z], origin[: z - a], axis=1)
    return origin


def _best_entries(b: Array, T: Array, start: Array, layout: Packing) -> Array:
    """Log-probability of the best path up to, not including, each block's first observation."""
    xp = array_namespace(b)
    size, k = len(layout.length), T.shape[0]
    entry = xp.zeros((size, k), dtype=b.dtype, device=getattr(b, "device", None)) + start
    if not layout.links:
        return entry
    N = xp.full((size, k, k), -np.inf, dtype=b.dtype, device=getattr(b, "device", None))
    states = xp.arange(k)
    N[:, states, states] = b[:size]
    for a, z in layout.steps[1:]:
        N[: z - a] = xp.max(N[: z - a][:, :, :, None] + T[None, None], axis=2) + b[a:z][:, None, :]
    for blocks, before in layout.links:
        ended = xp.max(entry[before][:, :, None] + N[before], axis=1)
        entry[blocks] = xp.max(ended[:, :, None] + T[None], axis=1)
    return entry
