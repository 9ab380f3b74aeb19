"""Compiled loops: one set of them, and a word where they are compiled for the first time."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment._array import _compiled
from thirdmoment._array.compile import compiled


def loop(x, out):
    for i in range(len(x)):
        out[i] = 2 * x[i]


def test_read_only_arrays_need_no_loop_of_their_own():
    double = compiled()(loop)
    x = np.arange(3.0)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x, frozen):
        out = np.zeros(3)
        double(given, out)
        np.testing.assert_array_equal(out, [0, 2, 4])
    made = double.__closure__
    dispatchers = [cell.cell_contents for cell in made if hasattr(cell.cell_contents, "signatures")]
    assert len(dispatchers[0].signatures) == 1
    assert x.flags.writeable


def test_what_is_not_written_to_is_protected():
    """A loop that forgets to name what it writes to does not compile."""

    def wrong(x, out):
        x[0] = out[0]

    with pytest.raises(Exception, match="readonly"):
        compiled()(wrong)(np.zeros(1), np.zeros(1))


def test_products_of_read_only_matrices():
    X = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0]]))
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    out = np.empty((2, 2))
    _compiled.csr_dot(X.indptr, X.indices, X.data, np.ones((3, 2)), out)
    np.testing.assert_array_equal(out, [[3, 3], [3, 3]])


@pytest.mark.slow
def test_the_first_fit_of_an_installation_says_what_it_waits_for(tmp_path):
    code = textwrap.dedent("""
        import thirdmoment as tm
        tm.LatentDirichletAllocation(2).fit(tm.datasets.make_lda_corpus(300, 50, 2).X)
    """)
    told = []
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(run.stderr.count("compiles loops"))
    assert told == [1, 0]
