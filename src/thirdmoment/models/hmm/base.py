"""What the hidden Markov models share: the way of a fit, and everything read off a fitted chain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import single_threaded_blas
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import (
    MomentEstimator,
    all_or_nothing,
    check_integer,
    check_option,
    check_rows,
)
from thirdmoment.models.candidates import Candidate, refinement_report
from thirdmoment.models.hmm.em import (
    MarkovProblem,
    Observations,
    expectation,
    likelihood_tables,
    maximise,
    project,
)
from thirdmoment.models.hmm.likelihood import (
    Chain,
    log_likelihoods,
    most_probable_paths,
    posteriors,
)
from thirdmoment.models.hmm.sequences import check_target, read_lengths
from thirdmoment.models.hmm.thin import RACE_SIZE, thinned
from thirdmoment.models.stream import Stream
from thirdmoment.recovery.markov import second_eigenvalue, stationary_law
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.em import Parameters
from thirdmoment.refinement.mixture import Family
from thirdmoment.refinement.race import Refined, Start, race

# EM steps of a start in each stage of a race: chains take longer than mixtures to show themselves.
STAGES = (16, 24, 40)

# Long runs where there is little data and many starts.
FINALISTS = 4

# A second eigenvalue of the transitions above this makes the chain split or periodic.
SPLIT = 1 - 1e-6

# States with a smaller share of the observations are not there.
UNVISITED = 1e-6


class Forecast(NamedTuple):
    """Law of the next observations of each of S sequences, n_steps ahead."""

    states: np.ndarray  # (S, n_steps, k) probabilities of the states
    mean: np.ndarray  # (S, n_steps, D) expected observation; of symbols their probabilities
    variance: np.ndarray  # (S, n_steps, D)


class HiddenMarkovModel(Stream, DensityMixin, MomentEstimator):
    """Base of the hidden Markov models; subclasses read data, give starts, know their emissions."""

    # hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _check_own(self) -> None:
        """Check the arguments that this model alone has."""

    @abstractmethod
    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        """Validated observations (n, ...)."""

    @abstractmethod
    def _prepare(self, X: np.ndarray) -> Family:
        """Look at the training data once; the family of emissions."""

    @abstractmethod
    def _observations(self, family: Any, X: np.ndarray, lengths: np.ndarray) -> Observations:
        """The data as EM reads it."""

    @abstractmethod
    def _candidates(
        self, family: Any, X: np.ndarray, lengths: np.ndarray, k: int
    ) -> tuple[list[Candidate], list[str]]:
        """Starts, the recommended first, and notes for the report."""

    @abstractmethod
    def _fitted_family(self) -> Any:
        """The family of emissions of the fitted model."""

    @abstractmethod
    def _set_emission(self, emission: Parameters) -> None:
        """Fitted attributes of the emissions."""

    @abstractmethod
    def _emission(self) -> Parameters:
        """The arrays of ``_set_emission`` again, fit for scoring."""

    @abstractmethod
    def _n_emission_parameters(self) -> int:
        """Free parameters of all emissions."""

    @abstractmethod
    def _draw(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """An observation of each state."""

    @abstractmethod
    def _emission_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (k, D) of an observation in each state."""

    def _chart(self, parameters: Parameters) -> Any:
        """Coordinates for the tail of EM, or None."""
        return None

    # fitting -----------------------------------------------------------------------------------

    def _check_arguments(self) -> int:
        """Arguments first: errors come before any long work."""
        k = self._check_shared(("auto", "none", "em"))
        self._check_own()
        return k

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Any:
        """Learn the chain and its emissions.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            All sequences one after another.
        y : ignored
        lengths : sequence of int, default=None
            Lengths of the sequences, which add up to n_samples; by default one sequence.

        Returns
        -------
        self
        """
        k = self._check_arguments()
        X = self._read(X, reset=True)
        check_target(y, len(X))
        lengths = read_lengths(lengths, len(X))
        self._forget_stream()
        self._fit_rows(X, lengths, k)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Any:
        """Learn from more sequences; see ``fit``.

        Sequences up to 10,000 observations are kept and fitted together, so batches up to there
        give what ``fit`` gives; later ones refine by stepwise EM (``report_`` stays that of the
        last fit). A sequence must not be split over batches. The first call after ``fit`` starts
        anew.
        """
        k = self._check_arguments()
        X = self._read(X, reset=not hasattr(self, "_stream"))
        check_target(y, len(X))
        self._take_batch(X, read_lengths(lengths, len(X)), k)
        return self

    def _fit_rows(self, X: np.ndarray, lengths: np.ndarray, k: int) -> None:
        check_rows(len(X), k)
        with single_threaded_blas():
            family = self._prepare(X)
            candidates, notes = self._candidates(family, X, lengths, k)
            data = self._observations(family, X, lengths)
            refined, chosen = self._refined(family, data, candidates, X, lengths)
            sums, value = expectation(family, data, refined.parameters, n_threads=self._threads())
        refined = refined._replace(path=refined.path or (value,))
        order = self._set_parameters(refined.parameters, sums[2])
        self.converged_, self.n_iter_ = refined.converged, refined.steps
        self.lower_bound_ = value
        self.report_ = self._report(chosen, refined, notes, candidates, lengths, order)

    def _refined(
        self,
        family: Family,
        data: Observations,
        candidates: list[Candidate],
        X: np.ndarray,
        lengths: np.ndarray,
    ) -> tuple[Refined, Candidate]:
        """The candidates race on a part of long data, then the best is refined on all of it."""
        first = candidates[0]
        if self.refine == "none" or self.max_refine_iter == 0:
            return Refined(first.parameters, (), 0, True, 0, 0, ()), first
        starts = [Start(candidate.parameters, candidate.name) for candidate in candidates]
        problem = self._problem(family, data)
        values: tuple[float, ...] = ()
        raced = 0
        if len(starts) > 1 and data.n > 2 * RACE_SIZE:
            place, pieces = thinned(lengths)
            small, runners, back = self._small_problem(family, X[place], pieces, starts)
            found = race(small, runners, max_steps=100, stages=STAGES, finalists=2)
            self._log("race of %d starts: %s", len(starts), starts[found.chosen].name)
            starts = [Start(back(found.parameters), starts[found.chosen].name)]
            first, values, raced = candidates[found.chosen], found.values, found.steps
        found = race(
            problem, starts, max_steps=self.max_refine_iter, stages=STAGES, finalists=FINALISTS
        )
        if not raced:
            first, values = candidates[found.chosen], found.values
        self._log("start %s, %d EM steps", first.name, found.steps + raced)
        return found._replace(steps=found.steps + raced, values=values), first

    def _small_problem(
        self, family: Any, X: np.ndarray, lengths: np.ndarray, starts: list[Start]
    ) -> tuple[MarkovProblem, list[Start], Callable[[Parameters], Parameters]]:
        """A part of the data to race on, the starts there, and the way back."""
        data = self._observations(family, X, lengths)
        return self._problem(family, data), starts, lambda parameters: parameters

    def _problem(self, family: Family, data: Observations) -> MarkovProblem:
        return MarkovProblem(family, data, self.tol, self._threads(), self._chart)

    def _set_parameters(self, parameters: Parameters, mass: np.ndarray) -> np.ndarray:
        """Fitted attributes, the most visited state first; returns the order."""
        weights = mass / mass.sum()
        order = canonical_order(weights)
        self.weights_ = weights[order]
        self.startprob_ = parameters[0][order] / parameters[0].sum()
        T = parameters[1][np.ix_(order, order)]
        self.transmat_ = T / T.sum(axis=1, keepdims=True)
        self.stationary_ = stationary_law(self.transmat_)
        self._set_emission(tuple(array[order] for array in parameters[2:]))
        return order

    def _report(
        self,
        chosen: Candidate,
        refined: Refined,
        notes: list[str],
        candidates: list[Candidate],
        lengths: np.ndarray,
        order: np.ndarray,
    ) -> Any:
        start = chosen.parameters[2].reshape(len(order), -1)
        final = refined.parameters[2].reshape(len(order), -1)
        partner = scipy.optimize.linear_sum_assignment(cdist(final, start))[1][order]
        short = int(np.sum(lengths < 3))
        notes = [*notes]
        if short:
            notes.append(
                f"{short} of {len(lengths)} sequences have fewer than three observations: they "
                "count for starts, transitions and the likelihood, but show no window of three."
            )
        empty = int(np.sum(self.weights_ < UNVISITED))
        if empty:
            notes.append(
                f"{empty} of {len(order)} states are never visited: lower n_components to "
                f"{len(order) - empty}."
            )
        second = second_eigenvalue(self.transmat_)
        if second > SPLIT and not empty:
            notes.append(
                "The transitions have a second eigenvalue of modulus one: the chain is periodic or "
                "falls apart, so stationary_ need not be where it settles."
            )
        details = {
            "sequences": len(lengths),
            "short_sequences": short,
            "second_eigenvalue": second,
            "candidates": tuple(candidate.name for candidate in candidates),
        }
        return refinement_report(
            len(order), chosen, refined, order=partner, refining=self.refine != "none",
            notes=notes, candidates=candidates, details=details,
        )  # fmt: skip

    # streams -----------------------------------------------------------------------------------

    def _parameters(self) -> Parameters:
        return self.startprob_, self.transmat_, *self._emission()

    def _batch_statistics(self, X: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
        family = self._fitted_family()
        data = self._observations(family, X, lengths)
        parameters = project(family, self._parameters())
        return expectation(family, data, parameters, n_threads=self._threads())[0]

    def _in_order(self, sums: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        order = canonical_order(sums[2])
        return sums[0][order], sums[1][np.ix_(order, order)], *(a[order] for a in sums[2:])

    def _take_statistics(self, sums: tuple[np.ndarray, ...]) -> None:
        self._set_parameters(maximise(self._fitted_family(), sums), sums[2])

    # reading the fitted chain ------------------------------------------------------------------

    def _chain(self, X: Any, lengths: Any) -> tuple[Chain, Observations, np.ndarray]:
        """The chain with the likelihoods of X, and the logarithms taken out of their rows."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        family = self._fitted_family()
        data = self._observations(family, X, read_lengths(lengths, len(X)))
        tables = likelihood_tables(family, self._parameters(), data, n_threads=self._threads())
        chain = Chain(
            np.asarray(self.startprob_, float), np.asarray(self.transmat_, float), tables.table,
            data.code,
        )  # fmt: skip
        return chain, data, tables.shift

    def score_samples(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Log-likelihood of each sequence (n_sequences,)."""
        with single_threaded_blas():
            chain, data, shift = self._chain(X, lengths)
            value, _ = log_likelihoods(chain, data.where, n_threads=self._threads())
        rows = shift if data.code is None else shift[data.code]
        return value + np.add.reduceat(rows, data.where.offsets[:-1])

    def log_likelihood(self, X: Any, lengths: Any = None) -> float:
        """Total log-likelihood of all sequences."""
        return float(np.sum(self.score_samples(X, lengths)))

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Mean log-likelihood of an observation."""
        check_target(y, len(X))
        values = self.score_samples(X, lengths)
        return float(values.sum() / len(X))

    def predict_proba(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Posterior (n_samples, n_components) of the state of each observation."""
        with single_threaded_blas():
            chain, data, _ = self._chain(X, lengths)
            return posteriors(chain, data.where, n_threads=self._threads())

    def decode(
        self, X: Any, lengths: Any = None, algorithm: str = "viterbi"
    ) -> tuple[float, np.ndarray]:
        """Most probable states, and their log-probability as hmmlearn gives it.

        ``"viterbi"``: the most probable path of each sequence; the number is the sum of their
        joint log-probabilities with the observations. ``"map"``: the most probable state of each
        observation; the number is the sum of their posteriors.
        """
        check_option("algorithm", algorithm, ("viterbi", "map"))
        if algorithm == "map":
            found = self.predict_proba(X, lengths)
            return float(found.max(axis=1).sum()), np.argmax(found, axis=1)
        chain, data, shift = self._chain(X, lengths)
        with np.errstate(divide="ignore"):
            logs = Chain(np.log(chain.start), np.log(chain.T), np.log(chain.table), chain.code)
        path, value = most_probable_paths(logs, data.where, n_threads=self._threads())
        rows = shift if data.code is None else shift[data.code]
        return float(value.sum() + rows.sum()), path

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:
        """State of each observation on the most probable path of its sequence."""
        return self.decode(X, lengths)[1]

    def fit_predict(self, X: Any, y: Any = None, *, lengths: Any = None) -> np.ndarray:
        """Fit, then the most probable path of the training sequences."""
        return self.fit(X, y, lengths=lengths).predict(X, lengths)

    def forecast(self, X: Any, n_steps: int = 1, lengths: Any = None) -> Forecast:
        """Law of the next ``n_steps`` observations after each sequence.

        Returns
        -------
        Forecast
            ``states`` (n_sequences, n_steps, n_components), ``mean`` and ``variance``
            (n_sequences, n_steps, n_columns) of the observation; for symbols the mean is the
            probability of each.
        """
        steps = check_integer("n_steps", n_steps, 1)
        with single_threaded_blas():
            chain, data, _ = self._chain(X, lengths)
            last = log_likelihoods(chain, data.where, n_threads=self._threads(), final=True)[1]
        states = np.empty((len(last), steps, len(self.transmat_)))
        for h in range(steps):
            last = last @ self.transmat_
            states[:, h] = last
        mean, variance = self._emission_moments()
        expected = states @ mean
        return Forecast(states, expected, states @ (variance + mean**2) - expected**2)

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw one sequence of observations and its states.

        ``random_state=None`` takes the model's own; ``currstate`` is the first state.
        """
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        seed = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(check_random_state(seed).randint(2**31))
        k = len(self.startprob_)
        if currstate is not None and not 0 <= currstate < k:
            raise InvalidInput(f"currstate={currstate} must be a state from 0 to {k - 1}.")
        levels, edges = rng.random(n), np.cumsum(self.transmat_, axis=1)
        states = np.empty(n, dtype=np.int64)
        first = np.searchsorted(np.cumsum(self.startprob_), levels[0], side="right")
        states[0] = min(first, k - 1) if currstate is None else currstate
        for t in range(1, n):
            states[t] = min(np.searchsorted(edges[states[t - 1]], levels[t], side="right"), k - 1)
        return self._draw(states, rng), states

    def _n_parameters(self) -> int:
        k = len(self.startprob_)
        return (k - 1) + k * (k - 1) + self._n_emission_parameters()

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Akaike's criterion on X; lower is better."""
        return -2 * self.log_likelihood(X, lengths) + 2 * self._n_parameters()

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Bayesian information criterion on X; lower is better."""
        return -2 * self.log_likelihood(X, lengths) + self._n_parameters() * float(np.log(len(X)))
