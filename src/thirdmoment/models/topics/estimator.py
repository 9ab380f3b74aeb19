"""What all topic models share: reading, starts from moments or documents, the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import is_tensors, to_numpy
from thirdmoment.decomposition import choose_solver
from thirdmoment.exceptions import InvalidInput, RankDeficientMoment, UnusableMoments
from thirdmoment.metrics.alignment import align
from thirdmoment.models.base import (
    MomentEstimator,
    check_integer,
    check_positive,
    check_weights,
)
from thirdmoment.models.topics.counts import (
    Counts,
    check_different,
    from_corpus,
    merged,
    read_counts,
    training_counts,
)
from thirdmoment.models.topics.streamed import read_stream
from thirdmoment.models.topics.tables import TopicTables
from thirdmoment.models.topics.words import (
    column_names,
    ranked_words,
    shared_words,
    topic_labels,
    training_words,
)
from thirdmoment.recovery.topics import TopicEstimate
from thirdmoment.refinement.halves import Examined
from thirdmoment.refinement.topic_halves import LEAST_DOCUMENTS
from thirdmoment.report import About, Finding, Judged, Report, moment_findings
from thirdmoment.report.findings import unusable
from thirdmoment.starts.spread_topics import spread_topics
from thirdmoment.starts.words import (
    MomentOptions,
    WordMoments,
    moment_options,
    moment_start,
)
from thirdmoment.streaming import AnyCorpus, Source, corpus
from thirdmoment.streaming.dask import DaskSource, is_dask


class TopicStart(NamedTuple):
    """Topics to refine from, and where they came from."""

    topics: np.ndarray  # (k, d)
    weights: np.ndarray  # (k,)
    alpha0: float
    start: str  # for the report
    moments: WordMoments | None  # kept: the concentration is settled after the sweeps
    estimate: TopicEstimate | None = None  # the one of the rank that made these topics

    @property
    def trusted(self) -> bool:
        """Whether the moments explain themselves up to their noise."""
        return self.moments is not None and self.moments.trusted


def describe_moments(chosen: TopicStart, k: int, solver: str) -> dict[str, Any]:
    """Fields of the report that come from the moments, for the start that was chosen."""
    found, estimate = chosen.moments, chosen.estimate
    if found is None or estimate is None:
        return _without_moments(chosen.start, k)
    snr = float(found.spectrum[k - 1] / found.noise) if found.noise > 0 else np.inf
    measured: dict[str, Any] = {
        "snr": snr,
        "residual": found.decomposition.residual,
        "clipped_mass": estimate.clipped_mass,
        "raw_weights": estimate.raw_weights,
    }
    return {
        **measured,
        "spectrum": found.spectrum,
        "noise": found.noise,
        "solver": solver,
        "passes": found.passes,
        "details": _details(found, estimate),
    }


def _details(found: WordMoments, estimate: TopicEstimate) -> dict[str, Any]:
    return {
        "ranks_tried": len(found.estimates),
        "subspace_residual": found.subspace_residual,
        "decomposition": found.decomposition.status.value,
        "eigenvalue_gap": found.decomposition.gap,
        "draws": found.decomposition.draws,
        "real_draws": found.decomposition.real_draws,
        "negative_components": estimate.spurious,
        "topic_scale": estimate.scale,
        "concentration_profile": found.solved.profile,
        "trusted": found.trusted,
        "unexplained_over_noise": found.solved.unexplained,
    }


def _without_moments(start: str, k: int) -> dict[str, Any]:
    nothing = np.full(k, np.nan)
    return {
        "snr": np.nan,
        "residual": np.nan,
        "clipped_mass": nothing,
        "raw_weights": nothing,
        "spectrum": np.empty(0),
        "noise": np.nan,
        "solver": "none",
        "passes": 1,
        "findings": (unusable(start),),
        "details": {},
    }


class TopicEstimator(TopicTables, MomentEstimator):
    """Base of the topic models; its subclasses say how to refine."""

    _layout = 5
    _refinements: tuple[str, ...] = ("auto", "none")
    _about = About("topic", "documents", "top words", LEAST_DOCUMENTS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_positive("input_unit_", self.input_unit_)
        if not isinstance(self.words_, list) or len(self.words_) != self.n_features_in_:
            raise InvalidInput("its words are not those of its columns")

    def _forget_batches(self) -> None:
        """A fit ends a stream of batches."""
        for name in ("_batches", "n_seen_"):
            self.__dict__.pop(name, None)

    def _read_training(self, X: Any, sample_weight: Any, feature_names: Any) -> Counts:
        """Arguments first, then the data: errors come before any long work."""
        k = self._check_shared(self._refinements)
        X, feature_names, self.counter_ = from_corpus(X, feature_names)
        self._names: dict[int, str] = {}
        X, dtype = read_counts(self, X, reset=True)
        self.words_ = training_words(self, feature_names, X.shape[1])
        self.vocabulary_ = {word: j for j, word in enumerate(self.words_)}
        counts = training_counts(X, check_weights(sample_weight, X), k, dtype)
        X, weights = merged(counts.X, counts.weights)
        check_different(X.shape[0], k)
        return counts._replace(X=X, weights=weights)

    def _read_any(
        self, X: Any, sample_weight: Any, feature_names: Any, *, sampled: bool = False
    ) -> Counts:
        """Counts in memory; or those of a source, with a sample of them where it is needed."""
        X = DaskSource(X) if is_dask(X) else X
        if isinstance(X, Source):
            self._check_shared(self._refinements)
            if sample_weight is not None:
                raise InvalidInput("Documents of a source count alike: leave sample_weight out.")
            sampled = sampled or self.refine != "none"
            counts = read_stream(self, X, feature_names, sampled=sampled)
            if counts is not None:
                return counts
        return self._read_training(X, sample_weight, feature_names)

    def _starts(
        self,
        counts: Counts,
        data: AnyCorpus,
        rng: np.random.Generator,
        alpha0: float | None,
    ) -> list[TopicStart]:
        """The moment start; where that fails and refinement is on, other starts."""
        k = self.n_components
        options = self._moment_options(data)
        try:
            found = moment_start(data, k, rng, alpha0=alpha0, options=options)
            return [
                TopicStart(estimate.topics, estimate.weights, found.alpha0, text, found, estimate)
                for estimate, text in zip(found.estimates, _rank_names(found), strict=True)
            ]
        except UnusableMoments as error:
            if self.refine == "none":
                raise
            reason = str(error)
            rank = error.rank if isinstance(error, RankDeficientMoment) else 0
        if is_tensors(counts.X):
            counts = counts._replace(X=counts.X.scipy(), weights=to_numpy(counts.weights))
        spread = spread_topics(counts.X, counts.weights, k, rng)
        even, total = np.full(k, 1 / k), 1.0 if alpha0 is None else alpha0
        starts = [TopicStart(spread, even, total, f"spread-out documents ({reason})", None)]
        if 1 <= rank < k:
            try:
                part = moment_start(data, rank, rng, alpha0=alpha0, options=options)
            except UnusableMoments:
                return starts
            topics = spread_topics(counts.X, counts.weights, k, rng, to_numpy(part.estimate.topics))
            text = f"moments of rank {rank}, completed by spread-out documents ({reason})"
            starts.append(TopicStart(topics, even, part.alpha0, text, None))
        return starts

    def _moment_options(self, data: AnyCorpus) -> MomentOptions:
        return moment_options(self.weighting, self.solver, self._threads(), data.nnz)

    def _again(self, start: TopicStart, data: AnyCorpus, rng: np.random.Generator) -> TopicStart:
        """A trusted start once more from more documents; what was found out about it stays."""
        if start.moments is None:
            return start
        k, options = self.n_components, self._moment_options(data)
        try:
            found = moment_start(
                data, k, rng, alpha0=start.alpha0, options=options, before=start.moments
            )
        except UnusableMoments:
            return start
        return start._replace(
            topics=found.estimate.topics,
            weights=found.estimate.weights,
            moments=found._replace(solved=start.moments.solved),
            estimate=found.estimate,
        )

    def _report(
        self,
        chosen: TopicStart,
        counts: Counts,
        *,
        path: tuple[float, ...],
        details: dict[str, Any],
        notes: Sequence[Finding] = (),
        examined: Examined | None = None,
    ) -> Report:
        k, short = self.n_components, counts.too_short
        found = list(notes)
        if short:
            text = (
                f"{short} documents have fewer than three words: they count for single words and "
                "pairs, not for triples."
            )
            found.append(Finding("short documents", text))
        details = {"too_short_documents": short, "input_unit": counts.unit, **details}
        details |= counts.details()
        if chosen.estimate is not None and self.refine != "none":
            order = align(chosen.estimate.topics, self.components_, metric="cosine")
            chosen = chosen._replace(estimate=chosen.estimate.reordered(order))
        moments = describe_moments(chosen, k, choose_solver(self.solver))
        found += moments.pop("findings", ())
        moments["details"] |= details
        if self.refine == "none":
            measured = {name: moments[name] for name in ("snr", "residual", "solver")}
            found += moment_findings(k=k, **measured)
        elif k > 1:
            found += shared_words(self.components_, self.words_)
        judged = Judged(
            examined,
            topic_labels(self.components_, self.weights_, self.words_),
            self._about,
            "Give more or longer documents, or ask for fewer topics.",
            self.weights_,
        )
        found += judged.findings(k, refining=self._refining)
        return Report(
            n_components=k,
            start=chosen.start,
            refine_path=path,
            findings=tuple(found),
            **judged.fields(k),
            **moments,
        )

    def top_words(
        self, n: int = 10, feature_names: Any = None, *, relevance: float = 1.0
    ) -> list[list[Any]]:
        """The ``n`` top words of each topic.

        Parameters
        ----------
        n : int
            Words a topic.
        feature_names : sequence of str or dict, optional
            Words in column order, or the column of each word; by default those of ``fit``, else
            column numbers.
        relevance : float between 0 and 1, default=1.0
            Words are ranked by relevance · log p + (1 - relevance) · log lift: 1 by probability,
            0 by lift, 0.6 brings out what sets a topic apart.

        Returns
        -------
        list of lists
            One list a topic, top word first.
        """
        check_is_fitted(self)
        n = check_integer("n", n, 1)
        names = self.words_
        if feature_names is not None:
            names = column_names(feature_names, self.n_features_in_)
        topics = np.asarray(self.components_, dtype=np.float64)
        mean = np.asarray(self.weights_, dtype=np.float64) @ topics
        return [[names[j] for j in ranked_words(law, mean, n, relevance)] for law in topics]

    def plot(self, *, ax: Any = None) -> Any:
        """How large the topics are, the largest on top; returns the axes."""
        from thirdmoment.report.plot_models import plot_weights

        check_is_fitted(self)
        return plot_weights(np.asarray(self.weights_), self.topic_labels_, ax=ax)

    def plot_topics(
        self,
        feature_names: Sequence[str] | np.ndarray | None = None,
        *,
        n: int = 8,
        spectrum: bool = False,
        figure: Any = None,
    ) -> Any:
        """Bar charts of each topic's top words, with the spectrum below if asked for.

        Draws on ``figure`` or on a new matplotlib figure, and returns it.
        """
        from thirdmoment.report.plot import plot_topics

        words = self.top_words(n, feature_names)
        probability = -np.sort(-self.components_, axis=1)[:, :n]
        return plot_topics(
            [[str(w) for w in row] for row in words],
            probability,
            self.weights_,
            report=self.report_ if spectrum else None,
            figure=figure,
        )


def _rank_names(found: WordMoments) -> list[str]:
    names = ["moments"]
    names += ["moments of a higher rank, heaviest components kept"] * (len(found.estimates) - 1)
    return names


def cut(counts: Counts) -> AnyCorpus:
    """All counts as chunks for the moments."""
    return corpus(counts.X, counts.weights) if counts.whole is None else counts.whole.corpus
