"""What a fitted hidden Markov model can do: scores, posteriors, paths, forecasts, samples."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import blas_as_before, single_threaded_blas
from thirdmoment._constants import Floor, Wording
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.chains import Chain, log_likelihoods, most_probable_paths, posteriors
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.models.base import MomentEstimator, check_integer, check_option
from thirdmoment.models.hmm.sequences import check_target, chunk_lengths, read_lengths
from thirdmoment.recovery.markov import second_eigenvalue
from thirdmoment.refinement.chains import ONE_STATE, Observations, likelihood_tables
from thirdmoment.refinement.halves import Examined
from thirdmoment.report import Finding
from thirdmoment.report.labels import size


class Forecast(NamedTuple):
    """Distribution of the next observations of each of S sequences, n_steps ahead."""

    states: np.ndarray  # (S, n_steps, k) probabilities of the states
    mean: np.ndarray  # (S, n_steps, D) expected observation; of symbols their probabilities
    variance: np.ndarray  # (S, n_steps, D)


class FittedChain(DensityMixin, MomentEstimator):
    """Everything that is read off ``startprob_``, ``transmat_`` and the emissions."""

    @abstractmethod
    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        """Validated observations (n, ...)."""

    @abstractmethod
    def _observations(self, family: Any, X: np.ndarray, lengths: np.ndarray) -> Observations:
        """The data as EM reads it."""

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

    def _parameters(self) -> Parameters:
        return self.startprob_, self.transmat_, *self._emission()

    def _chain(self, X: Any, lengths: Any) -> tuple[Chain, Observations, np.ndarray]:
        """The chain with the likelihoods of X, and the logarithms taken out of their rows."""
        check_is_fitted(self, "startprob_")
        lengths = chunk_lengths(X) if lengths is None else lengths
        X = self._read(X, reset=False)
        family = self._fitted_family()
        data = self._observations(family, X, read_lengths(lengths, len(X)))
        tables = likelihood_tables(family, self._parameters(), data, n_threads=self._threads())
        chain = Chain(
            np.asarray(self.startprob_, float), np.asarray(self.transmat_, float), tables.table,
            data.code, tables.logs,
        )  # fmt: skip
        return chain, data, tables.shift

    @blas_as_before
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
        values = self.score_samples(X, lengths)
        check_target(y, len(X), "score")
        return float(values.sum() / len(X))

    @blas_as_before
    def predict_proba(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Posterior (n_samples, n_components) of the state of each observation."""
        with single_threaded_blas():
            chain, data, _ = self._chain(X, lengths)
            found = posteriors(chain, data.where, n_threads=self._threads())
        # rows that are all but impossible leave little of the recursions
        total = found.sum(axis=1, keepdims=True)
        found = np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / found.shape[1])
        return found.astype(self._dtype_out(), copy=False)

    @blas_as_before
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
            logs = Chain(np.log(chain.start), np.log(chain.T), chain.logs, chain.code)
        path, value = most_probable_paths(logs, data.where, n_threads=self._threads())
        rows = shift if data.code is None else shift[data.code]
        return float(value.sum() + rows.sum()), path

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:
        """State of each observation on the most probable path of its sequence."""
        return self.decode(X, lengths)[1]

    def fit_predict(self, X: Any, y: Any = None, *, lengths: Any = None) -> np.ndarray:
        """Fit, then the most probable path of the training sequences."""
        return self.fit(X, y, lengths=lengths).predict(X, lengths)

    @blas_as_before
    def forecast(self, X: Any, n_steps: int = 1, lengths: Any = None) -> Forecast:
        """Distribution of the next ``n_steps`` observations after each sequence.

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
        apart = mean - expected[..., None, :]  # of each state, so that nothing cancels
        spread = np.einsum("shk,shkd->shd", states, apart**2) + states @ variance
        return Forecast(states, expected, spread)

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw one sequence of observations and its states.

        ``random_state=None`` takes the model's own; ``currstate`` is the first state.
        """
        check_is_fitted(self, "startprob_")
        n = check_integer("n_samples", n_samples, 1)
        rng = self._sampling_rng(random_state)
        k = len(self.startprob_)
        if currstate is not None and check_integer("currstate", currstate, 0) >= k:
            raise InvalidInput(f"currstate={currstate} must be a state from 0 to {k - 1}.")
        levels, edges = rng.random(n), np.cumsum(self.transmat_, axis=1)
        states = np.empty(n, dtype=np.int64)
        first = np.searchsorted(np.cumsum(self.startprob_), levels[0], side="right")
        states[0] = min(first, k - 1) if currstate is None else currstate
        for t in range(1, n):
            states[t] = min(np.searchsorted(edges[states[t - 1]], levels[t], side="right"), k - 1)
        return self._draw(states, rng), states

    def plot(self, *, ax: Any = None) -> Any:
        """States and their transitions as a graph; returns the axes.

        A state is as large as it is frequent and holds the probability to stay; arrows are as wide
        as they are probable, those of a few per cent are left out.
        """
        from thirdmoment.report.plot_models import plot_transitions

        check_is_fitted(self, "startprob_")
        return plot_transitions(self.transmat_, self.weights_, ax=ax)

    def plot_path(
        self,
        X: Any,
        lengths: Any = None,
        *,
        sequence: int = 0,
        column: Any = 0,
        ax: Any = None,
    ) -> Any:
        """One sequence over the bands of its most probable states; returns the axes.

        Parameters
        ----------
        X : (n_samples, n_columns)
        lengths : (n_sequences,), optional
        sequence : int, default=0
        column : int or str, default=0
            What is drawn of vectors; of binary ones all columns are.
        ax : matplotlib axes, optional
        """
        from thirdmoment.report.plot_models import plot_path

        check_is_fitted(self, "startprob_")
        lengths = chunk_lengths(X) if lengths is None else lengths
        rows = self._read(X, reset=False)
        ends = np.cumsum(read_lengths(lengths, len(rows)))
        if check_integer("sequence", sequence, 0) >= len(ends):
            raise InvalidInput(f"There is no sequence {sequence}; X has {len(ends)} of them.")
        own = slice(ends[sequence - 1] if sequence else 0, ends[sequence])
        values, label = self._drawn(rows[own], column)
        path = self.predict(X, lengths)[own]
        return plot_path(path, values, self.weights_, label=label, ax=ax)

    def _drawn(self, rows: np.ndarray, column: Any) -> tuple[np.ndarray, str]:
        """What a picture shows of observations, and what that is called."""
        c = self._column(column)
        return rows[:, c], self._column_names()[c]

    def _dtype_out(self) -> Any:
        """float32 for models of float32 vectors."""
        return np.float64

    def _n_parameters(self) -> int:
        k = len(self.startprob_)
        return (k - 1) + k * (k - 1) + self._n_emission_parameters()

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Akaike's criterion on X; lower is better."""
        return -2 * self.log_likelihood(X, lengths) + 2 * self._n_parameters()

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Bayesian information criterion on X; lower is better."""
        return -2 * self.log_likelihood(X, lengths) + self._n_parameters() * float(np.log(len(X)))


# A second eigenvalue of the transitions above this makes the chain split or periodic.
SPLIT: Floor[float] = 1 - 1e-6

# With fewer sequences the report says how little they tell about the start.
FEW_SEQUENCES: Wording[int] = 5

# States with a smaller share of the observations are not there.
UNVISITED: Floor[float] = 1e-6


class ToldChain(FittedChain):
    """Sentences about a fitted chain."""

    def _emission_notes(self) -> list[Finding]:
        """What the report should say about the fitted emissions."""
        return []

    def _notes(self, sequences: int, short: int) -> list[Finding]:
        """What there is to say about sequences, states and transitions."""
        notes, k = list(self._emission_notes()), len(self.weights_)
        if short:
            text = (
                f"{short} of {sequences} sequences have fewer than three observations: they "
                "count for starts, transitions and the likelihood, but show no window of three."
            )
            notes.append(Finding("short sequences", text))
        empty = int(np.sum(self.weights_ < UNVISITED))
        if empty:
            text = f"{empty} of {k} states are never visited."
            action = f"Set n_components to {k - empty}."
            notes.append(Finding("empty states", text, action, "care"))
        if second_eigenvalue(self.transmat_) > SPLIT and not empty:
            text = (
                "The transitions have a second eigenvalue of modulus one: the chain is periodic or "
                "falls apart, so stationary_ need not be where it settles."
            )
            notes.append(Finding("periodic", text))
        if sequences < FEW_SEQUENCES:
            text = (
                f"startprob_ rests on {sequences} sequence{'s' * (sequences > 1)}: for new "
                "ones stationary_ may be the better guess."
            )
            notes.append(Finding("few sequences", text))
        return notes

    def _instead(self, examined: Examined | None) -> str:
        """What to use where the chain predicts no better than something simpler."""
        gains = () if examined is None else examined.gains
        unclear = [gain for gain in gains if not gain.clear]
        least = min(unclear, key=lambda gain: gain.value, default=None)
        if least is not None and least.against == ONE_STATE:
            return "Use one state."
        return "Use a mixture model, which ignores the order."

    def _labels(self) -> tuple[str, ...]:
        """The states in a few words."""
        return tuple(f"{size(weight)} of observations" for weight in self.weights_)
