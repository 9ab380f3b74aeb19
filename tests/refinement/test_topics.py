"""The guard, the choice among starts, and weights on corpora large enough to hold some out."""

import numpy as np
import pytest
import scipy.sparse as sp

import thirdmoment as tm
from thirdmoment import LatentDirichletAllocation, SingleTopicModel
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.metrics import align, recovery_error
from thirdmoment.recovery.topics import TopicEstimate
from thirdmoment.refinement import topics
from thirdmoment.refinement.topics import TopicRefiner, held_out, many_of
from thirdmoment.starts.spread_topics import spread_topics
from thirdmoment.starts.words import heaviest, moment_options, moment_start
from thirdmoment.streaming import corpus as chunks


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(1500, 150, 4, mean_length=40, random_state=5)


def refiner_of(corpus, *, trusted=False):
    weights = np.ones(corpus.X.shape[0])
    held = held_out(corpus.X, weights)
    return TopicRefiner(corpus.X, weights, held, trusted=trusted, n_threads=1)


def test_about_a_tenth_is_held_out_and_small_corpora_spare_none():
    X = make_lda_corpus(20_000, 60, 3, mean_length=20).X
    mask = held_out(X, np.ones(20_000))
    assert abs(mask.mean() - 0.1) < 4 * np.sqrt(0.09 / 20_000)
    assert not held_out(X[:199], np.ones(199)).any()


def test_of_many_documents_a_smaller_share_of_the_same_ones_is_held_out(corpus, monkeypatch):
    few = held_out(corpus.X, np.ones(1500))
    assert many_of(few)
    monkeypatch.setattr(topics, "MANY", 1500 // 5)  # five times as many: a quarter
    fewer = held_out(corpus.X, np.ones(1500))
    assert fewer.sum() == pytest.approx(few.sum() / 4, rel=0.4)
    assert not (fewer & ~few).any()
    assert not many_of(fewer)


def test_what_is_held_out_hangs_on_each_document_alone(corpus):
    ones = np.ones(1500)
    mask = held_out(corpus.X, ones)
    np.testing.assert_array_equal(held_out(corpus.X[1:], ones[1:]), mask[1:])
    order = np.random.default_rng(0).permutation(1500)
    np.testing.assert_array_equal(held_out(corpus.X[order], ones), mask[order])
    twice = held_out(sp.vstack([corpus.X, corpus.X]).tocsr(), np.ones(3000))
    np.testing.assert_array_equal(twice, np.concatenate([mask, mask]))


def test_a_corpus_of_equal_documents_is_not_held_out_as_a_whole():
    for word in range(40):  # one of these documents is surely drawn
        X = sp.csr_array(np.tile(np.eye(40)[word] * 5, (300, 1)))
        assert not held_out(X, np.ones(300)).any()


def test_the_guard_never_sees_training_documents(corpus):
    refiner = refiner_of(corpus)
    held = refiner.sweeper.weights == 0
    assert refiner.guard.first.shape[0] == held.sum()
    total = (refiner.guard.first + refiner.guard.second).toarray()
    np.testing.assert_array_equal(total, corpus.X[held].toarray())


def test_the_score_of_the_guard_is_per_word(corpus):
    refiner = refiner_of(corpus)
    uniform = np.full((4, 150), 1 / 150)
    assert refiner.guard.score(uniform, np.ones(4)) == pytest.approx(-np.log(150))


def test_the_best_check_is_returned_not_the_last(corpus, monkeypatch):
    """A guard that likes the first check best: the counts of that check come back."""
    refiner = refiner_of(corpus)
    alpha = np.full(4, 0.25)
    scores = iter([-5.0, -1.0, -2.0])  # start, first check, second check
    seen = []

    def score(topics, alpha):
        seen.append(topics)
        return next(scores)

    monkeypatch.setattr(refiner.guard, "score", score)
    found = refiner.refine([(corpus.topics, alpha)], max_sweeps=10, tol=0.0)
    assert found.chosen == "sweeps"
    np.testing.assert_array_equal(found.guarded, seen[1])
    assert found.climb.path == (-5.0, -1.0, -2.0, -1.0)


@pytest.mark.parametrize(
    ("trusted", "gain", "chosen"),
    [
        (False, 0.0, "sweeps"),  # a start that is not trusted is never part of the answer
        (True, 0.0, "mean of both"),
        (True, 0.5, "mean of both"),  # half a standard error is chance
        (True, 4.0, "sweeps"),
    ],
)
def test_held_out_documents_overrule_a_trusted_start_only_clearly(
    corpus, monkeypatch, trusted, gain, chosen
):
    refiner = refiner_of(corpus, trusted=trusted)
    noise = np.random.default_rng(0).standard_normal(400)
    noise = (noise - noise.mean()) / np.sqrt(np.sum((noise - noise.mean()) ** 2))
    answers = iter([np.zeros(400), noise + gain / 400])  # the mean of both, then the sweeps
    monkeypatch.setattr(refiner.guard, "score", lambda *_: -1.0)
    monkeypatch.setattr(refiner.guard, "each", lambda *_: next(answers))
    found = refiner.refine([(corpus.topics, np.full(4, 0.25))], max_sweeps=5, tol=0.0)
    assert found.chosen == chosen


def test_without_sweeps_the_start_is_returned(corpus):
    alpha = np.full(4, 0.25)
    refiner = refiner_of(corpus)
    found = refiner.refine([(corpus.topics, alpha)], max_sweeps=0, tol=0.0)
    assert found.chosen == "start"
    assert found.climb.converged
    np.testing.assert_allclose(found.topics, refiner.smoothed(corpus.topics, alpha))


@pytest.mark.parametrize(("last", "converged"), [(-1.9985, True), (-1.997, False)])
def test_a_gain_above_a_fifth_of_a_per_cent_in_five_sweeps_is_not_converged(
    corpus, monkeypatch, last, converged
):
    refiner = refiner_of(corpus)
    scores = iter([-3.0, -2.5, -2.0, last])
    monkeypatch.setattr(refiner.guard, "score", lambda *_: next(scores))
    found = refiner.refine([(corpus.topics, np.full(4, 0.25))], max_sweeps=15, tol=0.0)
    assert found.climb.converged == converged


def test_the_better_of_two_starts_is_refined(corpus):
    wrong = np.random.default_rng(0).dirichlet(np.ones(150), size=4)
    alpha = np.full(4, 0.25)
    found = refiner_of(corpus).refine(
        [(wrong, alpha), (corpus.topics, alpha)], max_sweeps=8, tol=0.0
    )
    assert found.which == 1


def test_a_remade_start_is_aligned_before_it_is_mixed(corpus):
    refiner = refiner_of(corpus)
    alpha = np.full(4, 0.25)
    found = refiner.refine([(corpus.topics, alpha)], max_sweeps=10, tol=0.0)
    found = found._replace(chosen="mean of both")
    again = refiner.with_start(found, corpus.topics[[2, 0, 3, 1]], alpha)
    order = align(corpus.topics, found.swept)
    smooth = refiner.smoothed(corpus.topics[order], alpha)
    np.testing.assert_allclose(again.topics, (smooth + found.swept) / 2)


def test_shares_of_documents_and_of_words():
    """Two kinds of documents, equally many, one ten times as long."""
    X = sp.csr_array(np.array([[100.0, 100, 0, 0]] * 150 + [[0, 0, 10, 10]] * 150))
    topics = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    none = np.zeros(300, dtype=bool)
    refiner = TopicRefiner(X, np.ones(300), none, trusted=False, n_threads=1)
    found = refiner.refine([(topics, np.full(2, 0.1))], max_sweeps=5, tol=0.0)
    np.testing.assert_allclose(found.shares.documents, [0.5, 0.5], atol=0.01)
    np.testing.assert_allclose(found.shares.words, [10 / 11, 1 / 11], atol=0.01)
    np.testing.assert_allclose(found.shares.largest, [1 / 150, 1 / 150], rtol=0.01)


class TestWeights:
    """Weights of documents, with a part of them held out."""

    def test_the_scale_of_weights_does_not_matter_below_one(self, corpus):
        n = corpus.X.shape[0]
        for model in (LatentDirichletAllocation(4), SingleTopicModel(4)):
            plain = model.fit(corpus.X).components_
            scaled = model.fit(corpus.X, sample_weight=np.full(n, 1 / n)).components_
            np.testing.assert_allclose(scaled, plain, atol=1e-6)

    def test_documents_of_weight_zero_are_absent(self, corpus):
        n = corpus.X.shape[0]
        noise = make_lda_corpus(300, 150, 4, random_state=99).X
        both = sp.vstack([noise, corpus.X]).tocsr()
        weights = np.concatenate([np.zeros(300), np.ones(n)])
        plain = LatentDirichletAllocation(4).fit(corpus.X)
        weighted = LatentDirichletAllocation(4).fit(both, sample_weight=weights)
        np.testing.assert_array_equal(weighted.components_, plain.components_)
        assert weighted.mean_length_ == plain.mean_length_

    def test_weight_two_and_repetition_are_near(self, corpus):
        """Another tenth is held out of a repeated corpus, so only near: below the error itself."""
        weighted = LatentDirichletAllocation(4).fit(corpus.X, sample_weight=np.full(1500, 2.0))
        repeated = LatentDirichletAllocation(4).fit(sp.vstack([corpus.X, corpus.X]))
        apart = recovery_error(weighted.components_, repeated.components_)
        assert apart < recovery_error(weighted.components_, corpus.topics)


def test_without_long_documents_left_the_moments_are_refused():
    X = np.tile(np.eye(6), (10, 1))
    options = moment_options("none", "auto", 1, 60)
    with pytest.raises(UnusableMoments, match="Only 0 documents with three or more words"):
        moment_start(chunks(X), 2, np.random.default_rng(0), alpha0=1.0, options=options)


def test_a_vanishing_component_is_not_taken_for_a_heavy_one():
    estimate = TopicEstimate(
        np.eye(3), np.array([0.6, 0.4, 0.0]), np.array([0.5, 0.4, 1e9]), np.zeros(3), np.ones(3), 0
    )
    kept = heaviest(estimate, 2)
    np.testing.assert_array_equal(kept.topics, np.eye(3)[:2])
    np.testing.assert_allclose(kept.weights, [0.6, 0.4])


def test_spread_topics_keep_those_given_and_add_distant_documents():
    X = sp.csr_array(np.array([[9.0, 1, 0, 0]] * 5 + [[0, 0, 5.0, 5]] * 5))
    given = np.array([[0.9, 0.1, 0.0, 0.0]])
    topics = spread_topics(X, np.ones(10), 2, np.random.default_rng(0), given)
    np.testing.assert_array_equal(topics[0], given[0])
    assert topics[1, 2:].sum() > 0.8  # a document of the other kind, mixed with the mean
    np.testing.assert_allclose(topics.sum(axis=1), 1)


def test_several_ranks_are_tried_where_the_spectrum_does_not_drop():
    """More topics in the data than asked for: no drop after k."""
    data = make_lda_corpus(2000, 200, 30, mean_length=60, random_state=0)
    options = moment_options("auto", "auto", 1, data.X.nnz)
    found = moment_start(chunks(data.X), 12, np.random.default_rng(0), alpha0=1.0, options=options)
    assert len(found.estimates) > 1
    for estimate in found.estimates:
        assert estimate.topics.shape == (12, 200)
    clear = make_lda_corpus(2000, 200, 4, mean_length=60, random_state=0)
    found = moment_start(chunks(clear.X), 4, np.random.default_rng(0), alpha0=1.0, options=options)
    assert len(found.estimates) == 1


def test_real_values_are_scored_in_the_units_of_the_fit(corpus):
    from thirdmoment.exceptions import InputWarning

    with pytest.warns(InputWarning):
        model = LatentDirichletAllocation(4).fit(corpus.X * 0.3)
    plain = LatentDirichletAllocation(4).fit(corpus.X)
    # 0.3 a word is one unit up to the mean entry, so proportions are those of nearly equal counts
    H, G = model.transform(corpus.X * 0.3), plain.transform(corpus.X)
    G = G[:, align(plain.components_, model.components_)]
    assert np.abs(H - G).mean() < 0.05


@pytest.mark.parametrize(
    ("scores", "passes"), [([0, -1], 1), ([0, 1, 2, 1], 3), ([0, 1, 2, 3, 4, 5], 5)]
)
def test_passes_over_all_documents_end_where_they_no_longer_pay(scores, passes):
    """Short documents: topics of the sample were better than those after five passes."""
    from types import SimpleNamespace

    from thirdmoment.refinement.streamed import finished
    from thirdmoment.refinement.topics import TRUSTED, Climb, RefinedTopics, Shares
    from thirdmoment.streaming import Streamed, StreamedCorpus
    from thirdmoment.streaming.source import from_matrix

    X = tm.datasets.make_lda_corpus(300, 30, 3).X
    data = StreamedCorpus(Streamed(from_matrix(X), lambda chunk: chunk, 30), X.nnz, float(X.sum()))
    told = iter(scores)
    refiner = SimpleNamespace(
        priors=TRUSTED, n_threads=1, guard=SimpleNamespace(score=lambda *_: next(told))
    )
    topics, even = np.random.default_rng(0).dirichlet(np.ones(30), size=3), np.full(3, 1 / 3)
    refined = RefinedTopics(topics, topics, topics, "sweeps", Shares(even, even, even), Climb())
    found = finished(data, refined, 1.0, refiner)
    assert len(data.rows.passes) == passes
    assert (found is refined) == (passes == 1)
