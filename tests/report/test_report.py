"""The report: derived numbers, advice, pictures."""

import math

import numpy as np
import pytest

from thirdmoment.report import Report, moment_warnings


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


def test_text_says_the_numbers_and_the_advice():
    text = str(report(refine_path=(-7.0, -6.5), warnings=("Take care.",)))
    assert text.splitlines() == [
        "Start: moments. Moments: solver tensor, 5 passes over the data.",
        "Second moment: eigenvalue 2 is 20 times the sampling noise, condition number 2.",
        "Third moment: 5.0% unexplained by 2 components.",
        "Refinement: 1 recorded steps, objective -7.0000 to -6.5000.",
        "Advice: Take care.",
    ]
    assert str(report()).endswith("Advice: none; the moments fit the model well.")


GOOD = {
    "k": 3,
    "snr": 5.0,
    "residual": 0.1,
    "clipped_mass": np.zeros(3),
    "raw_weights": np.full(3, 1 / 3),
}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, None),
        ({"snr": 1.2}, "Eigenvalue 3 is only 1.2 times the sampling noise"),
        ({"snr": 0.5}, "Eigenvalue 3 is below the sampling noise (0.5 times"),
        ({"residual": 0.4}, "40% of the third moment stays unexplained (30% is the limit)"),
        (
            {"clipped_mass": np.array([0, 0.1, 0.2])},
            "2 of 3 components had negative mass (up to 0.2",
        ),
        ({"raw_weights": np.full(3, 0.5)}, "sum to 1.5 instead of 1"),
    ],
)
def test_each_threshold_has_its_sentence(change, text):
    found = moment_warnings(**{**GOOD, **change})
    assert found == [] if text is None else text in found[0]


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
