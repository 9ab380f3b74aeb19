"""Every model that learns from sums: rows of a source, or of Dask, as those in memory."""

import numpy as np
import pytest

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models import code_look, tables
from thirdmoment.models.hmm import source as sequences
from thirdmoment.streaming import Chunk

da = pytest.importorskip("dask.array", reason="dask is not installed")

VIEWS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
RNG = np.random.default_rng(0)
CLOUDS = tm.datasets.make_gaussian_mixture(6000, 12, 3, random_state=1).X
CODES = tm.datasets.make_categorical_mixture(6000, 5, 3, n_columns=5, random_state=1).X.astype(
    float
)
HOLES = np.where(RNG.random(CODES.shape) < 0.1, np.nan, CODES)
SKEWED = RNG.exponential(size=(6000, 3)) @ RNG.standard_normal((3, 6))
LINES = RNG.standard_normal((6000, 4)) + 3
SLOPES = RNG.standard_normal((3, 4))[RNG.integers(3, size=6000)]
HEIGHTS = (LINES * SLOPES).sum(axis=1) + 0.3 * RNG.standard_normal(6000)


def chain(n=6000, k=3):
    T = 0.3 * RNG.dirichlet(np.ones(k), size=k) + 0.7 * np.eye(k)
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = RNG.choice(k, p=T[states[t - 1]])
    return states


STATES = chain()
LENGTHS = np.array([400, 7, 993, 600, 2, 1998, 1000, 1000])
SEEN = RNG.normal(size=(3, 4))[STATES] * 3 + RNG.normal(size=(6000, 4))
SYMBOLS = ((STATES + (RNG.random(6000) < 0.2) * RNG.integers(7, size=6000)) % 7)[:, None].astype(
    float
)
PAIRS = np.column_stack([SYMBOLS[:, 0] % 3, SYMBOLS[:, 0] // 3])
MARKS = (RNG.random((6000, 4)) < RNG.random((3, 4))[STATES]).astype(float)

# name: model, rows, what comes with them
FITS = {
    **{
        kind: (tm.GaussianMixture(3, covariance_type=kind, views=VIEWS), CLOUDS, {})
        for kind in ("spherical", "diag", "block", "full", "tied")
    },
    "plain": (tm.GaussianMixture(3, covariance_type="diag", weighting="none"), CLOUDS, {}),
    "views": (tm.MultiViewMixture(3, views=VIEWS), CLOUDS, {}),
    "free views": (tm.MultiViewMixture(3), CLOUDS, {}),
    "products": (tm.MultiViewMixture(3, views=VIEWS, lift=2), CLOUDS, {}),
    "codes": (tm.CategoricalMixture(3), CODES, {}),
    "missing": (tm.CategoricalMixture(3), HOLES, {}),
    "factors": (tm.IndependentFactors(3), SKEWED, {}),
    "kurtosis": (tm.IndependentFactors(3, order=4), SKEWED, {}),
    "regressions": (tm.MixedLinearRegression(3), LINES, {"y": HEIGHTS}),
    "vectors": (tm.GaussianHMM(3), SEEN, {"lengths": LENGTHS}),
    "full vectors": (tm.GaussianHMM(3, covariance_type="full"), SEEN, {"lengths": LENGTHS}),
    "symbols": (tm.CategoricalHMM(3), SYMBOLS, {"lengths": LENGTHS}),
    "pairs": (tm.CategoricalHMM(3), PAIRS, {"lengths": LENGTHS}),
    "marks": (tm.BernoulliHMM(3), MARKS, {"lengths": LENGTHS}),
}


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """So that even small data is streamed."""
    monkeypatch.setattr(tables, "SAMPLED", 1500)
    monkeypatch.setattr(sequences, "SAMPLED", 1500)
    monkeypatch.setattr(code_look, "MOST_KEPT", 100)


def in_chunks(rows, size):
    return tm.source(lambda: (rows[i : i + size] for i in range(0, len(rows), size)))


def learned(model):
    """All fitted numbers of a model."""
    names = ("weights_", "means_", "covariances_", "covars_", "probabilities_", "components_",
             "coef_", "intercept_", "noise_variance_", "startprob_", "transmat_",
             "emissionprob_", "skewness_")  # fmt: skip
    found = []
    for name in names:
        value = getattr(model, name, None)
        found += list(value) if isinstance(value, list) else [] if value is None else [value]
    return [np.asarray(value) for value in found]


def moments(model):
    return type(model)(**{**model.get_params(), "refine": "none"})


def close(one, other, atol):
    for a, b in zip(learned(one), learned(other), strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


@pytest.mark.parametrize("name", FITS)
def test_moments_are_those_of_the_rows_in_memory(name):
    model, X, more = FITS[name]
    plain = moments(model).fit(X, **more)
    for size, atol in ((1000, 1e-9), (377, 1e-7)):
        found = moments(model).fit(in_chunks(X, size), **more)
        close(plain, found, atol)
        assert found.n_features_in_ == X.shape[1]
    passes = found.report_.details["stream_passes"]
    assert all(one["seconds"] > 0 and one["bytes"] > 0 for one in passes)


@pytest.mark.parametrize("name", FITS)
def test_moments_of_dask_blocks_are_those_in_memory(name):
    model, X, more = FITS[name]
    edges = (1000, 2000, 4000, 6000) if "lengths" not in more else (1400, 2000, 4000, 6000)
    blocks = tuple(np.diff([0, *edges]).tolist())
    plain = moments(model).fit(X, **more)
    found = moments(model).fit(da.from_array(X, chunks=(blocks, X.shape[1])), **more)
    close(plain, found, 1e-9)


@pytest.mark.parametrize("name", [name for name in FITS if hasattr(FITS[name][0], "score")])
def test_refined_fits_are_nearly_as_likely(name):
    model, X, more = FITS[name]
    plain = type(model)(**model.get_params()).fit(X, **more)
    found = type(model)(**model.get_params()).fit(in_chunks(X, 1000), **more)
    alone = {key: value[:2000] if key == "y" else value[:4] for key, value in more.items()}
    part = type(model)(**model.get_params()).fit(X[:2000], **alone)
    scores = [one.score(X, **more) for one in (plain, found, part)]
    assert scores[1] == pytest.approx(scores[0], rel=5e-3)
    assert scores[1] > scores[2] - 1e-9


def test_few_distinct_codes_are_kept_and_give_the_same_answer(monkeypatch):
    monkeypatch.setattr(code_look, "MOST_KEPT", 10**6)
    plain = tm.CategoricalMixture(3).fit(HOLES)
    found = tm.CategoricalMixture(3).fit(in_chunks(HOLES, 700))
    for a, b in zip(learned(plain), learned(found), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(found.report_.details["stream_passes"]) == 1


def test_small_sources_are_read_into_memory():
    for name in ("diag", "factors", "regressions", "symbols"):
        model, X, more = FITS[name]
        few = {key: value[:500] if key == "y" else [400, 100] for key, value in more.items()}
        plain = type(model)(**model.get_params()).fit(X[:500], **few)
        found = type(model)(**model.get_params()).fit(in_chunks(X[:500], 130), **few)
        for a, b in zip(learned(plain), learned(found), strict=True):
            np.testing.assert_array_equal(a, b)


def test_without_lengths_a_chunk_is_a_sequence():
    found = tm.GaussianHMM(3, refine="none").fit(in_chunks(SEEN, 750))
    plain = tm.GaussianHMM(3, refine="none").fit(SEEN, lengths=[750] * 8)
    close(plain, found, 1e-9)
    assert found.report_.details["sequences"] == 8


BAD = [
    (lambda: tm.GaussianMixture(3).fit(in_chunks(CLOUDS, 1000), sample_weight=np.ones(6000)),
     "leave sample_weight out"),
    (lambda: tm.CategoricalMixture(3).fit(in_chunks(CODES + 0.5, 1000)), r"has the value \d.5"),
    (lambda: tm.CategoricalMixture(3).fit(in_chunks(-1 - CODES, 1000)), "Negative values"),
    (lambda: tm.CategoricalHMM(3).fit(in_chunks(HOLES, 1000)), "holds NaN"),
    (lambda: tm.GaussianHMM(3).fit(in_chunks(SEEN, 1000), lengths=[10, 20]), "adds up to 30"),
    (lambda: tm.MixedLinearRegression(3).fit(in_chunks(LINES, 999), HEIGHTS[:-1]),
     "5999 entries, but The callable has more than 5999 rows"),
    (lambda: tm.MixedLinearRegression(3).fit(in_chunks(LINES, 999), np.append(HEIGHTS, 0)),
     "6001 entries, but The callable has 6000 rows"),
    (lambda: tm.GaussianMixture(3).fit(in_chunks(CLOUDS * 1e160, 1000)), "can be used between"),
    (lambda: tm.GaussianHMM(3).fit(in_chunks(SEEN * 1e160, 1000)), "can be used between"),
    (lambda: tm.GaussianHMM(3).fit(in_chunks(SEEN, 1000), lengths=[3000, 3010]),
     "adds up to 6010"),
    (lambda: tm.GaussianHMM(3).fit(da.from_array(SEEN, chunks=(1000, 4)), lengths=LENGTHS),
     "ends within a sequence"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_a_source_cannot_be_is_said(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


def test_sparse_rows_are_for_models_that_take_them():
    import scipy.sparse as sp

    rows = sp.csr_array(np.maximum(CLOUDS, 0))
    source = tm.source(rows)
    with pytest.raises(InvalidInput, match="sparse rows"):
        tm.GaussianMixture(3).fit(source)
    plain = tm.MultiViewMixture(3, views=VIEWS).fit(rows)
    found = tm.MultiViewMixture(3, views=VIEWS).fit(source)
    close(plain, found, 0)


def test_subspaces_of_a_source_are_nearly_those_of_all_rows():
    rng = np.random.default_rng(1)
    bases = [np.linalg.qr(rng.normal(size=(10, 2)))[0] for _ in range(3)]
    labels = rng.integers(3, size=6000)
    X = np.stack([bases[h] @ rng.normal(size=2) for h in labels]) + 0.1 * rng.normal(
        size=(6000, 10)
    )
    plain = tm.SubspaceClustering(3, 2).fit(X)
    found = tm.SubspaceClustering(3, 2).fit(in_chunks(X, 700))
    part = tm.SubspaceClustering(3, 2).fit(X[:1500])
    scores = [model.score(X) for model in (plain, found, part)]
    assert scores[1] == pytest.approx(scores[0], rel=1e-3)
    assert scores[1] > scores[2]
    np.testing.assert_allclose(found.weights_, plain.weights_, atol=0.01)
    assert not hasattr(found, "labels_")
    assert [one["what"] for one in found.report_.details["stream_passes"]].count("FlatSums") > 1
    affine = tm.SubspaceClustering(3, 2, affine=True).fit(in_chunks(X + 5, 700))
    assert affine.score(X + 5) == pytest.approx(scores[0], rel=0.05)


def test_densities_of_a_source_are_nearly_those_of_all_rows():
    rng = np.random.default_rng(2)
    X = rng.gamma(2.0, size=(6000, 4)) + 3 * rng.integers(2, size=(6000, 1))
    plain = tm.KernelMixture(2).fit(X)
    found = tm.KernelMixture(2).fit(in_chunks(X, 700))
    part = tm.KernelMixture(2).fit(X[:1500])
    scores = [model.score(X) for model in (plain, found, part)]
    assert scores[1] == pytest.approx(scores[0], rel=5e-3)
    assert scores[1] > scores[2]
    np.testing.assert_allclose(found.weights_, plain.weights_, atol=0.02)
    assert found.report_.details["stream_passes"][0]["what"] == "TableLook"


@pytest.mark.parametrize("name", [name for name in FITS if "y" not in FITS[name][2]])
def test_what_is_fitted_to_a_source_predicts_for_one(name):
    model, X, more = FITS[name]
    fitted = moments(model).fit(in_chunks(X, 1000), **more)
    predict = getattr(fitted, "predict_proba", None) or fitted.transform
    np.testing.assert_array_equal(predict(in_chunks(X, 900), **more), predict(X, **more))


def test_chunks_are_sequences_in_scores_too():
    model = tm.GaussianHMM(3).fit(in_chunks(SEEN, 750))
    expected = model.score(SEEN, lengths=[750] * 8)
    assert model.score(in_chunks(SEEN, 750)) == pytest.approx(expected)
    assert model.lower_bound_ == pytest.approx(expected, rel=1e-3)


def test_names_of_frames_come_along():
    import dask.dataframe as dd
    import pandas as pd

    frame = pd.DataFrame(CLOUDS, columns=[f"c{j}" for j in range(12)])
    frame["c3"] = frame["c3"] > 0  # columns of several kinds
    plain = tm.GaussianMixture(3, covariance_type="diag", refine="none").fit(frame)
    for rows in (frame, frame[:900]):
        lazy = dd.from_pandas(rows, npartitions=4)
        found = tm.GaussianMixture(3, covariance_type="diag", refine="none").fit(lazy)
        assert list(found.feature_names_in_) == list(frame.columns)
        with pytest.raises(ValueError, match="feature names"):
            found.predict(frame[frame.columns[::-1]])
    close(plain, tm.GaussianMixture(3, covariance_type="diag", refine="none").fit(
        dd.from_pandas(frame, npartitions=4)), 1e-9)  # fmt: skip
    lines = pd.DataFrame(np.column_stack([LINES, HEIGHTS]), columns=list("abcdy"))
    lazy = dd.from_pandas(lines, npartitions=5)
    here = tm.MixedLinearRegression(3, refine="none").fit(lines[list("abcd")], lines["y"])
    there = tm.MixedLinearRegression(3, refine="none").fit(lazy[list("abcd")], lazy["y"])
    close(here, there, 1e-9)
    chunks = tm.source(lambda: iter([frame[:500], frame[500:][frame.columns[::-1]]]))
    with pytest.raises(InvalidInput, match="other columns than those before"):
        tm.GaussianMixture(3).fit(chunks)


def test_tiny_values_in_a_chunk_are_no_tiny_column():
    rows = CLOUDS.copy()
    rows[17, 2] = 1e-200
    close(tm.GaussianMixture(3, refine="none").fit(rows),
          tm.GaussianMixture(3, refine="none").fit(in_chunks(rows, 1)), 1e-7)  # fmt: skip


def test_a_scheduler_that_is_chosen_is_used_beside_a_client():
    distributed = pytest.importorskip("distributed")
    import dask

    model = tm.GaussianMixture(3, refine="none")
    plain = tm.GaussianMixture(3, refine="none").fit(CLOUDS)
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1):
        with dask.config.set(scheduler="threads"):
            close(plain, model.fit(da.from_array(CLOUDS, chunks=(1500, 12))), 1e-9)
        close(plain, model.fit(da.from_array(CLOUDS, chunks=(1500, 12))), 1e-9)


def test_many_small_chunks_of_codes_are_sorted_seldom(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(20, size=(20_000, 5))
    look = code_look.CodeLook(5)
    merges = []
    merge = look._merge
    look._merge = lambda: (merges.append(1), merge())[1]
    monkeypatch.setattr(code_look, "MOST_KEPT", 10**7)
    for a in range(0, 20_000, 5):
        look.update(Chunk(codes[a : a + 5], a))
    assert len(merges) < 10
    assert look.table.counts.sum() == 20_000


def test_codes_that_are_a_mistake_are_refused_before_they_are_counted():
    with pytest.raises(InvalidInput, match="taken for a mistake"):
        tm.CategoricalMixture(3).fit(in_chunks(np.where(CODES == 0, 1e9, CODES), 1000))


def test_targets_must_be_there():
    with pytest.raises(InvalidInput, match="requires y"):
        tm.MixedLinearRegression(3).fit(in_chunks(LINES, 1000), None)
    with pytest.raises(InvalidInput, match="no numbers"):
        tm.MixedLinearRegression(3).fit(in_chunks(LINES, 1000), HEIGHTS.astype(str))


def test_blocks_of_files_are_no_sequences_and_batches_are_no_sources(tmp_path):
    np.save(tmp_path / "a.npy", SEEN)
    rows = tm.source(tmp_path / "a.npy")
    with pytest.raises(InvalidInput, match="does not say where sequences end"):
        tm.GaussianHMM(3).fit(rows)
    one = tm.GaussianHMM(3, refine="none").fit(rows, lengths=[6000])
    close(tm.GaussianHMM(3, refine="none").fit(SEEN), one, 1e-9)
    for model in (tm.GaussianMixture(3), tm.GaussianHMM(3), tm.LatentDirichletAllocation(3)):
        with pytest.raises(InvalidInput, match="partial_fit takes one batch"):
            model.partial_fit(rows)
    with pytest.raises(InvalidInput, match=r"give thirdmoment.source"):
        tm.GaussianMixture(3).fit(str(tmp_path / "a.npy"))
    with pytest.raises(InvalidInput, match="no rows at all"):
        tm.GaussianMixture(3).fit(tm.source(lambda: iter([SEEN[:0]])))
