"""Gaussian mixtures: moments first, then accelerated EM from there."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Choice, Work
from thirdmoment.exceptions import InputWarning, warn
from thirdmoment.likelihood.gaussians import Tied
from thirdmoment.likelihood.mixture import MixtureData, Parameters, expectation
from thirdmoment.models.base import all_or_nothing, check_option
from thirdmoment.models.mixtures.gaussian_propose import GaussianStarts
from thirdmoment.models.read import read_table
from thirdmoment.models.rows import counted_rows
from thirdmoment.models.stream import StreamingMixture
from thirdmoment.models.tables import MIXTURE_READS, Table, open_table, stream_details
from thirdmoment.models.units import check_floor, units_and_floor
from thirdmoment.refinement.mixture import MixtureProblem
from thirdmoment.refinement.race import Refined
from thirdmoment.refinement.split_merge import MANY_COMPONENTS, split_and_merge
from thirdmoment.report import Judged
from thirdmoment.report.build import note_unfinished
from thirdmoment.report.findings import collapsed_finding, equal_rows, unusable
from thirdmoment.report.labels import column_labels
from thirdmoment.starts.gaussian import GaussianData, Whole
from thirdmoment.starts.start import Start

TYPES = ("spherical", "diag", "block", "full", "tied")

# EM steps before many components are split and merged; the rest follows after that.
BRIEF: Choice[int] = 30

# EM runs in float32 from this many numbers on, its last steps in float64.
FAST_SIZE: Work[int] = 500_000


class GaussianMixture(StreamingMixture, GaussianStarts):
    """Gaussian mixture whose starts are found and judged for you.

    The means come out of the first three moments, and a short accelerated EM from there makes
    them efficient. Where anything known doubts the moments (little data, data far from the model)
    a dozen other starts run against them, and the report says which won.

    Parameters
    ----------
    n_components : int, default=2
        Number of components k.
    covariance_type : {"spherical", "diag", "block", "full", "tied"}, default="spherical"
        ``"spherical"``: one variance a component, by noise-corrected moments (needs at least k
        columns). ``"diag"``: columns independent given the component, which makes random groups
        of columns conditionally independent views. ``"block"``: the groups in ``views`` are
        independent given the component. ``"full"`` and ``"tied"``: EM from the nearest of these.
    views : int or list of column groups, default=3
        Views for ``"block"``; an int draws that many random groups. Ignored otherwise.
    common_variance : bool, default=False
        With ``"spherical"``, one variance for all components.
    reg_covar : float or "auto", default="auto"
        Smallest variance of a component in any direction. ``"auto"`` is a millionth of each
        column's own variance (of their mean for ``"spherical"``), so that units do not matter; a
        number is absolute. (scikit-learn adds it to all variances instead.)
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
        What decomposes the moments.
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    weighting : {"auto", "none"}, default="auto"
        Weight the moments for their noise; ``"none"`` is the papers' estimator.
    n_starts : int or "auto", default="auto"
        Starts from spread-out rows that race against the moments. ``"auto"``: none where the
        moments are clear, else twelve (four from ten components on, where splits and mergers
        follow). More of them make the answer hang less on ``random_state``.
    weights_init, means_init, precisions_init : array, default=None
        A start by hand, shaped as in scikit-learn, that joins the race: where another start ends
        with a higher likelihood, that one is taken. Only ``means_init`` can be given alone.
    max_refine_iter : int, default=300
        Largest number of EM steps of the main run.
    tol : float, default=0.02
        Stop when a cycle of EM gains less than this many units of total log-likelihood.
    random_state : int, RandomState instance or None, default=0
        Draws of views and of the other starts.
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
    device : str, default=None
        ``"cuda"`` learns many rows of the host on a GPU; tensors are learned where they are. Up to
        50,000 rows, and rows with weights, are learned on the host.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : (n_components,)
    means_ : (n_components, n_features)
        Heaviest component first.
    covariances_ : array
        Shaped as in scikit-learn; for ``"block"`` a list with (n_components, d_v, d_v) a view.
    precisions_, precisions_cholesky_ : array
        As in scikit-learn; not for ``"block"``.
    converged_ : bool
    n_iter_ : int
        EM steps made.
    lower_bound_ : float
        Mean log-likelihood of a training row.
    view_groups_ : list of arrays
        Columns that are independent of each other given the component.
    report_ : Report

    Notes
    -----
    Of scikit-learn's arguments ``n_init`` is ``n_starts``, which is chosen for you; ``init_params``
    and ``warm_start`` have no counterpart; ``max_iter`` is ``max_refine_iter``, and ``tol`` is in
    units of total log-likelihood. The default covariance type there is ``"full"``.

    See Also
    --------
    MultiViewMixture : the same moments without assuming Gaussian components.

    References
    ----------
    Hsu and Kakade (2013), Learning mixtures of spherical Gaussians, ITCS.
    Anandkumar, Hsu and Kakade (2012), A method of moments for mixture models and hidden Markov
    models, COLT.

    Examples
    --------
    >>> from thirdmoment import GaussianMixture
    >>> from thirdmoment.datasets import make_gaussian_mixture
    >>> data = make_gaussian_mixture(2000, 10, 4)
    >>> model = GaussianMixture(n_components=4).fit(data.X)
    >>> model.means_.shape, model.report_.start
    ((4, 10), 'moments')
    """

    _reads_tensors = MIXTURE_READS
    _init_names = MappingProxyType({"covariances_": "precisions_init"})

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance_type: str = "spherical",
        views: Any = 3,
        common_variance: bool = False,
        reg_covar: float | str = "auto",
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        n_starts: int | str = "auto",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        max_refine_iter: int = 300,
        tol: float = 0.02,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.views = views
        self.common_variance = common_variance
        self.reg_covar = reg_covar
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.n_starts = n_starts
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Learn the mixture of X (n_samples, n_features).

        Parameters
        ----------
        X : array or tensor, Dask array, or rows of `thirdmoment.source`
        y : ignored, as in scikit-learn
            Where classes are known, give their means as ``means_init``.
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = self._check_arguments()
        table = open_table(self, X, sample_weight, k)
        self._forget_stream()
        return self._fit_table(table, k)

    def _check_arguments(self) -> int:
        check_option("covariance_type", self.covariance_type, TYPES)
        check_floor(self.reg_covar)
        return super()._check_arguments()

    def _fit_rows(self, X: np.ndarray, weights: np.ndarray | None, k: int) -> GaussianMixture:
        place, w = counted_rows(X, weights, k)
        return self._fit_table(Table(X[place], w, X.dtype), k)

    def _fit_table(self, table: Table, k: int) -> GaussianMixture:
        kind, w = self.covariance_type, table.weights
        units, self._floor = units_and_floor(
            table.units(),
            self.reg_covar,
            diagonal=kind == "diag",
            compared=kind == "spherical" or self.weighting == "none",
        )
        self._units = units
        location, rows = units.location / units.scale, table.whole(units.rows)
        whole, device = None, None
        if rows is not None and table.look is not None:
            whole = Whole(rows, table.total, table.look.variance / units.scale**2)
            device = rows.device
        data = GaussianData(units.rows(table.X), w, location, whole, device)
        rng = self._rng()
        views = self._view_groups(table.X.shape[1], rng)
        with single_threaded_blas():
            family = self._family(data, views)
            candidates, reasons = self._candidates(family, data, k, views)
            refined, chosen = self._run(family, data, candidates)
            alone = len(refined.contest.values) < 2 and self.n_starts == "auto"
            if alone and self._doubtful(family, refined):  # nothing was raced
                candidates = [chosen._replace(parameters=refined.parameters)]
                candidates += self._spread_starts(family, data, views, self._own_rng())
                refined, chosen = self._run(family, data, candidates)
            if whole is not None:
                of_all = self._family_of_all(family, data)
                fast = whole.rows.resident and table.dtype == np.float32
                fast = fast and self._may_run_fast(data, [refined.parameters])
                everything = self._all_rows(of_all, whole, fast=fast)
                refined = self._finished(of_all, everything, refined)
            examined = self._examined(partial(self._part, data, views), w, refined)
        self.view_groups_ = views
        self._set_parameters(refined.parameters, table.dtype)
        refined = refined.shifted(-units.log_volume())
        self.converged_, self.n_iter_ = refined.converged, refined.steps
        self.lower_bound_ = refined.path[-1]
        notes = [*equal_rows(len(table.X), k), *(unusable(reason) for reason in reasons)]
        collapsed = family.collapsed(refined.parameters)
        if collapsed:
            notes.append(collapsed_finding(collapsed, k, "components", np.min(family.floor)))
        notes += note_unfinished(refined.path, refined.converged, data.total, self.max_refine_iter)
        labels = column_labels(self.means_, self.weights_, units.scale, self._column_names())
        instead = "Use fewer components"
        if self.covariance_type in ("full", "block", "tied"):
            instead += ", or covariance_type='diag'"
        judged = Judged(examined, labels, instead=f"{instead}.", weights=self.weights_)
        details = stream_details(table.stream)
        self.report_ = self._report(chosen, refined, judged, notes, candidates, details)
        return self

    def _part(
        self, data: GaussianData, views: list[np.ndarray], place: np.ndarray, w: np.ndarray
    ) -> tuple[Any, MixtureData]:
        """Some of the rows, with a family of their own."""
        some = GaussianData(data.X[place], w, data.location, device=data.device)
        family = self._family(some, views)
        return family, self._chunks(family, some)

    def _may_run_fast(self, data: GaussianData, candidates: list[Parameters]) -> bool:
        """Whether float32 resolves the components: much data, none tiny against the whole."""
        if data.X.size < FAST_SIZE or self.refine == "none" or self.max_refine_iter <= 10:
            return False
        largest = float(np.abs(data.X).max())
        least = min(float(np.min(_variances(parameters))) for parameters in candidates)
        return largest < 1e15 and least > 1e-4 * largest**2 / data.X.shape[1]

    def _run(
        self, family: Any, data: GaussianData, candidates: list[Start]
    ) -> tuple[Refined, Start]:
        """The refinement; for much data in float32 first, with its last steps in float64."""
        exact = self._chunks(family, data)
        if not self._may_run_fast(data, [one.parameters for one in candidates]):
            return self._raced(family, exact, candidates)
        found, chosen = self._raced(family, self._chunks(family, data, fast=True), candidates)
        value = expectation(family, exact, found.parameters, n_threads=self._threads())[1]
        before = expectation(family, exact, chosen.parameters, n_threads=self._threads())[1]
        if not value >= before:  # rounding got the better of it, or NaN
            return self._raced(family, exact, candidates)
        last, _ = self._refined(family, exact, [chosen._replace(parameters=found.parameters)])
        return found.finished(last._replace(path=(*found.path, *last.path))), chosen

    def _raced(
        self, family: Any, data: MixtureData, candidates: list[Start]
    ) -> tuple[Refined, Start]:
        """The race; many components that were raced are split and merged as well."""
        if len(candidates) == 1 or self.n_components < MANY_COMPONENTS or isinstance(family, Tied):
            return self._refined(family, data, candidates)
        found, chosen = self._refined(family, data, candidates, brief=BRIEF)
        if len(found.contest.values) < 2:  # nothing is refined
            return found, chosen
        problem = MixtureProblem(family, data, self.tol, self._threads())
        found = split_and_merge(problem, found, max_steps=self.max_refine_iter)
        return found, candidates[found.chosen]

    def _read_batch(self, X: Any, *, first: bool) -> np.ndarray:
        return read_table(self, X, reset=first, ensure_min_samples=1)

    def _batch_statistics(self, X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """Expected statistics of a batch in the units of the first fit, masses first."""
        units = self._own_units()
        rows = units.rows(X)
        new = ~units.varies & np.any(rows != 0, axis=0)
        if new.any():
            warn(
                f"Column {np.flatnonzero(new)[0]} was constant in the first rows and no longer is; "
                "its variance stays at the size of that constant. Fit all rows anew.",
                InputWarning,
            )
        family = self._family(GaussianData(rows, w, np.zeros(X.shape[1])), self.view_groups_)
        chunks = MixtureData([family.rows(rows, w)])
        parameters = self._fitted_parameters()
        sums, _ = expectation(family, chunks, parameters, n_threads=1)
        return (*sums, family.second) if self.covariance_type == "tied" else sums

    def _shared_statistics(self) -> int:
        return 1 if self.covariance_type == "tied" else 0

    def _take_statistics(self, sums: tuple[np.ndarray, ...]) -> None:
        family = self._fitted_family()
        if self.covariance_type == "tied":
            family.second, sums = sums[-1], sums[:-1]
        self._set_parameters(family.maximise(sums), self.means_.dtype)


def _variances(parameters: Parameters) -> np.ndarray:
    """All variances of a mixture, whatever the shape of its covariances."""
    parts = [np.diagonal(a, axis1=1, axis2=2) if a.ndim == 3 else a for a in parameters[2:]]
    return np.concatenate([part.ravel() for part in parts])
