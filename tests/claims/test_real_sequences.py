"""Claims about hidden Markov models on real sequences; skipped where the data is not there."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from thirdmoment import BernoulliHMM, CategoricalHMM, GaussianHMM

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the real data is not on this machine")
ALPHABET = " abcdefghijklmnopqrstuvwxyz"


@needs_data
def test_two_states_of_letters_are_vowels_and_consonants():
    with gzip.open(DATA / "letters_moby_dick" / "letters.txt.gz", "rt") as file:
        chapters = file.read().splitlines()[:20]
    X = np.array([ALPHABET.index(c) for c in "".join(chapters)])[:, None]
    lengths = [len(chapter) for chapter in chapters]
    model = CategoricalHMM(2).fit(X, lengths=lengths)
    # posterior share of each letter in the state of the letter e
    belongs = model.emissionprob_ * model.weights_[:, None]
    belongs /= belongs.sum(axis=0)
    state = int(np.argmax(belongs[:, ALPHABET.index("e")]))
    vowels = [ALPHABET.index(c) for c in "aeiou"]
    consonants = [ALPHABET.index(c) for c in "bcdfgjklmnpqrstvwxz"]
    assert np.all(belongs[state, vowels] > 0.5)
    assert np.mean(belongs[state, consonants] < 0.5) > 0.9


@needs_data
def test_words_with_like_neighbours_share_a_state():
    with np.load(DATA / "brown_pos" / "tokens.npz") as file:
        tokens = dict(file)
    lengths = tokens["sentence_length"].astype(int)[:3000]
    n = int(lengths.sum())
    X = np.unique(tokens["word"][:n], return_inverse=True)[1][:, None]
    tags = tokens["tag"][:n]
    with pytest.warns(ConvergenceWarning, match="still rose"):  # a hundred steps are not enough
        model = CategoricalHMM(12).fit(X, lengths=lengths)
    table = np.zeros((12, tags.max() + 1))
    np.add.at(table, (model.predict(X, lengths), tags), 1)
    share_of_nouns = np.bincount(tags).max() / n  # what one state for all words would reach
    assert table.max(axis=1).sum() / n > 2 * share_of_nouns


@needs_data
def test_marks_of_chromatin_have_states_of_their_own():
    with np.load(DATA / "chromhmm_chr11" / "marks.npz") as file:
        marks = file["GM12878"][:60_000]
    one, five = (BernoulliHMM(k).fit(marks) for k in (1, 5))
    assert five.bic(marks) < one.bic(marks)
    assert five.weights_[0] > 0.5  # most bins are empty
    assert np.all(five.emissionprob_[0] < 0.1)


@needs_data
def test_eruptions_alternate():
    """Old Faithful: after a short eruption comes a long one."""
    X = np.loadtxt(DATA / "hmm_series" / "geyser.csv", delimiter=",", skiprows=1)
    model = GaussianHMM(2, covariance_type="full").fit(X)
    short = int(np.argmin(model.means_[:, 1]))
    assert model.transmat_[short, 1 - short] > 0.9
