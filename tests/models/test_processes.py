"""Every model in forked and spawned children, and in threads side by side: nothing hangs."""

import os
import subprocess
import sys
import textwrap

import pytest

FITS = """
    import os, sys, threading, warnings
    import numpy as np
    import thirdmoment as tm

    warnings.simplefilter("ignore")
    models = [getattr(tm, name) for name in tm.__all__]  # no fork in the middle of an import
    rng = np.random.default_rng(0)
    counts = tm.datasets.make_lda_corpus(60, 30, 2, random_state=0).X
    table = rng.normal(size=(80, 6)) + 4 * rng.integers(2, size=(80, 1))
    codes = rng.integers(3, size=(80, 4))

    def fit_all():
        for name in ("LatentDirichletAllocation", "SingleTopicModel", "PoissonTopicModel",
                     "TopicSearch"):
            getattr(tm, name)(2).fit(counts)
        for name in ("GaussianMixture", "MultiViewMixture", "KernelMixture", "IndependentFactors",
                     "SubspaceClustering", "GaussianSearch", "SubspaceSearch", "GaussianHMM"):
            getattr(tm, name)(2).fit(table)
        for name in ("MixedLinearRegression", "RegressionSearch"):
            getattr(tm, name)(2).fit(table, table[:, 0])
        tm.CategoricalMixture(2).fit(codes)
        tm.CategoricalHMM(2).fit(codes[:, :1])
        tm.BernoulliHMM(2).fit(codes > 0)
"""

FORK = """
    fit_all()
    child = os.fork()
    if child == 0:
        fit_all()
        os._exit(7)
    fit_all()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""

FORK_FROM_A_THREAD = """
    fit_all()  # what is imported and compiled at first holds locks that a child would wait for
    busy = threading.Thread(target=fit_all)
    busy.start()
    child = os.fork()
    if child == 0:
        fit_all()
        os._exit(7)
    busy.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""

THREADS = """
    fit_all()
    workers = [threading.Thread(target=fit_all) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
"""


def run(script):
    code = textwrap.dedent(FITS) + textwrap.dedent(script) + "\nprint('done')\n"
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=100,
        check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    assert "done" in found.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("script", [FORK, FORK_FROM_A_THREAD])
def test_children_that_are_forked(script):
    run(script)


def test_threads_side_by_side():
    run(THREADS)


def test_children_that_are_spawned(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        textwrap.dedent(FITS)
        + textwrap.dedent("""
            if __name__ == "__main__":
                import multiprocessing

                fit_all()
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    pool.apply(fit_all)
                print("done")
            """)
    )
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert "done" in found.stdout, found.stderr[-2000:]
