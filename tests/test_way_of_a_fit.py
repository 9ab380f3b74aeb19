"""The page that leads through a fit names the files that a fit enters, and not too many of them."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "way_of_a_fit.md").read_text("utf-8")
PARTS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
WALKS = {name: text for name, text in PARTS.items() if ":" in name}
BELOW = ("_array", "linalg", "streaming", "metrics", "_", "exceptions")


def files(text):
    return set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text))


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 4)) + 4 * rng.integers(2, size=(n, 1))


def slopes(X):
    return X[:, 0] * np.where(np.arange(len(X)) % 2, 1, -1)


FITS = {
    "LatentDirichletAllocation": lambda: [
        tm.LatentDirichletAllocation(4).fit(make_lda_corpus(400, 200, 4).X)
    ],
    "GaussianMixture": lambda: [
        tm.GaussianMixture(k, covariance_type=kind).fit(rows())
        for k, kind in ((2, "spherical"), (2, "diag"), (3, "full"), (12, "diag"))
    ],
    "CategoricalMixture": lambda: [tm.CategoricalMixture(2).fit((rows() > 2).astype(int))],
    "GaussianHMM": lambda: [tm.GaussianHMM(3).fit(rows())],
    "CategoricalHMM": lambda: [
        tm.CategoricalHMM(2).fit((rows()[:, :1] > 2).astype(int)),
        tm.BernoulliHMM(2).fit((rows() > 2).astype(int)),
    ],
    "KernelMixture": lambda: [
        tm.KernelMixture(2).fit(rows()),
        tm.KernelMixture(2, views=[[0, 1, 2], [3], [4]]).fit(
            np.column_stack([rows(), rows(1)[:, 0]])
        ),
    ],
    "MixedLinearRegression": lambda: [tm.MixedLinearRegression(2).fit(rows(), slopes(rows()))],
    "SubspaceClustering": lambda: [
        tm.SubspaceClustering(2, dims).fit(rows()) for dims in (1, [1, 2])
    ],
}


def entered(work):
    """Files of the package whose functions run."""
    for name in tm.__all__:
        getattr(tm, name)  # modules are loaded, classes made
    seen = set()

    def note(frame, event, arg):
        place = frame.f_code.co_filename
        if event == "call" and "/thirdmoment/" in place:
            seen.add(place.split("/thirdmoment/")[-1])

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {file for file in seen if not file.startswith((*BELOW, "datasets"))}


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_has_few_files_of_its_own(name):
    rows_of_the_table = "\n".join(line for line in WALKS[name].splitlines() if line[:1] == "|")
    assert 4 <= len(files(rows_of_the_table)) <= 15


def test_every_file_is_there():
    for file in files(PAGE):
        assert (ROOT / "src" / "thirdmoment" / file).exists(), file


@pytest.mark.parametrize("model", FITS)
def test_a_fit_enters_the_files_of_its_walk(model):
    (walk,) = (text for name, text in WALKS.items() if f"`{model}`" in name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = entered(FITS[model])
    told = files(walk) | files(PARTS["What all share"])
    compiled = {file for file in found if file.endswith("_compiled.py")}
    assert found - compiled <= told, found - compiled - told
    assert files(walk) <= found | compiled | {"models/stream.py"}, files(walk) - found
