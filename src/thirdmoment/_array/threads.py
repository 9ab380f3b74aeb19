"""Threads: tasks run side by side, results come back in task order.

The tasks are fixed by the data and never by the number of threads, and BLAS is held to one thread
inside them, so a sum over tasks in order is the same to the last bit on any number of threads.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import threadpoolctl

Task = TypeVar("Task")
Result = TypeVar("Result")


def effective_threads(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None or -1 is every core this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    if n_jobs is None:
        return cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


def map_in_order(
    work: Callable[[Task], Result], tasks: Iterable[Task], *, n_threads: int
) -> Iterator[Result]:
    """``map(work, tasks)`` on threads, with at most ``2 * n_threads`` results waiting.

    A single task runs in the calling thread: to hand it over costs more than small tasks take.
    """
    with single_threaded_blas():
        rest = iter(tasks)
        first = list(itertools.islice(rest, 2))
        if n_threads <= 1 or len(first) < 2:
            yield from map(work, itertools.chain(first, rest))
            return
        waiting: deque[Future[Result]] = deque()
        pool = _pool(os.getpid(), n_threads)
        for task in itertools.chain(first, rest):
            waiting.append(pool.submit(work, task))
            if len(waiting) >= 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@functools.cache
def _pool(pid: int, n_threads: int) -> ThreadPoolExecutor:
    """One pool a process and size; a forked child, whose threads are gone, makes its own."""
    del pid
    return ThreadPoolExecutor(n_threads, thread_name_prefix="thirdmoment")


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Context in which BLAS uses the calling thread only.

    The limit belongs to the process: the first to enter sets it and the last to leave lifts it, so
    that threads of the user that enter side by side do not restore each other's limit.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


class _Limit:
    """How many contexts are open, and what lifts the limit."""

    def __init__(self) -> None:
        self.lock, self.depth, self.limiter = threading.Lock(), 0, None

    def enter(self) -> None:
        with self.lock:
            if self.depth == 0:
                self.limiter = _controller().limit(limits=1, user_api="blas")
            self.depth += 1

    def leave(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0 and self.limiter is not None:
                self.limiter.restore_original_limits()


_limit = _Limit()
if hasattr(os, "register_at_fork"):  # a forked child has none of the threads that entered
    os.register_at_fork(after_in_child=_limit.__init__)  # type: ignore[misc]


@functools.cache
def _controller() -> threadpoolctl.ThreadpoolController:
    import scipy.linalg  # noqa: F401  its own BLAS must be loaded to be found

    return threadpoolctl.ThreadpoolController()
