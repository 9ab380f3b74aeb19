"""Where a fit of Gaussian mixtures starts: moments, spread-out rows, what the user gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from thirdmoment._array import if_room, in_double, in_single, like_one, ones, sent_rows
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput, UnusableMoments
from thirdmoment.likelihood.gaussians import Diagonal, Spherical, Tied
from thirdmoment.likelihood.mixture import (
    BothChunks,
    MixtureData,
    Parameters,
    carry_over,
    from_labels,
)
from thirdmoment.models.mixtures.gaussian_fitted import FittedGaussian
from thirdmoment.models.read import check_views
from thirdmoment.moments.views import PairSums
from thirdmoment.refinement.race import Refined
from thirdmoment.refinement.split_merge import MANY_COMPONENTS
from thirdmoment.starts.gaussian import GaussianData, Whole, gaussian_view_starts, spread_labels
from thirdmoment.starts.given import (
    GIVEN,
    Shape,
    around_means,
    finite_start,
    given_array,
    given_probabilities,
    inverted,
    needs,
)
from thirdmoment.starts.propose import SPREAD_STARTS, propose
from thirdmoment.starts.spherical import spherical_starts
from thirdmoment.starts.start import TRUST, Settings, Start
from thirdmoment.streaming import Chunk, fold, kept, row_ranges

# Starts from spread-out rows with many components, where splits and mergers follow.
MANY_STARTS: Choice[int] = 4


class GaussianStarts(FittedGaussian):
    """The starts of a Gaussian mixture."""

    def _view_groups(self, d: int, rng: np.random.Generator) -> list[np.ndarray]:
        if self.covariance_type in ("full", "tied"):
            return [np.arange(d)]
        if self.covariance_type != "block":
            return [np.array([column]) for column in range(d)]
        groups = check_views(self.views, d, rng, getattr(self, "feature_names_in_", None))
        missing = np.setdiff1d(np.arange(d), np.concatenate(groups))
        if len(missing):
            raise InvalidInput(
                f"views leaves out column {missing[0]}; with covariance_type='block' every column "
                "belongs to one view. Drop the column from X or add it to a view."
            )
        return groups

    def _chunks(self, family: Any, data: GaussianData, *, fast: bool = False) -> MixtureData:
        X = data.X.astype(np.float32) if fast else data.X
        if data.device is not None:  # it works on all rows at once, if it has room
            there = if_room(lambda: _sent(family, X, data), lambda: None)
            if there is not None:
                return MixtureData([there])
        ranges = row_ranges(len(X))
        return MixtureData([family.rows(X[a:b], data.weights[a:b]) for a, b in ranges])

    def _family_of_all(self, family: Any, data: GaussianData) -> Any:
        """The family for all rows of a source, where ``family`` is that of a sample."""
        if data.whole is None or not isinstance(family, Tied):
            return family
        new = partial(PairSums, data.X.shape[1])
        sums = fold(new, data.samples(), n_threads=self._threads())
        return Tied(family.floor, sums.second, family.varies)

    def _all_rows(self, family: Any, whole: Whole, *, fast: bool) -> MixtureData:
        """All rows of a source as the family reads them; tensors are read once."""
        rows = whole.rows.mapped(partial(_family_rows, family, fast=fast))
        return MixtureData(kept(rows), whole.total)

    def _candidates(
        self, family: Any, data: GaussianData, k: int, views: list[np.ndarray]
    ) -> tuple[list[Start], list[str]]:
        """All starts, the moments first; only the moments if refine is off."""
        given, rng = self._given(family, data, k, views), self._rng()
        if k == 1:  # nothing to tell apart
            whole = from_labels(family, self._chunks(family, data), np.zeros(len(data.X), int), 1)
            return [Start(whole, "mean and covariance of all rows")], []
        direct = self.covariance_type not in ("full", "tied")  # the moments' own model
        return propose(
            lambda: self._moment_starts(family, data, views, self._settings(rng)),
            lambda count: self._spread_starts(family, data, views, rng, count),
            rows=data.total if direct else 0.0,  # of none: not trusted
            n_starts=self.n_starts,
            refining=self.refine != "none",
            given=given,
        )

    def _given(
        self, family: Any, data: GaussianData, k: int, views: list[np.ndarray]
    ) -> Start | None:
        """The start given by hand, if any."""
        needs("weights_init", self.weights_init, "means_init", self.means_init)
        needs("precisions_init", self.precisions_init, "means_init", self.means_init)
        if self.means_init is None:
            return None
        d, shape = data.X.shape[1], Shape(self.covariance_type, views)
        units = self._own_units()
        means = (given_array("means_init", self.means_init, (k, d)) - units.location) / units.scale
        weights, means, *spreads = around_means(data.X, data.weights, means, shape)
        if self.weights_init is not None:
            weights = given_probabilities("weights_init", self.weights_init, (k,))
        if self.precisions_init is not None:
            covariances = inverted("precisions_init", self.precisions_init, k, d, shape)
            spreads = [
                a / square for a, square in zip(covariances, self._squares(views), strict=True)
            ]
        given = finite_start((weights, means, *spreads), "means_init and precisions_init")
        return Start(family.project(given), GIVEN)

    def _spread_starts(
        self,
        family: Any,
        data: GaussianData,
        views: list[np.ndarray],
        rng: np.random.Generator,
        count: int | None = None,
    ) -> list[Start]:
        """So many starts without moments."""
        found, k = [], self.n_components
        crowded = k > data.X.shape[1]  # there are no moments then, and places matter more
        auto = MANY_STARTS if k >= MANY_COMPONENTS else SPREAD_STARTS
        for number in range(auto if count is None else count):
            part, labels = spread_labels(data, k, rng, greedy=crowded and number % 2 == 1)
            own = self._family(part, views)
            start = family.project(from_labels(own, self._chunks(own, part), labels, k))
            found.append(Start(start, "spread-out rows and k-means"))
        return found

    def _doubtful(self, family: Any, refined: Refined) -> bool:
        """Whether a component of a single start collapsed, or nearly vanished."""
        k = self.n_components
        if k == 1 or self.refine == "none" or self.max_refine_iter == 0:
            return False
        tiny = float(refined.parameters[0].min()) < TRUST.least_weight / k
        return tiny or bool(family.collapsed(refined.parameters))

    def _moment_starts(
        self, family: Any, data: GaussianData, views: list[np.ndarray], settings: Settings
    ) -> list[Start]:
        kind, k = self.covariance_type, self.n_components
        if kind == "spherical":
            starts = spherical_starts(data, k, settings, common=bool(self.common_variance))
            return [Start(family.project(p), "moments", facts) for p, facts in starts]
        source: Any = Diagonal(family.floor)
        try:
            columns = [np.array([c]) for c in range(data.X.shape[1])]
            own = views if kind == "block" else columns
            found = gaussian_view_starts(data, k, own, settings, block=kind == "block")
            name = "moments of views"
        except UnusableMoments:
            if kind in ("diag", "block"):
                raise
            source = Spherical(float(np.min(family.floor)))
            found = spherical_starts(data, k, settings, common=True)
            name = "spherical moments"
        return [
            Start(self._as_family(source, parameters, family, data), name, facts)
            for parameters, facts in found
        ]

    def _as_family(
        self, source: Any, parameters: Parameters, family: Any, data: GaussianData
    ) -> Parameters:
        """Parameters of a diagonal or spherical start in the family that was asked for."""
        if type(source) is type(family) or len(parameters) > 3:
            return family.project(parameters)
        family = self._family_of_all(family, data)
        if data.whole is not None:
            chunks: Any = data.whole.rows.mapped(partial(_both_rows, source, family))
        else:
            both = self._chunks(source, data).chunks, self._chunks(family, data).chunks
            chunks = [BothChunks(*pair) for pair in zip(*both, strict=True)]
        return carry_over(
            source, source.project(parameters), family, chunks, n_threads=self._threads()
        )


def _sent(family: Any, X: np.ndarray, data: GaussianData) -> Any:
    rows = sent_rows(X, data.device)
    return family.rows(rows, like_one(in_double(rows[:0, 0]), data.weights))


def _family_rows(family: Any, chunk: Chunk, *, fast: bool = False) -> Any:
    X = chunk.rows
    weights = ones(X.shape[0], like=X)
    return family.rows(in_single(X) if fast else X, weights)


def _both_rows(first: Any, second: Any, chunk: Chunk) -> BothChunks:
    return BothChunks(_family_rows(first, chunk), _family_rows(second, chunk))
