"""Exact moments give the searched component back; printed rules fail where they should."""

import numpy as np
import pytest

from thirdmoment.linalg import whiten
from thirdmoment.recovery.search import (
    alignment,
    cancelled_search,
    resolution,
    subspace_search,
    whitened_search,
)


def mixture(seed, d=7, k=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((d, k)), rng.dirichlet(np.full(k, 3.0)), rng.standard_normal(d)


def moments(means, weights, v):
    A = (means * weights) @ means.T
    B = (means * (weights * (means.T @ v))) @ means.T
    return means @ weights, A, B


def search(m, A, B, v, k):
    white = whiten(A, k)
    W, B_ = np.asarray(white.W), np.asarray(white.B)
    return whitened_search(W.T @ B @ W, W.T @ m, B_, B_.T @ v)


@pytest.mark.parametrize("seed", range(5))
def test_the_component_with_the_largest_score_is_found_exactly(seed):
    means, weights, v = mixture(seed)
    found = search(*moments(means, weights, v), v, 4)
    scores = means.T @ v
    target = int(np.argmax(scores))
    np.testing.assert_allclose(found.component, means[:, target], atol=1e-8)
    assert found.weight == pytest.approx(weights[target], abs=1e-8)
    np.testing.assert_allclose(found.scores, np.sort(scores)[::-1], atol=1e-8)
    assert found.consistency == pytest.approx(1, abs=1e-8)


def test_scores_may_all_be_negative():
    means, weights, _ = mixture(6)
    v = np.linalg.pinv(means).T @ np.array([-0.14, -0.37, -1.63, -1.94])
    found = search(*moments(means, weights, v), v, 4)
    np.testing.assert_allclose(found.component, means[:, 0], atol=1e-8)
    assert found.margin == np.inf
    # the printed choice, the largest in magnitude, is another component
    assert np.argmax(np.abs(means.T @ v)) == 3


def test_the_margin_is_the_ratio_of_the_two_largest_scores():
    means, weights, _ = mixture(7)
    v = np.linalg.pinv(means).T @ np.array([3.0, 1.0, 0.5, -2.0])
    found = search(*moments(means, weights, v), v, 4)
    assert found.margin == pytest.approx(2.0, abs=1e-8)


def test_cancellation_is_the_same_for_any_matrices():
    rng = np.random.default_rng(8)
    d, k = 6, 3
    A = rng.standard_normal((d, d))
    A, B = A @ A.T, rng.standard_normal((d, d))
    B, m, v = B + B.T, rng.standard_normal(d), rng.standard_normal(d)
    white = whiten(A, k)
    W, up = np.asarray(white.W), np.asarray(white.B)
    found = cancelled_search(W.T @ B @ W, W.T @ m, up, up.T @ v)
    # SR-6 as it stands: the null vector of λ A - B within the k leading directions of A
    E = up / np.sqrt(np.asarray(white.eigenvalues))
    Ak, Bk, mk = E.T @ A @ E, E.T @ B @ E, E.T @ m
    top = np.max(np.linalg.eigvals(np.linalg.solve(Ak, Bk)).real)
    q = np.linalg.svd(top * Ak - Bk)[2][-1]
    np.testing.assert_allclose(found.component, E @ Ak @ q / (q @ mk), atol=1e-8)
    assert found.weight == pytest.approx((q @ mk) ** 2 / (q @ Ak @ q), abs=1e-8)


def subspaces(seed, d=12, k=3, p=3):
    rng = np.random.default_rng(seed)
    U = [np.linalg.qr(rng.standard_normal((d, p)))[0] for _ in range(k)]
    return U, rng.dirichlet(np.full(k, 5.0)), rng


def whitened_subspace_moment(U, weights, S):
    """R = Wᵀ B(S) W with B(S) = Σ w (tr(P S) P + 2 P S P) (SR-22), and the un-whitener."""
    P = [u @ u.T for u in U]
    A = sum(w * one for w, one in zip(weights, P, strict=True))
    B = sum(w * (np.trace(one @ S) * one + 2 * one @ S @ one)
            for w, one in zip(weights, P, strict=True))  # fmt: skip
    white = whiten(A, sum(u.shape[1] for u in U))
    return np.asarray(white.W).T @ B @ np.asarray(white.W), np.asarray(white.B)


def test_one_label_finds_its_subspace_where_the_top_rule_fails():
    U, weights, _ = subspaces(0)
    # scores 1.15 and 0.75: three times the second beats the first
    v = np.linalg.pinv(np.concatenate([u.T for u in U])) @ np.concatenate(
        [np.sqrt([1.15, 0, 0]), np.sqrt([0.75, 0, 0]), np.sqrt([0.01, 0, 0])]
    )
    R, up = whitened_subspace_moment(U, weights, np.outer(v, v))
    found = subspace_search(R, up, 3, single=True)
    assert found.third_rule
    P = found.basis @ found.basis.T
    np.testing.assert_allclose(P, U[0] @ U[0].T, atol=1e-8)
    leading = np.linalg.eigh(R)[1][:, ::-1][:, :3]
    wrong = np.linalg.qr(up @ leading)[0]
    assert np.linalg.norm(wrong @ wrong.T - U[0] @ U[0].T, 2) > 0.5


def test_several_whitened_labels_find_their_subspace_by_the_top_rule():
    U, weights, rng = subspaces(1)
    A = sum(w * u @ u.T for w, u in zip(weights, U, strict=True))
    Q = np.linalg.pinv(A, rcond=1e-10) @ U[1] @ rng.standard_normal((3, 6))  # SR-24
    R, up = whitened_subspace_moment(U, weights, Q @ Q.T)
    found = subspace_search(R, up, 3, single=False)
    assert not found.third_rule
    np.testing.assert_allclose(found.basis @ found.basis.T, U[1] @ U[1].T, atol=1e-8)
    np.testing.assert_allclose(found.eigenvalues[3:], 0, atol=1e-8)  # nothing of the others


def test_the_resolution_compares_the_gap_with_the_halves():
    M, difference = np.diag([5.0, 2.0, 1.0]), np.diag([0.5, -0.25, 0.0])
    found = resolution(M, difference, np.array([5.0, 2.0, 1.0]))
    assert found.gap_snr == pytest.approx(6.0)  # (5 - 2) / 0.5
    assert found.stability == pytest.approx(1.0)
    swap = np.array([[0.0, 0.0], [0.0, 3.0]])  # one half finds the second direction
    assert resolution(np.diag([2.0, 1.0]), swap, np.array([2.0, 1.0])).stability < 1e-8


def test_alignment_is_the_share_of_the_component_in_the_hint():
    means, weights, _ = mixture(9)
    v = np.linalg.pinv(means).T @ np.array([2.0, 1.0, 0.5, 0.0])
    m, A, B = moments(means, weights, v)
    white = whiten(A, 4)
    found = search(m, A, B, v, 4)
    scores = weights * (means.T @ v) ** 2
    square = alignment(found.direction, np.asarray(white.B).T @ v) ** 2
    assert square == pytest.approx(scores[0] / scores.sum(), abs=1e-8)
    assert alignment(found.direction, np.zeros(4)) == 0
