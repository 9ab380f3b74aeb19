"""The kernel mixture as its users meet it."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone

from thirdmoment import CategoricalMixture, KernelMixture
from thirdmoment.datasets import make_categorical_mixture, make_shaped_mixture
from thirdmoment.exceptions import InputWarning


def density_error(model, data):
    """Σ_h w_h · mean over views of the L2 distance of the densities (X-S1), best order."""
    k = len(data.weights)
    cost = np.zeros((k, k))
    for v in range(data.X.shape[1]):
        x = np.linspace(data.X[:, v].min() - 1, data.X[:, v].max() + 1, 400)
        apart = model.density(x, v).T[:, None] - data.density(x, v)[None]
        cost += np.sqrt((x[1] - x[0]) * (apart**2).sum(axis=2)) / data.X.shape[1]
    return min(
        float(sum(data.weights[j] * cost[i, j] for j, i in enumerate(order)))
        for order in permutations(range(k))
    )


def labelled_error(data):
    """The same for a kernel density estimate with the true labels and the rule K-15."""

    class Labelled:
        def density(self, x, v):
            found = []
            for h in range(len(data.weights)):
                rows = data.X[data.labels == h, v]
                iqr = np.subtract(*np.quantile(rows, [0.75, 0.25])) / 1.34
                width = 0.9 * min(rows.std(), iqr) * len(rows) ** -0.2
                kernel = np.exp(-0.5 * ((x[:, None] - rows) / width) ** 2)
                found.append(kernel.mean(axis=1) / (np.sqrt(2 * np.pi) * width))
            return np.stack(found, axis=1)

    return density_error(Labelled(), data)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_densities_are_as_good_as_with_known_labels(skewed, seed):
    data = make_shaped_mixture(4000, 3, skewed=skewed, random_state=seed)
    model = KernelMixture(3).fit(data.X)
    assert density_error(model, data) < 1.1 * labelled_error(data)
    np.testing.assert_allclose(model.weights_[::-1], data.weights, atol=0.03)


@pytest.mark.parametrize("refine", ["auto", "none"])
def test_the_error_falls_with_the_number_of_rows(refine):
    errors = []
    for n in (500, 4000, 32_000):
        each = []
        for seed in range(3):
            data = make_shaped_mixture(n, 3, skewed=False, random_state=seed)
            each.append(density_error(KernelMixture(3, refine=refine).fit(data.X), data))
        errors.append(np.mean(each))
    slope = np.polyfit(np.log([500, 4000, 32_000]), np.log(errors), 1)[0]
    assert slope < -0.3  # the rate of a density estimate is n^(-2/5)


def test_moments_alone_find_skewed_components():
    data = make_shaped_mixture(4000, 3, random_state=2)
    model = KernelMixture(3, refine="none").fit(data.X)
    assert density_error(model, data) < 1.5 * labelled_error(data)
    assert model.n_iter_ == 0


@pytest.mark.parametrize("options", [{}, {"refine": "none"}, {"bandwidth": "cv"}])
def test_densities_integrate_to_one_and_are_never_negative(options):
    data = make_shaped_mixture(1500, 3, random_state=3)
    model = KernelMixture(3, **options).fit(data.X)
    for v in range(3):
        x = np.linspace(data.X[:, v].min() - 5, data.X[:, v].max() + 5, 40_001)
        p = model.density(x, v)
        assert p.min() >= 0
        np.testing.assert_allclose(p.sum(axis=0) * (x[1] - x[0]), 1, atol=1e-3)


def test_expectations_are_not_blurred_by_the_bandwidth():
    data = make_shaped_mixture(20_000, 3, skewed=False, spacing=3, random_state=4)
    model = KernelMixture(3, bandwidth=0.8).fit(data.X)
    order = [2, 1, 0]  # heaviest first
    for v in range(3):
        first = model.expectation(lambda x: x[:, 0], v)
        second = model.expectation(lambda x: x**2, v)[:, 0]
        rows = data.weights[order] * 20_000
        assert np.all(np.abs(first - data.means[order, v]) < 5 / np.sqrt(rows) + 0.02)
        # with the bandwidth's 0.64 added the variance would be off by more than half
        np.testing.assert_allclose(second - first**2, data.scales[order, v] ** 2, rtol=0.15)
    share = model.expectation(lambda x: x[:, 0] > data.means[2, 0], 0)[0]
    assert share == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(10_000))


def test_cross_validated_bandwidths_sharpen_skewed_components():
    errors = []
    for bandwidth in ("auto", "cv"):
        data = make_shaped_mixture(4000, 2, random_state=5)
        errors.append(density_error(KernelMixture(2, bandwidth=bandwidth).fit(data.X), data))
    assert errors[1] < 0.85 * errors[0]


def test_given_bandwidths_are_used_as_they_are():
    data = make_shaped_mixture(500, 2, random_state=6)
    model = KernelMixture(2, bandwidth=[0.3, 0.4, 0.5]).fit(data.X)
    for v, width in enumerate([0.3, 0.4, 0.5]):
        np.testing.assert_array_equal(model.bandwidths_[v], np.full((2, 1), width))
    wide = KernelMixture(2, bandwidth="wide").fit(data.X)
    auto = KernelMixture(2).fit(data.X)
    assert all(np.all(a > b) for a, b in zip(wide.bandwidths_, auto.bandwidths_, strict=True))
    assert all(np.ptp(width, axis=0).max() == 0 for width in wide.bandwidths_)


def test_views_of_one_law_are_learned_better_together():
    ratios = []
    for seed in range(5):
        data = make_shaped_mixture(500, 3, exchangeable=True, skewed=False, random_state=seed)
        alone = density_error(KernelMixture(3).fit(data.X), data)
        together = KernelMixture(3, exchangeable=True).fit(data.X)
        np.testing.assert_array_equal(together.density([1.0], 0), together.density([1.0], 2))
        ratios.append(density_error(together, data) / alone)
    assert np.median(ratios) < 0.8  # three times the rows: 3^(-2/5) = 0.64


def test_dirichlet_proportions_are_learned():
    rng = np.random.default_rng(7)
    n, alpha = 40_000, np.array([0.9, 0.6])
    theta = rng.dirichlet(alpha, size=n)
    picks = (rng.random((n, 3)) > theta[:, :1]).astype(int)
    X = np.array([[0.0, 4, 0], [4, 0, 4]])[picks, np.arange(3)] + rng.standard_normal((n, 3))
    model = KernelMixture(2, concentration=1.5).fit(X)
    np.testing.assert_allclose(np.sort(model.concentration_), np.sort(alpha), rtol=0.1)
    mean = model.expectation(lambda x: x[:, 0], 0)
    np.testing.assert_allclose(mean, [0, 4], atol=0.15)
    share = model.predict_proba(X)
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_allclose(share.mean(axis=0), alpha / alpha.sum(), atol=0.02)
    plain = KernelMixture(2).fit(X)
    assert model.score(X) > plain.score(X)  # the right model of the same densities
    drawn, labels = model.sample(500)
    assert drawn.shape == labels.shape == (500, 3)


def test_dirichlet_likelihoods_sum_over_all_assignments():
    from itertools import product

    from thirdmoment.models.kernel.fitted import expected_proportions, log_dirichlet_mixture

    rng = np.random.default_rng(8)
    alpha = np.array([0.5, 1.2, 0.8])
    logs = np.log(rng.uniform(0.1, 2, (4, 3, 6)))
    total, first = np.zeros(6), np.zeros((6, 3))
    for picks in product(range(3), repeat=4):
        counts = np.bincount(picks, minlength=3)
        chance = np.prod([np.prod(alpha[h] + np.arange(c)) for h, c in enumerate(counts)])
        chance /= np.prod(alpha.sum() + np.arange(4))
        term = chance * np.exp(sum(logs[v, h] for v, h in enumerate(picks)))
        total += term
        first += term[:, None] * (alpha + counts) / (alpha.sum() + 4)
    np.testing.assert_allclose(log_dirichlet_mixture(logs, alpha), np.log(total), rtol=1e-10)
    np.testing.assert_allclose(
        expected_proportions(logs, alpha), first / total[:, None], rtol=1e-10
    )


def test_views_of_two_and_more_columns():
    rng = np.random.default_rng(9)
    n = 3000
    h = rng.integers(2, size=n)
    X = rng.standard_normal((n, 8))
    X[:, 1] += 0.9 * X[:, 0] ** 2  # bananas in the first view
    X[h == 1] += np.array([0, 6, 2, 2, 2, 2, 2, 2])
    views = [[0, 1], [2, 3, 4], [5, 6, 7]]
    model = KernelMixture(2, views=views).fit(X)
    assert max(np.mean(model.predict(X) == h), np.mean(model.predict(X) != h)) > 0.97
    assert model.density(X[:5], 0).shape == (5, 2)
    assert model.density(X[:5, 2:5], 1, 0).shape == (5,)
    drawn, labels = model.sample(2000)
    heavy = drawn[labels == 0]
    true = X[h == np.bincount(h[model.predict(X) == 0]).argmax()]
    np.testing.assert_allclose(heavy.mean(axis=0), true.mean(axis=0), atol=0.25)
    curved = np.corrcoef(heavy[:, 0] ** 2, heavy[:, 1])[0, 1]
    assert curved > 0.5  # the shape within a view is kept


def test_codes_and_numbers_may_stand_in_one_view():
    rng = np.random.default_rng(10)
    h = rng.integers(2, size=2000)
    code = np.where(rng.random(2000) < 0.2, 1 - h, h)
    X = np.column_stack([code, 2.5 * h[:, None] + rng.standard_normal((2000, 3))])
    kernel = [["delta", "rbf"], "rbf", "rbf"]
    model = KernelMixture(2, views=[[0, 1], [2], [3]], kernel=kernel).fit(X)
    assert max(np.mean(model.predict(X) == h), np.mean(model.predict(X) != h)) > 0.93
    assert np.all(model.density([[7.0, 0.0]], 0) == 0)


@pytest.mark.parametrize(
    "kernel", ["laplace", lambda A, B: np.exp(-np.abs(A - B.T)), ["rbf", "laplace", "rbf"]]
)
def test_other_kernels_find_the_same_components(kernel):
    data = make_shaped_mixture(2000, 2, spacing=4, random_state=11)
    model = KernelMixture(2, kernel=kernel, refine="none").fit(data.X)
    agree = np.mean(model.predict(data.X) == data.labels)
    assert max(agree, 1 - agree) > 0.97


def test_the_linear_kernel_sees_means():
    data = make_shaped_mixture(4000, 2, spacing=4, random_state=11)
    model = KernelMixture(2, kernel="linear", refine="none").fit(data.X)
    agree = np.mean(model.predict(data.X) == data.labels)
    assert max(agree, 1 - agree) > 0.97


def test_a_row_of_weight_two_is_a_row_given_twice():
    data = make_shaped_mixture(300, 2, random_state=12)
    weight = np.random.default_rng(0).integers(0, 3, 300)
    one = KernelMixture(2).fit(data.X, sample_weight=weight)
    other = KernelMixture(2).fit(np.repeat(data.X, weight, axis=0))
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-8)
    np.testing.assert_allclose(one.density([0.0, 1.0], 0), other.density([0.0, 1.0], 0), rtol=1e-6)


def test_threads_and_repetition_do_not_change_the_answer():
    data = make_shaped_mixture(25_000, 3, random_state=13)
    models = [KernelMixture(3, n_jobs=jobs).fit(data.X) for jobs in (1, 2, 2)]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0]._tables, other._tables)
        np.testing.assert_array_equal(models[0].weights_, other.weights_)


def test_a_fitted_model_survives_pickling_and_cloning():
    data = make_shaped_mixture(400, 2, random_state=14)
    model = KernelMixture(2).fit(data.X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(data.X), model.score_samples(data.X))
    assert clone(model).get_params() == model.get_params()


def test_samples_look_like_the_data():
    data = make_shaped_mixture(5000, 2, spacing=4, skewed=False, random_state=15)
    model = KernelMixture(2).fit(data.X)
    drawn, labels = model.sample(5000)
    np.testing.assert_allclose(drawn.mean(axis=0), data.X.mean(axis=0), atol=0.2)
    assert np.mean(model.predict(drawn) == labels) > 0.97
    np.testing.assert_allclose(model.score(drawn), model.score(data.X), atol=0.1)


def test_dependent_views_are_reported():
    rng = np.random.default_rng(16)
    h = rng.integers(2, size=3000)
    common = rng.standard_normal(3000)
    X = 4 * h[:, None] + rng.standard_normal((3000, 3))
    fine = KernelMixture(2).fit(X)
    assert fine.report_.details["dependence"].max() < 0.2
    assert not any("depend on each other within" in text for text in fine.report_.warnings)
    X[:, 0] += 2 * common
    X[:, 1] += 2 * common
    found = KernelMixture(2, bandwidth="wide").fit(X)
    notes = [text for text in found.report_.warnings if "depend on each other within" in text]
    assert notes
    assert notes[0].startswith("column 0 and column 1 depend")


def test_equal_columns_are_reported():
    data = make_shaped_mixture(500, 2, random_state=17)
    X = np.column_stack([data.X, data.X[:, 0]])
    with pytest.warns(InputWarning, match="Columns 0 and 3 are equal"):
        model = KernelMixture(2).fit(X)
    assert "Columns 0 and 3" in model.report_.warnings[0]


def test_one_component_is_a_density_estimate():
    rng = np.random.default_rng(18)
    X = rng.standard_normal((2000, 3))
    model = KernelMixture(1).fit(X)
    np.testing.assert_array_equal(model.weights_, [1.0])
    assert model.density([0.0], 0)[0, 0] == pytest.approx(0.399, abs=0.03)


def test_criteria_prefer_the_true_number_of_components():
    data = make_shaped_mixture(3000, 2, spacing=4, skewed=False, random_state=19)
    values = {k: KernelMixture(k).fit(data.X) for k in (1, 2, 3)}
    bic = {k: model.bic(data.X) for k, model in values.items()}
    assert min(bic, key=bic.get) == 2
    held = {k: model.lower_bound_ for k, model in values.items()}
    assert held[2] > held[1] + 0.1


@pytest.mark.parametrize("count", [1, 2])
def test_with_too_few_varying_views_the_fit_starts_otherwise(count):
    rng = np.random.default_rng(20)
    X = rng.standard_normal((300, 3)) + 6 * rng.integers(2, size=300)[:, None]
    X[:, count:] = 1.0
    model = KernelMixture(2).fit(X)
    assert any(f"{count} of 3 views vary" in text for text in model.report_.warnings)
    assert np.abs(model.weights_ - 0.5).max() < 0.1
    drawn, _ = model.sample(10)
    np.testing.assert_array_equal(drawn[:, count:], 1.0)


def test_heavy_tails_and_far_values_do_no_harm():
    rng = np.random.default_rng(21)
    data = make_shaped_mixture(2000, 2, spacing=5, random_state=21)
    X = data.X.copy()
    X[:3] = [[1e6, 0, 0], [0, -1e6, 0], [0, 0, 1e6]]
    X[3:200] += rng.standard_cauchy((197, 3))
    model = KernelMixture(2).fit(X)
    agree = np.mean(model.predict(X[200:]) == data.labels[200:])
    assert max(agree, 1 - agree) > 0.97
    assert np.all(np.isfinite(model.score_samples(X)))


def test_discrete_ties_do_no_harm():
    data = make_shaped_mixture(2000, 2, spacing=5, random_state=22)
    X = np.round(data.X)
    model = KernelMixture(2).fit(X)
    agree = np.mean(model.predict(X) == data.labels)
    assert max(agree, 1 - agree) > 0.95


def test_columns_have_names_in_views_and_pictures():
    pd = pytest.importorskip("pandas")
    data = make_shaped_mixture(400, 2, random_state=23)
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"])
    model = KernelMixture(2, views=[["a"], ["b"], ["c"]]).fit(frame)
    figure = model.plot_components()
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert labels == ["a", "b", "c"]


def test_every_kind_of_view_is_drawn():
    from matplotlib import pyplot as plt

    rng = np.random.default_rng(24)
    h = rng.integers(2, size=600)
    X = 3 * h[:, None] + rng.standard_normal((600, 7))
    X[:, 6] = h
    model = KernelMixture(
        2, views=[[0], [1, 2], [3, 4, 5], [6]], kernel=["rbf", "rbf", "rbf", "delta"]
    ).fit(X)
    figure = model.plot_components()
    drawn = [ax for ax in figure.axes if ax.has_data()]
    assert len(drawn) == 1 + 1 + 3 + 1
    assert len(model.plot_components(views=[0, 3]).axes) == 2
    plt.close("all")


def test_delta_kernels_give_probabilities():
    data = make_categorical_mixture(2000, 4, 2, random_state=25)
    model = KernelMixture(2, kernel="delta").fit(data.X)
    for v in range(3):
        np.testing.assert_allclose(model.density(np.arange(4.0), v).sum(axis=0), 1)
    reference = CategoricalMixture(2).fit(data.X)
    assert model.score(data.X) == pytest.approx(reference.score(data.X), abs=1e-4)
