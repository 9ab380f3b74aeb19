"""The way of a fit that all hidden Markov models share; fitted.py has what follows it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist

from thirdmoment._array import if_room, on_host, single_threaded_blas
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.mixture import Family, Parameters
from thirdmoment.models.base import all_or_nothing, check_rows
from thirdmoment.models.hmm.fitted import ToldChain
from thirdmoment.models.hmm.sequences import (
    SmallProblem,
    Training,
    check_one_table,
    check_target,
    chunk_lengths,
    read_lengths,
)
from thirdmoment.models.hmm.source import (
    SequenceChunk,
    SequenceLook,
    WholeSequences,
    open_sequences,
)
from thirdmoment.models.read import check_batch
from thirdmoment.models.stream import Stream
from thirdmoment.models.tables import place_for, stream_details
from thirdmoment.recovery.markov import chain_of, second_eigenvalue, stationary_distribution
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.chains import (
    MarkovPart,
    MarkovProblem,
    Observations,
    StreamedObservations,
    expectation,
    likelihood_tables,
    maximise,
    project,
    thinned,
    two_halves,
)
from thirdmoment.refinement.halves import Examined, examine
from thirdmoment.refinement.race import Refined, ended_on_all, race
from thirdmoment.report import About, Finding, Judged
from thirdmoment.report.build import Proposed, note_unfinished, refinement_report
from thirdmoment.report.findings import unusable
from thirdmoment.sizes import RACE
from thirdmoment.starts.given import GIVEN, given_probabilities
from thirdmoment.starts.propose import by_hand_or_first, finalists, propose
from thirdmoment.starts.start import Settings, Start
from thirdmoment.streaming import Source
from thirdmoment.streaming.dask import DaskSource, is_dask

# EM steps of a start in each stage of a race: chains take longer than mixtures to show themselves.
STAGES: Choice[tuple[int, ...]] = (16, 24, 40)


# Sequences with fewer observations are worked on by the host, which is as fast.
FEW: Work[int] = 30_000


class HiddenMarkovModel(Stream, ToldChain):
    """Base of the hidden Markov models; subclasses read data, give starts, know their emissions."""

    _reads_tensors = frozenset(("fit",))
    _device: Any = None  # that E-steps run on during a fit, None for the host

    # hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _check_own(self) -> None:
        """Check the arguments that this model alone has."""

    @abstractmethod
    def _prepare(self, X: np.ndarray) -> Family:
        """Look at the training data once; the family of emissions."""

    @abstractmethod
    def _read_rows(self, rows: Any) -> np.ndarray:
        """Rows of a source as the model observes them."""

    @abstractmethod
    def _row_look(self, width: int) -> Callable[[], Any]:
        """What looks at the rows of a source of so many columns."""

    @abstractmethod
    def _prepare_source(self, look: SequenceLook) -> Family:
        """The family of emissions after one look at all sequences of a source."""

    @abstractmethod
    def _one_state(self, data: Training) -> Start:
        """The only model with one state."""

    @abstractmethod
    def _moment_starts(self, data: Training, k: int, settings: Settings) -> list[Start]:
        """Starts from moments, the recommended first; raises `UnusableMoments`."""

    @abstractmethod
    def _other_starts(
        self, data: Training, k: int, rng: np.random.Generator, count: int | None
    ) -> list[Start]:
        """So many starts without third moments, or as many as race against them by default."""

    @abstractmethod
    def _given_emission(self, data: Training, k: int) -> Parameters | None:
        """Emissions given by hand, as EM reads them."""

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
        X : array or tensor (n_samples, n_features), Dask array, or rows of `thirdmoment.source`
            All sequences one after another.
        y : ignored, as in scikit-learn
            Where states are known, give what they imply as ``transmat_init`` and the like.
        lengths : sequence of int, default=None
            Lengths of the sequences, which add up to n_samples; by default one sequence, or one
            for each chunk of a source.

        Returns
        -------
        self
        """
        k = self._check_arguments()
        place, X = place_for(self, X), on_host(X)
        try:  # on the host where there is no room: one sequence cannot be halved
            if_room(*(partial(self._fit, X, y, lengths, k, one) for one in (place, None)))
        finally:
            del self._device
        return self

    def _fit(self, X: Any, y: Any, lengths: Any, k: int, device: Any) -> None:
        self._device = device
        check_one_table(X)
        X = DaskSource(X) if is_dask(X) else X
        if isinstance(X, Source):
            look = self._row_look(X.width)
            whole = open_sequences(self, X, lengths, self._read_rows, look)
            if whole is not None:
                self._forget_stream()
                return self._fit_sequences(whole, k)
            lengths = chunk_lengths(X) if lengths is None else lengths
        X = self._read(X, reset=True)
        check_target(y, len(X))
        lengths = read_lengths(lengths, len(X))
        self._forget_stream()
        self._fit_rows(X, lengths, k)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Any:
        """Learn from more sequences; see ``fit``.

        Sequences up to 10,000 observations are kept and fitted together, so batches up to there
        give what ``fit`` gives; later ones refine by stepwise EM (``report_`` then is "not
        checked"). A sequence must not be split over batches. The first call after ``fit`` starts
        anew.
        """
        k = self._check_arguments()
        check_one_table(X)
        check_batch(self, X)
        X = self._read(X, reset=not hasattr(self, "_stream"))
        check_target(y, len(X), "partial_fit")
        started = hasattr(self, "_stream") and self._stream["sums"] is not None
        if started and k != len(self.startprob_):
            raise InvalidInput(
                f"n_components={k}, but this stream was begun with {len(self.startprob_)} states. "
                "Call fit, or a new model, to begin again."
            )
        self._take_batch(X, read_lengths(lengths, len(X)), k)
        return self

    def _fit_sequences(self, whole: WholeSequences, k: int) -> None:
        """Sequences of a source: starts race on a sample, moments and the end see all."""
        with single_threaded_blas():
            family = self._prepare_source(whole.look)
            X, lengths = whole.look.sample.sequences()
            rows = self._source_observations(family, whole, X, lengths)
            self._fit_training(Training(family, X, lengths, rows, whole), k)

    def _fit_rows(self, X: np.ndarray, lengths: np.ndarray, k: int) -> None:
        check_rows(len(X), k)
        with single_threaded_blas():
            family = self._prepare(X)
            rows = self._observations(family, X, lengths)
            self._fit_training(Training(family, X, lengths, rows), k)

    def _fit_training(self, data: Training, k: int) -> None:
        with single_threaded_blas():
            family, whole = data.family, data.whole
            starts, reasons = self._starts(data, k)
            refined, chosen = self._refined(data, starts)
            everything: Any = data.rows
            if whole is not None:
                chunks = whole.chunks.mapped(partial(self._observed, family))
                everything = StreamedObservations(chunks, whole.look.n)
                if self._refining:
                    problem = self._problem(family, everything)
                    refined = ended_on_all(problem, refined, self.max_refine_iter)
            parameters = refined.parameters
            sums, value = expectation(family, everything, parameters, n_threads=self._threads())
            examined = self._examined(data, refined)
        refined = refined._replace(path=refined.path or (value,))
        order = self._set_parameters(refined.parameters, sums[2])
        self.converged_, self.n_iter_ = refined.converged, refined.steps
        self.lower_bound_ = value
        notes = [unusable(reason) for reason in reasons]
        notes += note_unfinished(
            refined.path, refined.converged, float(everything.n), self.max_refine_iter
        )
        if examined is not None:
            examined = examined._replace(trust=examined.trust[order])
        judged = Judged(
            examined,
            self._labels(),
            About("state", "observations", "observations"),
            self._instead(examined),
            self.weights_,
        )
        first, final = (p[2].reshape(k, -1) for p in (chosen.parameters, refined.parameters))
        partner = scipy.optimize.linear_sum_assignment(cdist(final, first))[1][order]
        if chosen.facts is not None and np.isnan(chosen.facts.noise):
            text = "There are too few observations to gauge the noise of the moments."
            notes.append(Finding("noise unknown", text))
        self.report_ = refinement_report(
            refined,
            Proposed(chosen, starts, partner),
            judged,
            refining=self._refining,
            notes=[*notes, *self._notes(*data.counts())],
            details={
                "sequences": data.counts()[0],
                "short_sequences": data.counts()[1],
                **stream_details(whole and whole.chunks),
                "second_eigenvalue": second_eigenvalue(self.transmat_),
                "candidates": tuple(start.name for start in starts),
            },
        )

    def _source_observations(
        self, family: Any, whole: WholeSequences, X: np.ndarray, lengths: np.ndarray
    ) -> Observations:
        """The sample of a source as EM reads it."""
        return self._observations(family, X, lengths)

    def _observed(self, family: Any, chunk: SequenceChunk) -> Observations:
        return self._observations(family, chunk.X, chunk.lengths)

    def _examined(self, data: Training, refined: Refined) -> Examined | None:
        """What either half of the sequences makes of the answer."""
        k = len(refined.parameters[0])
        if not self._refining or k == 1:
            return None
        halves = two_halves(data.lengths, k, self._own_rng())
        if halves is None:
            return None
        family = data.family
        parts = [
            MarkovPart(self._problem(family, self._observations(family, data.X[place], pieces)))
            for place, pieces in halves
        ]
        return examine(parts, refined.parameters, unit="observation", rival=refined.contest.rival)

    def _runs_there(self, n: int) -> bool:
        """Whether E-steps on so many observations run on a device."""
        return self._device is not None and n >= FEW

    def _starts(self, data: Training, k: int) -> tuple[list[Start], list[str]]:
        """Starts, the recommended first, and notes for the report."""
        given = self._given(data, k)
        if k == 1:
            return [self._one_state(data)], []
        rng = self._rng()
        return propose(
            lambda: self._moment_starts(data, k, self._settings(rng)),
            lambda count: self._other_starts(data, k, rng, count),
            rows=data.windows(),
            n_starts=self.n_starts,
            refining=self.refine != "none",
            given=given,
        )

    def _given(self, data: Training, k: int) -> Start | None:
        """The start given by hand, if any.

        Emissions that were not given are those of a start without moments; a chain that was not
        given follows from the state that is most probable for each observation alone.
        """
        start, T = self.startprob_init, self.transmat_init
        start = None if start is None else given_probabilities("startprob_init", start, (k,))
        T = None if T is None else given_probabilities("transmat_init", T, (k, k))
        emission = self._given_emission(data, k)
        if k == 1 or (start is None and T is None and emission is None):
            return None
        if emission is None:
            emission = self._other_starts(data, k, self._own_rng(), 1)[0].parameters[2:]
        tables = likelihood_tables(data.family, (np.ones(k), np.eye(k), *emission), data.rows)
        states = tables.logs.argmax(axis=1)
        states = states if data.rows.code is None else states[data.rows.code]
        counted = chain_of(states, data.rows.where.offsets, k)
        chain = counted[0] if start is None else start, counted[1] if T is None else T
        return Start(project(data.family, (*chain, *emission)), GIVEN)

    def _refined(self, data: Training, starts: list[Start]) -> tuple[Refined, Start]:
        """The starts race on a part of long data, then the best is refined on all of it."""
        first = by_hand_or_first(starts)
        if not self._refining:
            return Refined(first.parameters), first
        running = [start.parameters for start in starts]
        raced = None
        if len(running) > 1 and data.rows.n > 2 * RACE:
            place, pieces = thinned(data.lengths, self._own_rng())
            small = self._small_problem(data.family, data.X[place], pieces, running)
            raced = race(
                small.problem, small.starts, max_steps=min(100, self.max_refine_iter),
                stages=STAGES, finalists=finalists(self.n_starts),
            )  # fmt: skip
            self._log("race of %d starts: %s", len(running), starts[raced.chosen].name)
            running = [small.back(raced.parameters)]
        found = race(
            self._problem(data.family, data.rows), running, max_steps=self.max_refine_iter,
            stages=STAGES, finalists=finalists(self.n_starts),
        )  # fmt: skip
        if raced is not None:
            contest = raced.contest._replace(second=None)  # it stands for a part
            found = raced._replace(contest=contest).finished(found)
        first = starts[found.chosen]
        self._log(
            "start %s: %d EM steps, log-likelihood %.2f, %s", first.name, found.steps,
            found.path[-1] * data.rows.n, "converged" if found.converged else "not converged",
        )  # fmt: skip
        return found, first

    def _small_problem(
        self, family: Any, X: np.ndarray, lengths: np.ndarray, starts: list[Parameters]
    ) -> SmallProblem:
        """A part of the data to race on."""
        data = self._observations(family, X, lengths)
        return SmallProblem(self._problem(family, data), starts, lambda parameters: parameters)

    def _problem(self, family: Family, data: Observations) -> MarkovProblem:
        return MarkovProblem(family, data, self.tol, self._threads(), self._chart)

    def _set_parameters(self, parameters: Parameters, mass: np.ndarray) -> np.ndarray:
        """Fitted attributes, the most visited state first; returns the order."""
        weights = mass / mass.sum()
        order = canonical_order(weights)
        T = parameters[1][np.ix_(order, order)]
        T = T / T.sum(axis=1, keepdims=True)
        kind = self._dtype_out()
        self.weights_ = weights[order].astype(kind)
        self.startprob_ = (parameters[0][order] / parameters[0].sum()).astype(kind)
        self.transmat_ = T.astype(kind)
        self.stationary_ = stationary_distribution(T).astype(kind)
        self._set_emission(tuple(array[order] for array in parameters[2:]))
        return order

    def _check_loaded(self) -> None:
        super()._check_loaded()
        k = len(self.startprob_)
        for array in self._emission():
            if len(array) != k or not np.isfinite(array).all():
                raise InvalidInput("its emissions are not those of its states")
        if self.transmat_.shape != (k, k):
            raise InvalidInput("its transitions are not those of its states")

    def _batch_statistics(self, X: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
        family = self._fitted_family()
        data, parameters = self._observations(family, X, lengths), self._parameters()
        return expectation(family, data, project(family, parameters), n_threads=self._threads())[0]

    def _in_order(self, sums: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        order = canonical_order(sums[2])
        return sums[0][order], sums[1][np.ix_(order, order)], *(a[order] for a in sums[2:])

    def _take_statistics(self, sums: tuple[np.ndarray, ...]) -> None:
        self._set_parameters(maximise(self._fitted_family(), sums), sums[2])
