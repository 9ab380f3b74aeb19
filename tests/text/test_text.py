"""Texts in: every kind of source, what is dropped and said, and tables for people out."""

import datetime
import gc
import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

import thirdmoment as tm
from thirdmoment.exceptions import InputWarning, InvalidInput
from thirdmoment.text.places import Places

SPORT = "The team won the game after the coach changed players before the match in New York"
FOOD = "Cook the pasta with garlic and olive oil then serve the sauce with fresh basil"
MUSIC = "The band played guitar and drums while singers sang songs on stage in New York"


def words_in(corpus, text):
    """Counted words of a text, in its order."""
    places = Places(corpus.words, corpus.counter).find(text)
    return [corpus.words[place.column] for place in places]


def texts(n=60, seed=0):
    """Documents of a few sentences each, mostly of one kind."""
    rng = np.random.default_rng(seed)
    kinds = [text.split() for text in (SPORT, FOOD, MUSIC)]
    loose = [[word for word in words if word not in ("New", "York")] for words in kinds]
    main = rng.integers(3, size=n)
    out = []
    for kind in main:
        words = [*kinds[kind], *rng.choice(loose[kind], 15), *rng.choice(loose[(kind + 1) % 3], 4)]
        out.append(" ".join(words))
    return out, main


@pytest.fixture
def frame():
    rows, main = texts()
    return pd.DataFrame(
        {
            "body": rows,
            "stars": main,
            "date": [f"20{10 + i % 3}-0{1 + i % 9}-15" for i in range(60)],
            "key": [f"r{i}" for i in range(60)],
        }
    )


ROLES = {"text": "body", "group": "stars", "time": "date", "id": "key"}


def written(frame, folder, kind):
    path = folder / f"reviews{kind}"
    if kind == ".csv":
        frame.to_csv(path, index=False)
    elif kind == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == ".csv.gz":
        frame.to_csv(path, index=False, compression="gzip")
    elif kind == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet"])
def test_every_file_gives_the_corpus_of_the_frame(frame, tmp_path, kind):
    expected = tm.text.read(frame, **ROLES)
    found = tm.text.read(written(frame, tmp_path, kind), **ROLES)
    assert found.words == expected.words
    assert found.texts == expected.texts == list(frame["body"])
    assert found.ids == expected.ids == list(frame["key"])
    assert [str(g) for g in found.groups] == [str(g) for g in expected.groups]
    assert found.times == expected.times
    assert found.times[0] == datetime.datetime(2010, 1, 15)
    np.testing.assert_array_equal(found.X.toarray(), expected.X.toarray())


def test_counts_are_those_of_the_words(frame):
    corpus = tm.text.read(frame, **ROLES, max_share=0.9)
    assert "new york" in corpus.words  # a phrase: always together
    assert "york" not in corpus.words
    assert not {"the", "and", "with"} & set(corpus.words)
    for i in (0, 17):
        tokens = words_in(corpus, corpus.texts[i])
        counts = {word: tokens.count(word) for word in tokens}
        row = corpus.X[[i]].toarray()[0]
        assert counts == {corpus.words[j]: row[j] for j in np.flatnonzero(row)}


def test_a_folder_of_texts_has_its_folders_as_groups(tmp_path):
    rows, main = texts(30)
    for i, (text, kind) in enumerate(zip(rows, main, strict=True)):
        (tmp_path / f"kind{kind}").mkdir(exist_ok=True)
        (tmp_path / f"kind{kind}" / f"{i:02d}.txt").write_text(text)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    corpus = tm.text.read(tmp_path)
    assert len(corpus) == 30
    assert set(corpus.groups) == {"kind0", "kind1", "kind2"}
    assert corpus.ids[0].endswith(".txt")
    assert len(tm.text.read(str(tmp_path / "kind0" / "*.txt"))) == np.sum(main == 0)


def test_new_texts_are_counted_by_the_words_of_the_old(frame, tmp_path):
    corpus = tm.text.read(frame, **ROLES)
    model = tm.LatentDirichletAllocation(3).fit(corpus)
    new = tm.text.read(["fresh garlic sauce", "drums on stage"], like=corpus)
    assert new.words == corpus.words
    shares = model.transform(new)
    model.save(tmp_path / "model.tm")
    again = tm.load(tmp_path / "model.tm")
    np.testing.assert_array_equal(
        again.transform(tm.text.read(["fresh garlic sauce", "drums on stage"], like=again)), shares
    )
    other = tm.text.read(texts(40, 5)[0] + ["zebra zebra zebra"] * 30)
    with pytest.raises(InvalidInput, match="other words than the model"):
        model.transform(other)


def test_a_vectorizer_of_the_user_counts_instead(frame):
    corpus = tm.text.read(frame, **ROLES, vectorizer=CountVectorizer(min_df=3))
    assert "the" in corpus.words
    model = tm.LatentDirichletAllocation(3).fit(corpus)
    assert model.counter_ is None
    with pytest.raises(InvalidInput, match="do not know how their words were counted"):
        tm.text.read(["some text"], like=model)


@pytest.mark.parametrize(
    "model",
    [tm.LatentDirichletAllocation(3), tm.SingleTopicModel(3), tm.PoissonTopicModel(3)],
)
@pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning")
def test_tables_say_what_the_model_says(frame, model, tmp_path):
    corpus = tm.text.read(frame, **ROLES)
    model.fit(corpus)
    topics = model.topics_frame(corpus, n_words=4)
    assert list(topics.columns) == [
        "label", "weight", "trust", "words", "relevant_words", "coherence",
    ]  # fmt: skip
    assert topics["words"][0] == ", ".join(model.top_words(4)[0])
    documents = model.documents_frame(corpus)
    shares = documents[[f"topic {j}" for j in range(3)]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(documents["topic"], shares.argmax(axis=1))
    assert list(documents["id"]) == list(frame["key"])
    typical = model.typical_documents(0, corpus, n=3)
    assert list(typical["text"]) == [corpus.texts[i] for i in typical.index]
    assert typical["share"].is_monotonic_decreasing
    groups = model.by_group(corpus)
    own = shares[np.array(corpus.groups) == 1]
    row = groups[(groups["group"] == 1) & (groups["topic"] == 2)].iloc[0]
    assert row["share"] == pytest.approx(own[:, 2].mean())
    assert row["standard_error"] == pytest.approx(own[:, 2].std(ddof=1) / np.sqrt(len(own)))
    years = model.over_time(corpus)
    assert list(years["time"].unique()) == ["2010", "2011", "2012"]
    assert years["documents"].sum() == 3 * 60
    assert len(model.over_time(corpus, period="month")["time"].unique()) > 5
    model.rename({0: "first"}).save(tmp_path / "model")
    again = tm.load(tmp_path / "model")
    assert again.topic_labels_[0] == again.topics_frame()["label"][0] == "first"
    assert len(again.typical_documents("first", corpus)) == 5


def test_searches_take_a_corpus(frame):
    corpus = tm.text.read(frame, **ROLES)
    search = tm.TopicSearch(3).fit(corpus)
    assert "garlic" in search.search("garlic").top_words(12)


def test_a_missing_column_lists_those_there_are(frame, tmp_path):
    with pytest.raises(InvalidInput, match=r"no column 'boddy' \(text=\).*'body', 'stars'"):
        tm.text.read(frame, text="boddy")
    with pytest.raises(InvalidInput, match="Which column of the frame"):
        tm.text.read(frame[["stars", "key"]])
    assert len(tm.text.read(frame[["body"]])) == 60
    assert len(tm.text.read(frame, group="stars")) == 60  # body is one of the usual names


def test_bad_rows_are_counted_and_said(tmp_path):
    rows, _ = texts(30)
    lines = ["text,date", *(f'"{text}",2020-01-01' for text in rows)]
    lines[3] += ",more"
    lines[5] = ",2020-01-01"
    lines[7] = f'"{rows[6]}",last week'
    lines.append("17,2020-01-01")
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.warns(InputWarning) as told:
        corpus = tm.text.read(tmp_path / "a.csv", text="text", time="date")
    (text,) = {str(one.message) for one in told}
    for part in (
        "1 rows without 2 fields (first:", "a.csv:4", "1 rows with an empty text",
        "1 documents without a counted word", "1 times that are no dates (first: 'last week')",
    ):  # fmt: skip
        assert part in text
    assert corpus.dropped in text
    assert len(corpus) == len(corpus.times) == len(corpus.ids) == 28
    assert corpus.times.count(None) == 1


def test_encodings_are_found_and_said(tmp_path):
    rows = [f"{text} café" for text in texts(30)[0]]
    (tmp_path / "utf.csv").write_text("text\n" + "\n".join(rows), encoding="utf-8-sig")
    assert "café" in tm.text.read(tmp_path / "utf.csv", max_share=1.0).words
    (tmp_path / "old.csv").write_text("text\n" + "\n".join(rows), encoding="cp1252")
    with pytest.warns(InputWarning, match="read as Windows-1252"):
        corpus = tm.text.read(tmp_path / "old.csv", max_share=1.0)
    assert "café" in corpus.words
    assert "café" in tm.text.read(tmp_path / "old.csv", encoding="cp1252", max_share=1.0).words
    with pytest.raises(InvalidInput, match="is not utf-8"):
        tm.text.read(tmp_path / "old.csv", encoding="utf-8")


BAD = [
    ([], "no texts to read"),
    (["", "  "], "2 rows with an empty text"),
    ([1, 2], "Text 0 is of type int"),
    (b"bytes", "holds no texts"),
    (7, "holds no texts"),
    ((text for text in ["a"]), "read once only"),
    (["one document only that nobody else has"] * 1 + ["x"] * 0, None),
    (["a b c"] * 30, "No word is left of 30 texts"),
    (["same words here"] * 30, "No word is left"),
]


@pytest.mark.parametrize(("source", "message"), BAD)
def test_what_cannot_be_read_is_named(source, message):
    if message is None:
        assert len(tm.text.read(source)) == 1
        return
    with pytest.raises(InvalidInput, match=message):
        tm.text.read(source)


def test_damaged_and_foreign_files(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InvalidInput, match="is empty"):
        tm.text.read(tmp_path / "empty.csv")
    (tmp_path / "binary.csv").write_bytes(b"a,b\n\0\0")
    with pytest.raises(InvalidInput, match="binary"):
        tm.text.read(tmp_path / "binary.csv")
    whole = gzip.compress(("text\n" + "\n".join(texts(30)[0])).encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="cut off"):
        tm.text.read(tmp_path / "cut.csv.gz")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InvalidInput, match="no Parquet file"):
        tm.text.read(tmp_path / "no.parquet", text="text")
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    with pytest.raises(InvalidInput, match="no kind that is read"):
        tm.text.read(tmp_path / "data.xlsx")
    with pytest.raises(FileNotFoundError):
        tm.text.read(tmp_path / "nothing.csv")
    with pytest.raises(InvalidInput, match="language='klingon'"):
        tm.text.read(texts()[0], language="klingon")
    lines = [json.dumps({"text": text}) for text in texts(30)[0]]
    (tmp_path / "a.jsonl").write_text("\n".join([lines[0], "not json", *lines[1:]]))
    with pytest.warns(InputWarning, match="1 lines that are no JSON object"):
        assert len(tm.text.read(tmp_path / "a.jsonl")) == 30


def test_tables_without_groups_or_times_say_how_to_give_them():
    corpus = tm.text.read(texts()[0])
    model = tm.LatentDirichletAllocation(3).fit(corpus)
    with pytest.raises(InvalidInput, match="Read them with group="):
        model.by_group(corpus)
    with pytest.raises(InvalidInput, match="Read them with time="):
        model.over_time(corpus)
    with pytest.raises(InvalidInput, match="59 groups are given for 60 documents"):
        model.by_group(corpus, ["a"] * 59)
    with pytest.raises(InvalidInput, match="no topic 3"):
        model.typical_documents(3, corpus)
    assert len(model.by_group(sp.csr_array(corpus.X), ["a", "b"] * 30)) == 6


def test_rows_without_a_group_are_said_and_belong_to_none(frame, tmp_path):
    frame["stars"] = frame["stars"].astype(float)
    frame.loc[::10, "stars"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source in (frame, tmp_path / "a.csv"):
        with pytest.warns(InputWarning, match="6 rows without a group"):
            corpus = tm.text.read(source, text="body", group="stars")
        groups = tm.LatentDirichletAllocation(3).fit(corpus).by_group(corpus)
        assert groups["documents"].sum() == 3 * 54


def test_documents_keep_the_number_of_their_row(tmp_path):
    rows, _ = texts(30)
    (tmp_path / "a.csv").write_text("text\n" + "\n".join([*rows[:3], '""', *rows[3:]]))
    with pytest.warns(InputWarning, match="1 rows with an empty text"):
        corpus = tm.text.read(tmp_path / "a.csv")
    assert corpus.ids == [0, 1, 2, *range(4, 31)]


@pytest.mark.parametrize(
    ("given", "read"),
    [("2021-09-08", (2021, 9, 8)), ("2021-09", (2021, 9, 1)), ("2021", (2021, 1, 1)),
     ("08.09.2021", (2021, 9, 8)), ("Sep 08, 2021", (2021, 9, 8)), (2021.0, (2021, 1, 1)),
     ("8 September 2021", (2021, 9, 8)), ("2021-09-08T14:30:00", (2021, 9, 8))],
)  # fmt: skip
def test_dates_that_can_mean_one_thing_only_are_read(given, read):
    frame = pd.DataFrame({"text": texts(30)[0], "date": given})
    when = tm.text.read(frame, time="date").times[0]
    assert (when.year, when.month, when.day) == read


def test_dates_that_none_can_read_are_an_error():
    frame = pd.DataFrame({"text": texts(30)[0], "date": "09/08/2021"})
    with pytest.raises(InvalidInput, match=r"None of the times .*'09/08/2021'.*pandas.to_datetime"):
        tm.text.read(frame, time="date")


def test_texts_in_the_place_of_counts_are_told_what_to_do(frame):
    model = tm.LatentDirichletAllocation(3)
    with pytest.raises(InvalidInput, match=r"text.read\(frame, text='body'\)"):
        model.fit(frame)
    with pytest.raises(InvalidInput, match=r"text.read\(frame, text='body'\)"):
        model.fit(frame[["body"]])
    model.fit(tm.text.read(frame, **ROLES))
    for texts_of in (frame[["body"]], list(frame["body"])):
        with pytest.raises(InvalidInput, match="like=model"):
            model.transform(texts_of)


@pytest.mark.parametrize("names", [["a"], "abc", {0: "x", 1: "x"}, {0: None}, {0: " "}, {7: "x"}])
def test_names_of_topics_are_strings_that_differ(frame, names):
    model = tm.LatentDirichletAllocation(3).fit(tm.text.read(frame, **ROLES))
    before = model.topic_labels_
    with pytest.raises(InvalidInput):
        model.rename(names)
    assert model.topic_labels_ == before


def test_missing_texts_of_a_list_are_said():
    with pytest.warns(InputWarning, match="2 rows without text"):
        assert len(tm.text.read([*texts(30)[0], None, float("nan")])) == 30


@pytest.mark.parametrize("seed", range(4))
def test_counts_agree_with_counting_by_hand(seed):
    rng = np.random.default_rng(seed)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "new", "york"]
    rows = [" ".join(rng.choice(words, rng.integers(1, 12))) + " new york" * int(rng.integers(3))
            for _ in range(80)]  # fmt: skip
    corpus = tm.text.read(rows, max_share=1.0, language=None)
    np.testing.assert_array_equal(tm.text.read(rows, like=corpus).X.toarray(), corpus.X.toarray())
    for row, text in zip(corpus.X.toarray(), corpus.texts, strict=True):
        tokens = words_in(corpus, text)
        np.testing.assert_array_equal(row, [tokens.count(word) for word in corpus.words])
        assert " ".join(tokens) == text  # nothing is lost on the way


def test_tables_of_other_habits(tmp_path):
    rows = texts(30)[0]
    (tmp_path / "semi.csv").write_text(
        "key;text\n" + "\n".join(f"{i};{t}" for i, t in enumerate(rows))
    )
    assert tm.text.read(tmp_path / "semi.csv", id="key").texts == rows
    (tmp_path / "open.csv").write_text("text\n" + "\n".join([*rows[:9], f'"{rows[9]}', *rows[10:]]))
    with pytest.raises(InvalidInput, match=r"open.csv:11 has a quote that is never closed"):
        tm.text.read(tmp_path / "open.csv")
    old = ["key;text", *(f"{i};café {t}" for i, t in enumerate(rows[:9])), f'9;"{rows[9]}', "x;y"]
    (tmp_path / "old.csv").write_text("\n".join(old), encoding="cp1252")
    with pytest.raises(InvalidInput, match=r"old.csv:11 has a quote that is never closed"):
        tm.text.read(tmp_path / "old.csv", text="text")
    (tmp_path / "lines.csv").write_text("text\n" + "\n".join(f'"{t}\nand more"' for t in rows))
    assert len(tm.text.read(tmp_path / "lines.csv")) == 30
    (tmp_path / "twice.csv").write_text("text,text\na,b")
    with pytest.raises(InvalidInput, match="two columns of one name"):
        tm.text.read(tmp_path / "twice.csv")
    (tmp_path / "a[1].csv").write_text("text\n" + "\n".join(rows))
    assert len(tm.text.read(tmp_path / "a[1].csv")) == 30
    with pytest.raises(InvalidInput, match="none that Python knows"):
        tm.text.read(tmp_path / "a[1].csv", encoding="klingon")
    lines = [json.dumps({"text": rows[0]}), *(json.dumps({"text": t, "kind": 1}) for t in rows[1:])]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.warns(InputWarning, match="1 rows without a group"):
        assert tm.text.read(tmp_path / "a.jsonl", text="text", group="kind").groups[1] == 1


def test_letters_keep_their_marks():
    rows = ["scho\u0308n u\u0308berraschung"] * 15 + ["\u0939\u093f\u0928\u094d\u0926\u0940"] * 15
    words = tm.text.read(rows, max_share=1.0, stop_words=["Sch\u00f6n"]).words
    assert words == ["\u00fcberraschung", "\u0939\u093f\u0928\u094d\u0926\u0940"]
    with pytest.raises(InvalidInput, match="is one word; give a list"):
        tm.text.read(rows, stop_words="worry")


def test_one_old_line_leaves_the_others_as_they_are(tmp_path):
    rows = [f"{text} café crème" for text in texts(30)[0]]
    lines = [*(row.encode() for row in rows), rows[0].encode("cp1252")]
    (tmp_path / "mixed.csv").write_bytes(b"text\n" + b"\n".join(lines))
    with pytest.warns(InputWarning, match=r"1 lines that are not UTF-8.*Windows-1252 .*csv:32"):
        corpus = tm.text.read(tmp_path / "mixed.csv", max_share=1.0)
    assert corpus.texts[-1] == corpus.texts[0] == rows[0]
    (tmp_path / "strange.csv").write_bytes(b"text\n" + b"apple pear \x81\n" * 3)
    with pytest.warns(InputWarning, match="3 lines"):
        assert tm.text.read(tmp_path / "strange.csv").texts[0].startswith("apple pear")
    for content in ("ok", "é"):
        (tmp_path / "short.txt").write_text(f"{content}", encoding="utf-8")
        with pytest.raises(InvalidInput, match="No word is left"):
            tm.text.read(tmp_path / "short.txt")


def test_a_quote_that_is_never_closed_is_found_behind_a_strange_one(tmp_path):
    rows = ["k,text", "1,apple pear", '"a"b,"open text here', "3,plum kiwi", "4,apple plum"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    with pytest.raises(InvalidInput, match=r"a.csv:3 has a quote that is never closed"):
        tm.text.read(tmp_path / "a.csv", text="text")


def test_lists_have_groups_beside_them_and_lists_of_files_are_read(tmp_path):
    words, groups = texts(30)[:2]
    corpus = tm.text.read(words, group=groups, id=range(100, 130))
    assert corpus.groups == list(groups)
    assert corpus.ids[0] == 100
    for options, message in (
        ({"group": "stars"}, "a list of texts has none"),
        ({"text": "body"}, "a list of texts has none"),
        ({"group": [1, 2]}, "2 entries for 30 texts"),
    ):
        with pytest.raises(InvalidInput, match=message):
            tm.text.read(words, **options)
    for name, part in (("a.csv", words[:15]), ("b.csv", words[15:])):
        (tmp_path / name).write_text("text\n" + "\n".join(part))
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for given in (paths, [str(path) for path in paths]):
        assert tm.text.read(given, text="text").texts == words
    table = pa.table({"body": words, "kind": groups})
    assert tm.text.read(table, text="body", group="kind").groups == list(groups)


def test_two_ways_to_count_words_are_refused():
    words = texts(30)[0]
    corpus = tm.text.read(words)
    own = CountVectorizer()
    for options in (
        {"like": corpus, "stop_words": ["apple"]},
        {"like": corpus, "vectorizer": own},
        {"vectorizer": own, "min_documents": 3},
        {"vectorizer": CountVectorizer},
        {"vectorizer": len},
        {"stop_words": [5]},
    ):
        with pytest.raises(InvalidInput):
            tm.text.read(words, **options)


def test_phrases_can_be_stop_words_and_bounds_hold_for_few_texts():
    words = texts()[0]
    assert "new york" in tm.text.read(words, max_share=1.0).words
    assert "new york" not in tm.text.read(words, max_share=1.0, stop_words=["new york"]).words
    few = ["apple pear", "apple plum", "apple kiwi"]
    assert "apple" in tm.text.read(few).words
    assert "apple" not in tm.text.read(few, max_share=0.5).words
    with pytest.raises(InvalidInput, match="nothing but stop words"):
        tm.text.read(["the and of 12 386"] * 30)


def test_rows_of_json_without_a_column_and_without_times_are_told(tmp_path):
    rows = texts(30)[0]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": row}) for row in rows))
    with pytest.raises(InvalidInput, match=r"has no column 'stars'.*'text'"):
        tm.text.read(tmp_path / "a.jsonl", text="text", group="stars")
    frame = pd.DataFrame({"text": rows, "when": [None, *["2020-01-01"] * 29]})
    with pytest.warns(InputWarning, match="1 rows without a time"):
        tm.text.read(frame, text="text", time="when")


def test_counting_leaves_nothing_behind():
    """A cycle would keep the words of every call until the collector comes by."""
    counter = tm.text.read(texts(30)[0]).counter
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            counter.transform(["some words that nobody counts"])
        assert len(gc.get_objects()) < before + 20
    finally:
        gc.enable()


def test_common_words_with_an_apostrophe_are_left_out():
    texts = [
        "I'm sure it's the cat's milk, don't you’re see?",
        "They've a dog, won’t that's bark",
    ] * 3
    words = tm.text.read(texts, min_documents=1, max_share=1.0, phrases=False).words
    assert words == ["bark", "cat's", "dog", "milk", "sure"]
