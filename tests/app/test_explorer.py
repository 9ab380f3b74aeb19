"""Changes of topics, files that are kept, and the page in one file."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import thirdmoment as tm
from tests.app import SCRIPT, corpus, explorer, fitted
from tests.io import on_disk
from thirdmoment.app.answers import answer
from thirdmoment.exceptions import InvalidInput


def overview(own):
    return answer(own, "overview", {})


# changes -------------------------------------------------------------------------------------


def test_a_name_shows_everywhere_and_can_be_taken_back():
    own = explorer()
    before = overview(own)
    own.rename(2, "Ships")
    assert overview(own)["topics"][2]["label"] == "Ships"
    assert overview(own)["changes"] == 1
    assert own.model.topic_labels_[2] == "Ships"
    own.undo()
    assert {**overview(own), "version": 0} == before
    assert fitted().topic_labels_[2] != "Ships", "the model of the user must not change"


def test_merged_topics_are_those_of_the_library():
    own = explorer()
    own.merge([1, 3])
    known = fitted().merge([1, 3])
    np.testing.assert_allclose(own.model.components_, known.components_)
    np.testing.assert_allclose(own.shares, known.transform(corpus()), atol=1e-6)
    assert len(overview(own)["topics"]) == 3
    own.undo()
    assert len(overview(own)["topics"]) == 4
    np.testing.assert_allclose(own.shares, fitted().transform(corpus()), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda own: own.rename(9, "x"), "no topic 9"),
        (lambda own: own.rename(None, "x"), "topic"),
        (lambda own: own.rename(0, " "), "not empty"),
        (lambda own: own.merge([1]), "takes two"),
        (lambda own: own.merge([1, "x"]), "No topic is called"),
        (lambda own: own.undo(), "no change to take back"),
    ],
)
def test_a_wrong_change_changes_nothing(change, said):
    own = explorer()
    before = overview(own)
    with pytest.raises(InvalidInput, match=said):
        change(own)
    assert {**overview(own), "version": 0} == before


def test_changes_are_forgotten_beyond_a_number():
    own = explorer()
    for i in range(30):
        own.rename(0, f"name {i}")
    assert len(own.past) == 20


# files ---------------------------------------------------------------------------------------


ASKED = [("overview", {}), ("words", {}), ("topic/1", {}), ("document/602", {}),
         ("search", {"q": "whale -bread"}), ("search", {"rows": "5,6"})]  # fmt: skip


def test_a_kept_explorer_answers_as_before(tmp_path):
    own = explorer()
    own.rename(1, "Second")
    own.save(tmp_path / "letters.tm")
    again = tm.load(tmp_path / "letters.tm")
    for path, given in ASKED:
        found = answer(again, path, given)
        assert found == {
            **answer(own, path, given),
            **({"changes": 0, "version": 0} if path == "overview" else {}),
        }
    assert on_disk(again.search.index_.X.data)
    assert on_disk(again.documents.texts.blob)
    again.merge([0, 1])
    again.save(tmp_path / "letters.tm")  # onto the file that it reads
    assert overview(tm.load(tmp_path / "letters.tm"))["topics"] == overview(again)["topics"]


def swapped(own, **parts):
    for name, value in parts.items():
        setattr(own, name, value)
    return own


@pytest.mark.parametrize(
    "broken",
    [
        lambda own: swapped(own, layout=99),
        lambda own: swapped(own, shares=own.shares[:-1]),
        lambda own: swapped(own, shares=own.shares[:, :2]),
        lambda own: swapped(own, model=None, search=None),
        lambda own: swapped(own, model=own.search),
        lambda own: swapped(own, model=tm.LatentDirichletAllocation(2).fit(corpus().X[:, 1:])),
        lambda own: swapped(own, documents=tm.explore(fitted(), corpus().X[:50]).documents),
    ],
    ids=["layout", "rows", "topics", "nothing", "search", "words", "documents"],
)
def test_parts_that_do_not_belong_together_are_refused(broken, tmp_path):
    broken(explorer()).save(tmp_path / "x.tm")
    with pytest.raises(InvalidInput, match="is no saved model, or it is damaged"):
        tm.load(tmp_path / "x.tm")


def test_a_model_and_a_corpus_that_do_not_belong_together_are_refused():
    other = tm.datasets.make_lda_corpus(300, 60, 3).X
    with pytest.raises(ValueError, match="60 features"):
        tm.explore(fitted(), other)
    search = tm.TopicSearch(4).fit(corpus().X[:400], feature_names=corpus().words)
    with pytest.raises(InvalidInput, match=r"prepared with 400 documents, the corpus has 604"):
        tm.explore(fitted(), corpus(), search=search)
    with pytest.raises(InvalidInput, match="different words"):
        tm.explore(fitted(), corpus(), search=tm.TopicSearch(3).fit(other))
    with pytest.raises(InvalidInput, match="3 groups are given for 604 documents"):
        tm.explore(fitted(), corpus().X, groups=[1, 2, 3])
    with pytest.raises(InvalidInput, match="GaussianMixture has no topics"):
        tm.explore(tm.GaussianMixture(2))


# pages ---------------------------------------------------------------------------------------


class Found(HTMLParser):
    """Scripts, styles and tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.scripts, self.styles, self.policy = [], None, [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in ("script", "style"):
            (self.scripts if self.inside == "script" else self.styles).append(data)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "letters.html"
    explorer().to_html(path, words=30)
    return path


def test_an_export_needs_nothing_else_and_runs_only_its_own_script(export):
    found = Found(export.read_text("utf-8"))
    for tag, attrs in found.tags:
        for name in ("src", "href"):
            assert attrs.get(name, "data:").startswith("data:"), (tag, attrs)
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
    _, script = found.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in found.policy
    assert "default-src 'none'" in found.policy
    assert "unsafe" not in found.policy
    assert len(found.styles) == 1
    assert [tag for tag, _ in found.tags].count("script") == 2
    assert [tag for tag, _ in found.tags].count("img") == 0


def test_an_export_holds_the_answers_of_the_page(export):
    data = json.loads(Found(export.read_text("utf-8")).scripts[0])
    own = explorer()
    assert data["overview"] == overview(own)
    known = answer(own, "topic/2", {})
    known["documents"] = known["documents"][:5]
    assert data["answers"]["topic/2"] == known
    words = data["answers"]["words"]["words"]
    assert len(words) == 30
    assert set(fitted().top_words(1)[0]) <= set(words)
    for word in words:
        cards = data["answers"][f"search?q={word}"]["documents"]
        assert len(cards) == 5
        assert all(f"document/{card['row']}" in data["answers"] for card in cards)


def test_an_export_answers_the_words_to_begin_with(export):
    data = json.loads(Found(export.read_text("utf-8")).scripts[0])
    assert data["overview"]["examples"]
    for word in data["overview"]["examples"]:
        assert f"search?q={word}" in data["answers"]


def test_a_page_reads_well_without_javascript(export):
    text = export.read_text("utf-8")
    main = re.search(r"<main.*?</main>", text, re.S)[0]
    for row in overview(explorer())["topics"]:
        assert row["label"] in main
        assert ", ".join(row["words"]) in main
    assert "Letters &amp; &lt;tales&gt;" in main
    assert "<noscript>" in main
    assert SCRIPT not in text


def test_an_export_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="nowhere"):
        explorer().to_html(tmp_path / "nowhere" / "x.html")
    with pytest.raises(InvalidInput, match="words=-1"):
        explorer().to_html(tmp_path / "x.html", words=-1)
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    found = Found(explorer()._repr_html_())
    (tag, attrs), *rest = found.tags
    assert (tag, rest) == ("iframe", [])
    assert "allow-same-origin" not in attrs["sandbox"]
    assert Found(attrs["srcdoc"]).policy.startswith("default-src 'none'")
