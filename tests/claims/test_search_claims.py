"""What the paper on searches claims, as printed and as corrected (X-R1, X-R3, EK-R)."""

import numpy as np
import pytest

from thirdmoment import GaussianSearch
from thirdmoment.decomposition import decompose
from thirdmoment.linalg import outer_sum, whiten
from thirdmoment.recovery.search import whitened_search

WEIGHTS = np.array([0.05, 0.15, 0.2, 0.25, 0.35])


def draw(seed, n=1500, d=200, sigma=0.6):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((5, d))
    means *= 10 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(5, n, p=WEIGHTS)
    return means[labels] + sigma * rng.standard_normal((n, d)), labels, means


def direction(means, target):
    """Almost orthogonal to the other means (gamma = 0.9)."""
    basis = np.linalg.qr(np.delete(means, target, axis=0).T)[0]
    first = means[target] - basis @ (basis.T @ means[target])
    return np.sqrt(0.9) * first / np.linalg.norm(first) + np.sqrt(0.1 / 4) * basis.sum(axis=1)


def search_and_tensor(X, v, *, biased):
    """Component by the paper's whitening, and all by the tensor, with one noise variance."""
    n, d = X.shape
    m, second = X.mean(axis=0), X.T @ X / n
    values = np.linalg.eigvalsh(second - np.outer(m, m))[::-1]
    sigma2 = values[5] if biased else values[4:].mean()
    white = whiten(second - sigma2 * np.eye(d), 5)
    W, up = np.asarray(white.W), np.asarray(white.B)
    Y, m_w, v_w = X @ W, W.T @ m, W.T @ v
    mixed = sigma2 * np.outer(m_w, v_w)
    M = (Y * (X @ v)[:, None]).T @ Y / n - mixed - mixed.T - sigma2 * (m @ v) * W.T @ W
    T = np.einsum("ai,aj,al->ijl", Y, Y, Y) / n - outer_sum(W.T @ W, sigma2 * m_w)
    found = decompose(T, "tensor", np.random.default_rng(0))
    everything = (up @ (np.asarray(found.vectors) * np.asarray(found.eigenvalues))).T
    return whitened_search(M, m_w, up, up.T @ v).component, everything


def gain(biased):
    found = []
    for seed in range(6):
        X, _, means = draw(seed)
        one, every = search_and_tensor(X, direction(means, 0), biased=biased)
        tensor = np.linalg.norm(every - means[0], axis=1).min()
        found.append(1 - np.linalg.norm(one - means[0]) / tensor)
    return float(np.median(found))


def test_the_gain_over_the_tensor_comes_from_the_biased_variance():
    assert gain(biased=True) > 0.05
    assert abs(gain(biased=False)) < 0.02


def test_the_search_is_nearly_as_good_as_the_labels():
    ratios = []
    for seed in range(4):
        X, labels, means = draw(seed)
        search = GaussianSearch(5).fit(X)
        for target in range(5):
            found = search.search(direction=direction(means, target)).parameters
            oracle = X[labels == target].mean(axis=0)
            ratios.append(
                np.linalg.norm(found - means[target]) / np.linalg.norm(oracle - means[target])
            )
    assert np.median(ratios) < 1.1


@pytest.mark.parametrize("scores", [(-0.14, -0.37, -1.63), (0.2, 0.19, -3.0)])
def test_the_largest_singular_value_is_not_the_largest_score(scores):
    """Singular vectors, as printed, return the component with the most negative score (EK-R4)."""
    rng = np.random.default_rng(0)
    means, weights = rng.standard_normal((5, 3)), np.array([0.5, 0.3, 0.2])
    v = np.linalg.pinv(means).T @ np.array(scores)
    A, B = (means * weights) @ means.T, (means * (weights * np.array(scores))) @ means.T
    white = whiten(A, 3)
    W, up = np.asarray(white.W), np.asarray(white.B)
    M = W.T @ B @ W
    found = whitened_search(M, W.T @ means @ weights, up, up.T @ v)
    np.testing.assert_allclose(found.component, means[:, 0], atol=1e-8)
    printed = up @ np.linalg.svd(M)[0][:, 0]
    cosine = printed @ means / np.linalg.norm(printed) / np.linalg.norm(means, axis=0)
    assert abs(cosine[2]) > 1 - 1e-8
