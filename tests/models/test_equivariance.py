"""Units, orders, copies and weights change no answer beyond rounding."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment.models.rows import counted_rows, worth
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
        # 1e6 leaves ten digits of the rows; EM of a chain stops within 1e-7 of its log-likelihood,
        # here 3e-4 units, and where states overlap posteriors move by its root at most
        tolerance = 1e-4 if shift or name == "kernel" else 1e-6
        assert_same(found, expected, 2e-2 if name in CHAINS and apart == 1.0 else tolerance)


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
    found = dict(zip(map(tuple, X[place].tolist()), w / w.sum(), strict=True))
    assert found == pytest.approx({(1.0, 2.0): 4 / 17, (0.0, 1.0): 7 / 17, (2.0, 1.0): 6 / 17})


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([2, 4, 6], [1, 2, 3]),
        ([3, 3, 3], [1, 1, 1]),
        ([0.3, 0.3, 0.3], [1, 1, 1]),
        ([40, 39, 41], [40, 39, 41]),
        ([1e300, 1e300], [1, 1]),
    ],
)
def test_whole_weights_of_discrete_rows_are_counts(weights, expected):
    single = np.array(weights) / np.max(weights)
    found = worth(single, single, float(np.max(weights)), discrete=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_rows_are_worth_their_effective_number():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    for weights in (None, np.full(500, 7.0), np.append(np.ones(499), 0.01)):
        assert counted_rows(X, weights, 1).weights.sum() == pytest.approx(500, rel=0.01)
    uneven = rng.uniform(0.1, 3.0, size=500)
    expected = uneven.sum() ** 2 / (uneven @ uneven)
    for factor in (1.0, 0.2, 40.0):
        found = counted_rows(X, factor * uneven, 1).weights
        assert found.sum() == pytest.approx(expected)
    codes = rng.integers(4, size=(500, 3)).astype(float)
    for copies in (1, 3):
        table = np.repeat(codes, copies, axis=0)
        assert counted_rows(table, None, 1).weights.sum() == 500
        assert counted_rows(sp.csr_array(table), None, 1).weights.sum() == 500


def test_rows_that_differ_stay_apart_and_equal_ones_come_together():
    rng = np.random.default_rng(1)
    grid = np.array(list(itertools.product([0.0, 1, 2], repeat=4)))
    rows = np.repeat(grid, 3, axis=0)
    for order in (np.arange(len(rows)), rng.permutation(len(rows))):
        place, w = counted_rows(rows[order], None, 1)
        assert len(place) == 81
        assert set(w.tolist()) == {1.0}
    X = rng.poisson(1.0, size=(5000, 60)).astype(float)
    X[:, 0] *= 1e9
    X[:, 1:] *= 1e-6
    truly = len(np.unique(X, axis=0))
    for table in (X, sp.csr_array(X), sp.csr_array(X.astype(np.float32))):
        assert len(counted_rows(table, None, 1).place) == truly


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
    assert units.scale[3] == pytest.approx(units.scale[[0, 1, 2, 4]].mean())
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


@pytest.mark.parametrize("model", [tm.GaussianMixture, tm.GaussianHMM])
def test_a_given_floor_is_absolute_in_every_column(model):
    rng = np.random.default_rng(1)
    z = rng.integers(2, size=2000)
    X = rng.normal(size=(2000, 3)) * np.array([1e4, 1e-3, 1e-3])
    X[:, 1:] += 4e-3 * z[:, None] * np.array([1, -1])
    agree = np.mean(model(2, covariance_type="diag", reg_covar=1e-12).fit(X).predict(X) == z)
    assert max(agree, 1 - agree) > 0.98
    floored = model(2, covariance_type="diag", reg_covar=1e-4).fit(X)
    spread = floored.covariances_ if model is tm.GaussianMixture else floored.covars_
    assert spread.min() == pytest.approx(1e-4)


def test_sparse_columns_have_units_too():
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=3000)
    X = rng.poisson(2 * rng.gamma(1.0, size=(3, 12))[z]).astype(float)
    expected = tm.MultiViewMixture(3).fit(sp.csr_array(X)).predict_proba(sp.csr_array(X))
    for unit in (1e-6, 10.0 ** rng.integers(-5, 5, size=12)):
        Y = sp.csr_array(X * unit)
        assert_same(tm.MultiViewMixture(3).fit(Y).predict_proba(Y), expected, 1e-6)


def test_a_column_that_was_constant_does_not_drown_the_others():
    rng = np.random.default_rng(2)
    z = rng.integers(3, size=600)
    X = np.column_stack(
        [5 * rng.normal(size=(3, 3))[z] + rng.normal(size=(600, 3)), np.full(600, -1e-9)]
    )
    for kind in ("diag", "full", "tied"):
        model = tm.GaussianMixture(3, covariance_type=kind).fit(X)
        np.testing.assert_array_equal(model.predict(X + [0, 0, 0, 1.0]), model.predict(X))


def test_batches_say_where_a_constant_column_begins_to_vary():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 3)) + 4 * rng.integers(2, size=(20_000, 1))
    X[:10_000, 2] = 5.0
    model = tm.GaussianMixture(2, covariance_type="diag").partial_fit(X[:10_000])
    with pytest.warns(tm.exceptions.InputWarning, match="Column 2 was constant"):
        model.partial_fit(X[10_000:])
