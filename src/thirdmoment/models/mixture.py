"""What mixtures share: the race of their starts, the report, posteriors and scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import Array, array_namespace, in_single, posterior_of, to_numpy
from thirdmoment.likelihood.mixture import Family, MixtureData, Parameters, expectation
from thirdmoment.models.base import MomentEstimator
from thirdmoment.models.units import cast
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.halves import Examined, examine_mixture
from thirdmoment.refinement.mixture import MixtureProblem
from thirdmoment.refinement.race import FINALISTS, MAX_SWAPS, Refined, ended_on_all, race
from thirdmoment.report import Finding, Judged, Report
from thirdmoment.report.build import Proposed, refinement_report
from thirdmoment.starts.propose import by_hand_or_first, finalists
from thirdmoment.starts.start import Start
from thirdmoment.streaming import Streamed


def shares_of(joint: Array) -> Array:
    """Posteriors (n, k) from log Pr(row, component): they sum to one however far the rows are."""
    xp = array_namespace(joint)
    joint = xp.exp(joint - xp.max(joint, axis=1, keepdims=True))
    joint /= xp.sum(joint, axis=1, keepdims=True)
    return joint


def like(X: Any, values: Array) -> Array:
    """Results in float32 where the rows came so and it holds them."""
    if not str(getattr(X, "dtype", "")).endswith("float32"):
        return values
    return cast(values, np.float32) if isinstance(values, np.ndarray) else in_single(values)


class PosteriorMixin:
    """Posteriors and scores; subclasses give ``_log_joint`` (n, k) and ``_n_parameters``."""

    @abstractmethod
    def _log_joint(self, X: Any) -> np.ndarray:
        """log Pr(row, component) (n, k)."""

    @abstractmethod
    def _n_parameters(self) -> int:
        """Free parameters of the fitted model."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Posterior (n_samples, n_components) of each row's component."""
        check_is_fitted(self)
        return like(X, shares_of(self._log_joint(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Most probable component of each row."""
        check_is_fitted(self)
        joint = self._log_joint(X)
        return array_namespace(joint).argmax(joint, axis=1)

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> np.ndarray:
        """Fit, then the most probable component of each training row."""
        return self.fit(X, y, **kwargs).predict(X)  # type: ignore[attr-defined]

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row (n_samples,)."""
        check_is_fitted(self)
        joint = self._log_joint(X)
        if isinstance(joint, np.ndarray):
            return like(X, logsumexp(joint, axis=1))
        return like(X, posterior_of(joint.T)[1])

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a row."""
        return float(np.mean(to_numpy(self.score_samples(X))))

    def log_likelihood(self, X: Any) -> float:
        """Total log-likelihood of the rows."""
        return float(np.sum(to_numpy(self.score_samples(X))))

    def aic(self, X: Any) -> float:
        """Akaike's criterion on X; lower is better."""
        return -2 * self.log_likelihood(X) + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; lower is better."""
        values = to_numpy(self.score_samples(X))
        return -2 * float(values.sum()) + self._n_parameters() * float(np.log(len(values)))


class RefinedEstimator(MomentEstimator):
    """Base of the models with a mixture likelihood: subclasses give starts and their family."""

    _refinements: tuple[str, ...] = ("auto", "none", "em")

    def _check_arguments(self) -> int:
        """Arguments first: errors come before any long work."""
        return self._check_shared(self._refinements)

    def _refined(
        self,
        family: Family,
        data: MixtureData,
        candidates: Sequence[Start],
        *,
        brief: int | None = None,
    ) -> tuple[Refined, Start]:
        """Refinement from the candidates, or the first as it is with ``refine="none"``.

        With ``brief`` two runs of so many steps, where more is done with them afterwards.
        """
        if not self._refining:
            first = by_hand_or_first(candidates)
            value = expectation(family, data, first.parameters, n_threads=self._threads())[1]
            return Refined(first.parameters, (value,)), first
        found = race(
            MixtureProblem(family, data, self.tol, self._threads()),
            [candidate.parameters for candidate in candidates],
            max_steps=min(self.max_refine_iter, brief or self.max_refine_iter),
            max_swaps=0 if brief else MAX_SWAPS,
            finalists=finalists(self.n_starts, 2 if brief else FINALISTS),
        )
        chosen = candidates[found.chosen]
        self._log("start %s, %d EM steps", chosen.name, found.steps)
        return found, chosen

    def _finished(self, family: Family, data: MixtureData, refined: Refined) -> Refined:
        """A race on a sample, ended on all rows."""
        if not self._refining:
            return refined
        problem = MixtureProblem(family, data, self.tol, self._threads())
        resident = not isinstance(data.chunks, Streamed)
        return ended_on_all(problem, refined, self.max_refine_iter, resident=resident)

    def _examined(
        self,
        part: Callable[[np.ndarray, np.ndarray], tuple[Family, MixtureData]],
        weights: np.ndarray,
        refined: Refined,
        *,
        cells: int = 1,
        simple: str = "by a single component",
    ) -> Examined | None:
        """What either half of the rows, of so many cells, makes of the answer, heaviest first."""
        if not self._refining:
            return None
        found = examine_mixture(
            part,
            weights,
            refined.parameters,
            rng=self._own_rng(),
            tol=self.tol,
            n_threads=self._threads(),
            rival=refined.contest.rival,
            cells=cells,
            simple=simple,
        )
        if found is None:
            return None
        return found._replace(trust=found.trust[canonical_order(refined.parameters[0])])

    def _report(
        self,
        chosen: Start,
        refined: Refined,
        judged: Judged,
        notes: Sequence[Finding] = (),
        candidates: Sequence[Start] = (),
        details: dict[str, Any] | None = None,
    ) -> Report:
        order = None
        if refined.parameters and chosen.parameters:
            order = _final_order(chosen.parameters, refined.parameters)
        return refinement_report(
            refined,
            Proposed(chosen, candidates, order),
            judged,
            k=self.n_components,
            refining=self._refining,
            notes=notes,
            details=details,
        )


def _final_order(start: Parameters, final: Parameters) -> np.ndarray:
    """Component of the start that became each fitted component, heaviest first."""
    partner = scipy.optimize.linear_sum_assignment(cdist(final[1], start[1]))[1]
    return partner[canonical_order(final[0])]


class MixtureEstimator(PosteriorMixin, DensityMixin, RefinedEstimator):
    """Base of the mixtures: subclasses read data, give starts and know their family."""
