"""Searches and their models on real data, where it is present."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment import MixedLinearRegression, SubspaceClustering, TopicSearch

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def need(*names):
    for name in names:
        if not (DATA / name).exists():
            pytest.skip(f"{name} is not present")


@pytest.fixture(scope="module")
def posts():
    need("newsgroups20/counts.npz")
    folder = DATA / "newsgroups20"
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"), dtype=float)
    words = np.array((folder / "vocab.txt").read_text("utf-8").splitlines())
    stop = set((folder / "stopwords.txt").read_text("utf-8").split())
    df = np.bincount(X.indices, minlength=X.shape[1])
    keep = np.flatnonzero(
        [
            50 <= count < 0.2 * X.shape[0] and w not in stop
            for w, count in zip(words, df, strict=True)
        ]
    )
    labels = np.loadtxt(folder / "docs.csv", delimiter=",", skiprows=1, usecols=1, dtype=int)
    names = (folder / "groups.txt").read_text("utf-8").split()
    return TopicSearch(100).fit(X[:, keep], feature_names=words[keep]), labels, names


@pytest.mark.parametrize(
    ("word", "expected", "group"),
    [
        ("gun", {"guns", "firearms", "weapons"}, "talk.politics.guns"),
        ("encryption", {"clipper", "key", "chip"}, "sci.crypt"),
        ("israel", {"israeli", "arab", "jews"}, "talk.politics.mideast"),
    ],
)
def test_words_of_newsgroups_find_their_group(posts, word, expected, group):
    search, labels, names = posts
    found = search.search(word)
    assert expected <= set(found.top_words(20))
    groups = [names[labels[row]] for row in found.documents(20)]
    assert groups.count(group) >= 14


def test_two_regressions_of_tone_perception():
    need("mixtools/tonedata.csv")
    x, y = np.loadtxt(DATA / "mixtools" / "tonedata.csv", delimiter=",", skiprows=1).T
    model = MixedLinearRegression(2).fit(x[:, None], y)
    assert model.report_.level == "good"
    assert model.score(x[:, None], y) * len(y) == pytest.approx(141.2, abs=0.05)
    np.testing.assert_allclose(model.coef_.ravel(), [0.04, 0.99], atol=0.02)


def test_motions_of_hopkins():
    need("hopkins155/sequences.npz")
    with np.load(DATA / "hopkins155" / "sequences.npz") as file:
        every = dict(file)
    names = sorted({key[:-3] for key in every if key.endswith("__X")})
    errors = []
    for name in names[::5]:
        X, labels = every[f"{name}__X"].astype(float), every[f"{name}__label"].astype(int)
        k = len(np.unique(labels))
        if k > 3:
            continue
        found = SubspaceClustering(k, 3, affine=True).fit_predict(X)
        counts = np.array([[np.sum((labels == a) & (found == b)) for b in range(k)]
                           for a in np.unique(labels)])  # fmt: skip
        errors.append(1 - max(np.trace(counts[:, list(p)]) for p in _orders(k)) / len(X))
    assert np.median(errors) < 0.05
    assert np.mean(errors) < 0.10  # k-subspaces from random labels: about 0.2


def _orders(k):
    import itertools

    return itertools.permutations(range(k))
