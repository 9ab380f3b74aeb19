"""The report: derived numbers, advice, pictures."""

import math

import numpy as np
import pytest

import thirdmoment as tm
from thirdmoment.refinement.halves import Examined, Gain
from thirdmoment.report import About, Finding, Judged, Report, moment_findings
from thirdmoment.report.findings import gain_findings, stable_findings


def report(**changes):
    fields = {
        "n_components": 2,
        "spectrum": np.array([4.0, 2.0, 0.5]),
        "noise": 0.1,
        "snr": 20.0,
        "residual": 0.05,
        "clipped_mass": np.zeros(2),
        "raw_weights": np.array([0.5, 0.5]),
        "solver": "tensor",
        "start": "moments",
        "passes": 5,
    }
    return Report(**{**fields, **changes})


def test_gap_and_condition_number_by_hand():
    assert report().eigengap == pytest.approx((2 - 0.5) / 2)
    assert report().condition_number == pytest.approx(2)
    assert math.isnan(report(spectrum=np.array([4.0, 2.0])).eigengap)
    assert report(spectrum=np.array([4.0, -1.0, -2.0])).condition_number == math.inf


WORDS = Gain("by word counts alone", "word", math.log(2.0), 0.01)
TOPICS = About("topic", "documents", "top words", 10)


def test_three_lines_say_whether_to_trust_what_to_leave_out_and_what_to_do():
    good = report(trust=np.array([0.9, 0.8]), gains=(WORDS,), about=TOPICS)
    assert good.level == "good"
    assert str(good).splitlines() == [
        "Trust this fit: both topics come back when half of the documents is left out, and words "
        "of unseen documents are predicted 2.00 times as well as by word counts alone.",
        "Leave out: none.",
        "Next step: none; these checks found no problem.",
    ]


LABELS = ("9%, cats, dogs", "8%, said, one", "7%, a, b", "6%, c, d")


@pytest.mark.parametrize(
    ("trust", "lines"),
    [
        (
            [0.9, 0.3, 0.9, 0.9],
            [
                "Trust 3 of the 4 topics: the other one does not come back when half of the "
                "documents is left out. Words of unseen documents are predicted 2.00 times as well "
                "as by word counts alone.",
                "Leave out: topic 1 (8%, said, one) (the first topic is number 0).",
                "Next step: Leave it out, or try another n_components.",
            ],
        ),
        (
            [0.9, 0.3, 0.9, 0.2],
            [
                "Trust only 2 of the 4 topics: the other 2 do not come back when half of the "
                "documents is left out. Words of unseen documents are predicted 2.00 times as well "
                "as by word counts alone.",
                "Leave out: topic 3 (6%, c, d), topic 1 (8%, said, one) (worst first; the first "
                "topic is number 0).",
                "Next step: Leave them out, or set n_components to about 2 and read the new "
                "report.",
            ],
        ),
        (
            [0.1, 0.3, 0.9, 0.2],
            [
                "Do not trust this fit: 3 of 4 topics do not come back when half of the documents "
                "is left out.",
                "Leave out: all.",
                "Next step: Set n_components far lower, or give more documents.",
            ],
        ),
    ],
)
def test_some_topics_are_not_stable(trust, lines):
    judged = Judged(Examined(np.array(trust), (WORDS,)), LABELS, TOPICS)
    found = report(findings=tuple(judged.findings(4)), **judged.fields(4))
    assert str(found).splitlines() == lines


def test_a_fit_without_gain_has_one_thing_to_do():
    none = Gain("by a single component", "row", -0.1, 0.02)
    judged = Judged(Examined(np.array([0.9, 0.1]), (none,)))
    found = report(findings=tuple(judged.findings(2)), **judged.fields(2))
    assert str(found).splitlines() == [
        "Do not trust this fit: unseen rows are predicted no better than by a single component.",
        "Leave out: all.",
        "Next step: Use fewer components.",
    ]


def test_too_little_data_to_check():
    judged = Judged(None, about=TOPICS)
    found = report(findings=tuple(judged.findings(4)), **judged.fields(4))
    assert found.level == "care"
    assert str(found).splitlines() == [
        "Not checked: there are fewer than 10 documents for each topic.",
        "Leave out: not known.",
        "Next step: Ask for fewer topics, or give more documents.",
    ]
    assert judged.findings(4, refining=False) == []
    assert judged.findings(1) == []


def test_more_components_than_can_be_named_are_numbered():
    trust = np.linspace(0, 0.45, 9)
    left = report(trust=np.append(trust, np.ones(20))).left_out()
    assert left.startswith("component 0, component 1,")
    assert left.endswith("5, also 6, 7, 8 (worst first; the first component is number 0)")


def test_the_gravest_finding_comes_first_and_decides():
    found = report(
        trust=np.ones(2),
        findings=(
            Finding("a", "A note."),
            Finding("b", "Care (3 of 4): so and so.", "Act.", "care"),
            Finding("c", "Grave thing: x.", "Act now.", "grave"),
        ),
    )
    assert [one.level for one in found.findings] == ["grave", "care", "note"]
    assert found.verdict == "Do not trust this fit: grave thing."
    assert found.warnings[0] == "Grave thing: x. Act now."
    assert found.actions() == ["Act now."]
    assert "A note" not in str(found)
    assert "Note: A note." in found.full()
    milder = report(trust=np.ones(2), findings=(*found.findings[1:], Finding("d", "More.", "Do.")))
    assert str(milder).splitlines() == [
        "Not ready yet: care.",
        "Leave out: none.",
        "Next step (1 of 2): Act.",
        "Next step (2 of 2): Do. Why: More.",
    ]


def test_a_fit_that_was_not_checked_says_so():
    assert report().level == "unknown"
    assert str(report()) == "Not checked: the moments were taken as they are."
    alone = report(trust=np.ones(1))
    assert alone.verdict == "Trust this fit: there is one component, and nothing to tell apart."


def test_the_full_report_has_every_number():
    trust = np.array([0.9, 0.8])
    text = report(refine_path=(-7.0, -6.5), trust=trust, gains=(WORDS,)).full()
    for line in (
        "  component 1: 0.80",
        "Log-likelihood of an unseen word over that by word counts alone: +0.6931 ± 0.01.",
        "Start: moments. Moments: solver tensor, 5 passes over the data.",
        "Second moment: eigenvalue 2 is 20 times the sampling noise, condition number 2.",
        "Third moment: 5.0% unexplained by 2 components.",
        "Refinement: 1 recorded steps, objective -7.0000 to -6.5000.",
    ):
        assert line in text.splitlines()


def test_words_of_the_data_do_not_act_on_a_terminal():
    found = report(trust=np.array([0.9, 0.2]), labels=("a", "\x1b[31mred"))
    assert "\x1b" not in str(found) + found.full()
    assert "<script>" not in report(trust=np.zeros(2), labels=("<script>", "b"))._repr_html_()


def test_the_notebook_shows_verdict_trust_and_spectrum():
    page = report(trust=np.array([0.9, 0.2]), gains=(WORDS,))._repr_html_()
    assert page.count("<svg") == 2
    assert page.count("<rect") == 2
    assert page.count("<circle") == 3
    assert "Trust 1 of the 2 components" in page
    assert "<svg" not in report(spectrum=np.empty(0))._repr_html_()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, None),
        (
            {"snr": 1.2},
            "do not show all 3 components: eigenvalue 3 is 1.2 times",
        ),
        (
            {"snr": 0.5},
            "do not show all 3 components: eigenvalue 3 is 0.5 times",
        ),
        ({"residual": 0.4}, "40% of the third moment stays unexplained (30% is the limit)"),
        ({"residual": 0.2, "solver": "schur"}, "20% of the third moment stays unexplained (15%"),
    ],
)
def test_each_doubt_of_plain_moments_has_its_sentence(change, text):
    good = {"k": 3, "snr": 5.0, "residual": 0.1, "solver": "tensor"}
    found = moment_findings(**{**good, **change})
    assert found == [] if text is None else text in str(found[0])


@pytest.mark.parametrize(
    ("stable", "level"),
    [(6, None), (5, "note"), (4, "note"), (3, "care"), (2, "care"), (1, "grave")],
)
def test_how_many_components_must_be_stable(stable, level):
    trust = np.where(np.arange(6) < stable, 0.5, 0.49)
    found = stable_findings(trust, About("class"))
    assert [one.level for one in found] == ([] if level is None else [level])
    if level is not None:
        assert f"{6 - stable} of 6 classes " in found[0].text


@pytest.mark.parametrize(
    ("value", "error", "level"),
    [
        (0.21, 0.1, None),
        (0.19, 0.1, "care"),
        (-0.1, 0.1, "care"),  # it may be 0.1 as well
        (-0.19, 0.1, "grave"),
        (0.001, 0.001, "grave"),  # at most 0.003
    ],
)
def test_a_gain_must_be_clear(value, error, level):
    found = gain_findings([Gain("by one", "row", value, error)], "Use one.", About())
    assert [one.level for one in found] == ([] if level is None else [level])


def test_pictures_show_used_and_unused_eigenvalues():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    ax = report().plot()
    used, left = ax.lines[0], ax.lines[1]
    np.testing.assert_array_equal(used.get_ydata(), [4.0, 2.0])
    np.testing.assert_array_equal(left.get_ydata(), [0.5])
    assert ax.lines[2].get_ydata()[0] == 0.1  # the noise level


def test_topics_are_drawn_with_their_words():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from thirdmoment.report.plot import plot_topics

    figure = plot_topics(
        [["a", "b"], ["c", "d"], ["e", "f"]],
        np.full((3, 2), 0.5),
        np.full(3, 1 / 3),
        n_columns=2,
        report=report(),
    )
    labels = [t.get_text() for ax in figure.axes for t in ax.get_yticklabels()]
    assert {"a", "f"} <= set(labels)


def test_a_report_shows_its_text_and_its_picture_in_a_notebook():
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    assert repr(report()) == str(report())
    plt.close("all")
    report().plot()
    assert len(plt.get_fignums()) == 1
    plt.close("all")


def test_components_count_by_their_weight_as_well():
    trust, weights = np.array([0.1, 0.9, 0.9, 0.9]), np.array([0.5, 0.2, 0.2, 0.1])
    assert stable_findings(trust, About())[0].level == "note"
    assert stable_findings(trust, About(), weights)[0].level == "care"


@pytest.mark.parametrize(
    "model",
    [
        tm.GaussianMixture(2),
        tm.GaussianMixture(2, covariance_type="full"),
        tm.CategoricalMixture(2),
        tm.KernelMixture(2),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_equal_rows_are_not_trusted(model):
    report = model.fit(np.ones((600, 4), dtype=int)).report_
    assert report.level == "grave"
    assert str(report).startswith("Do not trust this fit: all rows are equal")
