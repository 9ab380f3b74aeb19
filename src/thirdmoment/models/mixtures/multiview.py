"""Any multi-view mixture: means, weights and covariances from cross moments alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import check_sparse, single_threaded_blas
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput, MomentWarning, UnusableMoments, warn
from thirdmoment.likelihood.gaussians import Block, Diagonal
from thirdmoment.likelihood.mixture import MixtureData, from_labels, log_joint
from thirdmoment.models.base import all_or_nothing, check_option, check_weights
from thirdmoment.models.mixture import MixtureEstimator
from thirdmoment.models.mixtures.view_rows import (
    Components,
    Prepared,
    ViewRows,
    as_full,
    at_least,
    prepare_views,
    variances_of,
    view_part,
)
from thirdmoment.models.read import check_views, read_table
from thirdmoment.models.rows import counted_rows
from thirdmoment.models.tables import SparseRows, Table, open_table, stream_details
from thirdmoment.models.units import BELIEVABLE, Units, cast
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.race import Refined
from thirdmoment.report import Finding, Judged
from thirdmoment.report.findings import unusable
from thirdmoment.report.labels import column_labels
from thirdmoment.starts.gaussian import GaussianData, spread_labels
from thirdmoment.starts.start import Start
from thirdmoment.starts.view_facts import Wanted, view_covariances, view_facts
from thirdmoment.starts.views import ViewEstimates, view_starts
from thirdmoment.streaming import Source, row_ranges
from thirdmoment.streaming.dask import DaskSource, is_dask

# Dense views up to this width get full covariances with covariance_type="auto".
FULL_WIDTH: Choice[int] = 100


class MultiViewMixture(MixtureEstimator):
    """Mixture of anything, seen through three or more conditionally independent views.

    Nothing is assumed about the distributions of the components: only that groups of columns
    (views) are independent of each other given the component. Their means, the weights and the
    covariances follow from cross moments of first to third order. There is no likelihood to refine
    by; where the components are Gaussian or categorical, `GaussianMixture` with
    ``covariance_type="block"`` or `CategoricalMixture` go on from this estimate and are more
    accurate.

    Parameters
    ----------
    n_components : int, default=2
        Number of components k.
    views : int or list of column groups, default=3
        A list names the columns of each view. An int says that all columns are independent given
        the component: they are split at random into that many groups, several times, and the
        best conditioned split is kept.
    lift : {1, 2}, default=1
        2 adds the products of the columns of a view as features, which tells components with the
        same means apart by their covariances.
    covariance_type : {"auto", "full", "diag"}, default="auto"
        Covariances within views; "auto" is full for dense views of at most 100 columns.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
    refine : {"auto", "none"}, default="auto"
        ``"none"`` raises where the moments are unusable; ``"auto"`` then takes groups of spread-out
        rows instead, with a warning.
    weighting : {"auto", "none"}, default="auto"
        Centre and scale columns, append a constant and use all pairs of views; ``"none"`` is the
        papers' estimator on the columns as they are.
    random_state : int, RandomState instance or None, default=0
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    weights_ : (n_components,)
        Heaviest component first.
    means_ : list of (n_components, d_v)
        Mean of each view in each component, one consistent order.
    covariances_ : list of (n_components, d_v, d_v) or (n_components, d_v)
    view_groups_ : list of arrays
        Columns of each view.
    report_ : Report
        ``report_.details["incoherence"]`` is c_M of the random partition (1 is best).

    Notes
    -----
    `predict`, `predict_proba` and `score` use Gaussian distributions with these means and
    covariances as a working model.

    References
    ----------
    Anandkumar, Hsu and Kakade (2012), A method of moments for mixture models and hidden Markov
    models, COLT: Algorithm B, appendices B.4, B.5 and D.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import MultiViewMixture
    >>> from thirdmoment.datasets import make_gaussian_mixture
    >>> data = make_gaussian_mixture(3000, 12, 3)
    >>> views = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    >>> model = MultiViewMixture(n_components=3, views=views).fit(data.X)
    >>> [means.shape for means in model.means_]
    [(3, 4), (3, 4), (3, 4)]
    """

    _refinements = ("auto", "none")
    max_refine_iter = 0
    tol = 0.0

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Any = 3,
        lift: int = 1,
        covariance_type: str = "auto",
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.views = views
        self.lift = lift
        self.covariance_type = covariance_type
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_arguments(self) -> int:
        check_option("covariance_type", self.covariance_type, ("auto", "full", "diag"))
        if isinstance(self.lift, bool) or self.lift not in (1, 2):
            raise InvalidInput(f"lift={self.lift!r} must be 1 or 2.")
        return super()._check_arguments()

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultiViewMixture:
        """Learn the mixture of X (n_samples, n_features), dense or sparse.

        Parameters
        ----------
        X : array or sparse matrix, Dask array, or rows of `thirdmoment.source`
        y : ignored, as in scikit-learn
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = self._check_arguments()
        table = self._open(X, sample_weight, k)
        X, w = table.X, table.weights
        self._units = self._read_units(table)
        if sp.issparse(X):
            rows = sp.csr_array(X) @ sp.diags_array(1 / self._units.scale)
        else:
            rows = self._units.rows(X)
        data = ViewRows(rows, w, table.whole(self._units.rows))
        rng = self._rng()
        names = getattr(self, "feature_names_in_", None)
        groups = check_views(self.views, X.shape[1], rng, names)
        with single_threaded_blas():
            try:
                chosen, found, moved = self._from_moments(data, groups, rng)
            except UnusableMoments as error:
                if self.refine == "none":
                    raise
                warn(
                    f"The moments are not usable: {error} The components are groups of k-means "
                    "instead; see report_.",
                    MomentWarning,
                )
                chosen = Start((), f"spread-out rows and k-means ({error})")
                found, moved = self._from_spread_rows(rows, w, groups, rng), 0
            likely, answer = view_part(rows, found)
            examined = self._examined(likely, w, answer, cells=X.shape[1])
        notes = [] if chosen.facts else [unusable(chosen.name)]
        if moved:
            text = (
                f"{moved} variances came out infeasible and were moved towards those of all "
                "components: there is little data for covariances (the means need less)."
            )
            notes.append(Finding("infeasible variances", text))
        self._set_parameters(found, table.dtype)
        means = self._side_by_side(self.means_)
        names, scale = self._column_names(), self._units.scale
        judged = Judged(examined, column_labels(means, self.weights_, scale, names))
        details = stream_details(table.stream)
        self.report_ = self._report(chosen, Refined(()), judged, notes, details=details)
        return self

    def _open(self, X: Any, sample_weight: Any, k: int) -> Table:
        """Dense rows, or sparse ones; a source of sparse rows is read into memory."""
        if isinstance(X, Source) or is_dask(X):
            X = DaskSource(X) if is_dask(X) else X
            try:
                return open_table(self, X, sample_weight, k)
            except SparseRows:
                X = X.gather()
        X = self._read(X, reset=True)
        place, w = counted_rows(X, check_weights(sample_weight, X), k)
        return Table(X[place], w, X.dtype)

    @property
    def _refining(self) -> bool:
        """Halves are checked by likelihood, though the answer is that of the moments."""
        return self.refine != "none"

    def _read_units(self, table: Table) -> Units:
        """Each column in its own unit; sparse ones, and those of the papers' form, not centred."""
        X: Any = table.X
        w = table.weights
        plain = Units.plain(np.zeros(X.shape[1]))
        if sp.issparse(X):
            scale = np.sqrt((w / w.sum()) @ X.multiply(X).astype(np.float64))
            scale = np.where(scale > 0, scale, scale[scale > 0].mean() if scale.any() else 1.0)
            units = plain._replace(scale=scale)
            return units if self.weighting == "auto" else units.common()
        units = table.units()
        return units if self.weighting == "auto" else plain._replace(scale=units.common().scale)

    def _read(self, X: Any, *, reset: bool) -> Any:
        check_sparse(X)
        return read_table(self, X, accept_sparse="csr", reset=reset)

    def _from_moments(
        self, data: ViewRows, groups: list[np.ndarray], rng: np.random.Generator
    ) -> tuple[Start, Components, int]:
        """Components, and how many variances had to be made feasible."""
        X = data.X
        settings = self._settings(rng)._replace(hedge=False)
        views = [np.array([c]) for c in range(X.shape[1])] if self._free_columns() else groups
        prepared = prepare_views(
            data,
            views,
            lift=self.lift,
            weighted=settings.weighted,
            n_threads=settings.n_threads,
        )
        start = view_starts(prepared.table, self.n_components, settings)[0]
        if self._free_columns() and self.views == 3:
            width = X.shape[1]
            groups = [np.sort(group[group < width]) for group in start.groups]
            left = np.setdiff1d(np.arange(width), np.concatenate(groups))  # columns of one value
            groups[0] = np.sort(np.concatenate([groups[0], left]))
        columns = start.means * prepared.scale[:, None]
        means = columns[prepared.linear].T
        covariances, moved = self._covariances(X, prepared, start, groups)
        facts = view_facts(start, means.T).reordered(canonical_order(start.weights))
        facts.details["infeasible_variances"] = moved
        found = Components(start.weights, means, covariances, groups)
        return Start((), "moments of views", facts), found, moved

    def _free_columns(self) -> bool:
        """Whether every column is a view of its own (``views`` is a number, no products)."""
        return isinstance(self.views, (int, np.integer)) and self.lift == 1

    def _covariances(
        self,
        X: Any,
        prepared: Prepared,
        start: ViewEstimates,
        groups: list[np.ndarray],
    ) -> tuple[list[np.ndarray], int]:
        """MV-18: second moments of a view, weighted by linear scores of all other views."""
        return view_covariances(
            prepared.table.chunks,
            start,
            [
                Wanted(group, self._features_of(group, prepared), self._diagonal(X, group))
                for group in groups
            ],
            prepared.scale,
            n_threads=self._threads(),
        )

    def _features_of(self, group: np.ndarray, prepared: Prepared) -> np.ndarray:
        """All features made of the columns of a view."""
        if self.lift == 1:
            return group
        for view in prepared.table.views:
            if np.isin(group, view).any():
                return view
        return group

    def _diagonal(self, X: Any, group: np.ndarray) -> bool:
        if self.covariance_type != "auto":
            return self.covariance_type == "diag"
        return sp.issparse(X) or len(group) > FULL_WIDTH

    def _from_spread_rows(
        self, X: Any, w: np.ndarray, groups: list[np.ndarray], rng: np.random.Generator
    ) -> Components:
        """Groups of spread-out rows, and their means and covariances."""
        rows = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
        location = (w @ rows) / w.sum()
        data = GaussianData(rows - location, w, location)
        part, labels = spread_labels(data, self.n_components, rng, greedy=False)
        family = Block(BELIEVABLE, groups)
        chunk = MixtureData([family.rows(part.X, part.weights)])
        weights, means, *covariances = from_labels(family, chunk, labels, self.n_components)
        covariances = [
            np.diagonal(cov, axis1=1, axis2=2).copy() if self._diagonal(X, group) else cov
            for cov, group in zip(covariances, groups, strict=True)
        ]
        return Components(weights, means + location, covariances, groups)

    def _set_parameters(self, found: Components, dtype: Any) -> None:
        """Found in units of the columns; kept as the user knows them."""
        weights, means, covariances, groups = found
        order, units = canonical_order(weights), self._units
        self.weights_ = weights[order].astype(dtype)
        self.view_groups_ = groups
        means = means[order] * units.scale + units.location
        self.means_ = [cast(means[:, group], dtype) for group in groups]
        self.covariances_ = [
            cast(at_least(cov[order], BELIEVABLE) * self._squares(cov, group), dtype)
            for cov, group in zip(covariances, groups, strict=True)
        ]

    def _squares(self, covariance: np.ndarray, group: np.ndarray) -> np.ndarray:
        """What variances in units are to be multiplied by."""
        scale = self._units.scale[group]
        return scale**2 if covariance.ndim == 2 else scale[:, None] * scale

    def _log_joint(self, X: Any) -> np.ndarray:
        X = self._read(X, reset=False)
        columns = np.concatenate(self.view_groups_)
        units = self._units
        place = units._replace(
            location=units.location[columns],
            scale=units.scale[columns],
            varies=units.varies[columns],
        )
        means = np.concatenate(self.means_, axis=1).astype(np.float64)
        means = (means - place.location) / place.scale
        middle = means.mean(axis=0)  # sparse rows have a location of zero
        spreads = [
            np.asarray(cov, dtype=np.float64) / self._squares(cov, group)
            for cov, group in zip(self.covariances_, self.view_groups_, strict=True)
        ]
        family: Any
        if all(cov.ndim == 2 for cov in spreads):
            family, spreads = Diagonal(1e-100), [np.concatenate(spreads, axis=1)]
        else:
            cuts = np.cumsum([len(group) for group in self.view_groups_])[:-1]
            family = Block(1e-100, np.split(np.arange(len(columns)), cuts))
            spreads = [as_full(cov) for cov in spreads]
        parameters = (np.asarray(self.weights_, dtype=np.float64), means - middle, *spreads)
        parts = []
        for a, b in row_ranges(X.shape[0]):
            rows = X[a:b].toarray() if sp.issparse(X) else X[a:b]
            chunk = family.rows(place.rows(rows[:, columns]) - middle, np.ones(b - a))
            parts.append(log_joint(family, parameters, chunk).T)
        joint = np.concatenate(parts) - place.log_volume()
        return joint

    def _side_by_side(self, parts: list[np.ndarray]) -> np.ndarray:
        """What views (k, d_v) say of their columns, in the order of the columns (k, d)."""
        out = np.zeros((len(self.weights_), self.n_features_in_))
        for group, part in zip(self.view_groups_, parts, strict=True):
            out[:, group] = part
        return out

    def plot(self, *, ax: Any = None) -> Any:
        """Mean and spread of each column in each component; returns the axes."""
        from thirdmoment.report.plot_models import plot_profiles

        check_is_fitted(self)
        means = self._side_by_side(self.means_)
        spreads = np.sqrt(self._side_by_side([variances_of(cov) for cov in self.covariances_]))
        return plot_profiles(means, spreads, self.weights_, self._column_names(), ax=ax)

    def _n_parameters(self) -> int:
        k = len(self.weights_)
        spread = sum(
            cov.shape[1] * (cov.shape[1] + 1) // 2 if cov.ndim == 3 else cov.shape[1]
            for cov in self.covariances_
        )
        return int(k * (sum(m.shape[1] for m in self.means_) + spread) + k - 1)
