"""Ctrl-C at any instant leaves BLAS, logging, files and the estimator as they were.

A profiler raises `KeyboardInterrupt` at a chosen event, the entry of a function or the end of a
call of compiled code: there CPython looks for signals. The exception is kept, and with it all
frames, as an interactive session keeps them.
"""

import contextlib
import logging
import sys

import numpy as np
import pytest
import threadpoolctl

import thirdmoment as tm
from thirdmoment._array import blas_as_before, map_in_order, single_threaded_blas, threads

# Python itself drops an interrupt that hits while a generator is put away.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

OWN = (threads.__file__, contextlib.__file__)


def blas_threads():
    info = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in info if pool["user_api"] == "blas"]


def interrupted(call, at, files=OWN):
    """Run ``call`` with an interrupt at event number ``at`` in some files; the exception or None.

    With ``at=None`` the number of events.
    """
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(files):
            count += 1
            if count - 1 == at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        call()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.setprofile(None)
    return count if at is None else None


@pytest.fixture(autouse=True)
def several_blas_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert max(blas_threads()) == 2  # else there is nothing to restore
        yield


@blas_as_before
def nested(n_threads):
    with single_threaded_blas():
        assert max(blas_threads()) == 1
        for _ in map_in_order(np.sqrt, range(3), n_threads=n_threads):
            pass


@blas_as_before
def one_after_another(n_threads):
    for _ in range(2):
        with single_threaded_blas():
            for _ in map_in_order(np.sqrt, range(3), n_threads=n_threads):
                pass


@pytest.mark.parametrize("n_threads", [1, 2])
def test_contexts_one_after_another_leave_nothing_behind(n_threads):
    events = interrupted(lambda: one_after_another(n_threads), None)
    for at in range(events):
        interrupted(lambda: one_after_another(n_threads), at)
        assert max(blas_threads()) == 2, f"event {at}"
        assert threads._limit.open == {}, f"event {at}"


def test_remains_that_are_collected_late_close_nothing_of_later_work():
    remains = single_threaded_blas()
    remains.__enter__()
    threads._limit.leave((0, None))  # what an interrupted call does for it
    with single_threaded_blas():
        remains.gen.close()
        assert max(blas_threads()) == 1
    assert max(blas_threads()) == 2


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blas_has_its_threads_again_wherever_the_interrupt_hits(n_threads):
    nested(n_threads)  # the first one makes the threads, which later ones find
    events = interrupted(lambda: nested(n_threads), None)
    assert events > 40
    hit, kept = 0, []
    for at in range(events):
        error = interrupted(lambda: nested(n_threads), at)
        hit, kept = hit + (error is not None), [*kept, error]
        assert max(blas_threads()) == 2, f"event {at}"
        assert threads._limit.open == {}, f"event {at}"
    assert hit > 0.8 * events
    nested(n_threads)
    assert max(blas_threads()) == 2


PACKAGE = (tm.__path__[0],)


def counts():
    return tm.datasets.make_lda_corpus(120, 40, 3, random_state=0).X


MODELS = {
    "lda": lambda: tm.LatentDirichletAllocation(3, verbose=1).fit(counts()),
    "gaussian": lambda: tm.GaussianMixture(2).fit(counts().toarray()[:, :4]),
    "hmm": lambda: tm.CategoricalHMM(2).fit(counts().toarray()[:, :1].astype(int)),
    "search": lambda: tm.TopicSearch(3).fit(counts()).search(0),
}


@pytest.mark.parametrize("name", MODELS)
def test_fits_that_are_interrupted_leave_nothing_behind(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("thirdmoment")
    handlers, level = list(logger.handlers), logger.level
    events = interrupted(MODELS[name], None, (*OWN, *PACKAGE))
    rng = np.random.default_rng(0)
    kept = []
    for at in rng.integers(events, size=12):
        error = interrupted(MODELS[name], int(at), (*OWN, *PACKAGE))
        kept.append(error)
        assert max(blas_threads()) == 2, f"event {at}"
    assert any(kept)
    assert list(logger.handlers) == handlers
    assert logger.level == level
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_save_leaves_no_file(tmp_path):
    search = tm.TopicSearch(3).fit(counts())
    files = (sys.modules[tm.TopicSearch.__module__].__file__, *PACKAGE)
    events = interrupted(lambda: search.save(tmp_path / "search"), None, files)
    (tmp_path / "search").unlink()
    for at in range(events):
        interrupted(lambda: search.save(tmp_path / "search"), at, files)
        left = [path.name for path in tmp_path.iterdir()]
        assert left in ([], ["search"])
        (tmp_path / "search").unlink(missing_ok=True)


def test_verbose_fits_tell_and_set_nothing_up(capsys):
    logger = logging.getLogger("thirdmoment")
    before = list(logger.handlers), logger.level
    tm.LatentDirichletAllocation(3, verbose=1).fit(counts())
    assert (list(logger.handlers), logger.level) == before
