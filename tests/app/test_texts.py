"""Strings that are packed, words of a query, and parts of a text that stand out."""

import numpy as np
import pytest

from thirdmoment.app.marks import EXCERPT, excerpt, parts
from thirdmoment.app.query import LONGEST, MOST_WORDS, UnknownWord, parse, parse_rows
from thirdmoment.app.texts import Texts, pack, pack_on_disk
from thirdmoment.exceptions import InvalidInput
from thirdmoment.text.places import Place, Places

STRINGS = ["", "plain", "", "schön 🐳", "lone \ud800 half", "x" * 10_000, "\x00"]
VOCABULARY = {"ship": 0, "new york": 1, "sail": 2, "whale": 3, "Über": 4,
              "new": 5, "york": 6, "u.s.": 7, "yahoo!": 8, "-ing": 9}  # fmt: skip


@pytest.mark.parametrize("way", [pack, pack_on_disk])
def test_packed_strings_come_back(way):
    packed = way(iter(STRINGS))
    expected = [one.encode("utf-8", "replace").decode() for one in STRINGS]
    assert [packed[i] for i in range(len(packed))] == expected
    assert [packed.start(i, 5) for i in range(len(packed))] == [one[:5] for one in expected]
    packed.check()


def test_no_strings_are_packed_too():
    assert len(pack([])) == len(pack_on_disk([])) == 0


@pytest.mark.parametrize(
    "ends", [[3, 2], [-1, 3], [3, 99], [[1, 2]]], ids=["falling", "negative", "outside", "flat"]
)
def test_strings_outside_their_bytes_are_refused(ends):
    with pytest.raises(InvalidInput, match="texts are not where"):
        Texts(np.zeros(5, np.uint8), np.array(ends, np.int64)).check()


@pytest.mark.parametrize(
    ("text", "include", "exclude"),
    [
        ("ship", ["ship"], []),
        ("  SHIP,  sail ", ["ship", "sail"], []),
        ("new york", ["new york"], []),
        ('"new york" -sail', ["new york"], ["sail"]),
        ("ship -new york", ["ship"], ["new york"]),
        ("ship ship", ["ship"], []),
        ("the ship", ["ship"], []),
        ('"new" "york"', ["new", "york"], []),
        ("u.s. yahoo! -ing", ["u.s.", "yahoo!", "-ing"], []),
        ('"u.s.", sail. -"-ing"', ["u.s.", "sail"], ["-ing"]),
    ],
)
def test_a_query_is_read_as_it_is_meant(text, include, exclude):
    found = parse(text, VOCABULARY, frozenset({"the"}))
    assert (found.include, found.exclude) == (include, exclude)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Type a word"),
        ("-ship", "only narrow it"),
        ("the", "not counted"),
        ("-", "Type a word"),
        ("x" * (LONGEST + 1), f"{LONGEST} are the limit"),
        (" ".join(["ship"] * (MOST_WORDS + 1)), f"{MOST_WORDS} are the limit"),
    ],
)
def test_a_query_without_words_says_what_to_type(text, said):
    with pytest.raises(InvalidInput, match=said):
        parse(text, VOCABULARY, frozenset({"the"}))


def test_near_spellings_are_offered():
    with pytest.raises(UnknownWord, match="'shipp' is not among the 10 words") as caught:
        parse("shipp", VOCABULARY, frozenset())
    assert caught.value.near[0] == "ship"


def test_rows_are_numbers_of_documents():
    assert parse_rows("3,1", 4) == [3, 1]
    for wrong in ("a", "4", "-1", "1,,2", ",".join(["1"] * 51)):
        with pytest.raises(InvalidInput):
            parse_rows(wrong, 4)


def joined(found):
    return "".join(part if isinstance(part, str) else part[0] for part in found)


def test_parts_hold_the_whole_text():
    text = "A ship, the SHIP and a whale."
    places = Places(["ship", "whale"]).find(text)
    found = parts(text, places, {0: 2, 1: 1}, 0, len(text))
    assert joined(found) == text
    assert [part for part in found if not isinstance(part, str)] == [
        ["ship", 2], ["SHIP", 2], ["whale", 1],
    ]  # fmt: skip


def test_an_excerpt_is_the_stretch_with_most_marked_words():
    text = "ship " + "a b " * 300 + "ship sail whale " + "c d " * 300
    places = Places(["ship", "sail", "whale"]).find(text)
    found = excerpt(text, places, {0: 1, 1: 1, 2: 1})
    assert {"ship", "sail", "whale"} == {part[0] for part in found if not isinstance(part, str)}
    assert joined(found).strip("… ") in text
    assert found[0] == "… "
    assert found[-1] == " …"
    assert len(joined(found)) <= EXCERPT + 4


def test_an_excerpt_shows_marked_words_that_are_longer_than_it():
    text = "x " * 300 + "a" * 300 + " ship"
    places = [Place(600, 900, 0), Place(901, 905, 1)]
    assert "ship" in joined(excerpt(text, places, {0: 1, 1: 1}))


def test_an_excerpt_of_a_word_without_end_is_short():
    assert len(joined(excerpt("x" * 100_000, [], {}))) <= EXCERPT + 4
