"""Mutants by hand: one line of a formula changed, and what a user would suffer from it."""

from __future__ import annotations

from typing import NamedTuple


class Named(NamedTuple):
    """A line as it is, as it must not be, and why."""

    file: str
    line: str
    changed: str
    why: str


NAMED = [
    Named(
        "recovery/covariance.py",
        "pooled = np.clip(total - share @ apart**2, least * total, total)",
        "pooled = np.clip(total + share @ apart**2, least * total, total)",
        "variances within components would count the spread between them twice",
    ),
    Named(
        "recovery/covariance.py",
        "second = sums.second / (mass * sums.total)[:, None] - means**2",
        "second = sums.second / (mass * sums.total)[:, None] + means**2",
        "variances would be second moments around the wrong place",
    ),
    Named(
        "recovery/covariance.py",
        "pooled, _ = _kept_within((total - between)[None], total, least, 1.0)",
        "pooled, _ = _kept_within((total + between)[None], total, least, 1.0)",
        "full covariances would be bounded by the spread of all components",
    ),
    Named(
        "models/mixtures/categorical.py",
        "return int(k * np.sum(np.maximum(self._free_categories - 1, 0)) + k - 1)",
        "return int(k * np.sum(np.maximum(self._free_categories, 0)) + k - 1)",
        "AIC and BIC would charge a parameter too many for every column of every class",
    ),
    Named(
        "models/kernel/fitted.py",
        "total = len(self.weights_) - 1.0",
        "total = len(self.weights_) + 1.0",
        "AIC and BIC of kernel mixtures would charge two parameters too many",
    ),
    Named(
        "models/kernel/fitted.py",
        "total += float(np.sum(np.sum(share * own, axis=1) - 1))",
        "total += float(np.sum(np.sum(share * own, axis=1) + 1))",
        "each density would cost two parameters too many",
    ),
    Named(
        "models/factors.py",
        "scores[3] = float(values[min(1, len(values) - 1)]) / np.sqrt(6 / total)",
        "scores[3] = float(values[min(1, len(values) - 1)]) / np.sqrt(24 / total)",
        "skewness would seem half as clear as it is",
    ),
    Named(
        "models/factors.py",
        "scores[4] = float(values[min(1, len(values) - 1)]) / np.sqrt(24 / total)",
        "scores[4] = float(values[min(1, len(values) - 1)]) / np.sqrt(6 / total)",
        "kurtosis would seem twice as clear as it is",
    ),
    Named(
        "starts/topic_index.py",
        "difference = third_factor(self.a0) * third.difference.astype(np.float64)",
        "difference = third.difference.astype(np.float64)",
        "the noise of a topic search would be understated and wrong hints called informative",
    ),
    Named(
        "search/regression.py",
        "raw.difference / 6,",
        "raw.difference / 24,",
        "the noise of a regression search would be understated",
    ),
    Named(
        "refinement/chains.py",
        "family.log_prior",
        "0 * family.log_prior",
        "the objective of a hidden Markov model would not be what EM raises",
    ),
    Named(
        "likelihood/categories.py",
        "counts = np.bincount(key, weights=weights, minlength=cells)",
        "counts = np.bincount(key, minlength=cells).astype(float)",
        "weights of coded rows would be dropped",
    ),
    Named(
        "likelihood/categories.py",
        "counts = np.bincount(inverse, weights=weights)",
        "counts = np.bincount(inverse).astype(float)",
        "weights of coded rows of many categories would be dropped",
    ),
    Named(
        "refinement/lattice.py",
        "out[:, j] += axis.step * (rng.random(n) + rng.random(n) - 1)",
        "out[:, j] += 3 * axis.step * (rng.random(n) + rng.random(n) - 1)",
        "samples would be wider than the density they are drawn from",
    ),
    Named(
        "recovery/spherical.py",
        "by_weight = -(cube * Y).sum(axis=1) / 3 - (square * Y).sum(axis=1) - 2 * Y @ R1",
        "by_weight = -(cube * Y).sum(axis=1) / 3 - (square * Y).sum(axis=1) + 2 * Y @ R1",
        "the gradient of the weights would not be that of the misfit",
    ),
    Named(
        "recovery/spherical.py",
        "by_centre = w[:, None] * (-cube - 2 * square - 2 * R1)",
        "by_centre = w[:, None] * (-cube - 2 * square + 2 * R1)",
        "the gradient of the centres would not be that of the misfit",
    ),
    Named(
        "moments/views.py",
        "return (self.split / self.total - tilt * self.pairs) / max(1 - tilt**2, 1e-12)",
        "return (self.split / self.total + tilt * self.pairs) / max(1 - tilt**2, 1e-12)",
        "halves of different weight would be taken for noise",
    ),
    Named(
        "search/gaussian.py",
        "scores.append(weight - square / (2 * variance) - X.shape[1] / 2 * np.log(variance))",
        "scores.append(weight - square / variance - X.shape[1] / 2 * np.log(variance))",
        "wide components would lose their outer rows to narrow ones",
    ),
    Named(
        "refinement/topics.py",
        "weights = np.where(length > 0, self.weights / np.where(length > 0, length, 1.0), 0.0)",
        "weights = np.where(length > 0, 1 / np.where(length > 0, length, 1.0), 0.0)",
        "the weights of documents would be dropped from the shares of topics",
    ),
    Named(
        "refinement/collapsed.py",
        "total = max(float(self.weights @ self.X.sum(axis=1)), 1.0)",
        "total = max(float(self.X.sum()), 1.0)",
        "sweeps of weighted documents would start from counts of another size",
    ),
]
