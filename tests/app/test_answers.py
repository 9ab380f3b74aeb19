"""What the page is told is what the library says."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from tests.app import HOSTILE, THEMES, corpus, explorer, fitted
from thirdmoment.app import answers
from thirdmoment.app.answers import RELEVANCE, NotThere, answer
from thirdmoment.app.query import UnknownWord
from thirdmoment.exceptions import InputWarning, InvalidInput
from thirdmoment.models.topics.words import ranked_words


@pytest.fixture(scope="module")
def shown():
    return explorer()


def test_the_overview_is_the_table_of_topics(shown):
    found, table = answer(shown, "overview", {}), fitted().topics_frame()
    assert (found["documents"], found["words"]) == corpus().shape
    for row, (j, known) in zip(found["topics"], table.iterrows(), strict=True):
        assert row["number"] == j
        assert row["label"] == known["label"]
        assert row["weight"] == pytest.approx(known["weight"], rel=1e-5)
        assert row["trust"] == pytest.approx(known["trust"], rel=1e-5)
        assert ", ".join(row["words"]) == known["words"]
        assert ", ".join(row["relevant"]) == known["relevant_words"]
    assert found["report"]["verdict"] == str(fitted().report_).split("\n")[0]


def test_words_of_a_topic_rank_as_the_library_ranks_them(shown):
    model = fitted()
    mean = model.weights_ @ model.components_
    for j in range(4):
        words = answer(shown, f"topic/{j}", {})["words"]
        for relevance in (0.0, 0.3, RELEVANCE, 1.0):  # the page does this in the browser

            def score(row, r=relevance):
                return r * np.log(row[1]) + (1 - r) * np.log(row[1] / row[2])

            own = [word for word, _, _ in sorted(words, key=score, reverse=True)[:10]]
            law = np.asarray(model.components_[j], dtype=np.float64)
            known = [model.words_[i] for i in ranked_words(law, mean, 10, relevance)]
            assert own == known


def test_typical_documents_are_those_of_the_library(shown):
    for j in range(4):
        cards = answer(shown, f"topic/{j}", {})["documents"]
        known = fitted().typical_documents(j, corpus(), n=10)
        assert [card["id"] for card in cards] == known["id"].tolist()
        np.testing.assert_allclose([card["share"] for card in cards], known["share"], rtol=1e-5)
        assert len(answer(shown, f"topic/{j}", {"n": "25"})["documents"]) == 25


def test_shares_by_group_and_year_are_those_of_the_library(shown):
    by_group, by_time = fitted().by_group(corpus()), fitted().over_time(corpus())
    for j in range(4):
        found = answer(shown, f"topic/{j}", {})
        for rows, table, key in (
            (found["groups"], by_group, "group"),
            (found["times"], by_time, "time"),
        ):
            known = table[table.topic == j]
            assert [row[0] for row in rows] == known[key].astype(str).tolist()
            np.testing.assert_allclose([row[1] for row in rows], known["share"], rtol=1e-4)
            assert [row[3] for row in rows] == known["documents"].tolist()
    assert found["period"] == "year"


def test_a_search_is_that_of_the_library(shown):
    found = answer(shown, "search", {"q": "whale -bread"})
    known = shown.search.search("whale", negative="bread")
    assert found["include"] == ["whale"]
    assert found["exclude"] == ["bread"]
    assert [card["row"] for card in found["documents"]] == known.documents(10).tolist()
    assert {word for word, _, _ in found["words"]} >= set(known.top_words(10))
    assert found["clear"] == known.informative
    assert found["weight"] == pytest.approx(known.weight, rel=1e-5)
    marked = {p[0] for card in found["documents"] for p in card["parts"] if not isinstance(p, str)}
    assert "whale" in marked
    assert set(THEMES["sea"].split()) >= marked


def test_a_search_from_documents_finds_what_they_are_about(shown):
    rows = [i for i, group in enumerate(corpus().groups) if group == "stars"][:5]
    found = answer(shown, "search", {"rows": ",".join(map(str, rows))})
    top = [word for word, _, _ in found["words"][:10]]
    assert set(top) <= set(THEMES["stars"].split())
    assert found["rows"] == rows


def test_the_nearest_topic_of_a_word_is_its_own(shown):
    found = answer(shown, "search", {"q": "telescope"})
    nearest = found["near"][0]
    words = answer(shown, "overview", {})["topics"][nearest["number"]]["words"]
    assert set(words) <= set(THEMES["stars"].split())
    assert nearest["affinity"] > 0.9


def test_words_of_a_document_have_the_topic_they_belong_to(shown):
    found = answer(shown, "document/3", {})
    share, model = fitted().transform(corpus())[3], fitted()
    assert "".join(p if isinstance(p, str) else p[0] for p in found["parts"]) == corpus().texts[3]
    for word, count, topic in found["words"]:
        column = model.words_.index(word)
        assert topic == np.argmax(share * model.components_[:, column])
        assert count == corpus().X[3, column]
    assert found["topics"][0] == [share.argmax(), pytest.approx(share.max(), rel=1e-5)]


def test_a_text_without_end_is_shown_in_pages(shown):
    row = corpus().ids.index("million")
    first = answer(shown, f"document/{row}", {})
    assert first["characters"] == len(HOSTILE["million"])
    assert first["until"] < 50_000
    rest = answer(shown, f"document/{row}", {"from": str(first["characters"] - 30)})
    assert rest["until"] == first["characters"]
    assert ["witness", rest["parts"][1][1]] in rest["parts"]


@pytest.mark.parametrize(
    "path",
    ["", "nothing", "topic", "topic/4", "topic/-1", "topic/x", "topic/1/2", "document/99999",
     "document/1e3", "overview/1", "topic/²", "words/1", "topic/9999999999999999999"],
)  # fmt: skip
def test_other_addresses_lead_nowhere(shown, path):
    with pytest.raises(NotThere):
        answer(shown, path, {})


def test_wrong_numbers_in_a_query_are_said(shown):
    for path, given in [("topic/1", {"n": "x"}), ("document/1", {"from": "99999999"})]:
        with pytest.raises(NotThere):
            answer(shown, path, given)
    with pytest.raises(InvalidInput, match="parted by commas"):
        answer(shown, "search", {"rows": "1;2"})
    with pytest.raises(UnknownWord, match="'whal' is not among"):
        answer(shown, "search", {"q": "whal"})
    with pytest.raises(UnknownWord, match="not counted"):
        answer(shown, "search", {"q": "the and of"})


def test_every_answer_is_strict_json(shown):
    for path in ("overview", "words", "topic/0", "document/0", "search"):
        json.dumps(answer(shown, path, {"q": "oven"}), allow_nan=False)


# other kinds of explorers --------------------------------------------------------------------


def test_counts_without_texts_show_their_words():
    drawn = tm.datasets.make_lda_corpus(300, 60, 3)
    model = tm.LatentDirichletAllocation(3).fit(drawn.X)
    own = tm.explore(model, drawn.X)
    card = answer(own, "topic/0", {})["documents"][0]
    assert {p if isinstance(p, str) else p[0] for p in card["parts"]} - {" "}
    found = answer(own, f"document/{card['row']}", {})
    assert found["parts"] == []
    assert sum(count for _, count, _ in found["words"]) == drawn.X[card["row"]].sum()
    assert answer(own, "search", {"q": "7"})["include"] == ["7"]


def test_a_search_alone_has_no_list_of_topics():
    search = tm.TopicSearch(5).fit(corpus().X, feature_names=corpus().words)
    own = tm.explore(search, corpus())
    assert answer(own, "overview", {})["topics"] == []
    assert answer(own, "search", {"q": "whale"})["documents"][0]["id"].startswith("letter")
    assert answer(own, "document/3", {})["topics"] == []
    with pytest.raises(NotThere, match="no topic 0"):
        answer(own, "topic/0", {})


def test_a_model_alone_says_why_it_cannot_search():
    own = tm.explore(fitted())
    assert len(answer(own, "overview", {})["topics"]) == 4
    assert answer(own, "topic/2", {})["documents"] == []
    with pytest.raises(NotThere, match="Give the documents beside the model"):
        answer(own, "search", {"q": "whale"})


def test_one_document_can_be_explored():
    text = " ".join(THEMES["sea"].split() * 3 + THEMES["court"].split() * 3)
    own = tm.explore(fitted(), [text])
    assert answer(own, "overview", {})["documents"] == 1
    assert answer(own, "document/0", {})["parts"]
    with pytest.raises(NotThere, match="cannot be searched"):
        answer(own, "search", {"q": "whale"})


def test_documents_of_another_kind_are_told_or_refused():
    X, _ = drawn(400, 60)
    model = tm.LatentDirichletAllocation(3).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tm.explore(model, X[:200])
    strange = np.zeros((30, 60))
    strange[:, [3, 5, 8]] = 4.0
    with pytest.warns(InputWarning, match="words of the model in other proportions"):
        tm.explore(model, strange)
    strange[4:] = 0.0
    with pytest.raises(InvalidInput, match="Only 4 of the 30 documents hold words of the model"):
        tm.explore(model, strange)


def test_a_stream_of_texts_keeps_its_texts(tmp_path):
    table = tmp_path / "letters.csv"
    rows = [text for text in corpus().texts if "<script>" not in text and "\x00" not in text]
    table.write_text("text\n" + "\n".join(f'"{row}"' for row in rows), "utf-8")
    stream = tm.text.read(table, stream=True, max_share=0.9)
    own = tm.explore(tm.LatentDirichletAllocation(4).fit(stream), stream)
    found = answer(own, "document/5", {})
    assert "".join(p if isinstance(p, str) else p[0] for p in found["parts"]) == rows[5]


def test_what_belongs_to_counts_may_be_arrays_and_frames():
    import pandas as pd

    drawn = tm.datasets.make_lda_corpus(300, 60, 3)
    model = tm.LatentDirichletAllocation(3).fit(drawn.X)
    days = np.datetime64("2001-01-01") + np.arange(300) * 10
    ratings = np.arange(300) % 7
    for groups, times in ((ratings, days), (pd.Series(ratings), pd.Series(days))):
        own = tm.explore(model, drawn.X, groups=groups, times=times, ids=ratings, texts=ratings)
        found = answer(own, "topic/0", {})
        assert [row[0] for row in found["groups"]] == list("0123456")
        assert found["period"] == "year"
        assert answer(own, "document/9", {})["time"] == "2001-04-01"
        assert answer(own, "document/9", {})["group"] == "2"


def drawn(n=300, d=60):
    data = tm.datasets.make_lda_corpus(n, d, 3)
    return data.X, tm.LatentDirichletAllocation(3).fit(data.X)


def test_a_search_of_other_documents_is_refused():
    X, model = drawn()
    search = tm.TopicSearch(3).fit(X)
    assert tm.explore(model, X, search=search).search is search
    order = np.random.default_rng(0).permutation(300)
    with pytest.raises(InvalidInput, match="do not belong together"):
        tm.explore(model, X[order], search=search)
    with pytest.raises(InvalidInput, match="counts beside the model"):
        tm.explore(model, texts=["a"] * 300)


def test_documents_that_a_search_leaves_out_are_not_averaged():
    X, model = drawn()
    weights = np.arange(300) % 2
    search = tm.TopicSearch(3).fit(X, sample_weight=weights)
    own = tm.explore(model, X, search=search, groups=["a", "b", "c"] * 100)
    found = answer(own, "search", {"q": str(model.top_words(1)[0][0])})
    shares = own.search.search([int(found["include"][0])]).shares()
    for name, share, _, count in found["groups"]:
        rows = (np.array(["a", "b", "c"] * 100) == name) & (weights > 0)
        assert count == rows.sum() == 50
        assert share == pytest.approx(shares[rows].mean(), rel=1e-4)
    assert all(card["row"] % 2 == 1 for card in found["documents"])
    alone = tm.explore(search, groups=["a", "b", "c"] * 100, ids=[f"d{i}" for i in range(300)])
    assert answer(alone, "document/7", {})["id"] == "d7"
    assert len(answer(alone, "search", {"q": found["include"][0]})["groups"]) == 3


def test_counts_of_a_document_are_those_that_were_given():
    X, _ = drawn()
    real = X.astype(float) * 0.1
    with pytest.warns(Warning, match="real values"):
        model = tm.LatentDirichletAllocation(3).fit(real)
    with pytest.warns(Warning, match="real values"):
        own = tm.explore(model, real)
    counts = {word: count for word, count, _ in answer(own, "document/3", {})["words"]}
    known = real[[3]].tocoo()
    for j, value in zip(known.coords[1], known.data, strict=True):
        assert counts[str(model.words_[j])] == pytest.approx(value, rel=1e-5)


def test_groups_that_are_numbers_stand_in_their_order():
    X, model = drawn()
    own = tm.explore(model, X, groups=np.arange(300) % 12)
    assert [row[0] for row in answer(own, "topic/0", {})["groups"]] == [str(g) for g in range(12)]


def test_as_many_documents_as_words_can_be_searched_from():
    X, model = drawn(200, 10)
    own = tm.explore(model, X)
    found = answer(own, "search", {"rows": ",".join(map(str, range(10)))})
    assert found["rows"] == list(range(10))


def test_missing_texts_and_names_are_empty_or_numbers():
    X, model = drawn()
    own = tm.explore(model, X, texts=[None, np.nan, *["a"] * 298], ids=[None, *range(5, 304)])
    assert answer(own, "document/0", {})["id"] == "0"
    assert answer(own, "document/0", {})["parts"] == []
    assert answer(own, "topic/0", {"n": "0"})["documents"]


def test_a_small_corpus_can_be_searched_too():
    X, _ = drawn(44, 60)
    model = tm.LatentDirichletAllocation(2).fit(X)
    own = tm.explore(model, X)
    assert own.search is not None
    assert own.why == ""


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"coherence": 0.9}, "many documents repeat"),
        ({"coherence": 0.3}, "may mean several topics"),
        ({"coherence": 0.3, "lift": 1.0}, "this word may have no topic of its own"),
        (
            {"coherence": 0.3, "lift": 1.0, "documents": {"a": 14}},
            "so few documents hold this word",
        ),
    ],
)
def test_the_verdict_gives_the_reason(told, said):
    report = SimpleNamespace(details={"documents": {"a": 15}, **told})
    found = SimpleNamespace(informative=False, report=report)
    assert said in answers._in_plain_words(found, 1)


def test_words_to_begin_with_are_answered_and_the_clear_ones_first():
    X, _ = drawn(800, 200)
    model = tm.LatentDirichletAllocation(4).fit(X, feature_names=[spelled(j) for j in range(200)])
    own = tm.explore(model, X)
    words = answer(own, "overview", {})["examples"]
    assert 1 <= len(words) <= 8
    assert len(set(words)) == len(words)
    clear = [answer(own, "search", {"q": word})["clear"] for word in words]
    assert clear == sorted(clear, reverse=True)


def test_a_search_says_in_how_many_documents_its_words_are():
    X, _ = drawn(800, 200)
    model = tm.LatentDirichletAllocation(4).fit(X, feature_names=[spelled(j) for j in range(200)])
    own = tm.explore(model, X)
    held = np.diff(sp.csc_array(X).indptr)
    assert answer(own, "search", {"q": f"{spelled(7)} {spelled(3)}"})["held"] == [held[7], held[3]]
    assert answer(own, "search", {"rows": "1,2"})["held"] == []


def spelled(j):
    """A word of letters for a number."""
    return "word" + "".join(chr(97 + int(digit)) for digit in str(j))


def test_models_of_others_are_refused_by_their_full_name():
    from sklearn.decomposition import LatentDirichletAllocation

    with pytest.raises(InvalidInput, match=r"sklearn\..* is not a model of thirdmoment"):
        tm.explore(LatentDirichletAllocation())
    with pytest.raises(InvalidInput, match="its picture is plot"):
        tm.explore(tm.GaussianMixture())
