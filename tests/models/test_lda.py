"""Latent Dirichlet allocation: recovery, refinement, boundary."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment import LatentDirichletAllocation
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.decomposition import SOLVERS
from thirdmoment.exceptions import InvalidInput, RankDeficientMoment
from thirdmoment.likelihood.documents import split_counts
from thirdmoment.metrics import align, recovery_error
from thirdmoment.models.topics.estimator import cut


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(3000, 200, 4, mean_length=50, random_state=1)


@pytest.fixture(scope="module")
def fitted(corpus):
    return LatentDirichletAllocation(4).fit(corpus.X)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_topics(corpus, solver):
    model = LatentDirichletAllocation(4, solver=solver, refine="none", concentration=1.0).fit(
        corpus.X
    )
    # every topic is nearer to its own truth than a third of the distance between topics
    apart = np.abs(corpus.topics[:, None] - corpus.topics[None]).sum(axis=2)
    closest = apart[~np.eye(4, dtype=bool)].min()
    order = align(model.components_, corpus.topics)
    error = np.abs(model.components_[order] - corpus.topics).sum(axis=1)
    assert error.max() < closest / 3


def test_the_plain_estimator_falls_like_one_over_root_n():
    """Three sizes, a factor of 16 in all: the error falls fourfold, give or take a quarter."""
    sizes, errors = (1000, 4000, 16_000), []
    for n in sizes:
        each = []
        for seed in range(3):
            data = make_lda_corpus(n, 100, 3, mean_length=40, random_state=seed)
            model = LatentDirichletAllocation(
                3, refine="none", weighting="none", concentration=1.0
            ).fit(data.X)
            each.append(recovery_error(model.components_, data.topics))
        errors.append(np.mean(each))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35


def test_weighting_lowers_the_error():
    """Words scaled for even noise: lower error on average over corpora, same expectation."""
    plain, weighted = [], []
    for seed in range(5):
        data = make_lda_corpus(4000, 500, 5, mean_length=60, random_state=seed)
        for weighting, errors in (("none", plain), ("auto", weighted)):
            model = LatentDirichletAllocation(
                5, refine="none", weighting=weighting, concentration=1.0
            ).fit(data.X)
            errors.append(recovery_error(model.components_, data.topics))
    assert np.mean(weighted) < np.mean(plain)


def test_plug_in_moments_do_not_find_the_topics():
    """Second moments without the same-token correction, as other packages form them, are biased.

    The plug-in Pairs of short documents keeps its bias however many documents there are; the
    unbiased one does not.
    """
    data = make_lda_corpus(20_000, 60, 3, mean_length=8, random_state=0)
    F = data.X.multiply(1 / data.X.sum(axis=1)[:, None]).tocsr()
    mu = np.asarray(F.mean(axis=0)).ravel()
    plug_in = (F.T @ F).toarray() / F.shape[0] - 0.5 * np.outer(mu, mu)
    _, vectors = np.linalg.eigh(plug_in)
    U = np.linalg.svd(data.topics.T, full_matrices=False)[0]
    outside = np.linalg.norm(vectors[:, -3:] - U @ (U.T @ vectors[:, -3:]), 2)
    model = LatentDirichletAllocation(3, refine="none", weighting="none", concentration=1.0).fit(
        data.X
    )
    Q = np.linalg.qr(model.components_.T)[0]
    ours = np.linalg.norm(Q - U @ (U.T @ Q), 2)
    assert ours < outside / 2


@pytest.mark.parametrize(("true", "within"), [(1.0, 0.15), (5.0, 0.15), (0.1, 0.35)])
def test_auto_recovers_the_concentration(true, within):
    data = make_lda_corpus(20_000, 2000, 10, concentration=true, random_state=7)
    model = LatentDirichletAllocation(10, refine="none").fit(data.X)
    assert model.concentration_.sum() == pytest.approx(true, rel=within)


def test_the_path_ends_with_the_best_check(fitted):
    path = fitted.report_.refine_path
    assert path[-1] == max(path[1:])


def test_refined_topics_are_at_least_as_good(corpus, fitted):
    plain = LatentDirichletAllocation(4, refine="none").fit(corpus.X)
    ours = recovery_error(fitted.components_, corpus.topics)
    assert ours <= 1.02 * recovery_error(plain.components_, corpus.topics)


def test_parameters_are_valid_probabilities(fitted):
    assert fitted.components_.min() > 0  # no word is impossible after refinement
    np.testing.assert_allclose(fitted.components_.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(fitted.weights_.sum(), 1)
    assert np.all(fitted.concentration_ > 0)
    assert np.all(np.diff(fitted.weights_) <= 0)  # heaviest first


def test_proportions_are_valid_and_follow_the_truth(corpus, fitted):
    H = fitted.transform(corpus.X)
    np.testing.assert_allclose(H.sum(axis=1), 1, atol=1e-12)
    assert H.min() >= 0
    order = align(fitted.components_, corpus.topics)
    assert np.corrcoef(H[:, order].ravel(), corpus.proportions.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_the_answer_does_not_depend_on_the_number_of_threads(corpus, fitted, n_jobs):
    again = LatentDirichletAllocation(4, n_jobs=n_jobs).fit(corpus.X)
    np.testing.assert_array_equal(again.components_, fitted.components_)
    np.testing.assert_array_equal(again.concentration_, fitted.concentration_)


def test_single_precision_in_and_out(corpus, fitted):
    model = LatentDirichletAllocation(4).fit(corpus.X.astype(np.float32))
    assert model.components_.dtype == model.transform(corpus.X[:3].astype(np.float32)).dtype
    assert model.components_.dtype == np.float32
    np.testing.assert_allclose(model.components_, fitted.components_, atol=1e-6)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, lambda X: X.toarray()])
def test_every_form_of_input_gives_the_same_answer(corpus, fitted, form):
    model = LatentDirichletAllocation(4).fit(form(corpus.X))
    np.testing.assert_allclose(model.components_, fitted.components_, atol=1e-12)


def test_read_only_memory_map_is_accepted(tmp_path, corpus, fitted):
    np.save(tmp_path / "counts.npy", corpus.X.toarray())
    X = np.load(tmp_path / "counts.npy", mmap_mode="r")
    model = LatentDirichletAllocation(4).fit(X)
    np.testing.assert_allclose(model.components_, fitted.components_, atol=1e-12)


def test_saved_models_come_back_and_foreign_layouts_are_refused(corpus, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(corpus.X[:5]), fitted.transform(corpus.X[:5]))
    state = fitted.__getstate__()
    state["_saved_layout"] = 0
    with pytest.raises(InvalidInput, match="saved with layout 0, but this release"):
        LatentDirichletAllocation().__setstate__(state)


def test_scores_prefer_the_right_model(corpus, fitted):
    other = make_lda_corpus(500, 200, 4, mean_length=50, random_state=9)
    assert fitted.score(corpus.X) > fitted.score(other.X)
    assert fitted.perplexity(corpus.X) < fitted.perplexity(other.X)
    assert fitted.score(corpus.X) == pytest.approx(-np.log(fitted.perplexity(corpus.X)))


def test_scores_complete_documents_split_by_their_content(corpus, fitted):
    each = fitted.score_samples(corpus.X)
    order = np.random.default_rng(0).permutation(3000)[:100]
    np.testing.assert_allclose(fitted.score_samples(corpus.X[order]), each[order], rtol=1e-12)
    # no word is predicted from itself: a word's own count is worth nothing alone
    alone = sp.csr_array(np.eye(200)[:20] * 1.0)
    _, second = split_counts(alone, 0)
    blind = np.log(fitted.weights_ @ fitted.components_)
    scores = fitted.score_samples(alone)
    for row in range(20):
        told = second[[row]].sum() > 0  # the word fell into the half that is predicted
        assert scores[row] == pytest.approx(blind[row] if told else 0.0, abs=1e-3)
    with pytest.raises(InvalidInput, match="no words left to predict"):
        fitted.score(np.zeros((2, 200)))


def test_samples_follow_the_model(fitted):
    X, H = fitted.sample(4000, length=30, random_state=0)
    assert X.shape == (4000, 200)
    np.testing.assert_allclose(H.sum(axis=1), 1)
    mean = X.sum(axis=0) / X.sum()
    expected = fitted.weights_ @ fitted.components_
    # mean absolute deviation of 120,000 words over 200: a few per cent in L1
    assert np.abs(mean - expected).sum() < 0.1
    np.testing.assert_array_equal(fitted.sample(3)[0].toarray(), fitted.sample(3)[0].toarray())


def test_top_words_are_ordered_and_named(fitted):
    names = [f"word{j}" for j in range(200)]
    words = fitted.top_words(3, names)
    best = np.argmax(fitted.components_[0])
    assert words[0][0] == f"word{best}"
    assert fitted.top_words(1)[0] == [best]
    with pytest.raises(InvalidInput, match="feature_names has 2 names"):
        fitted.top_words(3, ["a", "b"])


def test_column_names_of_a_frame_are_kept(corpus):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(corpus.X.toarray(), columns=[f"w{j}" for j in range(200)])
    model = LatentDirichletAllocation(4).fit(frame)
    assert model.top_words(1)[0][0].startswith("w")
    out = model.set_output(transform="pandas").transform(frame.iloc[:2])
    assert list(out.columns) == [f"latentdirichletallocation{j}" for j in range(4)]


def test_scikit_learn_accepts_the_exported_topics(corpus, fitted):
    peer = fitted.to_sklearn()
    H = peer.transform(corpus.X[:200])
    assert np.corrcoef(H.ravel(), fitted.transform(corpus.X[:200]).ravel())[0, 1] > 0.95


class TestReport:
    def test_fields_say_what_was_seen(self, fitted):
        report = fitted.report_
        assert len(report.spectrum) > 4
        assert np.all(np.diff(report.spectrum) <= 0)
        assert report.snr == pytest.approx(report.spectrum[3] / report.noise)
        assert report.snr > 1.5
        assert 0 < report.residual < 0.3
        assert report.condition_number == pytest.approx(report.spectrum[0] / report.spectrum[3])
        assert report.eigengap > 0.3  # a clear drop after four topics
        assert report.passes >= 4
        assert report.solver == "tensor"
        assert report.start == "moments"

    def test_rows_of_the_report_belong_to_the_rows_of_the_model(self, corpus, fitted):
        """Whatever order the start had, the report has that of components_."""
        counts = fitted._read_training(corpus.X, None, None)
        (start,) = fitted._starts(counts, cut(counts), np.random.default_rng(0), 1.0)
        for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
            turned = start._replace(estimate=start.estimate.reordered(order))
            report = fitted._report(turned, counts, path=(), details={})
            matched = start.estimate.topics[align(start.estimate.topics, fitted.components_)]
            for weight, topic in zip(report.raw_weights, matched, strict=True):
                place = int(np.flatnonzero((start.estimate.topics == topic).all(axis=1))[0])
                assert weight == start.estimate.raw_weights[place]

    def test_text_is_readable(self, fitted):
        first, second, third = str(fitted.report_).splitlines()
        assert first.startswith("Trust this fit: all 4 topics come back when half of the")
        assert second == "Leave out: none."
        assert third == "Next step: none; these checks found no problem."
        assert "Start: moments. Moments: solver tensor," in fitted.report_.full()

    def test_short_documents_are_counted(self, corpus):
        X = sp.vstack([corpus.X, sp.csr_array(np.eye(200)[:7])]).tocsr()
        report = LatentDirichletAllocation(4, refine="none").fit(X).report_
        assert report.details["too_short_documents"] == 7
        assert any("7 documents have fewer than three words" in text for text in report.warnings)

    def test_weak_components_are_warned_of(self):
        data = make_lda_corpus(300, 100, 5, mean_length=6, concentration=3.0)
        report = LatentDirichletAllocation(5).fit(data.X).report_
        assert report.snr < 0.8
        assert report.level in ("care", "grave")
        assert report.findings[0].kind in ("no gain", "little gain")
        plain = LatentDirichletAllocation(5, refine="none").fit(data.X).report_
        assert "do not show all 5 components" in plain.warnings[0]

    def test_two_topics_cannot_reveal_the_concentration(self):
        data = make_lda_corpus(1000, 50, 2)
        model = LatentDirichletAllocation(2).fit(data.X)
        assert model.concentration_.sum() == pytest.approx(1.0)
        assert any("fewer than three topics" in text for text in model.report_.warnings)


class TestOtherStarts:
    """k above the rank: an error without refinement, another start and a warning with it."""

    X = np.tile(np.array([[4.0, 1, 0, 0], [0, 0, 3, 2]]), (30, 1))

    def test_without_refinement_it_is_an_error(self):
        with pytest.raises(RankDeficientMoment, match="cannot separate n_components=3"):
            LatentDirichletAllocation(3, refine="none").fit(self.X)

    def test_with_refinement_another_start_is_taken(self):
        model = LatentDirichletAllocation(3).fit(self.X)
        assert any("The moments were not usable" in text for text in model.report_.warnings)
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)

    def test_more_topics_than_words(self):
        data = make_lda_corpus(400, 6, 3, mean_length=20)
        with pytest.raises(RankDeficientMoment):
            LatentDirichletAllocation(8, refine="none").fit(data.X)
        model = LatentDirichletAllocation(8).fit(data.X)
        assert model.components_.shape == (8, 6)
        assert np.isfinite(model.components_).all()


def test_many_topics_take_the_matrix_free_route(monkeypatch):
    """The same topics with the tensor formed and without."""
    from thirdmoment.starts import words as start

    data = make_lda_corpus(4000, 150, 4, mean_length=60)
    formed = LatentDirichletAllocation(4, refine="none", concentration=1.0).fit(data.X)
    monkeypatch.setattr(start, "FORMED_LIMIT", 3)
    free = LatentDirichletAllocation(4, refine="none", concentration=1.0).fit(data.X)
    assert free.report_.passes > formed.report_.passes
    assert recovery_error(free.components_, formed.components_) < 0.01


def test_progress_is_logged_and_nothing_is_printed(corpus, capsys, caplog):
    with caplog.at_level("INFO", logger="thirdmoment"):
        LatentDirichletAllocation(4, verbose=1).fit(corpus.X[:500])
    assert any("log-likelihood per word" in record.message for record in caplog.records)
    assert capsys.readouterr().out == ""
