"""Units, orders, copies and weights change no answer beyond rounding."""

import numpy as np
import pytest

import thirdmoment as tm
from thirdmoment.models.rows import counted_rows, in_units
from thirdmoment.models.units import column_units

VIEWS = [[0, 1], [2, 3], [4, 5]]
COLUMNWISE = {  # each column may have units of its own
    "diag": lambda: tm.GaussianMixture(3, covariance_type="diag"),
    "full": lambda: tm.GaussianMixture(3, covariance_type="full"),
    "tied": lambda: tm.GaussianMixture(3, covariance_type="tied"),
    "block": lambda: tm.GaussianMixture(3, covariance_type="block", views=VIEWS),
    "views": lambda: tm.MultiViewMixture(3, views=VIEWS),
    "views diag": lambda: tm.MultiViewMixture(3, views=VIEWS, covariance_type="diag"),
    "kernel": lambda: tm.KernelMixture(3),
    "regression": lambda: tm.MixedLinearRegression(2),
    "chain": lambda: tm.GaussianHMM(3),
    "chain full": lambda: tm.GaussianHMM(3, covariance_type="full"),
}
ONE_UNIT = {
    "spherical": lambda: tm.GaussianMixture(3),
    "chain spherical": lambda: tm.GaussianHMM(3, covariance_type="spherical"),
    "factors": lambda: tm.IndependentFactors(3),
    "flats": lambda: tm.SubspaceClustering(3, 1, affine=True),
    "layers": lambda: tm.SubspaceClustering(3, "auto", affine=True),
}
MODELS = {**COLUMNWISE, **ONE_UNIT}
CHAINS = {name for name in MODELS if "chain" in name}


def data(seed=0, apart=3.0, n=300):
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n)
    X = apart * rng.normal(size=(3, 6))[z] + rng.normal(size=(n, 6))
    return X, np.where(z == 0, 1, -1) * X[:, 0] + 0.2 * rng.normal(size=n)


def answer(name, X, y, rows=None, target=None, **more):
    """What the fitted model says about ``rows``."""
    rows, target = X if rows is None else rows, y if target is None else target
    model = MODELS[name]()
    if name == "regression":
        return model.fit(X, y, **more).posterior(rows, target)
    model.fit(X, **more)
    if name == "factors":
        return model.transform(rows)
    if name in ("flats", "layers"):
        return np.eye(3)[model.predict(rows)]
    return model.predict_proba(rows)


def assert_same(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


# Overlapping components are raced; a kernel mixture stops within a tenth of a unit of likelihood.
pytestmark = [
    pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.mark.parametrize("apart", [3.0, 1.0])
@pytest.mark.parametrize("name", MODELS)
def test_units_change_no_answer(name, apart):
    X, y = data(2, apart)  # where moments stand below their noise, answers of views are rounding
    expected = answer(name, X, y)
    for factor, shift in ((2.0**-10, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1e6), (1e-60, 0.0)):
        found = answer(name, X * factor + shift, y * factor + shift)
        # 1e6 leaves ten digits of the rows
        assert_same(found, expected, 1e-4 if shift or name == "kernel" else 1e-6)


@pytest.mark.parametrize("name", COLUMNWISE)
def test_every_column_may_have_its_own_unit(name):
    X, y = data(2)
    unit = 10.0 ** np.array([-3, 2, 0, 5, -6, 1])
    assert_same(answer(name, X * unit, y), answer(name, X, y), 1e-4 if name == "kernel" else 1e-6)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"block", "views", "views diag"}))
def test_the_order_of_columns_changes_no_answer(name):
    X, y = data(3)
    order = np.array([4, 0, 5, 2, 1, 3])
    # random groups of columns start EM elsewhere; it stops within its tolerance
    assert_same(answer(name, X[:, order], y), answer(name, X, y), 1e-4)


@pytest.mark.parametrize("apart", [3.0, 1.0])
@pytest.mark.parametrize("name", sorted(set(MODELS) - CHAINS))
def test_orders_copies_and_weights_of_rows(name, apart):
    X, y = data(4, apart)
    rng = np.random.default_rng(0)
    expected = answer(name, X, y)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(answer(name, X[order], y[order], X, y), expected)
    for weight in (3.0, 0.3, 1e-200, 1e200):
        found = answer(name, X, y, sample_weight=np.full(len(X), weight))
        assert_same(found, expected, 1e-9)
    twice = answer(name, np.repeat(X, 2, axis=0), np.repeat(y, 2), X, y)
    np.testing.assert_array_equal(twice, expected)
    counts = rng.integers(0, 4, size=len(X))
    weighted = answer(name, X, y, sample_weight=counts)
    copied = answer(name, np.repeat(X, counts, axis=0), np.repeat(y, counts), X, y)
    assert_same(weighted, copied, 1e-9)


def test_batches_count_weights_as_copies():
    X, _ = data(5)
    counts = np.random.default_rng(1).integers(1, 4, size=len(X))
    one, other = tm.GaussianMixture(3), tm.GaussianMixture(3)
    for part in (slice(0, 150), slice(150, 300)):
        one.partial_fit(X[part], sample_weight=counts[part])
        other.partial_fit(np.repeat(X[part], counts[part], axis=0))
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-9)


def test_distinct_rows_carry_all_weights():
    X = np.array([[1.0, 2], [0, 1], [1, 2], [2, 1], [-0.0, 1], [2, 1]])
    weights = np.array([1.0, 2, 3, 0, 5, 6])
    place, w = counted_rows(X, weights, 1)
    found = dict(zip(map(tuple, X[place].tolist()), w, strict=True))
    assert found == {(1.0, 2.0): 4, (0.0, 1.0): 7, (2.0, 1.0): 6}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([2, 4, 6], [1, 2, 3]),
        ([3, 3, 3], [1, 1, 1]),
        ([0.3, 0.6, 0.3], [1, 2, 1]),
        ([40, 39, 41], [40, 39, 41]),
        ([0.5, 1.2, 1.3], [0.5, 1.2, 1.3]),
        ([5.0, 12.0, 13.1], [15 / 30.1, 36 / 30.1, 39.3 / 30.1]),
        ([1e300, 2e300], [1, 2]),
    ],
)
def test_weights_are_counted_in_their_own_unit(weights, expected):
    weights = np.array(weights)
    found = in_units(weights / weights.max(), float(weights.max()))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_units_of_columns():
    rng = np.random.default_rng(0)
    z = rng.normal(size=500)
    X = np.column_stack(
        [1e6 + z, np.full(500, 0.1), 1e3 * (1 + 2e-16 * z), np.zeros(500), 1e-9 * z]
    )
    units = column_units(X)
    np.testing.assert_array_equal(units.varies, [True, False, False, False, True])
    assert units.scale[0] == pytest.approx(z.std(), rel=1e-6)
    assert units.scale[1] == pytest.approx(0.1)
    assert units.scale[2] == pytest.approx(1e3)
    assert units.scale[4] == pytest.approx(1e-9 * z.std())
    rows = units.rows(X)
    assert np.all(rows[:, 1:4] == 0)
    np.testing.assert_allclose(rows[:, 4].std(), 1)
    single = column_units((1 + 1e-7 * z).astype(np.float32)[:, None])
    assert not single.varies[0]  # float32 does not resolve it


CONSTANT = {
    "diag": lambda: tm.GaussianMixture(2, covariance_type="diag"),
    "full": lambda: tm.GaussianMixture(2, covariance_type="full"),
    "tied": lambda: tm.GaussianMixture(2, covariance_type="tied"),
    "views": lambda: tm.MultiViewMixture(2, views=[[0, 3], [1], [2]]),
    "views diag": lambda: tm.MultiViewMixture(2, views=[[0, 3], [1], [2]], covariance_type="diag"),
    "chain": lambda: tm.GaussianHMM(2),
    "chain full": lambda: tm.GaussianHMM(2, covariance_type="full"),
    "kernel": lambda: tm.KernelMixture(2),
}


@pytest.mark.parametrize("value", [0.1, 1e3, 0.0])
@pytest.mark.parametrize("name", CONSTANT)
def test_a_column_that_is_constant_but_for_rounding_says_nothing(name, value):
    rng = np.random.default_rng(3)
    z = rng.integers(2, size=400)
    X = 4 * z[:, None] + rng.normal(size=(400, 4))
    X[:, 3] = value * (1 + 2e-16 * rng.normal(size=400))
    model = CONSTANT[name]().fit(X)
    alone = CONSTANT["chain" if "chain" in name else "diag"]()
    posterior = model.predict_proba(X)
    moved = X.copy()
    moved[:, 3] += 1e-9 * abs(value)
    np.testing.assert_allclose(model.predict_proba(moved), posterior, atol=1e-6)
    if name != "kernel":  # where a value never seen has no density
        change = model.score(moved) - model.score(X)
        assert abs(change) < 1e-3
    truth = alone.fit(X[:, :3]).predict_proba(X[:, :3])
    truth = truth if abs(truth - posterior).max() < 0.5 else truth[:, ::-1]
    assert np.mean((truth > 0.5) == (posterior > 0.5)) > 0.98
    assert not any("floor" in note for note in model.report_.warnings)


TOPIC_MODELS = [tm.LatentDirichletAllocation, tm.SingleTopicModel, tm.PoissonTopicModel]


@pytest.mark.parametrize("model", TOPIC_MODELS)
@pytest.mark.parametrize("n", [200, 400])
def test_documents_may_come_in_any_order_and_as_weights_or_copies(model, n):
    X = tm.datasets.make_lda_corpus(n, 80, 4, random_state=n).X
    rng = np.random.default_rng(n)
    counts = rng.integers(0, 4, size=n)
    weighted = model(4).fit(X, sample_weight=counts).components_
    copied = model(4).fit(X[np.repeat(np.arange(n), counts)]).components_
    assert_same(weighted, copied, 1e-9)
    turned = model(4).fit(X[rng.permutation(n)]).components_
    assert_same(turned, model(4).fit(X).components_, 1e-9)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int64", "bool", "float16", "float32", "object"]
)
def test_scores_take_what_fits_take(dtype):
    X = np.minimum(tm.datasets.make_lda_corpus(80, 30, 3, random_state=0).X.toarray(), 100)
    X = X.astype(dtype)
    model = tm.LatentDirichletAllocation(2).fit(X)
    for name in ("score", "score_samples", "perplexity", "transform"):
        assert np.isfinite(getattr(model, name)(X)).all()


def test_the_same_to_the_last_bit_wherever_arrays_lie():
    """Compiled sums must not hang on addresses or on the number of threads."""
    X = tm.datasets.make_lda_corpus(400, 150, 5, random_state=0).X
    chains = tm.datasets.make_gaussian_hmm(20, 60)
    rng = np.random.default_rng(0)
    found, kept = set(), []
    for jobs in (1, 2, 3, 1, 2, 3):
        kept.append(np.empty(rng.integers(1, 9999)))  # others lie elsewhere next time
        lda = tm.LatentDirichletAllocation(5, n_jobs=jobs).fit(X.copy())
        hmm = tm.GaussianHMM(3, n_jobs=jobs).fit(chains.X.copy(), lengths=chains.lengths)
        found.add(lda.components_.tobytes() + lda.transform(X[:9]).tobytes() + hmm.means_.tobytes())
    assert len(found) == 1
