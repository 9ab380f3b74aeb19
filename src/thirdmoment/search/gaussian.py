"""One component of a spherical Gaussian mixture, from labelled rows or a direction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import blas_as_before, single_threaded_blas
from thirdmoment.exceptions import (
    InputWarning,
    InvalidInput,
    MomentWarning,
    RankDeficientMoment,
    warn,
)
from thirdmoment.models.base import (
    all_or_nothing,
    check_components,
    check_jobs,
    check_option,
    check_weights,
)
from thirdmoment.models.read import read_table
from thirdmoment.models.units import BELIEVABLE, column_units
from thirdmoment.moments.gaussian import (
    SphericalNoise,
    SphericalWhitening,
    directed_spherical,
    whitened_rows,
)
from thirdmoment.recovery.search import whitened_search
from thirdmoment.refinement.spread import weight_quantiles
from thirdmoment.report import Finding, Report
from thirdmoment.search.component import (
    Component,
    more_components,
    preparation_report,
    search_report,
)
from thirdmoment.search.rows import (
    RowSearch,
    TrainingRows,
    assigner,
    one_hint,
    training_rows,
)
from thirdmoment.sizes import RACE
from thirdmoment.starts.spherical import signal_directions
from thirdmoment.streaming import fold


class GaussianSearch(RowSearch):
    """Find the one Gaussian component that some labelled rows, or a direction, point at.

    ``fit`` gathers mean, covariance and noise once; a query is a weighted second moment in k
    dimensions and one small eigenproblem. Components are spherical, each with its own variance.
    Labelled rows are whitened first, so that neither the length of a mean nor the overlap with
    others matters.

    Parameters
    ----------
    n_components : int, default=2
        Number of components k of the mixture. With more than columns single answers are blends
        (a warning says so), but ``assign`` still tells the components apart.
    random_state : ignored, present for consistency
    n_jobs : int or None, default=None
        Threads; None uses every core.
    verbose : int, default=0

    Attributes
    ----------
    mean_ : (n_features,)
        Mean of all rows.
    noise_variance_ : float
        Mean variance within components.
    report_ : Report
        Spectrum and noise of the covariance.
    n_features_in_ : int

    See Also
    --------
    GaussianMixture : all components at once.

    References
    ----------
    Ray, Neeman, Sanghavi and Shakkottai (2018), The search problem in mixture models, JMLR 18.

    Examples
    --------
    >>> from thirdmoment import GaussianSearch
    >>> from thirdmoment.datasets import make_gaussian_mixture
    >>> data = make_gaussian_mixture(2000, 10, 4)
    >>> search = GaussianSearch(4).fit(data.X)
    >>> found = search.search(data.X[data.labels == 1][:5])
    >>> found.informative, found.parameters.shape
    (True, (10,))
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianSearch:
        """Prepare the rows X (n_samples, n_features) for queries.

        Parameters
        ----------
        X : array
        y : ignored, as in scikit-learn
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = check_components(self.n_components)
        check_jobs(self.n_jobs)
        X = read_table(self, X)
        data = training_rows(X, check_weights(sample_weight, X), k)
        crowded: tuple[str, ...] = ()
        if k > X.shape[1]:
            text = (
                f"{X.shape[1]} columns show at most {X.shape[1]} spherical components, fewer than "
                f"n_components={k}: single answers are blends of several. assign goes by "
                "likelihood and needs no more columns."
            )
            crowded, k = (text,), X.shape[1]
        self._units = units = column_units(data.X, data.weights).common()
        unit = float(units.scale[0])
        data = data._replace(X=units.rows(data.X))  # squares of large means would cancel
        part = weight_quantiles(data.weights, RACE)
        counts = data.weights if len(part) == len(data.X) else np.ones(len(part))
        self._part = TrainingRows(data.X[part], counts)
        chunks, threads = data.samples(), self._threads()
        with single_threaded_blas():
            try:
                white, size = signal_directions(chunks, k, self._rng(), n_threads=threads)
            except RankDeficientMoment as error:  # in the user's own number
                asked = int(self.n_components)
                raise RankDeficientMoment(
                    rank=error.rank, k=asked, smallest=error.smallest, floor=error.floor
                ) from None
            for text in crowded:
                warn(text, MomentWarning)
            noise = fold(lambda: SphericalNoise(white), chunks, n_threads=threads)
            self._rows = data.whitened(whitened_rows(white, data.X - white.mean))
        self._white: SphericalWhitening = white
        self._variance = noise.variance()
        self.mean_ = units.location + white.mean * unit
        self.noise_variance_ = white.sigma2 * unit**2
        # the constant is the first
        spectrum = np.concatenate([white.spectrum[:1], white.spectrum]) * unit**2
        size = size * unit**2 if k > 1 else 0.0
        self.report_: Report = preparation_report(
            spectrum,
            size,
            k,
            passes=2,
            notes=[Finding("crowded", t, level="care") for t in crowded],
        )
        self._doubts = crowded or more_components(spectrum, size, k)
        return self

    def search(
        self, samples: Any = None, *, direction: Any = None, whiten: bool = True
    ) -> Component:
        """The component that the hint points at.

        Parameters
        ----------
        samples : (n_labels, n_features) or (n_features,) array, optional
            Rows that belong to the component; they need not be part of the data.
        direction : (n_features,) array, optional
            Any v; the component with the largest <mean, v> is found. Inner products are taken from
            the origin: centre X first if it means nothing.
        whiten : bool, default=True
            Whiten the labelled rows. Otherwise their mean is taken for a direction as it is, which
            finds the component of the longest mean rather than their own where means overlap;
            ``alignment`` then tells.

        Returns
        -------
        Component
            ``parameters`` is the mean; ``report.details["variance"]`` the component's variance.
        """
        check_is_fitted(self)
        white = self._white
        if one_hint(samples=samples, direction=direction) == "samples":
            rows = self._labelled(samples)
            labels = self._units.rows(rows) - white.mean
            own = whitened_rows(white, labels).mean(axis=0)  # v = WWᵀx̄ (SR-24)
            hint = own if whiten else self._scores(rows.mean(axis=0))
            return self._found(hint, own, labels)
        hint = self._scores(self._direction(direction))
        return self._found(hint, hint, None)

    def _scores(self, v: np.ndarray) -> np.ndarray:
        """W*ᵀ v (k,) of a direction in the columns of X, for rows in their unit."""
        middle = self.mean_ / self._units.scale
        return np.append(np.sqrt(self._white.eta) * (self._white.E.T @ v), middle @ v)

    @blas_as_before
    def _found(self, hint: np.ndarray, meant: np.ndarray, labels: np.ndarray | None) -> Component:
        """The component with the largest score for ``hint``, judged by what was ``meant``."""
        white, rows = self._white, self._rows
        # a constant score adds a multiple of E[y yᵀ] = I, free of noise wherever the origin lies
        varying = np.append(hint[:-1], 0.0)
        with single_threaded_blas():
            raw = rows.gram(rows.Y @ varying, n_threads=self._threads())
        M = directed_spherical(raw.whole, white, self._variance, varying)
        M = M + hint[-1] * np.eye(len(M))
        m_w = np.append(np.zeros(len(white.eta)), 1.0)
        found = whitened_search(M, m_w, np.eye(len(m_w)), hint)
        centre = (white.E * np.sqrt(white.eta)) @ found.component[:-1]  # mean less m
        floor = 1e-6 * white.sigma2 + 1e-12 * float(white.eta.sum()) + BELIEVABLE**2
        variance = max(float(found.direction @ self._variance) / found.direction[-1], floor)
        score = np.nan if labels is None else self._label_score(labels, centre, variance)
        unit = float(self._units.scale[0])
        details: dict[str, Any] = {"variance": variance * unit**2}
        if labels is not None:
            details["hint"] = labels.mean(axis=0) * unit + self.mean_
        report = search_report(
            found,
            M,
            raw.difference,
            meant,
            label_score=score,
            details=details,
            extra=self._doubts,
        )
        return Component(
            found.weight,
            self.mean_ + centre * unit,
            found.margin,
            report.alignment,
            not report.warnings,
            report,
        )

    def _label_score(self, labels: np.ndarray, centre: np.ndarray, variance: float) -> float:
        """Mean log-density ratio of centred labels under the component and under all rows."""
        white, d = self._white, labels.shape[1]
        sigma2 = max(white.sigma2, 1e-12 * float(white.eta.sum()), BELIEVABLE**2)
        inside = labels @ white.E
        outside = (labels**2).sum(axis=1) - (inside**2).sum(axis=1)
        total = (inside**2 / (white.eta + sigma2)).sum(axis=1) + outside / sigma2
        total += np.log(white.eta + sigma2).sum() + (d - len(white.eta)) * np.log(sigma2)
        own = ((labels - centre) ** 2).sum(axis=1) / variance + d * np.log(variance)
        return float(np.mean(total - own) / 2)

    @blas_as_before
    def assign(
        self, X: Any, components: Iterable[Component], *, refine: str = "auto"
    ) -> np.ndarray:
        """Which of the components found explains each row of X best (n_samples,).

        The components together make up the whole mixture.

        Parameters
        ----------
        X : (n_samples, n_features) array
        components : list of Component
            Answers of this search, one for each component there is.
        refine : {"auto", "none"}, default="auto"
            ``"auto"``: a few EM steps on the rows of ``fit`` from the labelled rows, spherical or
            full components by BIC; right where components are not spherical, and where there are
            more of them than columns. ``"none"``: means, weights and variances as they were found.
        """
        check_is_fitted(self)
        check_option("refine", refine, ("auto", "none"))
        components = list(components)
        if not components:
            raise InvalidInput("No component is given to assign rows to.")
        d = self.n_features_in_
        if any(not isinstance(c, Component) or c.parameters.shape != (d,) for c in components):
            raise InvalidInput(f"components must be answers of a search over {d} columns.")
        X = read_table(self, X, reset=False)
        if refine == "auto":
            hints = [one.report.details.get("hint", one.parameters) for one in components]
            with single_threaded_blas():
                places = self._units.rows(np.stack(hints))
                found = assigner(*self._part, places, n_threads=self._threads())
            own = found.labels(places)
            lost = [str(j) for j, label in enumerate(own) if label != j]
            if lost:
                warn(
                    f"The hints of components {', '.join(lost)} lie in another component now: they "
                    "are much alike, or one labelled row says too little. Give more rows for each.",
                    InputWarning,
                )
            return found.labels(self._units.rows(X))
        X, unit = self._units.rows(X), float(self._units.scale[0])
        scores = []
        for component in components:
            variance = component.report.details["variance"] / unit**2
            square = ((X - self._units.rows(component.parameters[None])) ** 2).sum(axis=1)
            weight = np.log(max(component.weight, 1e-300))
            scores.append(weight - square / (2 * variance) - X.shape[1] / 2 * np.log(variance))
        return np.argmax(np.stack(scores), axis=0)
