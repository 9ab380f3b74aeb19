"""One report for every model: what the moments showed, how far to trust the fit, what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Thresholds(NamedTuple):
    """Where a number becomes a warning (conventions, backed by the simulations in docs)."""

    snr: float = 1.5  # weakest eigenvalue against the sampling noise
    snr_plain: float = 0.8
    clipped_mass: float = 0.05  # negative mass of a probability row
    weight_sum: float = 0.1  # |Σ raw weights - 1|
    negative_weight: float = -0.02  # smallest raw weight
    residual: float = 0.3  # share of the third moment left unexplained


LIMITS = Thresholds()


@dataclass(frozen=True, repr=False)
class Report:
    """What a fit found out about itself.

    Attributes
    ----------
    spectrum : (>= k,) array
        Leading eigenvalues of the second moment, more than k of them where they were found.
    noise : float
        Sampling error of the second moment by split halves.
    snr : float
        k-th eigenvalue divided by the noise; below 1.5 the weakest component is uncertain.
    eigengap : float
        Relative drop after the k-th eigenvalue, (s_k - s_{k+1})/s_k.
    condition_number : float
        First eigenvalue over the k-th.
    residual : float
        Share of the whitened third moment that k components leave unexplained.
    clipped_mass : (k,) array
        Negative mass of each component before it was projected on the simplex.
    raw_weights : (k,) array
        Weights before any constraint.
    solver, start : str
        What decomposed the moments, and where the refinement started.
    refine_path : tuple of float
        Objective of the start and after every check of the refinement (for topics the mean
        log-likelihood per word of held-out documents, every five sweeps).
    passes : int
        Passes over the data that the moments took.
    warnings : tuple of str
        What to be careful about, most important first.
    details : mapping
        What this model alone knows.
    """

    n_components: int
    spectrum: np.ndarray
    noise: float
    snr: float
    residual: float
    clipped_mass: np.ndarray
    raw_weights: np.ndarray
    solver: str
    start: str
    passes: int
    refine_path: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def eigengap(self) -> float:
        k, s = self.n_components, self.spectrum
        if len(s) <= k or not s[k - 1] > 0:
            return math.nan
        return float((s[k - 1] - s[k]) / s[k - 1])

    @property
    def condition_number(self) -> float:
        k, s = self.n_components, self.spectrum
        return float(s[0] / s[k - 1]) if len(s) >= k and s[k - 1] > 0 else math.inf

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"Start: {self.start}."]
        if self.solver != "none":
            lines[0] += f" Moments: solver {self.solver}, {self.passes} passes over the data."
        if not math.isnan(self.snr):
            lines.append(
                f"Second moment: eigenvalue {self.n_components} is {self.snr:.2g} times the "
                f"sampling noise, condition number {self.condition_number:.3g}."
            )
        if not math.isnan(self.residual):
            lines.append(
                f"{'Fourth' if self.details.get('order') == 4 else 'Third'} moment: "
                f"{self.residual:.1%} unexplained by {self.n_components} components."
            )
        if len(self.refine_path) > 1:
            lines.append(
                f"Refinement: {len(self.refine_path) - 1} recorded steps, objective "
                f"{self.refine_path[0]:.4f} to {max(self.refine_path):.4f}."
            )
        lines.extend(f"Advice: {text}" for text in self.warnings)
        if not self.warnings and not math.isnan(self.residual):
            lines.append("Advice: none; the moments fit the model well.")
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the spectrum against the noise; returns the matplotlib axes."""
        from thirdmoment.report.plot import plot_spectrum

        return plot_spectrum(self.spectrum, self.n_components, self.noise, ax=ax)


def moment_warnings(
    *,
    k: int,
    snr: float,
    residual: float,
    clipped_mass: np.ndarray,
    raw_weights: np.ndarray,
    limits: Thresholds = LIMITS,
    refined: bool = True,
) -> list[str]:
    """Warnings that every moment fit shares (W_SNR, W_RESID, W_NEG, W_WEIGHT)."""
    found = []
    if snr < limits.snr_plain:
        found.append(
            f"Eigenvalue {k} is below the sampling noise ({snr:.2g} times, {limits.snr} wanted): "
            + (
                "the moments alone cannot see all components; the weakest rest on the refinement."
                if refined
                else "the moments cannot see all components. Fewer components, more data or "
                "refinement would help."
            )
        )
    elif snr < limits.snr:
        found.append(
            f"Eigenvalue {k} is only {snr:.2g} times the sampling noise ({limits.snr} wanted): "
            "the weakest component is uncertain."
        )
    if residual > limits.residual:
        found.append(
            f"{residual:.0%} of the third moment stays unexplained ({limits.residual:.0%} is the "
            "limit): "
            + (
                "there are fewer components than n_components, or too little data."
                if snr < limits.snr
                else "the model does not hold exactly, or n_components is too small."
            )
        )
    if np.max(clipped_mass, initial=0.0) > limits.clipped_mass:
        found.append(
            f"{np.sum(clipped_mass > limits.clipped_mass)} of {k} components had negative mass "
            f"(up to {np.max(clipped_mass):.2g}, limit {limits.clipped_mass}) that was projected "
            "away."
        )
    if np.min(raw_weights, initial=0.0) < limits.negative_weight:
        found.append(
            f"A weight came out as {np.min(raw_weights):.2g} before it was set to zero: "
            "n_components may be too large, or there is too little data."
        )
    total = float(np.sum(raw_weights))
    if abs(total - 1) > limits.weight_sum:
        found.append(
            f"The weights implied by the third moment sum to {total:.3g} instead of 1: the "
            "model does not hold exactly, or the components are noisy."
        )
    return found
