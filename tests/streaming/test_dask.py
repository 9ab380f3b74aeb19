"""Dask collections give what the same rows give in memory, on any scheduler."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.topics import streamed

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")

CORPUS = tm.datasets.make_lda_corpus(2000, 120, 4, random_state=5)
COUNTS = sp.csr_array(CORPUS.X)


def sparse_blocks(X, size=300):
    """A Dask array whose blocks are sparse, and whose sizes Dask does not know."""
    parts = [
        da.from_delayed(dask.delayed(X[i : i + size]), (np.nan, X.shape[1]), X.dtype)
        for i in range(0, X.shape[0], size)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


@pytest.fixture
def small_sample(monkeypatch):
    """So that even small data is streamed and not gathered."""
    monkeypatch.setattr(streamed, "SAMPLED", 400)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_moments_are_those_of_the_rows_in_memory(small_sample, scheduler):
    plain = tm.LatentDirichletAllocation(4, refine="none").fit(COUNTS)
    with dask.config.set(scheduler=scheduler):
        found = tm.LatentDirichletAllocation(4, refine="none").fit(sparse_blocks(COUNTS))
    np.testing.assert_allclose(found.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(found.concentration_, plain.concentration_, rtol=1e-7)
    assert found.mean_length_ == pytest.approx(plain.mean_length_)


def test_dense_blocks_of_any_size_and_small_collections():
    dense = COUNTS.toarray()
    plain = tm.LatentDirichletAllocation(4).fit(dense)
    found = tm.LatentDirichletAllocation(4).fit(da.from_array(dense, chunks=(700, 120)))
    np.testing.assert_array_equal(found.components_, plain.components_)  # small: gathered


def test_refined_topics_are_as_good(small_sample):
    plain = tm.LatentDirichletAllocation(4).fit(COUNTS)
    found = tm.LatentDirichletAllocation(4).fit(sparse_blocks(COUNTS))
    test = tm.datasets.make_lda_corpus(500, 120, 4, random_state=5).X
    assert found.score(test) == pytest.approx(plain.score(test), rel=5e-3)


def test_blocks_that_cannot_be_rows_are_refused(small_sample):
    model = tm.LatentDirichletAllocation(4)
    with pytest.raises(InvalidInput, match=r"cut into 2 blocks of columns.*rechunk"):
        model.fit(da.from_array(COUNTS.toarray(), chunks=(500, 60)))
    wrong = COUNTS.toarray()
    wrong[1700, 3] = np.nan
    with pytest.raises(InvalidInput, match=r"Chunk 3 of The Dask collection holds NaN"):
        model.fit(da.from_array(wrong, chunks=(500, 120)))
    wrong[1700, 3] = -1
    with pytest.raises(InvalidInput, match="negative values"):
        model.fit(da.from_array(wrong, chunks=(500, 120)))
    narrow = da.from_delayed(dask.delayed(COUNTS[:5, :9]), (np.nan, 120), float)
    both = da.concatenate([sparse_blocks(COUNTS), narrow], allow_unknown_chunksizes=True)
    with pytest.raises(InvalidInput, match="has 9 columns instead of 120"):
        model.fit(both)
    assert not hasattr(model, "components_")


def slow_rows(X, seconds):
    time.sleep(seconds)
    return X


def test_a_worker_that_is_killed_changes_nothing(small_sample):
    """Its blocks are made again on the other one."""
    distributed = pytest.importorskip("distributed")
    parts = [
        da.from_delayed(
            dask.delayed(slow_rows, pure=False)(COUNTS[i : i + 250], 0.02), (np.nan, 120), float
        )
        for i in range(0, 2000, 250)
    ]
    X = da.concatenate(parts, allow_unknown_chunksizes=True)
    with dask.config.set({"distributed.worker.daemon": True}):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
    try:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            seen = threading.Event()

            def kill():
                time.sleep(0.5)
                os.kill(pids[0], signal.SIGKILL)
                seen.set()

            threading.Thread(target=kill, daemon=True).start()
            found = tm.LatentDirichletAllocation(4, refine="none").fit(X)
            assert seen.is_set()
    finally:
        cluster.close()
    plain = tm.LatentDirichletAllocation(4, refine="none").fit(COUNTS)
    np.testing.assert_allclose(found.components_, plain.components_, atol=1e-9)
