"""Claims about real text, on data that is not part of the project."""

import sys
from pathlib import Path

import numpy as np
import pytest

from thirdmoment import LatentDirichletAllocation
from thirdmoment.metrics import npmi_coherence, perplexity

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "benchmarks"))


def corpus(name, folder):
    if not (DATA / folder).exists():
        pytest.skip(f"no real data at {DATA / folder}")
    from common import load_corpus, split

    X = load_corpus(name, DATA)
    return X, *split(X, seed=30)


@pytest.mark.parametrize(("name", "folder"), [("KOS", "uci_kos"), ("we8there", "we8there")])
def test_refinement_lowers_held_out_perplexity(name, folder):
    _, train, test = corpus(name, folder)
    plain = LatentDirichletAllocation(20, refine="none").fit(train)
    model = LatentDirichletAllocation(20).fit(train)
    assert perplexity(model.components_, test) < perplexity(plain.components_, test)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder"), [("KOS", "uci_kos"), ("AP", "ap")])
@pytest.mark.filterwarnings("ignore:The training result may differ")
def test_topics_are_no_worse_than_gibbs_sampling(name, folder):
    pytest.importorskip("tomotopy", reason="tomotopy is not installed")
    from common import tomotopy_topics

    X, train, test = corpus(name, folder)
    model = LatentDirichletAllocation(20).fit(train)
    peer = tomotopy_topics(train, 20)
    assert perplexity(model.components_, test) < perplexity(peer, test)
    ours, theirs = (npmi_coherence(t, X).mean() for t in (model.components_, peer))
    assert ours > theirs - 0.02  # coherence of twenty topics varies by this much between splits


@pytest.mark.slow
def test_the_answer_on_real_text_is_the_same_twice_and_on_any_threads():
    _, train, _ = corpus("20 Newsgroups", "newsgroups20")
    fits = [LatentDirichletAllocation(20, n_jobs=n).fit(train).components_ for n in (2, 2, 1, 4)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)
