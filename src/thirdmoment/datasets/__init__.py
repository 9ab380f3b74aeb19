"""Synthetic data with known truth, and real corpora that need no download."""

from thirdmoment.datasets.docstrings import LabelledCorpus, docstring_texts, load_docstrings
from thirdmoment.datasets.synthetic import (
    HMMSample,
    MixtureSample,
    ShapedMixture,
    TopicCorpus,
    make_categorical_hmm,
    make_categorical_mixture,
    make_gaussian_hmm,
    make_gaussian_mixture,
    make_lda_corpus,
    make_shaped_mixture,
    make_single_topic_corpus,
)
from thirdmoment.io.bag_of_words import BagOfWords, load_bag_of_words

__all__ = [
    "BagOfWords",
    "HMMSample",
    "LabelledCorpus",
    "MixtureSample",
    "ShapedMixture",
    "TopicCorpus",
    "docstring_texts",
    "load_bag_of_words",
    "load_docstrings",
    "make_categorical_hmm",
    "make_categorical_mixture",
    "make_gaussian_hmm",
    "make_gaussian_mixture",
    "make_lda_corpus",
    "make_shaped_mixture",
    "make_single_topic_corpus",
]
