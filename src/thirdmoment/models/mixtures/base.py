"""What the mixture models share: arguments, the way of a fit, posteriors and scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist
from sklearn.base import DensityMixin

from thirdmoment.exceptions import InvalidInput, MomentWarning
from thirdmoment.models.base import MomentEstimator
from thirdmoment.models.posterior import PosteriorMixin
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.em import Parameters
from thirdmoment.refinement.mixture import Family, MixtureData, expectation
from thirdmoment.refinement.starts import Refined, Start, refine
from thirdmoment.report import Report, Thresholds, moment_warnings

# The moments alone are the start below this share unexplained, above this multiple of the expected
# noise and from this many rows on (docs/decisions/starts.md).
TRUSTED_RESIDUAL = 0.2
TRUSTED_SNR = 1.0
TRUSTED_ROWS = 2000


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
        """Whether the moments alone are as good a start as any: clear of the noise, well fitted.

        Then no other start is tried (docs/decisions/starts.md).
        """
        k = len(self.raw_weights)
        seen = float(self.spectrum[k - 1]) if len(self.spectrum) >= k else 0.0
        clear = seen > TRUSTED_SNR * self.expected_noise
        return rows >= TRUSTED_ROWS and clear and self.residual < TRUSTED_RESIDUAL


class Candidate(NamedTuple):
    """Parameters to refine from; ``facts`` is None for a start without moments."""

    parameters: Parameters
    name: str
    facts: MomentFacts | None


class MixtureEstimator(PosteriorMixin, DensityMixin, MomentEstimator):
    """Base of the mixtures: subclasses read data, give starts and know their family."""

    _refinements: tuple[str, ...] = ("auto", "none", "em")

    def _check_arguments(self) -> int:
        """Arguments first: errors come before any long work."""
        return self._check_shared(self._refinements)

    def _refined(
        self, family: Family, data: MixtureData, candidates: Sequence[Candidate]
    ) -> tuple[Refined, Candidate]:
        """Refinement from the candidates, or the first as it is with ``refine="none"``."""
        if self.refine == "none" or self.max_refine_iter == 0:
            first = candidates[0]
            value = expectation(family, data, first.parameters, n_threads=self._threads())[1]
            return Refined(first.parameters, (value,), 0, True, 0, 0, ()), first
        starts = [Start(candidate.parameters, candidate.name) for candidate in candidates]
        found = refine(
            family,
            data,
            starts,
            tol=self.tol,
            max_steps=self.max_refine_iter,
            n_threads=self._threads(),
        )
        self._log("start %s, %d EM steps", starts[found.chosen].name, found.steps)
        return found, candidates[found.chosen]

    def _warn_unusable(
        self, reason: str, *, how: str = "refined by likelihood", stacklevel: int = 6
    ) -> None:
        warnings.warn(
            f"The moments are not usable: {reason} The fit starts from spread-out rows instead, "
            f"{how}; see report_.",
            MomentWarning,
            stacklevel=stacklevel,
        )

    def _report(
        self,
        chosen: Candidate,
        refined: Refined,
        notes: Sequence[str] = (),
        candidates: Sequence[Candidate] = (),
        details: dict[str, Any] | None = None,
    ) -> Report:
        k = self.n_components
        facts = chosen.facts or next((c.facts for c in candidates if c.facts), None)
        if chosen.facts is not None and refined.parameters and chosen.parameters:
            facts = chosen.facts.reordered(_final_order(chosen.parameters, refined.parameters))
        more = {"em_steps": refined.steps, "swaps": refined.swaps, "starts": refined.values}
        more |= details or {}
        if facts is None:
            nothing = np.full(k, np.nan)
            facts = MomentFacts(np.empty(0), np.nan, np.nan, nothing, nothing, "none", 0, {})
            found: list[str] = list(notes)
            snr = np.nan
        else:
            spectrum = facts.spectrum
            seen = float(spectrum[k - 1]) if len(spectrum) >= k else 0.0
            snr = seen / facts.noise if facts.noise > 0 else np.inf
            limits = Thresholds(residual=0.15) if "schur" in facts.solver else Thresholds()
            found = moment_warnings(
                k=k,
                snr=snr,
                residual=facts.residual,
                clipped_mass=facts.clipped_mass,
                raw_weights=facts.raw_weights,
                limits=limits,
                refined=self.refine != "none",
            )
            found = [*notes, *found]
            if chosen.facts is None:
                found.append(
                    f"The likelihood preferred another start ({chosen.name}) to the moments: the "
                    "model does not hold exactly, or the moments are too noisy."
                )
        return Report(
            n_components=k,
            spectrum=facts.spectrum,
            noise=facts.noise,
            snr=snr,
            residual=facts.residual,
            clipped_mass=facts.clipped_mass,
            raw_weights=facts.raw_weights,
            solver=facts.solver,
            start=chosen.name,
            passes=facts.passes,
            refine_path=refined.path,
            warnings=tuple(found),
            details={**facts.details, **more},
        )


def _final_order(start: Parameters, final: Parameters) -> np.ndarray:
    """Component of the start that became each fitted component, heaviest first."""
    partner = scipy.optimize.linear_sum_assignment(cdist(final[1], start[1]))[1]
    return partner[canonical_order(final[0])]


def check_rows(n: int, k: int) -> None:
    """At least as many rows as components."""
    if n < k:
        raise InvalidInput(
            f"There are {n} rows (n_samples = {n}), fewer than n_components={k}: every component "
            f"needs at least one. Lower n_components to {n} or less, or give more rows."
        )
