"""Likelihood, posteriors, expected counts and most probable paths of hidden Markov models.

Pure functions of arrays. The likelihoods of observation t in each state are ``table[code[t]]``:
for symbols the table has a row each, for vectors a row an observation (``code=None``). NumPy
arrays go through compiled loops, anything else (torch on any device) through packed.py, which
spends one matrix product a time step on all sequences. Either way the order of sums depends on the
data only. Letters: T (k, k) rows sum to one, pi (k,) start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from thirdmoment._array import Array, add_rows, like_one, map_in_order, to_numpy
from thirdmoment._constants import Work
from thirdmoment.likelihood import packed, tensor_chains
from thirdmoment.likelihood.packed import LONG, Sequences, Task
from thirdmoment.likelihood.tensor_chains import TensorSequences
from thirdmoment.streaming import row_ranges

# States are padded with empty ones to a multiple of this.
PADDING: Work[int] = 2

# Observations that one thread combines at a time in a long sequence, and those that stay in cache.
BLOCK: Work[int] = 50_000
STRIP: Work[int] = 2_048


# Arrays of one long sequence, kept from one E-step to the next.
Scratch = dict[str, np.ndarray]


class Expected(NamedTuple):
    """What an E-step finds."""

    counts: Array  # (m, k) expected visits, a row of the table each
    transitions: Array  # (k, k)
    start: Array  # (k,)
    log_likelihood: Array  # (S,) of each sequence


class Chain(NamedTuple):
    """A Markov chain and the likelihoods of the observations in each of its states."""

    start: Array  # (k,)
    T: Array  # (k, k)
    table: Array  # (m, k)
    code: np.ndarray | None  # (n,) row of the table of each observation
    logs: Array | None = None  # (m, k) logarithms of the table, where it has lost some


def expected_counts(
    chain: Chain,
    where: Sequences,
    *,
    n_threads: int = 1,
    scratch: Scratch | None = None,
    there: TensorSequences | None = None,
) -> Expected:
    """Posterior visits of each state at each row of the table, transitions and starts.

    Cost O(n k²), memory O(m k) and that of the longest sequence times k, which ``scratch`` keeps
    for the next call. Sequences that are ``there`` on a device are counted on it, and the counts of
    observations with rows of their own stay there.
    """
    if there is not None:
        device = tensor_chains.count(chain.start, chain.T, chain.table, there)
        if device is not None:
            return Expected(*device)
        logs = None if chain.logs is None else to_numpy(chain.logs)
        chain = chain._replace(table=to_numpy(chain.table), logs=logs)
        here = expected_counts(chain, where, n_threads=n_threads, scratch=scratch)
        own = chain.code is None
        return here._replace(counts=like_one(there.empty, here.counts)) if own else here
    if not isinstance(chain.table, np.ndarray):
        return _packed_counts(chain, where)
    rows = np.zeros((len(chain.table), _width(len(chain.T))))
    own = chain.code is None  # every observation has its own row: no two tasks share one
    found = _sweep(chain, where, None if own else rows, rows, n_threads, scratch)
    k = len(chain.T)
    return found._replace(counts=rows[:, :k])


def posteriors(chain: Chain, where: Sequences, *, n_threads: int = 1) -> Array:
    """Pr(state at t | whole sequence) (n, k)."""
    if not isinstance(chain.table, np.ndarray):
        layout = packed.pack(where.offsets)
        return packed.forward_backward(*_packed_arguments(chain), layout).posteriors
    rows = np.zeros((where.n, _width(len(chain.T))))
    _sweep(chain, where, None, rows, n_threads)
    return rows[:, : len(chain.T)]


def log_likelihoods(
    chain: Chain, where: Sequences, *, n_threads: int = 1, final: bool = False
) -> tuple[Array, Array]:
    """Log-likelihood of each sequence (S,), and with ``final`` Pr(last state | sequence) (S, k)."""
    if not isinstance(chain.table, np.ndarray):
        layout = packed.pack(where.offsets)
        found = packed.forward_backward(*_packed_arguments(chain), layout)
        return found.log_likelihood, found.posteriors[where.offsets[1:] - 1]
    padded, k = _padded(chain), len(chain.T)
    value = np.empty(len(where.lengths))
    last = np.zeros((len(value) if final else 0, k))

    def one(task: Task) -> None:
        alpha = np.empty((task.end - task.begin, len(padded.T)))
        if not _forward(padded, where, task, k, alpha, value):
            alpha[:] = 0.0
            alpha[:, :k] = _in_logarithms(chain, where, task, value).counts
        if final:
            count = int(np.searchsorted(where.offsets, task.end)) - task.number
            ends = where.offsets[task.number + 1 : task.number + 1 + count] - 1 - task.begin
            last[task.number : task.number + count] = alpha[ends, :k]

    _do(one, where.tasks, n_threads)
    return value, last


def most_probable_paths(
    chain: Chain, where: Sequences, *, n_threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Viterbi: states (n,) of the most probable path of each sequence, its log-probability (S,).

    ``chain`` holds logarithms here.
    """
    from thirdmoment.likelihood._compiled import viterbi

    if not isinstance(chain.table, np.ndarray):
        layout = packed.pack(where.offsets)
        return packed.viterbi(*_packed_arguments(chain), layout)
    k = len(chain.T)
    path, value = np.empty(where.n, dtype=np.int64), np.empty(len(where.lengths))
    code = _code(chain)
    kind = np.uint8 if k <= 256 else np.int64

    def one(task: Task) -> None:
        back = np.empty((task.end - task.begin, k), dtype=kind)
        viterbi(
            task.begin, task.end, where.edge, code, chain.table, chain.T, chain.start,
            back, path, value, task.number,
        )  # fmt: skip

    _do(one, where.tasks, n_threads)
    return path, value


def _sweep(
    chain: Chain,
    where: Sequences,
    shared: np.ndarray | None,
    rows: np.ndarray,
    n_threads: int,
    scratch: Scratch | None = None,
) -> Expected:
    """Forward, backward and combination over all tasks.

    Posteriors go to ``rows``: with ``shared`` to the rows of the symbols, summed over tasks in
    order, else to the row of each observation.
    """
    padded, k = _padded(chain), len(chain.T)
    value = np.empty(len(where.lengths))
    place: np.ndarray = np.arange(where.n) if shared is None else _code(padded)
    pairs, first = np.zeros(padded.T.shape), np.zeros(len(padded.T))

    def one(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        counts = rows if shared is None else np.zeros_like(rows)
        found = _short(padded, where, task, k, value, place, counts)
        return _sound(chain, where, task, found, value, place, counts)

    def add(found: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        nonlocal pairs, first
        pairs, first = pairs + found[0], first + found[1]
        if shared is not None:
            shared[:] += found[2]

    short = [task for task in where.tasks if task.end - task.begin < LONG]
    for found in map_in_order(one, short, n_threads=n_threads):
        add(found)
    for task in where.tasks:
        if task.end - task.begin >= LONG:
            own = shared is None
            *both, counts = _long(
                padded, where, task, k, value, place, rows, own, n_threads, scratch
            )
            add(_sound(chain, where, task, both, value, place, counts))
    return Expected(rows, pairs[:k, :k], first[:k], value)


def _sound(
    chain: Chain,
    where: Sequences,
    task: Task,
    found: Sequence[np.ndarray | None] | None,
    value: np.ndarray,
    place: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions, first states and counts as found, or by logarithms if numbers got too small."""
    if found is not None and found[0] is not None and found[1] is not None:
        return found[0], found[1], counts
    k, width = len(chain.T), counts.shape[1]
    whole = _in_logarithms(chain, where, task, value)
    own = place[task.begin : task.end]
    counts[own] = 0.0
    np.add.at(counts[:, :k], own, whole.counts)
    more = width - k
    return np.pad(whole.transitions, (0, more)), np.pad(whole.start, (0, more)), counts


def _in_logarithms(chain: Chain, where: Sequences, task: Task, value: np.ndarray) -> Expected:
    """One task in logarithms: posteriors of its observations, transitions, first states."""
    from thirdmoment.likelihood._compiled import logarithmic

    k = len(chain.T)
    with np.errstate(divide="ignore"):
        logs = np.log(chain.table) if chain.logs is None else chain.logs
        log_T, log_start = np.log(chain.T), np.log(chain.start)
    counts = np.zeros((task.end - task.begin, k))
    pairs, first = np.zeros((k, k)), np.zeros(k)
    place = np.arange(where.n) - task.begin
    logarithmic(
        task.begin, task.end, where.edge, _code(chain), logs, log_T, log_start,
        place, (counts, pairs, first), value, task.number,
    )  # fmt: skip
    return Expected(counts, pairs, first, value)


def _short(
    padded: Chain,
    where: Sequences,
    task: Task,
    k: int,
    value: np.ndarray,
    place: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray] | None:
    """One task on one thread: its transitions and first states, or None if digits were lost."""
    m, width = task.end - task.begin, len(padded.T)
    alpha, beta, norm = np.empty((m, width)), np.empty((m, width)), np.empty(m)
    sound = _forward(padded, where, task, k, alpha, value)
    _backward(padded, where, task, k, beta, norm)
    return (
        _combine(padded, where, task, (0, m), alpha, beta, norm, place, counts) if sound else None
    )


def _long(
    padded: Chain,
    where: Sequences,
    task: Task,
    k: int,
    value: np.ndarray,
    place: np.ndarray,
    rows: np.ndarray,
    own_rows: bool,
    n_threads: int,
    scratch: Scratch | None,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """One long sequence: the two recursions side by side, their combination in blocks."""
    m, width = task.end - task.begin, len(padded.T)
    kept: Scratch = {} if scratch is None else scratch
    if kept.get("alpha", np.empty((0, 0))).shape != (m, width):  # fresh pages cost as much as sums
        kept.update(alpha=np.empty((m, width)), beta=np.empty((m, width)), norm=np.empty(m))
    alpha, beta, norm = kept["alpha"], kept["beta"], kept["norm"]
    work: list[Callable[[], bool]] = [
        lambda: _forward(padded, where, task, k, alpha, value),
        lambda: _backward(padded, where, task, k, beta, norm),
    ]
    sound = all(map_in_order(lambda job: job(), work, n_threads=n_threads))

    def merge(block: tuple[int, int]) -> tuple[Any, np.ndarray]:
        counts = rows if own_rows else np.zeros_like(rows)
        found = _combine(padded, where, task, block, alpha, beta, norm, place, counts)
        return found, counts

    pairs, first = np.zeros((width, width)), np.zeros(width)
    counts = rows if own_rows else np.zeros_like(rows)
    for found, more in map_in_order(merge, row_ranges(m, size=BLOCK), n_threads=n_threads):
        sound = sound and found is not None
        if found is not None:
            pairs, first = pairs + found[0], first + found[1]
        if not own_rows:
            counts += more
    if not sound and not own_rows:
        counts = np.zeros_like(rows)
    return (pairs if sound else None), first, counts


def _combine(
    padded: Chain,
    where: Sequences,
    task: Task,
    block: tuple[int, int],
    alpha: np.ndarray,
    beta: np.ndarray,
    norm: np.ndarray,
    place: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Posteriors of a block into ``counts``, its transitions and first states; None: see above."""
    from thirdmoment.likelihood._compiled import combine

    width = len(padded.T)
    A, V = np.empty((STRIP, width)), np.empty((STRIP, width))
    pairs, first, sound = np.zeros((width, width)), np.zeros(width), True
    for a in range(block[0], block[1], STRIP):
        b = min(a + STRIP, block[1])
        sound &= combine(
            task.begin + a, task.begin + b, task.begin, where.edge, padded.code, padded.table,
            alpha, beta, norm, place, counts, first, A, V,
        )  # fmt: skip
        pairs += A[: b - a].T @ V[: b - a]
    return (pairs * padded.T, first) if sound else None


def _forward(
    padded: Chain, where: Sequences, task: Task, k: int, alpha: np.ndarray, value: np.ndarray
) -> bool:
    """Fill ``alpha`` and the values of the task; whether all sums kept their digits."""
    from thirdmoment.likelihood._compiled import forward

    return forward(
        task.begin, task.end, where.edge, padded.code, padded.table,
        np.ascontiguousarray(padded.T.T), padded.start, k, alpha, value, task.number,
    )  # fmt: skip


def _backward(
    padded: Chain, where: Sequences, task: Task, k: int, beta: np.ndarray, norm: np.ndarray
) -> bool:
    """Fill ``beta``; where its sums lost digits, `_combine` will tell."""
    from thirdmoment.likelihood._compiled import backward

    backward(task.begin, task.end, where.edge, padded.code, padded.table, padded.T, k, beta, norm)
    return True


def _do(work: Callable[[Any], None], tasks: Any, n_threads: int) -> None:
    for _ in map_in_order(work, tasks, n_threads=n_threads):
        pass


def _width(k: int) -> int:
    return -(-k // PADDING) * PADDING


def _code(chain: Chain) -> np.ndarray:
    return np.arange(len(chain.table)) if chain.code is None else chain.code


def _padded(chain: Chain) -> Chain:
    """The same chain with empty states, and every observation's row of the table."""
    k, width = len(chain.T), _width(len(chain.T))
    start, T, table = np.zeros(width), np.zeros((width, width)), np.zeros((len(chain.table), width))
    start[:k], T[:k, :k], table[:, :k] = chain.start, chain.T, chain.table
    return Chain(start, T, table, _code(chain))


def _packed_arguments(chain: Chain) -> tuple[Array, Array, Array]:
    rows = chain.table if chain.code is None else chain.table[chain.code]
    return rows, chain.T, chain.start


def _packed_counts(chain: Chain, where: Sequences) -> Expected:
    layout = packed.pack(where.offsets)
    found = packed.forward_backward(*_packed_arguments(chain), layout)
    counts = found.posteriors
    if chain.code is not None:
        counts = add_rows(counts, chain.code, len(chain.table))
    return Expected(counts, found.transitions, found.start, found.log_likelihood)
