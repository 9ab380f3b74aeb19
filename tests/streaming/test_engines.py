"""Files are opened by whatever engine joblib is told to use, and progress is told."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.models import tables
from thirdmoment.models.topics import streamed

CORPUS = tm.datasets.make_lda_corpus(1500, 100, 3, random_state=6)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLED", 300)
    X = sp.csr_array(CORPUS.X)
    for i in range(5):
        sp.save_npz(tmp_path / f"part{i}.npz", X[300 * i : 300 * (i + 1)], compressed=i % 2 == 1)
    return tmp_path


def test_processes_of_joblib_give_the_answer_of_memory(files):
    plain = tm.LatentDirichletAllocation(3, refine="none").fit(CORPUS.X)
    with joblib.parallel_config("loky", n_jobs=2):
        found = tm.LatentDirichletAllocation(3, refine="none").fit(tm.source(files))
    np.testing.assert_allclose(found.components_, plain.components_, atol=1e-9)
    assert found.report_.details["stream_passes"]


def test_progress_is_told_and_verbose_tells_every_pass(files, caplog):
    seen = []
    source = tm.source(files, progress=lambda rows, share: seen.append((rows, share)))
    tm.LatentDirichletAllocation(3, refine="none", verbose=1).fit(source)
    assert seen[0][1] is None
    assert (1500, 1.0) in seen
    assert any("pass 2" in record.getMessage() for record in caplog.records)


def test_a_source_that_changes_its_rows_is_refused_by_every_model(monkeypatch):
    monkeypatch.setattr(tables, "SAMPLED", 200)
    X = np.random.default_rng(0).normal(size=(900, 4))
    turns = iter([X, X, X[::-1]])
    source = tm.source(lambda: iter([next(turns)]))
    model = tm.GaussianMixture(2)
    with pytest.raises(tm.exceptions.InvalidInput, match="gives other rows"):
        model.fit(source)
    assert not hasattr(model, "means_")
