"""A start: parameters to refine from, what the moments showed, and when they are trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from thirdmoment._constants import Choice
from thirdmoment.exceptions import UnusableMoments, without_frames
from thirdmoment.likelihood.mixture import Parameters


class Settings(NamedTuple):
    """How starts are made, the same for all models."""

    solver: str
    weighted: bool  # evened noise and all pairs of views, or the papers' form
    hedge: bool  # more than one estimate where the first is not trusted: likelihood will choose
    n_threads: int
    rng: np.random.Generator


class Trust(NamedTuple):
    """When the moments alone are as good a start as any (docs/decisions/starts.md)."""

    rows: Choice[int] = 2000  # or windows of a sequence
    snr: Choice[float] = 1.5  # weakest eigenvalue over the noise, as in the report
    residual: Choice[float] = 0.1  # of the third moment
    weight_sum: Choice[float] = 0.1  # distance of the sum of raw weights from one
    least_weight: Choice[float] = 0.25  # in units of an even share


TRUST = Trust()


class MomentFacts(NamedTuple):
    """What the moments of one start showed, for the report and for trust."""

    spectrum: np.ndarray
    noise: float
    residual: float
    raw_weights: np.ndarray
    clipped_mass: np.ndarray
    solver: str
    details: dict[str, Any]
    expected_noise: float = np.inf  # by formula: unlike the split halves the same for weights

    def reordered(self, order: np.ndarray) -> MomentFacts:
        """The numbers of each component in the order of the fitted ones."""
        return self._replace(
            raw_weights=self.raw_weights[order], clipped_mass=self.clipped_mass[order]
        )

    def snr(self, k: int) -> float:
        """The k-th singular value over the noise."""
        if not len(self.spectrum):
            return np.nan
        seen = float(self.spectrum[k - 1]) if len(self.spectrum) >= k else 0.0
        return np.inf if self.noise == 0 else seen / self.noise

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
        return bool(rows >= limits.rows and clear and whole and none_tiny and fits)


def no_facts(k: int) -> MomentFacts:
    """What is known of k components that no moments were used for."""
    nothing = np.full(k, np.nan)
    return MomentFacts(np.empty(0), np.nan, np.nan, nothing, nothing, "none", {"passes": 0})


class Start(NamedTuple):
    """Parameters to refine from; ``facts`` is None for a start without moments."""

    parameters: Parameters
    name: str
    facts: MomentFacts | None = None


T = TypeVar("T")


def both_routes(
    solve: Callable[[Settings], T], settings: Settings, *, enough: Callable[[T], bool]
) -> list[T]:
    """What the tensor route finds, and the joint one where that fails or, hedging, is not enough.

    Raises what the first raised where neither finds anything.
    """
    found: list[T] = []
    problems: list[UnusableMoments] = []
    for name in ("tensor", "joint") if settings.solver == "auto" else (settings.solver,):
        try:
            found.append(solve(settings._replace(solver=name)))
        except UnusableMoments as error:
            problems.append(without_frames(error))
            continue
        if not settings.hedge or enough(found[0]):
            break
    if not found:
        raise problems.pop(0)
    return found
