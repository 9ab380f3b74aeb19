"""The command line: the demo and topics of a file."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.datasets import LabelledCorpus, make_lda_corpus

pytest.importorskip("typer", reason="typer is not installed")
from typer.testing import CliRunner

from thirdmoment.cli import app as module

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
    assert missing.exit_code == 1
    assert "word1" in missing.output


def test_errors_are_messages_not_tracebacks(tmp_path):
    result = runner.invoke(module.app, ["topics", str(tmp_path / "none.npz")])
    assert result.exit_code == 1
    assert "No file" in result.output


def test_labels_match_the_topics_that_made_them(corpus):
    from thirdmoment import LatentDirichletAllocation

    model = LatentDirichletAllocation(3).fit(corpus.X)
    assert set(module.best_labels(model, corpus)) == {"a.x", "b.y", "c.z"}


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
    monkeypatch.setattr(module, "_fit", lambda *_: pytest.fail("the fit began"))
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
