"""The page in a real browser, live and as a file from disk, used as a person would."""

import csv
import io
import json
import re
import shutil
from urllib.parse import urlsplit

import numpy as np
import pytest

import thirdmoment as tm
from tests.app import HOSTILE, THEMES, corpus, explorer, fitted
from thirdmoment.app.answers import RELEVANCE, answer
from thirdmoment.app.server import Server
from thirdmoment.models.topics.words import ranked_words

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: the page is not tested in a browser"
)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update"]  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def live():
    with Server(explorer(), port=0) as own:
        yield own


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "letters.html"
    explorer().to_html(path, words=80)
    return path


@pytest.fixture(params=["live", "file"])
def place(request, live, file):
    return live.url if request.param == "live" else file.as_uri()


@pytest.fixture
def opened(chromium):
    """Opens pages; in the end none of them asked anyone else or complained."""
    contexts, asked, complaints = [], [], []

    def visit(address, **given):
        context = chromium.new_context(accept_downloads=True, **given)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("request", lambda one: asked.append(one.url))
        page.on("console", lambda one: complaints.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: complaints.append(str(one)))
        page.goto(address)
        page.wait_for_selector("#main:not([aria-busy]) h1")
        own = urlsplit(address)
        visit.origins.add((own.scheme, own.netloc))
        return page

    visit.origins, visit.expected = set(), "nothing"
    yield visit
    for context in contexts:
        context.close()
    assert [text for text in complaints if visit.expected not in text] == []
    for url in asked:
        parts = urlsplit(url)
        inside = parts.scheme in ("data", "blob") or (parts.scheme, parts.netloc) in visit.origins
        assert inside, f"a request left the page: {url}"


def search(page, text):
    page.fill("#query", text)
    page.press("#query", "Enter")
    page.wait_for_function("text => document.title.startsWith(text)", arg=text.split()[0])


def downloaded(page, name):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name, exact=True).click()
    path = waiting.value.path()
    return waiting.value.suggested_filename, path.read_text("utf-8")


def table_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_word_is_typed_and_its_topic_read(opened, place):
    page = opened(place)
    search(page, "whale")
    shown = page.locator("table.words tbody th").all_inner_texts()
    assert "whale" in shown
    assert set(shown[:10]) <= set(THEMES["sea"].split())
    assert page.locator("mark.m2").first.inner_text().lower() == "whale"
    assert page.locator("#verdict").inner_text().startswith("Clear: this word points at one topic.")
    assert "#/search?q=whale" in page.url
    page.locator(".cards a").first.click()
    page.wait_for_selector(".text")
    assert page.locator("h1").inner_text().startswith("letter")
    assert "ship" in page.locator(".text").inner_text()
    assert page.locator(".text .t").count() > 20
    page.go_back()
    page.wait_for_selector("#verdict")
    assert page.locator("h1").inner_text() == "whale"


def test_a_file_answers_words_of_any_language_and_phrases(opened, tmp_path):
    rng = np.random.default_rng(0)
    texts = []
    for i in range(300):
        own = ["café straße brötchen " + THEMES["sea"], "o'clock new_york taxi " + THEMES["court"]]
        texts.append(" ".join(rng.choice(own[i % 2].split(), 30)).replace("_", " "))
    letters = tm.text.read(texts, min_documents=1, max_share=1.0)
    assert "new york" in letters.words
    model = tm.LatentDirichletAllocation(2).fit(letters)
    path = tmp_path / "cafés.html"
    tm.explore(model, letters, title="cafés\udcff").to_html(path)
    page = opened(path.as_uri())
    for typed, shown in (("café", "café"), ("CAFÉ", "café"), ("new york", "new york"),
                         ('"new york"', "new york"), ("o'clock", "o'clock")):  # fmt: skip
        page.fill("#query", typed)
        page.press("#query", "Enter")
        page.wait_for_selector("#verdict", timeout=5000)
        assert page.locator("h1").inner_text() == shown
        page.goto(path.as_uri())
        page.wait_for_selector("table.topics")


def test_another_window_shows_what_was_changed(opened):
    opened.expected = "409 (Conflict)"  # which the browser tells its console
    with Server(explorer(), port=0) as own:
        one, two = opened(own.url), opened(f"{own.url}#/topic/2")
        own.explorer.merge([0, 1])
        labels = own.explorer.view.labels
        one.goto(f"{own.url}#/topic/1")
        one.wait_for_function(
            "text => document.querySelector('h1').innerText === text", arg=labels[1]
        )
        two.get_by_role("button", name="Rename").click()
        two.fill("#name", "stolen")
        two.press("#name", "Enter")
        two.wait_for_selector("#failed")
        assert "another window" in two.locator("#failed").inner_text()
        assert "stolen" not in own.explorer.view.labels
        assert two.locator("h1").inner_text() == own.explorer.view.labels[2]


def test_the_nearest_topic_is_one_click_away(opened, place):
    page = opened(place)
    search(page, "telescope")
    page.locator("section[aria-label='Nearest of all topics'] a").first.click()
    page.wait_for_selector(".heading")
    shown = page.locator("table.words tbody th").all_inner_texts()
    assert set(shown[:10]) <= set(THEMES["stars"].split())


def test_every_state_has_a_link_that_leads_back_to_it(opened, place):
    for path in ("topic/2", "search?q=oven", "map", "compare/0/3", "document/5", "report",
                 "topics?sort=trust", "topic/1?r=0.2"):  # fmt: skip
        if path == "document/5" and place.startswith("file"):
            continue  # only documents that are shown are in the file
        page = opened(f"{place}#/{path}")
        title = page.title()
        text = page.locator("#main").inner_text()
        page.reload()
        page.wait_for_selector("#main:not([aria-busy]) h1")
        assert (page.title(), page.locator("#main").inner_text()) == (title, text)
        if "r=0.2" in path:
            assert page.locator("#relevance").input_value() == "0.2"


def test_a_downloaded_table_is_what_the_model_says(opened, place):
    page, model = opened(place), fitted()
    name, text = downloaded(page, "CSV of all topics")
    assert re.fullmatch(r"Letters-tales-topics\.csv", name)
    rows, known = table_of(text), model.topics_frame()
    assert [row["label"] for row in rows] == known["label"].tolist()
    np.testing.assert_allclose([float(row["weight"]) for row in rows], known["weight"], rtol=1e-5)
    assert [row["words"] for row in rows] == known["words"].tolist()
    page.goto(f"{place}#/topic/2")
    page.wait_for_selector("#relevance")
    mean, law = model.weights_ @ model.components_, model.components_[2].astype(float)
    for relevance in (RELEVANCE, 0.0, 1.0):
        page.locator("#relevance").fill(str(relevance))
        rows = table_of(downloaded(page, "CSV of the words")[1])
        columns = ranked_words(law, mean, 20, relevance)
        assert [row["word"] for row in rows] == [model.words_[j] for j in columns]
        own = [float(row["probability"]) for row in rows]
        np.testing.assert_allclose(own, law[columns], rtol=1e-5)
    objects = json.loads(downloaded(page, "JSON of the words")[1])
    assert [one["word"] for one in objects] == [row["word"] for row in rows]
    group = table_of(downloaded(page, "CSV of share by group")[1])
    known = model.by_group(corpus())
    np.testing.assert_allclose(
        [float(row["share"]) for row in group], known[known.topic == 2]["share"], rtol=1e-4
    )


def test_a_downloaded_picture_is_a_picture(opened, place):
    page = opened(f"{place}#/topic/1")
    for what in ("SVG of the words", "SVG of share by group", "SVG of share by year"):
        text = downloaded(page, what)[1]
        assert text.startswith("<svg")
        assert 'xmlns="http://www.w3.org/2000/svg"' in text
        assert "<script" not in text
        assert "rgb(" in text, "colours stand in the picture, not in a style sheet"
    page.goto(f"{place}#/map")
    assert downloaded(page, "SVG of the map")[1].count("<circle") == 4


def test_cells_that_a_spreadsheet_would_run_are_text(opened):
    own = explorer()
    own.rename(0, '=HYPERLINK("http://evil.example","x")')
    with Server(own, port=0) as server:
        rows = table_of(downloaded(opened(server.url), "CSV of all topics")[1])
    assert rows[0]["label"] == '\'=HYPERLINK("http://evil.example","x")'


def test_a_topic_is_renamed_merged_and_both_taken_back(opened):
    own = explorer()
    with Server(own, port=0) as server:
        page = opened(f"{server.url}#/topic/1")
        page.get_by_role("button", name="Rename").click()
        page.fill("#name", "<b>Bold</b>")
        page.press("#name", "Enter")
        page.wait_for_function("() => document.querySelector('h1')?.textContent === '<b>Bold</b>'")
        assert own.model.topic_labels_[1] == "<b>Bold</b>"
        page.goto(f"{server.url}#/topics")
        for box in page.locator("table.topics input").all()[:2]:
            box.check()
        page.get_by_role("button", name="Make one topic of them").click()
        page.wait_for_function(
            "() => document.querySelectorAll('table.topics tbody tr').length === 3"
        )
        assert len(own.model.components_) == 3
        page.get_by_role("button", name="Undo").click()
        page.wait_for_function(
            "() => document.querySelectorAll('table.topics tbody tr').length === 4"
        )
        page.get_by_role("button", name="Undo").click()
        page.wait_for_function("() => !document.body.textContent.includes('Bold')")
        assert page.get_by_role("button", name="Undo").is_hidden()


def test_a_name_can_be_changed_in_a_file_too(opened, file):
    page = opened(f"{file.as_uri()}#/topic/1")
    page.get_by_role("button", name="Rename").click()
    page.fill("#name", "Mine")
    page.get_by_role("button", name="Save").click()
    page.wait_for_function("() => document.querySelector('h1')?.textContent === 'Mine'")
    page.get_by_role("link", name="Topics", exact=True).click()
    page.wait_for_selector("table.topics")
    assert table_of(downloaded(page, "CSV of all topics")[1])[1]["label"] == "Mine"


def test_suggestions_follow_the_letters(opened, place):
    page = opened(place)
    page.locator("#query").press_sequentially("tele")
    page.wait_for_selector("#suggestions li")
    assert page.locator("#suggestions li").all_inner_texts() == ["telescope"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.title.startsWith('telescope')")
    page.locator("#query").fill("telescope -me")
    page.locator("#query").press("End")
    page.locator("#query").press_sequentially("t")
    page.wait_for_selector("#suggestions li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    assert page.locator("#query").input_value() == "telescope -meteor"


def test_everything_is_reached_by_keyboard(opened, place):
    page = opened(place)
    page.keyboard.press("/")
    page.keyboard.type("garli")
    page.wait_for_selector("#suggestions li")
    page.keyboard.press("Escape")
    page.wait_for_selector("#suggestions", state="hidden")
    page.keyboard.type("c")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.title.startsWith('garlic')")

    def tab_to(wanted):
        for _ in range(200):
            page.keyboard.press("Tab")
            if page.evaluate("text => document.activeElement.textContent.includes(text)", wanted):
                return
        raise AssertionError(f"the tabulator never came to {wanted!r}")

    tab_to("letter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".text")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.press("Tab")
    tab_to("Topics")
    page.keyboard.press("Enter")
    page.wait_for_selector("table.topics")
    label = fitted().topic_labels_[0]
    tab_to(label)
    page.keyboard.press("Enter")
    page.wait_for_selector(".heading")
    tab_to("Rename")
    page.keyboard.press("Enter")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Escape")
    page.wait_for_function("text => document.querySelector('h1')?.textContent === text", arg=label)
    slider = page.locator("#relevance")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert slider.input_value() == "0.5"
    assert "r=0.5" in page.url


PAGES = ("topics", "topic/1", "search?q=whale", "map", "compare/0/1", "report", "search?q=whal")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(opened, place, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page, axe = opened(place, color_scheme=scheme), Axe()
    first = page.locator("table.topics").count()
    assert first == 1
    row = answer(explorer(), "topic/1", {})["documents"][0]["row"]
    for path in (*PAGES, f"document/{row}"):
        page.goto(f"{place}#/{path}")
        page.wait_for_selector("#main:not([aria-busy]) h1")
        found = axe.run(page).response["violations"]
        grave = [
            (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == [], path


def test_light_and_dark_differ_and_can_be_changed(opened, place):
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(place, color_scheme="light"), opened(place, color_scheme="dark")
    day, night = light.evaluate(paper), dark.evaluate(paper)
    assert day != night
    light.get_by_role("button", name="Light or dark").click()
    assert light.evaluate(paper) == night


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_is_wider_than_a_phone(opened, place, width):
    page = opened(place, viewport={"width": width, "height": 800})
    row = answer(explorer(), "topic/1", {})["documents"][0]["row"]
    for path in (*PAGES, f"document/{row}"):
        page.goto(f"{place}#/{path}")
        page.wait_for_selector("#main:not([aria-busy]) h1")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, path


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_shown_as_they_are(opened, live, name):
    row = corpus().ids.index(name)
    page = opened(f"{live.url}#/document/{row}")
    assert page.locator("h1").inner_text() == name
    shown = page.locator(".text").evaluate("node => node.textContent")
    assert HOSTILE[name].replace("\x00", "").startswith(shown.replace("\x00", "").replace("�", ""))
    assert page.locator(".text img, .text script, .text b").count() == 0
    assert "broken" not in page.title()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    if name == "million":
        page.get_by_role("link", name="after →").click()
        page.wait_for_function("() => location.hash.includes('from=20000')")


def test_a_word_that_is_not_there_brings_near_ones(opened, live):
    page = opened(live.url)
    page.fill("#query", "telescpe")
    page.press("#query", "Enter")
    page.wait_for_selector("[role=alert]")
    assert "'telescpe' is not among the" in page.locator("[role=alert]").inner_text()
    page.get_by_role("link", name="telescope").click()
    page.wait_for_function("() => document.title.startsWith('telescope')")


def test_a_file_says_what_it_cannot_answer(opened, file):
    page = opened(file.as_uri())
    page.fill("#query", "whale -bread")
    page.press("#query", "Enter")
    page.wait_for_selector("[role=alert]")
    assert "the live page answers any question" in page.locator("[role=alert]").inner_text()


def test_words_are_added_and_excluded_from_the_list(opened, live):
    page = opened(f"{live.url}#/search?q=whale")
    page.get_by_role("link", name="Exclude harbour").click()
    page.wait_for_function("() => document.title.startsWith('whale, without')")
    assert page.locator("#query").input_value() == "whale -harbour"
    assert page.locator("h1").inner_text() == "whale, without harbour"
    page.get_by_role("link", name="Search again from these documents").click()
    page.wait_for_function("() => document.title.startsWith('What 10 documents are')")


def test_the_page_reads_without_javascript(opened, place):
    page = opened(place, java_script_enabled=False)
    text = page.locator("#main").inner_text()
    for label in fitted().topic_labels_:
        assert label in text
    assert "needs JavaScript" in text


def test_the_code_of_the_page_is_small(opened, live):
    page = opened(live.url)
    size = page.evaluate(
        "Promise.all(['explorer.js', 'explorer.css'].map("
        "async (name) => (await (await fetch(name)).text()).length)).then(([a, b]) => a + b)"
    )
    assert size < 60_000


def test_the_page_in_a_notebook_works_inside_its_frame(opened, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<main id=main><h1>Notebook</h1></main>{explorer()._repr_html_()}", "utf-8")
    page = opened(path.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("table.topics a").nth(3).click()
    frame.locator(".heading").wait_for()
    frame.locator("#query").fill("whale")
    frame.locator("#query").press("Enter")
    frame.locator("#verdict").wait_for()
    assert frame.locator("h1").inner_text() == "whale"


def test_a_comparison_shows_the_strongest_words_of_both(opened, live):
    left, right = (
        {word: share for word, share, _ in answer(explorer(), f"topic/{j}", {})["words"]}
        for j in (0, 1)
    )
    size = {word: max(left.get(word, 0), right.get(word, 0)) for word in {*left, *right}}
    alike = [
        word for word in {*left} & {*right}
        if size[word] <= 3 * min(left[word], right[word])
    ]  # fmt: skip
    page = opened(f"{live.url}#/compare/0/1")
    page.wait_for_selector("table.both")
    shown = page.locator("table.both tbody th[scope=row]").all_inner_texts()
    heads = page.locator("table.both .group").all_inner_texts()
    assert ("In both" in heads) == bool(alike)
    for word in sorted(alike, key=size.get, reverse=True)[:12]:
        assert word in shown
    assert max(size, key=size.get) in shown
