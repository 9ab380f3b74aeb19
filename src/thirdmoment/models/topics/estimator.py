"""What both topic models share: arguments, the moment start, other starts, top words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment.decomposition import choose_solver
from thirdmoment.exceptions import (
    InvalidInput,
    MomentWarning,
    RankDeficientMoment,
    UnusableMoments,
    warn,
)
from thirdmoment.metrics.alignment import align
from thirdmoment.models.base import (
    MomentEstimator,
    check_integer,
    check_weights,
)
from thirdmoment.models.topics.counts import Counts, merged, read_counts, training_counts
from thirdmoment.models.topics.describe import Candidate, describe_moments
from thirdmoment.models.topics.fallback import spread_topics
from thirdmoment.models.topics.start import (
    MomentOptions,
    TopicStart,
    moment_options,
    moment_start,
)
from thirdmoment.report import Report
from thirdmoment.streaming import Corpus, corpus


class TopicEstimator(MomentEstimator):
    """Base of the topic models; its subclasses say how to refine."""

    _refinements: tuple[str, ...] = ("auto", "none")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _read_training(self, X: Any, sample_weight: Any) -> Counts:
        """Arguments first, then the data: errors come before any long work."""
        k = self._check_shared(self._refinements)
        X, dtype = read_counts(self, X, reset=True)
        counts = training_counts(self, X, check_weights(sample_weight, X), k, dtype)
        X, weights = merged(counts.X, counts.weights)
        return counts._replace(X=X, weights=weights)

    def _candidates(
        self, counts: Counts, data: Corpus, rng: np.random.Generator, alpha0: float | None
    ) -> list[Candidate]:
        """The moment start; where that fails and refinement is on, other starts with a warning."""
        k = self.n_components
        options = self._moment_options(data)
        try:
            found = moment_start(data, k, rng, alpha0=alpha0, options=options)
            return [
                Candidate(estimate.topics, estimate.weights, found.alpha0, text, found, estimate)
                for estimate, text in zip(found.estimates, _rank_names(found), strict=True)
            ]
        except UnusableMoments as error:
            if self.refine == "none":
                raise
            reason = str(error)
            rank = error.rank if isinstance(error, RankDeficientMoment) else 0
        warn(
            f"The moments are not usable: {reason} The fit starts from spread-out documents "
            "instead, refined by likelihood; see report_.",
            MomentWarning,
        )
        spread = spread_topics(counts.X, counts.weights, k, rng)
        even, total = np.full(k, 1 / k), 1.0 if alpha0 is None else alpha0
        starts = [Candidate(spread, even, total, f"spread-out documents ({reason})", None)]
        if 1 <= rank < k:
            try:
                part = moment_start(data, rank, rng, alpha0=alpha0, options=options)
            except UnusableMoments:
                return starts
            topics = spread_topics(counts.X, counts.weights, k, rng, part.estimate.topics)
            text = f"moments of rank {rank}, completed by spread-out documents ({reason})"
            starts.append(Candidate(topics, even, part.alpha0, text, None))
        return starts

    def _moment_options(self, data: Corpus) -> MomentOptions:
        return moment_options(self.weighting, self.solver, self._threads(), data.nnz)

    def _again(self, start: Candidate, data: Corpus, rng: np.random.Generator) -> Candidate:
        """A trusted start once more from more documents; what was found out about it stays."""
        if start.moments is None:
            return start
        k, options = self.n_components, self._moment_options(data)
        try:
            found = moment_start(data, k, rng, alpha0=start.alpha0, options=options)
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
        chosen: Candidate,
        counts: Counts,
        *,
        path: tuple[float, ...],
        details: dict[str, Any],
        extra_warnings: Sequence[str] = (),
    ) -> Report:
        notes = list(extra_warnings)
        if counts.too_short:
            notes.append(
                f"{counts.too_short} documents have fewer than three words: they count for single "
                "words and pairs, not for triples."
            )
        details = {"too_short_documents": counts.too_short, "input_unit": counts.unit, **details}
        if chosen.estimate is not None and self.refine != "none":
            order = align(chosen.estimate.topics, self.components_)
            chosen = chosen._replace(estimate=chosen.estimate.reordered(order))
        found = describe_moments(chosen, self.n_components, choose_solver(self.solver))
        found["warnings"] = (*found["warnings"], *notes)
        found["details"] |= details
        return Report(n_components=self.n_components, start=chosen.start, refine_path=path, **found)

    def top_words(
        self, n: int = 10, feature_names: Sequence[str] | np.ndarray | None = None
    ) -> list[list[Any]]:
        """The ``n`` most probable words of each topic.

        Parameters
        ----------
        n : int
            Words a topic.
        feature_names : sequence of str, optional
            Words in column order; by default the column names seen in ``fit``, else column
            numbers.

        Returns
        -------
        list of lists
            One list a topic, most probable word first.
        """
        check_is_fitted(self)
        n = check_integer("n", n, 1)
        names: Any = feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        if len(names) != self.n_features_in_:
            raise InvalidInput(
                f"feature_names has {len(names)} names, but the model was fitted on "
                f"{self.n_features_in_} words."
            )
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        return [[names[j] for j in row] for row in order]

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


def _rank_names(found: TopicStart) -> list[str]:
    names = ["moments"]
    names += ["moments of a higher rank, heaviest components kept"] * (len(found.estimates) - 1)
    return names


def cut(counts: Counts) -> Corpus:
    """The counts as chunks for the moments."""
    return corpus(counts.X, counts.weights)
