"""Threads: tasks run side by side, results come back in task order.

The tasks are fixed by the data and never by the number of threads, and BLAS is held to one thread
inside them, so a sum over tasks in order is the same to the last bit on any number of threads.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import joblib
import threadpoolctl

Task = TypeVar("Task")
Result = TypeVar("Result")
Call = TypeVar("Call", bound=Callable[..., Any])


def effective_threads(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None or -1 is every core this process may use.

    ``joblib.cpu_count`` knows the limits of containers; ``joblib.effective_n_jobs`` would warn in
    every child process.
    """
    cores = joblib.cpu_count()
    if n_jobs is None:
        return cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


def map_in_order(
    work: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    n_threads: int,
    blas: bool = True,
    waiting: int | None = None,
    pool: str = "work",
) -> Iterator[Result]:
    """``map(work, tasks)`` on threads, with ``waiting`` results at most, or ``2 * n_threads``.

    A single task runs in the calling thread: to hand it over costs more than small tasks take. Work
    without ``blas`` leaves its threads alone, for whoever walks over the results in between. Work
    that maps other work needs another ``pool`` for it: threads of one would wait for each other.
    """
    with single_threaded_blas() if blas else contextlib.nullcontext():
        rest = iter(tasks)
        first = list(itertools.islice(rest, 2))
        if n_threads <= 1 or len(first) < 2:
            yield from map(work, itertools.chain(first, rest))
            return
        most = 2 * n_threads if waiting is None else waiting
        queue: deque[Future[Result]] = deque()
        work = _on_the_same_stream(work)
        workers = _pool(os.getpid(), n_threads, pool)
        try:
            for task in itertools.chain(first, rest):
                queue.append(workers.submit(work, task))
                if len(queue) >= most:
                    yield queue.popleft().result()
            while queue:
                yield queue.popleft().result()
        finally:  # after an error or an interrupt nobody waits for the rest
            for future in queue:
                future.cancel()


def _on_the_same_stream(work: Callable[[Task], Result]) -> Callable[[Task], Result]:
    """Work whose operations on a GPU wait for those of the calling thread.

    Every thread has a current stream of its own, and what one stream makes another may read before
    it is there.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return work
    stream = torch.cuda.current_stream()

    def there(task: Task) -> Result:
        with torch.cuda.stream(stream):
            return work(task)

    return there


@functools.cache
def _pool(pid: int, n_threads: int, name: str) -> ThreadPoolExecutor:
    """One pool a process, size and use; a forked child, whose threads are gone, makes its own."""
    del pid, name
    return ThreadPoolExecutor(n_threads, thread_name_prefix="thirdmoment")


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Context in which BLAS uses the calling thread only.

    The limit belongs to the process: the first to enter sets it and the last to leave lifts it, so
    that threads of the user that enter side by side do not restore each other's limit.
    """
    mark = _limit.mark()
    try:
        _limit.enter()
        yield
    finally:
        _limit.leave(mark)


def blas_as_before(call: Call) -> Call:
    """A call after which BLAS has the threads it had before, however it ends.

    An interrupt may come at any instruction, the first of a context's exit included. One that
    comes inside ``call`` meets the second clean-up here; one that comes later finds nothing open.
    """

    @functools.wraps(call)
    def settled(*args: Any, **kwargs: Any) -> Any:
        count = _limit.mark()[0]
        try:
            return call(*args, **kwargs)
        except BaseException:
            _limit.leave((count, None))
            raise

    return settled  # type: ignore[return-value]


class _Limit:
    """How many contexts each thread has open, and the threads of BLAS before the first.

    Nothing is changed before it is noted down, and `leave` may be called again: wherever an
    interrupt hits, the next clean-up finishes the work.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.open: dict[int, int] = {}
        self.rounds: dict[int, int] = {}  # how often each thread had closed its last context
        self.before: list[tuple[Any, int]] = []

    def mark(self) -> tuple[int, int]:
        """Contexts that this thread has open, and in which round of them it is."""
        own = threading.get_ident()
        return self.open.get(own, 0), self.rounds.get(own, 0)

    def enter(self) -> None:
        with self.lock:
            self.open[threading.get_ident()] = self.mark()[0] + 1
            if not self.before:
                self.before = [(library, library.num_threads) for library in _blas()]
                for library, _ in self.before:
                    _set_threads(library, 1)

    def leave(self, mark: tuple[int, int | None]) -> None:
        """Close all contexts that this thread opened since it had ``mark``.

        A context that was interrupted may be closed again when its remains are collected, in the
        middle of later work: its round is over then, and nothing is done. With None any round.
        """
        own, (count, begun) = threading.get_ident(), mark
        with self.lock:
            now, current = self.mark()
            if begun not in (None, current):
                return
            if min(now, count):
                self.open[own] = min(now, count)
                return
            self.open.pop(own, None)
            if not self.open:
                for library, threads in self.before:
                    _set_threads(library, threads)
                self.before = []
            self.rounds[own] = current + 1  # last: until then the next clean-up does it again

    def after_fork(self) -> None:
        """A child has none of the other threads, and its own lock."""
        own = self.mark()[0]
        self.lock, self.open = threading.RLock(), {}
        if own:
            self.open[threading.get_ident()] = own


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.after_fork)


@functools.cache
def _blas() -> list[Any]:
    """The BLAS libraries of this process."""
    import scipy.linalg  # noqa: F401  its own BLAS must be loaded to be found

    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, n: int) -> None:
    """Give a BLAS library n threads, from whichever thread.

    From threadpoolctl 3.8 on only the first thread that set a limit can set OpenBLAS another one;
    from all others the call does nothing. Ours are counted over all threads, so that the last to
    leave may be another one than the first to enter.
    """
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    free(force=True)
    library.set_num_threads(n)
    free(force=True)
