"""Mixtures of components that are not Gaussian, with known densities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy


class ShapedMixture(NamedTuple):
    """Rows of three or more scalar views and the densities behind them."""

    X: np.ndarray  # (n, views)
    labels: np.ndarray  # (n,)
    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, views)
    scales: np.ndarray  # (k, views) standard deviations of the Gaussian components
    skewed: np.ndarray  # (k,) which components are shifted Gamma laws
    shape: float  # of the Gamma laws; their scale is one

    def density(self, x: np.ndarray, view: int) -> np.ndarray:
        """True densities (k, m) of one view at places (m,)."""
        x = np.asarray(x, dtype=float)
        found = []
        for mean, scale, skewed in zip(
            self.means[:, view], self.scales[:, view], self.skewed, strict=True
        ):
            if skewed:
                found.append(scipy.stats.gamma.pdf(x - (mean - self.shape), self.shape))
            else:
                found.append(scipy.stats.norm.pdf(x, mean, scale))
        return np.stack(found)


def make_shaped_mixture(
    n_samples: int = 1000,
    n_components: int = 3,
    *,
    n_views: int = 3,
    spacing: float = 2.5,
    skewed: bool = True,
    shape: float = 1.0,
    exchangeable: bool = False,
    random_state: int | np.random.Generator = 0,
) -> ShapedMixture:
    """Views whose components stand ``spacing`` apart, in another order in each view.

    Weights grow like 1, 2, ..., k. With ``skewed`` every second component is a shifted Gamma law
    (an exponential for shape 1), the others are Gaussian with standard deviations from 0.6 to 1.
    With ``exchangeable`` all views have one law. The design of Song et al. (2014), section 8.1.

    Examples
    --------
    >>> from thirdmoment.datasets import make_shaped_mixture
    >>> data = make_shaped_mixture(100, 3)
    >>> data.X.shape, data.density([0.0, 1.0], view=0).shape
    ((100, 3), (3, 2))
    """
    rng = np.random.default_rng(random_state)
    k = n_components
    weights = np.arange(1, k + 1) / (k * (k + 1) / 2)
    labels = rng.choice(k, size=n_samples, p=weights)
    means = np.stack([rng.permutation(k) * spacing for _ in range(n_views)], axis=1)
    scales = rng.uniform(0.6, 1.0, (k, n_views))
    if exchangeable:
        means, scales = np.repeat(means[:, :1], n_views, 1), np.repeat(scales[:, :1], n_views, 1)
    second = (np.arange(k) % 2 == 1) & skewed
    normal = scales[labels] * rng.standard_normal((n_samples, n_views))
    gamma = rng.gamma(shape, 1.0, (n_samples, n_views)) - shape
    X = means[labels] + np.where(second[labels][:, None], gamma, normal)
    return ShapedMixture(X, labels, weights, means, scales, second, shape)
