"""The command line: the demo and topics of a file."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.datasets import LabelledCorpus, make_lda_corpus

pytest.importorskip("typer", reason="typer is not installed")
from typer.testing import CliRunner

from thirdmoment.cli import app as module
from thirdmoment.cli import show

runner = CliRunner()


@pytest.fixture
def corpus():
    data = make_lda_corpus(600, 80, 3, mean_length=40)
    words = np.array([f"word{j}" for j in range(80)])
    labels = np.array(["a.x", "b.y", "c.z"])[np.argmax(data.proportions, axis=1)]
    return LabelledCorpus(data.X, words, labels, labels)


def test_demo_shows_topics_report_time_and_picture(tmp_path, monkeypatch, corpus):
    monkeypatch.setattr(module, "load_docstrings", lambda: corpus)
    picture = tmp_path / "demo.png"
    arguments = ["demo", "-k", "3", "--picture", str(picture), "--search", "word0"]
    result = runner.invoke(module.app, [*arguments, "--search", "word3"])
    assert result.exit_code == 0, result.output
    assert "Prepared for searches" in result.output
    assert result.output.count(" ms") == 2
    for text in ("600 docstrings", "weight", "word", "b.y", "Leave out: ", "Fitted in"):
        assert text in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "demo.png" in result.output.replace("\n", "")


def test_topics_of_a_file(tmp_path, corpus):
    sp.save_npz(tmp_path / "counts.npz", corpus.X)
    (tmp_path / "vocab.txt").write_text("\n".join(corpus.feature_names))
    picture = tmp_path / "topics.png"
    arguments = ["topics", str(tmp_path / "counts.npz"), "-k", "3", "--picture", str(picture)]
    result = runner.invoke(module.app, arguments)
    assert result.exit_code == 0, result.output
    assert picture.exists()


def test_search_of_a_file(tmp_path, corpus):
    sp.save_npz(tmp_path / "counts.npz", corpus.X)
    (tmp_path / "vocab.txt").write_text("\n".join(corpus.feature_names))
    arguments = [
        "search",
        str(tmp_path / "counts.npz"),
        "--vocabulary",
        str(tmp_path / "vocab.txt"),
    ]
    result = runner.invoke(module.app, [*arguments, "-k", "3", "word1", "word2"])
    assert result.exit_code == 0, result.output
    assert result.output.count(" ms") == 2
    missing = runner.invoke(module.app, [*arguments, "-k", "3", "wrod1"])
    assert missing.exit_code == 2
    assert "word1" in missing.output


def test_errors_are_messages_not_tracebacks(tmp_path):
    result = runner.invoke(module.app, ["topics", str(tmp_path / "none.npz")])
    assert result.exit_code == 2
    assert "No file" in result.output


def test_labels_match_the_topics_that_made_them(corpus):
    from thirdmoment import LatentDirichletAllocation

    model = LatentDirichletAllocation(3).fit(corpus.X)
    assert set(show.best_labels(model, corpus)) == {"a.x", "b.y", "c.z"}


HOSTILE = ["[/red]", "\x1b[31mred", r"$\bad$", "[bold]", "a\tb", "\x07bell", "$x", "café"]


def hostile_words(corpus):
    return [HOSTILE[j] if j < len(HOSTILE) else f"word{j}" for j in range(corpus.X.shape[1])]


def test_words_with_markup_and_escapes_are_shown_as_they_are(tmp_path, corpus):
    X = corpus.X.toarray()
    X[:, : len(HOSTILE)] += 3  # so that they lead every topic
    sp.save_npz(tmp_path / "counts.npz", sp.csr_array(X))
    (tmp_path / "vocab.txt").write_text("\n".join(hostile_words(corpus)), "utf-8")
    picture = tmp_path / "topics.png"
    arguments = ["topics", str(tmp_path / "counts.npz"), "-k", "2", "--picture", str(picture)]
    result = runner.invoke(module.app, [*arguments, "--words", "12"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    for text in ("[/red]", r"\x1b[31mred", r"$\bad$", "[bold]", r"\x07bell", "café"):
        assert text in result.output
    assert "\x1b[31m" not in result.output
    assert "\x07" not in result.output
    assert picture.exists()
    arguments = ["search", str(tmp_path / "counts.npz"), "--vocabulary",
                 str(tmp_path / "vocab.txt"), "-k", "2", "[/red]", "no[such]word"]  # fmt: skip
    result = runner.invoke(module.app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "no[such]word" in result.output


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--picture", "nowhere/a.png"], "folder must exist"),
        (["--picture", "a.docx"], "must end in one of"),
        (["--picture", "."], "must end in"),
        (["--words", "0"], "--words"),
        (["--words", "many"], "--words"),
        (["--topics", "0"], "--topics"),
    ],
)
def test_wrong_options_are_refused_before_the_fit(option, message, tmp_path, corpus, monkeypatch):
    sp.save_npz(tmp_path / "counts.npz", corpus.X)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(show, "fit", lambda *_: pytest.fail("the fit began"))
    result = runner.invoke(module.app, ["topics", "counts.npz", *option], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert message in result.output


def test_the_version_and_the_module_as_a_command():
    result = runner.invoke(module.app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"thirdmoment {tm.__version__}"
    command = [sys.executable, "-m", "thirdmoment", "--version"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == result.output


@pytest.fixture
def reviews(tmp_path):
    """A table of texts of three kinds."""
    from tests.text.test_text import texts

    rows, kinds = texts(90)
    frame = pd.DataFrame({"body": rows, "stars": kinds, "date": ["2020-01-01"] * 90})
    frame.to_csv(tmp_path / "reviews.csv", index=False)
    return tmp_path / "reviews.csv"


def test_from_a_table_of_texts_to_topics_in_one_command(reviews, tmp_path):
    out, kept = tmp_path / "topics.csv", tmp_path / "reviews.tm"
    command = ["topics", str(reviews), "--text", "body", "-k", "3", "--documents", "2"]
    command += ["--group", "stars", "--time", "date"]
    result = runner.invoke(module.app, [*command, "--out", str(out), "--save", str(kept)])
    assert result.exit_code == 0, result.output
    assert "90 documents" in result.output
    table = pd.read_csv(out)
    groups = pd.read_csv(tmp_path / "topics_by_group.csv")
    assert list(groups.columns[:2]) == ["group", "topic"]
    assert len(groups) == 9
    assert len(pd.read_csv(tmp_path / "topics_over_time.csv")) == 3
    assert len(table["documents"]) == 3
    model = tm.load(kept)
    assert list(table["label"]) == model.topic_labels_
    np.testing.assert_allclose(table["weight"], model.weights_)
    assert result.output.count("%  ") == 6  # two typical documents of each topic
    shares = tmp_path / "shares.parquet"
    command = ["transform", str(kept), str(reviews), "--text", "body", "--out", str(shares)]
    result = runner.invoke(module.app, command)
    assert result.exit_code == 0, result.output
    found = pd.read_parquet(shares)
    corpus = tm.text.read(reviews, text="body", like=model)
    np.testing.assert_array_equal(found["topic"], model.transform(corpus).argmax(axis=1))


def test_json_is_for_programs(reviews):
    command = ["topics", str(reviews), "--text", "body", "-k", "3", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "thirdmoment", *command], capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)["topics"]
    assert [row["topic"] for row in rows] == [0, 1, 2]
    assert rows[0]["words"].split()[0] in " ".join(row["relevant_words"] for row in rows)


def test_searches_of_texts_show_documents(reviews):
    command = ["search", str(reviews), "garlic", "--text", "body", "-k", "3", "--documents", "1"]
    result = runner.invoke(module.app, command)
    assert result.exit_code == 0, result.output
    assert "Cook the pasta" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["topics", "nothing.csv"], "No such file"),
        (["topics", "REVIEWS", "--text", "boddy"], "has no column 'boddy'"),
        (["topics", "REVIEWS", "--text", "body", "--out", "topics.xls"], "must end in one of .csv"),
        (["search", "REVIEWS", "garlik", "--text", "body"], "garlic"),
        (["transform", "REVIEWS", "REVIEWS", "--out", "a.csv"], "no saved model"),
    ],
)
def test_errors_are_one_sentence_and_code_2(reviews, command, message):
    command = [str(reviews) if part == "REVIEWS" else part for part in command]
    result = runner.invoke(module.app, command)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def bad_files(folder):
    """What users have on their disks, and what the command says of it."""
    (folder / "empty.csv").write_text("")
    (folder / "head.csv").write_text("text\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 9)
    (folder / "one.csv").write_text("text\nonly one text about apples\n")
    (folder / "equal.csv").write_text("text\n" + 60 * "the same words always here\n")
    (folder / "stops.csv").write_text("text\n" + 30 * "the and of is to we\n")
    (folder / "open.csv").write_text('text,n\n"never closed,1\nand more,2\n')
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"text\n" + 500 * b"apples pears\n")[:30])
    (folder / "plain.csv.gz").write_text("text\nno gzip at all\n")
    (folder / "dates.csv").write_text("text,day\n" + 12 * "apples pears plums,soon\n")
    (folder / "wrong.parquet").write_text("no parquet")
    (folder / "rows.jsonl").write_text("1\n2\n")
    (folder / "table.xlsx").write_text("x")
    (folder / "nothing").mkdir()
    return [
        ("empty.csv", [], "is empty"),
        ("head.csv", [], "has no texts to read"),
        ("binary.csv", [], "is a binary file"),
        ("one.csv", [], "1 document(s) cannot show -k 20 topics"),
        ("equal.csv", [], "No word is left of 60 texts"),
        ("stops.csv", [], "No word is left"),
        ("open.csv", ["--text", "text"], "a quote that is never closed"),
        ("cut.csv.gz", [], "is cut off"),
        ("plain.csv.gz", [], "no gzip file"),
        ("dates.csv", ["--text", "text", "--time", "day"], "None of the times is a date"),
        ("wrong.parquet", [], "is no Parquet file"),
        ("rows.jsonl", [], "no JSON object"),
        ("table.xlsx", [], "is of no kind that is read"),
        ("nothing", [], "has no files that are read"),
        ("*.nothing", [], "No file that can be read"),
        ("one.csv", ["--seed", "apples"], "not of the form name=word,word"),
        ("one.csv", ["--out", "no/such/folder.csv"], "its folder must exist"),
        ("one.csv", ["--save", "no/such/model.tm"], "its folder must exist"),
    ]


def test_bad_files_are_told_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = bad_files(tmp_path)
    before = sorted(tmp_path.iterdir())
    for name, arguments, message in cases:
        result = runner.invoke(module.app, ["topics", name, *arguments], env={"COLUMNS": "300"})
        text = " ".join(result.output.split())
        assert result.exit_code == 2, (name, text)
        assert message in text, (name, text)
        assert "Traceback" not in text
    assert sorted(tmp_path.iterdir()) == before  # nothing half-written


def test_a_full_disk_leaves_no_file(reviews, tmp_path, monkeypatch):
    def full(self, path, **options):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    (tmp_path / "out").mkdir()
    command = ["topics", str(reviews), "--text", "body", "-k", "3"]
    result = runner.invoke(module.app, [*command, "--out", str(tmp_path / "out" / "topics.csv")])
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert list((tmp_path / "out").iterdir()) == []


def test_topics_are_named_and_texts_are_streamed(reviews):
    command = ["topics", str(reviews), "--text", "body", "-k", "3", "--stream", "--json"]
    command += ["--seed", "food=garlic,pasta", "--documents", "1"]
    result = subprocess.run(
        [sys.executable, "-m", "thirdmoment", *command], capture_output=True, text=True, check=True
    )
    rows = json.loads(result.stdout)["topics"]
    assert rows[0]["label"] == "food"
    assert "garlic" in rows[0]["words"]
    assert "pasta" in rows[0]["documents"][0].lower()


def test_counts_of_other_formats_are_read(tmp_path, corpus):
    lines = []
    X = corpus.X.tocsr()
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        pairs = zip(X.indices[a:b], X.data[a:b], strict=True)
        lines.append(" ".join([str(b - a), *(f"{j}:{int(v)}" for j, v in pairs)]))
    (tmp_path / "a.ldac").write_text("\n".join(lines))
    (tmp_path / "vocab.txt").write_text("\n".join(corpus.feature_names))
    result = runner.invoke(module.app, ["topics", str(tmp_path / "a.ldac"), "-k", "3"])
    assert result.exit_code == 0, result.output
    assert "word" in result.output


def test_reading_tells_how_far_it_is(reviews):
    told = []
    tm.text.read(reviews, text="body", progress=lambda *now: told.append(now))
    assert told[-1] == (90, 1.0)
    assert all(0 <= share <= 1 for _, share in told)


def test_new_counts_are_put_into_the_columns_of_the_model(tmp_path, corpus):
    words = list(corpus.feature_names)
    model = tm.LatentDirichletAllocation(3).fit(corpus.X, feature_names=words)
    model.save(tmp_path / "a.tm")
    order = np.random.default_rng(0).permutation(80)
    sp.save_npz(tmp_path / "new.npz", sp.csr_array(corpus.X)[:, order])
    (tmp_path / "new.txt").write_text("\n".join(words[j] for j in order))
    command = ["transform", str(tmp_path / "a.tm"), str(tmp_path / "new.npz"), "--vocabulary"]
    command += [str(tmp_path / "new.txt"), "--out", str(tmp_path / "out.csv")]
    result = runner.invoke(module.app, command)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "out.csv")
    shares = table[[f"topic {j}" for j in range(3)]].to_numpy()
    np.testing.assert_allclose(shares, model.transform(corpus.X), atol=1e-12)
    (tmp_path / "new.txt").write_text("\n".join(f"other{j}" for j in range(80)))
    assert "none of the words" in runner.invoke(module.app, command).output


def test_options_for_texts_are_refused_for_counts(tmp_path, corpus):
    sp.save_npz(tmp_path / "counts.npz", corpus.X)
    for option in (["--stop-words", "a"], ["--stream"], ["--group", "g"]):
        result = runner.invoke(module.app, ["topics", str(tmp_path / "counts.npz"), *option])
        assert result.exit_code == 2
        assert "is for texts" in " ".join(result.output.split())


def test_a_stream_is_read_once_more_for_all_typical_documents(reviews, monkeypatch):
    from thirdmoment.text import corpus as texts_module

    reads = []
    whole = texts_module.read_files
    monkeypatch.setattr(texts_module, "read_files", lambda *a: reads.append(1) or whole(*a))
    command = ["topics", str(reviews), "--text", "body", "-k", "3", "--stream", "--documents", "2"]
    result = runner.invoke(module.app, command)
    assert result.exit_code == 0, result.output
    assert len(reads) == 2


def test_advice_is_in_the_words_of_the_command_line():
    assert show.in_options("no column 'x' (group=).") == "no column 'x' (--group)."
    assert show.in_options("Give text=, one of 'a', 'b'.") == "Give --text, one of 'a', 'b'."


def test_files_that_are_not_there_are_named_without_a_number(tmp_path):
    found = runner.invoke(module.app, ["topics", str(tmp_path / "none.csv")])
    assert found.exit_code == 2
    assert "No such file or folder" in found.output
    assert "Errno" not in found.output


def test_what_could_not_be_used_is_told_before_the_page_is_served(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    words = "ship harbour sail wave anchor", "judge court jury trial verdict"
    texts = [" ".join(rng.choice(words[i % 2].split(), 12)) for i in range(60)]
    pd.DataFrame({"text": ["", *texts]}).to_csv(tmp_path / "some.csv", index=False)
    left = []

    def serve(*_, **__):
        left.append([str(one.message) for one in show.untold[-1]])

    monkeypatch.setattr("thirdmoment.cli.explore.serve", serve)
    found = runner.invoke(module.app, ["explore", str(tmp_path / "some.csv"), "-k", "2"])
    assert found.exit_code == 0
    assert "an empty text" in found.output
    assert left == [[]]  # served once, and nothing is left for the end
