"""Texts read in bounded memory give what texts in memory give."""

import gc
import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput
from thirdmoment.text import stream, tokens


def texts(n=400, seed=0):
    """Texts with a phrase, a rare word, words of two topics, and some without any word."""
    rng, out = np.random.default_rng(seed), []
    topics = [["apple", "pear", "plum", "cherry"], ["copper", "iron", "zinc", "silver"]]
    for i in range(n):
        own = list(rng.choice(topics[i % 2], size=8))
        if i % 5 == 0:
            own[2:4] = ["new", "york"]
        out.append("" if i % 97 == 1 else "12 34" if i % 97 == 2 else " ".join(own))
    return out


@pytest.fixture
def file(tmp_path):
    days = pd.date_range("2020-01-01", periods=400).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"body": texts(), "kind": ["fruit", "metal"] * 200, "day": days})
    frame.to_csv(tmp_path / "a.csv", index=False)
    return tmp_path / "a.csv"


ROLES = {"text": "body", "group": "kind", "time": "day"}


@pytest.mark.parametrize("batch", [1, 7, 400])
@pytest.mark.filterwarnings("ignore:Not everything")
def test_a_stream_has_the_rows_of_the_corpus(file, monkeypatch, batch):
    monkeypatch.setattr(stream, "BATCH_TEXTS", batch)
    whole = tm.text.read(file, **ROLES)
    read = tm.text.read(file, **ROLES, stream=True)
    assert read.words == whole.words
    assert "new york" in read.words
    assert read.shape == whole.shape
    assert (read.X != whole.X).nnz == 0
    assert (read.groups, read.times, read.ids) == (whole.groups, whole.times, whole.ids)
    assert read.dropped == whole.dropped != ""
    rows = [0, 10, len(whole) - 1, 3]
    assert read.texts_at(rows) == whole.texts_at(rows) == [whole.texts[i] for i in rows]
    new = tm.text.read(["my new york apple"], like=read)
    assert (new.X != tm.text.read(["my new york apple"], like=whole).X).nnz == 0
    again = tm.text.read(file, **ROLES, like=whole, stream=True)
    assert (again.X != whole.X).nnz == 0


@pytest.mark.filterwarnings("ignore:Not everything")
def test_models_and_tables_take_a_stream(file):
    whole, read = (tm.text.read(file, **ROLES, stream=way) for way in (False, True))
    model = tm.LatentDirichletAllocation(2).fit(read)
    np.testing.assert_array_equal(
        model.components_, tm.LatentDirichletAllocation(2).fit(whole).components_
    )
    for table in ("documents_frame", "by_group", "over_time", "topics_frame"):
        pd.testing.assert_frame_equal(getattr(model, table)(read), getattr(model, table)(whole))
    pd.testing.assert_frame_equal(
        model.typical_documents(0, read), model.typical_documents(0, whole)
    )


@pytest.mark.filterwarnings("ignore:Not everything")
def test_the_temporary_folder_goes_with_the_stream(file, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    (tmp_path / "room").mkdir()
    read = tm.text.read(file, **ROLES, stream=True)
    assert len(list((tmp_path / "room").rglob("*.npy"))) == 1  # one batch, its counts alone
    del read
    gc.collect()
    assert list((tmp_path / "room").iterdir()) == []

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("thirdmoment.text.words.find_phrases", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tm.text.read(file, **ROLES, stream=True)
    gc.collect()
    assert list((tmp_path / "room").iterdir()) == []


def test_a_full_disk_is_said(file, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="No space left on device; set TMPDIR"):
        tm.text.read(file, **ROLES, stream=True)


def test_vectorizers_that_know_their_words_count_streams(file):
    some = [text for text in texts() if text.strip() and not text.startswith("12")]
    hashing = HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None)
    read = tm.text.read(some, vectorizer=hashing, stream=True)
    assert (hashing.transform(some) != read.X).nnz == 0
    assert read.words[5] == "#5"
    fitted = CountVectorizer().fit(some)
    assert tm.text.read(some, vectorizer=fitted, stream=True).words[0] == "apple"
    with pytest.raises(InvalidInput, match="must know its words already"):
        tm.text.read(some, vectorizer=CountVectorizer(), stream=True)
    assert tm.text.read(some, vectorizer=hashing).X.shape == (len(some), 2**10)


def test_callables_give_texts_rows_and_batches():
    some = [text for text in texts(40) if text.strip() and not text.startswith("12")]
    expected = tm.text.read(some, phrases=False)
    rows = [{"body": text, "kind": i} for i, text in enumerate(some)]
    ways = {
        "texts": lambda: iter(some),
        "lists": lambda: iter([some[:10], some[10:]]),
        "rows": lambda: iter(rows),
        "batches": lambda: iter([{"body": some, "kind": list(range(len(some)))}]),
    }
    for name, way in ways.items():
        columns = {"text": "body", "group": "kind"} if name in ("rows", "batches") else {}
        for streamed in (False, True):
            found = tm.text.read(way, **columns, phrases=False, stream=streamed)
            assert (found.X != expected.X).nnz == 0, name
            assert found.texts_at([3]) == [some[3]]
            if columns:
                assert found.groups[5] == 5
    with pytest.raises(InvalidInput, match="Text 0 is a int, not a string or a dict"):
        tm.text.read(lambda: iter([3]))
    with pytest.raises(InvalidInput, match=r"read\(lambda: generator\(\)\)"):
        tm.text.read(text for text in some)


def test_lines_of_mallet_are_names_labels_and_texts(tmp_path):
    lines = [f"doc{i}\t{'ab'[i % 2]}\tapple pear number {i}" for i in range(6)]
    (tmp_path / "all.mallet").write_text("\n".join([*lines, "", "alone x"]))
    with pytest.warns(UserWarning, match="1 rows with an empty text"):
        found = tm.text.read(tmp_path / "all.mallet", phrases=False)
    assert found.ids == [f"doc{i}" for i in range(6)]
    assert found.groups == ["a", "b"] * 3
    assert found.words == ["apple", "number", "pear"]


@pytest.mark.parametrize("seed", range(5))
def test_phrases_are_those_of_counting_all_pairs(seed):
    """Pairs counted one by one: no pair that the rule takes is missed by the vote."""
    rng = np.random.default_rng(seed)
    words = [f"w{j}" for j in range(40)]
    ids = (40 * rng.random(6000) ** 2).astype(np.int32)
    for a, b in ((30, 31), (35, 3), (4, 36), (37, 38), (38, 39)):  # one word of each is rare
        at = np.flatnonzero(ids[:-1] == max(a, b)) - (max(a, b) == b)
        at = at[(at >= 0) & (rng.random(len(at)) < 0.8)]
        ids[at], ids[at + 1] = a, b
    ends = np.unique(np.append(rng.integers(1, 6000, 300), 6000))
    single, pairs = Counter(ids.tolist()), Counter()
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        pairs.update(zip(ids[begin : end - 1].tolist(), ids[begin + 1 : end].tolist(), strict=True))
    expected = {
        f"w{a} w{b}"
        for (a, b), n in pairs.items()
        if n >= tokens.PHRASE_TIMES and a != b and n > 0.5 * min(single[a], single[b])
        and n * 6000 > tokens.PHRASE_LIFT * single[a] * single[b]
    }  # fmt: skip
    cut = len(ends) // 2
    parts = [
        tokens.Tokens(ids[: ends[cut - 1]], ends[:cut]),
        tokens.Tokens(ids[ends[cut - 1] :], ends[cut:] - ends[cut - 1]),
    ]
    found = tokens.find_phrases(lambda: iter(parts), words)
    assert set(found) == expected
    assert len(found) >= 3


def test_both_patterns_of_words_agree_on_plain_texts():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        text = "".join(rng.choice(list("abc'-- 1_."), size=16))
        assert tokens.TOKEN.findall(text) == tokens.PLAIN.findall(text)


def test_memory_does_not_follow_the_texts(tmp_path):
    """Four times the texts need hardly more memory at the peak."""
    import tracemalloc

    rng = np.random.default_rng(0)
    words = np.array([f"{a}{b}{c}" for a in "abcdefgh" for b in "aeiou" for c in "lmnr"])

    def peak(n):
        path = Path(tmp_path) / f"{n}.txt.jsonl"
        with path.open("w") as out:
            for _ in range(n):
                out.write('{"text": "' + " ".join(rng.choice(words, 60)) + '"}\n')
        tracemalloc.start()
        tm.text.read(path, stream=True, max_share=1.0)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BATCH_TEXTS", 500)
        peak(500)  # what is loaded once
        small, large = peak(2000), peak(8000)
    assert large < 1.5 * small + 8000 * 200  # a name and a place for each document


def test_a_source_that_changed_gives_no_other_texts(tmp_path):
    some = [text for text in texts(60) if text.strip() and not text.startswith("12")]
    path = tmp_path / "a.csv"
    pd.DataFrame({"text": some}).to_csv(path, index=False)
    read = tm.text.read(path, stream=True, phrases=False)
    assert read.texts_at([0, 5]) == [some[0], some[5]]
    for later in (some[::-1], some[:3]):
        pd.DataFrame({"text": later}).to_csv(path, index=False)
        with pytest.raises(InvalidInput, match="has other texts than when it was read"):
            read.texts_at([0, 5])
    once = iter(some)
    read = tm.text.read(lambda: once, stream=True, phrases=False)
    with pytest.raises(InvalidInput, match="not made anew"):
        read.texts_at([0])


def test_the_folder_goes_at_once_and_never_with_a_fork(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.disable()
    try:
        read = tm.text.read(["apple pear plum"] * 3, stream=True, phrases=False)
        folder = read._read.store.folder
        child = os.fork()
        if child == 0:
            del read
            os._exit(0)
        os.waitpid(child, 0)
        assert folder.exists()
        del read
        assert not folder.exists()  # nothing holds the stream in a circle
    finally:
        gc.enable()
    closed = tm.text.read(["apple pear plum"] * 3, stream=True, phrases=False)
    closed.close()
    assert list(tmp_path.iterdir()) == []


def test_empty_sources_are_told_alike():
    for way in (False, True):
        with pytest.raises(InvalidInput, match=r"no texts to read: 2 rows with an empty text"):
            tm.text.read([" ", ""], stream=way)


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: lambda: iter([{"body": np.array(rows)}]),
        lambda rows: lambda: iter([{"body": tuple(rows)}]),
        lambda rows: lambda: iter([pd.DataFrame({"body": rows})]),
        lambda rows: {"body": rows},
        lambda rows: [{"body": text} for text in rows],
    ],
)
def test_columns_and_rows_in_any_container(make):
    rows = [text for text in texts(30) if text.strip() and not text.startswith("12")]
    found = tm.text.read(make(rows), text="body", phrases=False)
    assert (found.X != tm.text.read(rows, phrases=False).X).nnz == 0


def test_batches_and_bounds_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInput, match=r"differ in length: {'a': 2, 'b': 1}"):
        tm.text.read(lambda: iter([{"a": ["x", "y"], "b": ["z"]}]), text="a")
    with pytest.raises(InvalidInput, match="returned a NoneType"):
        tm.text.read(lambda: None)
    for bad in ({"max_share": 50}, {"max_share": 0}, {"min_documents": 0.01}, {"min_documents": 0}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            tm.text.read(["apple"], **bad)


def test_phrases_of_many_words_are_joined():
    """Pairs are numbered beyond 32 bits."""
    words = [f"w{j}" for j in range(60_000)]
    read = tokens.Tokens(np.array([1, 50_000, 59_999, 2], dtype=np.int32), np.array([4]))
    assert tokens.Phrases(words, ["w50000 w59999"]).join(read).ids.tolist() == [1, 60_000, 2]


def test_tables_of_two_bytes_a_letter_and_with_blank_lines(tmp_path):
    (tmp_path / "a.csv").write_text("text\napples and pears\n", encoding="utf-16")
    assert tm.text.read(tmp_path / "a.csv").words == ["apples", "pears"]
    (tmp_path / "b.csv").write_text("\n\ntext\napples and pears\n")
    assert tm.text.read(tmp_path / "b.csv").words == ["apples", "pears"]


def test_one_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("thirdmoment.text.files.LONGEST_FIELD", 1000)
    (tmp_path / "a.jsonl").write_text("x" * 5000)
    with pytest.raises(InvalidInput, match="a line of more than 1,000 letters"):
        tm.text.read(tmp_path / "a.jsonl")
