"""Words found in a text are those that were counted, where they stand."""

import numpy as np
import pytest

import thirdmoment as tm
from thirdmoment.text.places import Places
from thirdmoment.text.tokens import as_read

PIECES = [
    "battery", "Battery,", "New York", "café", "cafe\u0301", "İstanbul", "ΣΟΦΙΑ",
    "the", "e-mail", "don't", "don’t", "\u202eevil\u202c", "😀", "<script>", "हिन्दी", "日本語",
    "ab", "42",
]  # fmt: skip


def drawn_texts(seed, n=200):
    rng = np.random.default_rng(seed)
    gaps = [" ", "\n", "  ", "\t", ", "]
    return [
        "game " + "".join(f"{rng.choice(PIECES)}{rng.choice(gaps)}" for _ in range(20))
        for _ in range(n)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_words_found_are_the_words_counted(seed):
    texts = [*drawn_texts(seed), "york is new", "new new york york"]
    corpus = tm.text.read(texts, min_documents=1, max_share=1.0)
    assert "new york" in corpus.words
    places = Places(corpus.words, corpus.counter)
    for row, text in zip(corpus.X.toarray(), corpus.texts, strict=True):
        found = np.bincount([one.column for one in places.find(text)], minlength=len(corpus.words))
        np.testing.assert_array_equal(found, row)


@pytest.mark.parametrize("seed", range(3))
def test_a_place_holds_its_word(seed):
    texts = drawn_texts(seed)
    corpus = tm.text.read(texts, min_documents=1, max_share=1.0)
    places = Places(corpus.words, corpus.counter)
    for text in corpus.texts:
        for start, end, column in places.find(text):
            read = " ".join(as_read(text[start:end]).split())
            for word in corpus.words[column].split():
                assert word in read


@pytest.mark.parametrize("options", [{}, {"phrases": False}])
def test_some_words_are_found_as_all_are(options):
    texts = drawn_texts(0)
    corpus = tm.text.read(texts, min_documents=1, max_share=1.0, **options)
    places = Places(corpus.words, corpus.counter)
    some = set(range(0, len(corpus.words), 3))
    for text in corpus.texts:
        expected = [one for one in places.find(text) if one.column in some]
        assert places.find(text, some) == expected


def test_words_of_another_vectorizer_are_found_too():
    places = Places(["battery", "york", "new york"])
    found = places.find("The battery of new York, new battery")
    assert [(place.start, place.column) for place in found] == [(4, 0), (15, 2), (29, 0)]
