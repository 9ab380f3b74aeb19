"""Categorical mixtures: recovery, missing cells, solvers, likelihood by enumeration."""

import itertools
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from thirdmoment import CategoricalMixture
from thirdmoment.datasets import make_categorical_mixture
from thirdmoment.exceptions import InvalidInput, UnusableMoments
from thirdmoment.likelihood.categories import Categories, distinct_rows
from thirdmoment.metrics import align
from thirdmoment.refinement.mixture import mixture_em
from thirdmoment.starts.categorical import coded_chunks

SOLVERS = ["tensor", "power", "eig", "schur", "joint-schur", "joint"]


def tables(model):
    return np.concatenate(model.probabilities_, axis=1)


def squared_error(found, truth):
    order = align(found, truth, metric="sqeuclidean")
    return float(((found[order] - truth) ** 2).sum())


def exact_table(data, sizes):
    """Every row with its probability under the truth as a weight."""
    cuts = np.cumsum(sizes)[:-1]
    laws = np.split(data.means, cuts, axis=1)
    rows = np.array(list(itertools.product(*(range(d) for d in sizes))))
    p = sum(
        w * np.prod([laws[v][j, rows[:, v]] for v in range(len(sizes))], axis=0)
        for j, w in enumerate(data.weights)
    )
    return rows, p


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
@pytest.mark.parametrize("weighting", ["auto", "none"])
def test_the_exact_law_gives_the_tables_back(solver, weighting):
    data = make_categorical_mixture(10, 5, 3, random_state=1)
    rows, p = exact_table(data, (5, 5, 5))
    model = CategoricalMixture(3, solver=solver, refine="none", weighting=weighting)
    model.fit(rows, sample_weight=p)
    order = align(tables(model), data.means)
    np.testing.assert_allclose(tables(model)[order], data.means, atol=1e-8)
    np.testing.assert_allclose(model.weights_[order], data.weights, atol=1e-8)


def test_the_exact_law_of_five_columns_gives_the_tables_back():
    data = make_categorical_mixture(10, 3, 4, n_columns=5, random_state=2)
    rows, p = exact_table(data, (3,) * 5)
    model = CategoricalMixture(4, refine="none").fit(rows, sample_weight=p)
    assert squared_error(tables(model), data.means) < 1e-12


def test_scores_are_logarithms_of_probabilities_that_sum_to_one():
    data = make_categorical_mixture(500, 4, 3)
    model = CategoricalMixture(3, n_categories=4).fit(data.X)
    every = np.array(list(itertools.product(range(4), repeat=3)))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.predict_proba(every).sum(axis=1), 1.0)
    missing = np.array([[1.0, np.nan, 2.0]])
    marginal = sum(np.exp(model.score_samples([[1, c, 2]])[0]) for c in range(4))
    assert np.exp(model.score_samples(missing)[0]) == pytest.approx(marginal)


@pytest.mark.parametrize("seed", range(3))
def test_the_default_reaches_em_from_the_truth(seed):
    data = make_categorical_mixture(10_000, 10, 5, random_state=seed)
    model = CategoricalMixture(5).fit(data.X)
    sizes = np.full(3, 10)
    rows = distinct_rows(data.X, np.ones(len(data.X)), sizes)
    family = Categories(sizes, 0.0)
    oracle = mixture_em(
        family, coded_chunks(rows), (data.weights, data.means), tol=1e-6, max_steps=500
    )
    limit = squared_error(oracle.parameters[1], data.means)
    assert squared_error(tables(model), data.means) < 1.15 * limit


def test_distinct_rows_keep_every_weight():
    codes = np.array([[0, 1], [2, 1], [0, 1], [-1, 0]])
    table = distinct_rows(codes, np.array([1.0, 2.0, 3.0, 4.0]), np.array([3, 2]))
    found = {tuple(row): count for row, count in zip(table.codes, table.counts, strict=True)}
    assert found == {(0, 1): 4.0, (2, 1): 2.0, (-1, 0): 4.0}


def test_missing_cells_cost_little():
    data = make_categorical_mixture(20_000, 5, 3, n_columns=6, random_state=3)
    X = data.X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    full, holes = CategoricalMixture(3).fit(data.X), CategoricalMixture(3).fit(X)
    limit = squared_error(tables(full), data.means)
    assert squared_error(tables(holes), data.means) < 2 * limit
    raw = CategoricalMixture(3, refine="none").fit(X)
    assert squared_error(tables(raw), data.means) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_few_binary_items_need_no_moments(seed):
    """Seven items do not show four classes in three groups; other starts reach EM at the truth."""
    data = make_categorical_mixture(5000, 2, 4, n_columns=7, concentration=0.3, random_state=seed)
    with pytest.raises(UnusableMoments, match="rank"):
        CategoricalMixture(4, refine="none").fit(data.X)
    found = [
        CategoricalMixture(4, prior_count=0.01, random_state=state).fit(data.X).lower_bound_
        for state in range(5)
    ]
    sizes = np.full(7, 2)
    rows = distinct_rows(data.X, np.ones(len(data.X)), sizes)
    family, start = Categories(sizes, 0.01), (data.weights, data.means)
    oracle = mixture_em(family, coded_chunks(rows), start, tol=1e-6, max_steps=2000)
    behind = 5000 * (oracle.path[-1] - np.array(found))  # units of log-likelihood
    assert np.sum(behind < 0.1) >= 4  # one fit of forty misses it


def test_crowd_labels_beat_the_majority():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=2_000)
    skill = rng.uniform(0.3, 0.95, size=40)
    right = rng.random((2_000, 40)) < skill
    guess = (truth[:, None] + rng.integers(1, 3, size=(2_000, 40))) % 3
    labels = np.where(right, truth[:, None], guess).astype(float)
    labels[rng.random(labels.shape) < 0.85] = np.nan  # six labels an item
    model = CategoricalMixture(3, n_categories=3).fit(labels)
    votes = np.stack([(labels == c).sum(axis=1) for c in range(3)], axis=1)
    found = model.predict(labels)
    table = np.array([[np.mean(votes[found == j].argmax(axis=1) == c) for c in range(3)]
                      for j in range(3)])  # fmt: skip
    name = table.argmax(axis=1)
    assert sorted(name) == [0, 1, 2]
    assert np.mean(name[found] != truth) < 0.8 * np.mean(votes.argmax(axis=1) != truth)


def test_weights_count_rows():
    data = make_categorical_mixture(300, 4, 3)
    w = np.random.default_rng(0).integers(0, 4, size=300)
    weighted = CategoricalMixture(3, n_categories=4).fit(data.X, sample_weight=w)
    repeated = CategoricalMixture(3, n_categories=4).fit(np.repeat(data.X, w, axis=0))
    np.testing.assert_allclose(tables(weighted), tables(repeated), rtol=1e-6, atol=1e-9)


def test_constant_columns_and_unseen_categories_are_harmless():
    data = make_categorical_mixture(2_000, 4, 2)
    X = np.concatenate([data.X, np.zeros((2_000, 1), dtype=int)], axis=1)
    model = CategoricalMixture(2, n_categories=[4, 4, 6, 1]).fit(X)
    assert [p.shape for p in model.probabilities_] == [(2, 4), (2, 4), (2, 6), (2, 1)]
    for law in model.probabilities_:
        np.testing.assert_allclose(law.sum(axis=1), 1.0)
        assert law.min() >= 0
    assert np.isfinite(model.score_samples([[0, 0, 5, 0]])).all()


def test_two_columns_start_otherwise_and_say_so():
    X = make_categorical_mixture(500, 4, 2).X[:, :2]
    model = CategoricalMixture(2).fit(X)
    assert any("fewer than three" in text for text in model.report_.warnings)
    with pytest.raises(UnusableMoments, match="fewer than three"):
        CategoricalMixture(2, refine="none").fit(X)


def test_codes_beyond_those_of_the_fit_are_named():
    model = CategoricalMixture(2).fit(make_categorical_mixture(500, 3, 2).X)
    with pytest.raises(InvalidInput, match="Column 1 has the code 7"):
        model.predict([[0, 7, 1]])
    with pytest.raises(InvalidInput, match="n_categories allows only codes up to 1"):
        CategoricalMixture(2, n_categories=2).fit([[0, 2, 1], [1, 1, 0]])


def test_batches_give_what_fit_gives():
    X = make_categorical_mixture(3_000, 4, 3).X
    whole = CategoricalMixture(3, n_categories=4).fit(X)
    parts = CategoricalMixture(3, n_categories=4)
    for batch in np.array_split(X, 3):
        parts.partial_fit(batch)
    np.testing.assert_allclose(tables(parts), tables(whole), rtol=1e-10)
    more = CategoricalMixture(3, n_categories=4).partial_fit(X)
    for _ in range(4):
        more.partial_fit(X)
    assert more.n_seen_ == 15_000
    assert abs(more.score(X) - whole.score(X)) < 0.01


def test_samples_follow_the_tables():
    model = CategoricalMixture(2).fit(make_categorical_mixture(1_000, 3, 2).X)
    X, labels = model.sample(20_000)
    for j, v in itertools.product(range(2), range(3)):
        share = np.bincount(X[labels == j, v], minlength=3) / np.sum(labels == j)
        np.testing.assert_allclose(share, model.probabilities_[v][j], atol=0.02)


def test_the_noise_of_merged_rows_is_that_of_single_rows():
    """Four times the rows halve it, though nearly all of them are merged."""
    noise = {n: [] for n in (5000, 20_000)}
    for n, seed in itertools.product(noise, (4, 5, 6)):
        data = make_categorical_mixture(n, 5, 3, random_state=seed)
        noise[n].append(CategoricalMixture(3).fit(data.X).report_.noise)
    assert np.mean(noise[20_000]) == pytest.approx(np.mean(noise[5000]) / 2, rel=0.2)


def test_codes_that_start_at_one_cost_no_parameters():
    X = make_categorical_mixture(1_000, 3, 2).X
    from_zero, from_one = CategoricalMixture(2).fit(X), CategoricalMixture(2).fit(X + 1)
    assert from_one.bic(X + 1) == pytest.approx(from_zero.bic(X), rel=1e-3)
    assert from_one._n_parameters() == from_zero._n_parameters()


def test_new_categories_may_come_while_rows_are_kept():
    X = make_categorical_mixture(400, 4, 2).X
    first, second = X[X.max(axis=1) < 3], X[X.max(axis=1) == 3]
    model = CategoricalMixture(2).partial_fit(first).partial_fit(second)
    assert model.n_categories_.max() == 4


def test_columns_with_thousands_of_categories_still_start():
    X = np.random.default_rng(0).integers(0, 20_000, size=(300, 2))
    model = CategoricalMixture(2).fit(X)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([4, 4], "has 2 entries, but X has 3 columns"),
        (2.7, "must be a positive integer"),
        ("a", "must be a positive integer"),
        (0, "must be a positive integer"),
    ],
)
def test_numbers_of_categories_are_checked(given, message):
    with pytest.raises(InvalidInput, match=message):
        CategoricalMixture(2, n_categories=given).fit(make_categorical_mixture(50, 4, 2).X)


def test_enormous_codes_and_words_get_the_same_advice():
    with pytest.raises(InvalidInput, match="OrdinalEncoder"):
        CategoricalMixture(2).fit([[0, 1, 10**9], [1, 0, 2], [0, 0, 1]])
    with pytest.raises(InvalidInput, match="OrdinalEncoder"):
        CategoricalMixture(2).fit(np.array([["a", "b", "c"], ["b", "c", "a"]], dtype=object))


def test_cells_that_go_missing_together_do_not_bias_the_moments():
    data = make_categorical_mixture(20_000, 5, 3, random_state=6)
    X = data.X.astype(float)
    X[np.random.default_rng(1).random(len(X)) < 0.4, :2] = np.nan
    together = CategoricalMixture(3, refine="none").fit(X)
    apart = data.X.astype(float)
    apart[np.random.default_rng(2).random(apart.shape) < 0.3] = np.nan
    independent = CategoricalMixture(3, refine="none").fit(apart)
    errors = [squared_error(tables(m), data.means) for m in (together, independent)]
    assert errors[0] < 3 * errors[1]
    assert errors[0] < 0.05


def test_the_error_of_the_moments_falls_like_one_over_root_n():
    errors = []
    for n in (5_000, 80_000):
        runs = [make_categorical_mixture(n, 6, 3, random_state=seed) for seed in range(6)]
        fits = [CategoricalMixture(3, refine="none").fit(data.X) for data in runs]
        pairs = zip(fits, runs, strict=True)
        errors.append(np.mean([squared_error(tables(m), data.means) ** 0.5 for m, data in pairs]))
    assert -0.7 < np.log(errors[1] / errors[0]) / np.log(16) < -0.35


def test_names_of_categories_and_the_order_of_rows_do_not_matter():
    data = make_categorical_mixture(4_000, 5, 3, random_state=7)
    plain = CategoricalMixture(3).fit(data.X)
    rng = np.random.default_rng(0)
    shuffled = CategoricalMixture(3).fit(data.X[rng.permutation(4_000)])
    np.testing.assert_allclose(tables(shuffled), tables(plain), atol=1e-3)
    swap = rng.permutation(5)
    renamed = CategoricalMixture(3).fit(swap[data.X])
    for law, other in zip(plain.probabilities_, renamed.probabilities_, strict=True):
        np.testing.assert_allclose(other[:, swap], law, atol=5e-3)


def test_a_crowd_needs_no_number_of_categories_and_may_count_from_one():
    rng = np.random.default_rng(1)
    truth = rng.integers(4, size=1_000)
    skill = rng.uniform(0.4, 0.95, size=50)
    wrong = (truth[:, None] + rng.integers(1, 4, size=(1_000, 50))) % 4
    labels = np.where(rng.random((1_000, 50)) < skill, truth[:, None], wrong).astype(float)
    labels[rng.random(labels.shape) > 0.12] = np.nan
    labels[:, :5] = np.where(labels[:, :5] == 3, np.nan, labels[:, :5])  # five never say 3
    plain = CategoricalMixture(4, n_categories=4).fit(labels)
    assert (
        np.mean(plain.predict(labels) == CategoricalMixture(4).fit(labels).predict(labels)) > 0.98
    )
    from_one = CategoricalMixture(4).fit(labels + 1)
    assert np.mean(plain.predict(labels) == from_one.predict(labels + 1)) > 0.98


@pytest.mark.parametrize("seed", [2, 8, 10])
def test_small_tables_end_no_lower_than_ten_random_starts(seed):
    """One start from spread-out rows ended 11 to 24 units lower in these sets."""
    rng = np.random.default_rng(seed)
    p = rng.random((4, 10))
    label = rng.choice(4, 500, p=rng.dirichlet(np.full(4, 5.0)))
    X = (rng.random((500, 10)) < p[label]).astype(int)
    found = CategoricalMixture(4).fit(X).lower_bound_
    for _ in range(10):
        ones = rng.random((10, 4))
        tables = [np.stack([1 - row, row], axis=1) for row in ones]
        start = CategoricalMixture(4, n_starts=0, probabilities_init=tables).fit(X)
        assert 500 * (found - start.lower_bound_) > -0.2


def test_cost_follows_the_cells_not_the_categories():
    rng = np.random.default_rng(0)
    few = make_categorical_mixture(20_000, 40, 3, random_state=0).X
    X = few * 50 + rng.integers(50, size=few.shape)  # 2,000 categories in three columns
    CategoricalMixture(2, max_refine_iter=2).fit(X[:50])  # compile first
    tracemalloc.start()
    CategoricalMixture(3, n_starts=2, tol=100).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.15e9  # all categories of all rows would be 0.96e9 bytes, once


def test_many_categories_are_told_apart_as_few_are():
    data = make_categorical_mixture(3000, 400, 3, n_columns=5, concentration=0.1, random_state=1)
    model = CategoricalMixture(3, n_starts=4).fit(data.X)
    assert adjusted_rand_score(data.labels, model.predict(data.X)) > 0.99
