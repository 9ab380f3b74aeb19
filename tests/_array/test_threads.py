"""BLAS has one thread in our contexts, whichever thread opens and whichever closes them last."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl

from thirdmoment._array import map_in_order, single_threaded_blas


def blas_threads():
    info = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in info if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def several_blas_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert max(blas_threads()) == 2  # else there is nothing to hold
        yield


def test_a_worker_holds_blas_to_one_thread_while_another_thread_set_it_before():
    # threadpoolctl 3.8 lets only the first thread that asked for a limit set one
    def held():
        with single_threaded_blas():
            return blas_threads()

    with single_threaded_blas():
        pass
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(held).result() == {1}
    assert max(blas_threads()) == 2


def test_the_last_context_gives_blas_its_threads_back_whoever_opened_the_first():
    opened, closed = threading.Event(), threading.Event()

    def last():
        with single_threaded_blas():
            opened.set()
            closed.wait(20)
            return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        with single_threaded_blas():
            later = pool.submit(last)
            assert opened.wait(20)
        closed.set()
        assert later.result() == {1}
    assert max(blas_threads()) == 2


def test_sums_are_the_same_to_the_last_bit_in_a_thread_of_the_user():
    X = np.random.default_rng(0).standard_normal((3000, 100)).astype(np.float32)

    def gram():
        with single_threaded_blas():
            return X.T @ X

    expected = gram()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: gram(), range(20)))
    assert all(np.array_equal(one, expected) for one in found)


def test_a_limit_of_the_user_holds_after_ours():
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        with single_threaded_blas():
            pass
        assert blas_threads() == {1}
    assert max(blas_threads()) == 2


def test_work_in_threads_follows_the_stream_of_a_gpu_that_the_caller_is_on(monkeypatch):
    torch = pytest.importorskip("torch")
    on = threading.local()

    @contextlib.contextmanager
    def stream(one):
        on.stream = one
        yield
        on.stream = None

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "that of the caller")
    monkeypatch.setattr(torch.cuda, "stream", stream)
    tasks = map_in_order(lambda task: (task, on.stream), range(5), n_threads=2)
    assert list(tasks) == [(task, "that of the caller") for task in range(5)]
