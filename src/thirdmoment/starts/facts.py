"""What the moments of a start showed, and when they are trusted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Weakest eigenvalue against the sampling noise below which moments alone are doubted.
CLEAR_SNR = 1.5


class Trust(NamedTuple):
    """When the moments alone are as good a start as any (docs/decisions/starts.md)."""

    rows: int = 2000
    snr: float = CLEAR_SNR  # as in the report: what it doubts is raced
    residual: float = 0.1
    weight_sum: float = 0.1
    least_weight: float = 0.25  # in units of an even share


TRUST = Trust()


class MomentFacts(NamedTuple):
    """What the report says about the moments of one start."""

    spectrum: np.ndarray
    noise: float
    residual: float
    raw_weights: np.ndarray
    clipped_mass: np.ndarray
    solver: str
    passes: int
    details: dict[str, Any]
    expected_noise: float = np.inf  # by formula: unlike the split halves the same for weights

    def reordered(self, order: np.ndarray) -> MomentFacts:
        """The numbers of each component in the order of the fitted ones."""
        return self._replace(
            raw_weights=self.raw_weights[order], clipped_mass=self.clipped_mass[order]
        )

    def trusted(self, rows: float) -> bool:
        """Whether nothing known speaks against them; then no other start is tried.

        They are clear of the noise by both gauges, k components explain the third moment, and the
        weights that follow are those of k components.
        """
        k, limits = len(self.raw_weights), TRUST
        seen = float(self.spectrum[k - 1]) if len(self.spectrum) >= k else 0.0
        clear = seen > self.expected_noise and seen >= limits.snr * self.noise
        whole = abs(float(self.raw_weights.sum()) - 1) <= limits.weight_sum
        none_tiny = float(self.raw_weights.min()) >= limits.least_weight / k
        fits = self.residual < limits.residual
        return rows >= limits.rows and clear and whole and none_tiny and fits
