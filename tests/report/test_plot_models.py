"""Pictures of fitted models show what the models say."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path
from sklearn.exceptions import NotFittedError

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput
from thirdmoment.report.plot import colour

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(ax, points=2):
    """Drawn lines of at least so many points."""
    return [one.get_xydata() for one in ax.lines if len(one.get_xdata()) >= points]


@pytest.mark.parametrize("kind", ["spherical", "diag", "block", "full", "tied"])
def test_ellipses_hold_half_and_nine_tenths_of_their_component(kind):
    data = tm.datasets.make_gaussian_mixture(1500, 4, 3, separation=4.0)
    views = [[0, 1], [2], [3]] if kind == "block" else 3
    model = tm.GaussianMixture(3, covariance_type=kind, views=views).fit(data.X)
    ax = model.plot(data.X, columns=[0, 1])
    drawn, labels = model.sample(30_000)
    ellipses = lines(ax, 50)
    assert len(ellipses) == 6
    for h in range(3):
        own = drawn[labels == h][:, :2]
        for share, ellipse in zip((0.5, 0.9), ellipses[2 * h : 2 * h + 2], strict=True):
            inside = Path(ellipse).contains_points(own).mean()
            assert inside == pytest.approx(share, abs=4 * np.sqrt(0.25 / len(own)) + 0.005)


def test_the_columns_that_are_drawn_tell_the_components_apart():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    X[:300, [1, 4]] += 6
    model = tm.GaussianMixture(2, covariance_type="diag").fit(X)
    ax = model.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 1", "column 4")
    assert len(ax.collections) == 0  # no rows were given


def test_the_parts_of_one_column_add_up_to_the_density():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(5, 2, (300, 1))])
    model = tm.GaussianMixture(2, covariance_type="diag").fit(X)
    *parts, whole = lines(model.plot(X), 50)
    np.testing.assert_allclose(sum(part[:, 1] for part in parts), whole[:, 1], atol=1e-12)
    scored = np.exp(model.score_samples(whole[:, :1]))
    np.testing.assert_allclose(scored, whole[:, 1], rtol=1e-6)


def test_profiles_are_in_spreads_of_all_rows():
    data = tm.datasets.make_gaussian_mixture(4000, 9, 3)
    model = tm.MultiViewMixture(3).fit(data.X * 100)
    means = np.empty((3, 9))
    for group, part in zip(model.view_groups_, model.means_, strict=True):
        means[:, group] = part
    expected = (means - data.X.mean(axis=0) * 100) / (data.X.std(axis=0) * 100)
    drawn = np.stack([one[:, 1] for one in lines(model.plot(), 9)])
    np.testing.assert_allclose(drawn, expected, atol=0.1)  # moments of 4,000 rows


def test_classes_of_two_answers_are_lines_and_of_more_are_stacks():
    yes = tm.datasets.make_categorical_mixture(2000, 2, 3, n_columns=5)
    model = tm.CategoricalMixture(3).fit(yes.X)
    for h, one in enumerate(lines(model.plot(), 5)):
        np.testing.assert_allclose(one[:, 1], [table[h, 1] for table in model.probabilities_])
    more = tm.datasets.make_categorical_mixture(2000, 4, 3, n_columns=5)
    model = tm.CategoricalMixture(3).fit(more.X)
    bars = model.plot().patches
    height = sum(bar.get_height() for bar in bars)
    assert len(bars) == 3 * 5 * 4
    assert height == pytest.approx(15)  # every stack is one high


def test_a_regression_is_drawn_without_what_the_other_columns_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3)) + 2
    slopes, labels = np.array([[2.0, 5, -5], [-1.0, -5, 5]]), rng.integers(2, size=3000)
    y = (X * slopes[labels]).sum(axis=1) + 1 + 0.1 * rng.standard_normal(3000)
    model = tm.MixedLinearRegression(2).fit(X, y)
    ax = model.plot(X, y, column=0)
    points = ax.collections[0].get_offsets()
    own = model.assign(X, y)
    exact = slopes[labels, 0] * X[:, 0] + 1
    np.testing.assert_allclose(points[:, 0], X[:, 0])
    assert np.mean(np.abs(points[:, 1] - exact) < 0.5) > 0.95  # noise of 0.1
    ends = lines(ax)[1::2]  # beside each there is a white one
    for h, end in enumerate(ends):
        slope = (end[1, 1] - end[0, 1]) / (end[1, 0] - end[0, 0])
        assert slope == pytest.approx(model.coef_[h, 0])
    rgb = [matplotlib.colors.to_rgb(colour(h)) for h in own]
    np.testing.assert_allclose(ax.collections[0].get_facecolors()[:, :3], rgb)
    with pytest.raises(InvalidInput, match="no column 3"):
        model.plot(X, y, column=3)


def test_angles_between_subspaces_are_those_of_the_bases():
    from thirdmoment.report.plot_models import smallest_angle

    turn = np.deg2rad(30)
    a = np.array([[1.0], [0], [0]])
    b = np.array([[np.cos(turn)], [np.sin(turn)], [0]])
    assert smallest_angle(a, b) == pytest.approx(30)
    assert smallest_angle(a, np.eye(3)[:, 1:]) == pytest.approx(90)
    assert smallest_angle(np.eye(3)[:, :2], np.eye(3)[:, 1:]) == pytest.approx(0, abs=1e-5)
    rng = np.random.default_rng(0)
    bases = [np.linalg.qr(rng.standard_normal((12, 2)))[0] for _ in range(3)]
    X = np.stack([bases[j] @ rng.standard_normal(2) for j in rng.integers(3, size=600)])
    for dims in (2, [1, 2, 2]):
        ax = tm.SubspaceClustering(3, dims).fit(X).plot()
        shown = np.array(ax.images[0].get_array())
        np.testing.assert_allclose(shown, shown.T, atol=1e-9)
        np.testing.assert_allclose(np.diag(shown), 0, atol=1e-5)


def test_the_path_that_is_drawn_is_the_most_probable_one():
    data = tm.datasets.make_gaussian_hmm(3, 200, n_features=2, n_components=3, random_state=1)
    model = tm.GaussianHMM(3).fit(data.X, lengths=data.lengths)
    ax = model.plot_path(data.X, data.lengths, sequence=1, column=1)
    own = slice(200, 400)
    path = model.predict(data.X, data.lengths)[own]
    np.testing.assert_array_equal(np.array(ax.images[0].get_array())[0], path)
    np.testing.assert_allclose(lines(ax)[0][:, 1], data.X[own, 1])
    with pytest.raises(InvalidInput, match="no sequence 3"):
        model.plot_path(data.X, data.lengths, sequence=3)


def test_paths_of_symbols_and_of_binary_vectors_are_drawn():
    drawn = tm.datasets.make_categorical_hmm(50, 40, n_symbols=6, n_components=2)
    model = tm.CategoricalHMM(2).fit(drawn.X, lengths=drawn.lengths)
    ax = model.plot_path(drawn.X, drawn.lengths, sequence=49)
    np.testing.assert_array_equal(lines(ax)[0][:, 1], np.ravel(drawn.X)[-40:])
    rng = np.random.default_rng(0)
    on = np.repeat([[0.9, 0.9, 0.1], [0.1, 0.2, 0.9]], 50, axis=0)[np.arange(2000) % 100]
    X = (rng.random((2000, 3)) < on).astype(int)
    ax = tm.BernoulliHMM(2).fit(X).plot_path(X[:100])
    assert {tuple(point) for point in lines(ax)[0].astype(int)} == set(
        zip(*map(np.ndarray.tolist, np.nonzero(X[:100])), strict=True)
    )


def test_arrows_are_the_transitions_that_matter():
    model = tm.GaussianHMM(3)
    model.startprob_ = model.weights_ = np.full(3, 1 / 3)
    model.transmat_ = np.array([[0.98, 0.02, 0.0], [0.5, 0.4, 0.1], [0.01, 0.0, 0.99]])
    ax = model.plot()
    arrows = [one for one in ax.patches if isinstance(one, FancyArrowPatch)]
    circles = [one for one in ax.patches if isinstance(one, Circle)]
    # the most probable way out of each state, however rare, and all above three per cent
    said = [text.get_text() for text in ax.texts]
    assert len(circles) == 3
    assert len(arrows) == 4
    assert {"0.02", "0.50", "0.10", "0.01"} < set(said)
    assert "0\n0.98" in said


def test_factors_and_topics_have_a_picture():
    rng = np.random.default_rng(0)
    factors = tm.IndependentFactors(3).fit(
        rng.exponential(size=(2000, 3)) @ rng.standard_normal((3, 5))
    )
    np.testing.assert_allclose(factors.plot().images[0].get_array(), factors.components_)
    corpus = tm.datasets.make_lda_corpus(500, 60, 4)
    topics = tm.LatentDirichletAllocation(4).fit(corpus.X).rename({0: "pay $5 & $6"})
    ax = topics.plot()
    ax.figure.canvas.draw()
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, 100 * np.sort(topics.weights_)[::-1])
    assert r"pay \$5 & \$6" in [text.get_text() for text in ax.get_yticklabels()]


def test_one_view_of_a_kernel_mixture_is_drawn_as_in_the_picture_of_all():
    data = tm.datasets.make_shaped_mixture(n_samples=600, n_components=2)
    model = tm.KernelMixture(2).fit(data.X)
    one, all_ = model.plot(1), model.plot_components().axes[1]
    for a, b in zip(lines(one), lines(all_), strict=True):
        np.testing.assert_array_equal(a, b)


# each answer of a search is one component, which has no picture of its own
MODELS = [
    name for name in tm.__all__ if hasattr(getattr(tm, name), "fit") and not name.endswith("Search")
]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_picture_that_takes_axes(name):
    import inspect

    model = getattr(tm, name)
    assert "ax" in inspect.signature(model.plot).parameters
    arguments = (np.ones((3, 2)), np.ones(3)) if name == "MixedLinearRegression" else ()
    with pytest.raises(NotFittedError):
        model().plot(*arguments)


def test_a_picture_is_drawn_on_the_axes_that_are_given():
    data = tm.datasets.make_gaussian_mixture(500, 3, 2)
    model = tm.GaussianMixture(2).fit(data.X)
    figure, axes = plt.subplots(1, 2)
    assert model.plot(data.X, ax=axes[1]) is axes[1]
    assert not axes[0].lines
    assert plt.get_fignums() == [figure.number]
