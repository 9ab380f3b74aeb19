"""Mixtures whose components may have any shape, from three or more views."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import (
    all_or_nothing,
    check_integer,
    check_option,
    check_positive,
)
from thirdmoment.models.kernel.describe import (
    conditional_dependence,
    dependence_note,
    kept_rows,
    resolution_notes,
)
from thirdmoment.models.kernel.fit import Climb, Plan, Solution, StreamedRows, fit_densities
from thirdmoment.models.kernel.fitted import MOST_VIEWS, FittedKernelMixture, log_dirichlet_mixture
from thirdmoment.models.kernel.views import check_bandwidth, read_views
from thirdmoment.models.tables import open_table, stream_details
from thirdmoment.models.units import check_sizes
from thirdmoment.recovery.order import canonical_order
from thirdmoment.report.build import note_unfinished
from thirdmoment.report.findings import equal_rows
from thirdmoment.report.labels import column_labels
from thirdmoment.starts.kernel import FeatureOptions
from thirdmoment.starts.kernel_rows import KernelRows, View

# Densities of a view are products over its columns, and moments are products of three of them: the
# columns of a view may have this power of ten together, less without weighting.
LARGEST_POWER: Limit[float] = 100.1
PLAIN_POWER: Limit[float] = 30.0


class KernelMixture(FittedKernelMixture):
    """Mixture of components of any shape: skewed, heavy-tailed, of several humps.

    Columns, or groups of columns (views), are independent of each other given the component;
    nothing else is assumed. Cross moments of kernel features identify the densities themselves;
    a few steps of smoothed nonparametric EM, judged by held-out likelihood, make them efficient.

    Parameters
    ----------
    n_components : int, default=2
        Number of components k.
    views : "auto", int or list of column groups, default="auto"
        A list has the columns of each view, by number or name; columns outside of it are left
        out. "auto": every column is a view up to eight columns, else three random groups. Columns
        that depend on each other within a component belong into one view.
    kernel : {"rbf", "laplace", "linear", "delta"}, callable or list, default="rbf"
        What the moments see. "linear": means only; "delta": the values are (numeric) codes, and
        the model is `CategoricalMixture`. A list gives each view its own, and within it a list of
        names each column its own (their product is taken). A callable takes two blocks of rows of
        a view and returns their kernel matrix. Densities of continuous columns are always smoothed
        by Gaussians.
    bandwidth : "auto", "cv", "wide", float or list, default="auto"
        "auto": the rule 0.9 min(sd, IQR/1.34) n^(-1/5) for each component; twice its value on all
        rows for the moments. "cv": multiples of it for each view and component by cross-validated
        likelihood, for components with edges or several humps. "wide": three times the rule on all
        rows, one bandwidth for the moments and all components; it blurs shapes, and finds better
        labels where views are dependent. Numbers (for each view, or each column of each view) are
        those of the densities, unless finer than their lattice, which the report then says; with
        ``weighting="none"``, as in the paper, the moments use them too.
    exchangeable : bool, default=False
        All views have the same distribution in a component: repeated measurements.
    concentration : float, default=None
        None: all views of a row have one component. A positive number: every view picks its own,
        from proportions with a Dirichlet distribution whose parameters sum to this number. There is
        no refinement then.
    features : {"low-rank", "exact", "fourier"}, default="low-rank"
        Kernel features: landmarks by pivoted Cholesky, Gram matrices in full (memory n²), or random
        Fourier features.
    rank : int, default=300
        Largest number of features of a view (the number of Fourier features).
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    weighting : {"auto", "none"}, default="auto"
        Use the best conditioned pair of views first and all pairs for the means; ``"none"`` is the
        paper's estimator.
    n_starts : int or "auto", default="auto"
        Groups by k-means from which Gaussian components start, to race against the moments.
        ``"auto"``: none where the moments are clear, else twelve. More of them make the answer hang
        less on ``random_state``.
    max_refine_iter : int, default=100
    tol : float, default=0.1
        Stop when a step changes the total held-out log-likelihood by less than this.
    random_state : int, RandomState instance or None, default=0
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
    device : str, default=None
        ``"cuda"`` refines many rows of the host on a GPU; tensors are refined where they are. Up to
        50,000 rows, rows with weights, and views of three or more smooth columns are left to the
        host.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : (n_components,)
        Heaviest component first.
    bandwidths_ : list of (n_components, smooth columns)
        Of the densities, for each view.
    view_groups_ : list of arrays
        Columns of each view.
    concentration_ : (n_components,) or None
        Dirichlet parameters where ``concentration`` is given.
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Mean log-likelihood of a training row by densities made without it. Its posterior still
        had a part in the others', so it is a little high, the more so the more components: choose
        their number by `bic` or on rows kept aside. With kernel "delta" alone, where nothing is
        smoothed, and with a concentration it is that of the fit itself.
    report_ : Report
        ``report_.details["dependence"]`` (n_components, views, views) has the largest correlation
        of ranks between two views within a component, which the model takes to be zero;
        ``report_.details["left_out"]`` the share of rows too far from all others to be counted in
        the density of each view.

    References
    ----------
    Song, Anandkumar, Dai and Xie (2014), Nonparametric estimation of multi-view latent variable
    models, ICML.
    Benaglia, Chauveau and Hunter (2009), An EM-like algorithm for semi- and nonparametric
    estimation in multivariate mixtures, JCGS 18.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import KernelMixture
    >>> rng = np.random.default_rng(0)
    >>> label = rng.integers(2, size=2000)
    >>> X = rng.normal(0, 1, (2000, 3))
    >>> X[label == 1] = 4 + rng.exponential(1, (np.sum(label), 3))
    >>> model = KernelMixture(n_components=2).fit(X)
    >>> model.density([0.0, 2.1], view=0).shape
    (2, 2)
    >>> print(np.sort(model.expectation(lambda x: x[:, 0], view=0)).round(0))
    [0. 5.]
    """

    _reads_tensors = frozenset(("fit",))

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Any = "auto",
        kernel: Any = "rbf",
        bandwidth: Any = "auto",
        exchangeable: bool = False,
        concentration: float | None = None,
        features: str = "low-rank",
        rank: int = 300,
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        n_starts: int | str = "auto",
        max_refine_iter: int = 100,
        tol: float = 0.1,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.views = views
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.exchangeable = exchangeable
        self.concentration = concentration
        self.features = features
        self.rank = rank
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.n_starts = n_starts
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _check_arguments(self) -> int:
        check_option("features", self.features, ("low-rank", "exact", "fourier"))
        check_integer("rank", self.rank, 1)
        check_bandwidth(self.bandwidth)
        if self.concentration is not None:
            check_positive("concentration", self.concentration)
        unrefined = self.refine == "none" or self.concentration is not None
        if isinstance(self.bandwidth, str) and self.bandwidth == "cv" and unrefined:
            raise InvalidInput(
                "bandwidth='cv' needs refinement: it compares held-out likelihoods. Use 'auto' or "
                "numbers with refine='none' or a concentration."
            )
        if not isinstance(self.exchangeable, (bool, np.bool_)):
            raise InvalidInput(f"exchangeable={self.exchangeable!r} must be True or False.")
        return self._check_shared(("auto", "none", "em"))

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelMixture:
        """Learn the mixture of X (n_samples, n_features).

        Parameters
        ----------
        X : array or tensor, Dask array, or rows of `thirdmoment.source`
        y : ignored, as in scikit-learn
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = self._check_arguments()
        table = open_table(self, X, sample_weight, k)
        self._units, w = table.units(), table.weights
        rows = self._units.without_rounding(table.X)
        stream, whole = table.whole(self._units.without_rounding), None
        if stream is not None:
            whole = StreamedRows(stream, table.total)
        rng = self._rng()
        names = getattr(self, "feature_names_in_", None)
        views = read_views(
            rows,
            w,
            self.views,
            self.kernel,
            self.bandwidth,
            rng,
            names,
            exchangeable=bool(self.exchangeable),
            one_bandwidth=self.weighting == "none",
        )
        self._check_views(views, rows)
        data = KernelRows(rows, w, views, bool(self.exchangeable))
        with single_threaded_blas():
            solution = fit_densities(data, k, self._plan(rng), whole)
        self._take(solution, data, stream_details(table.stream))
        self._log("start %s, %d EM steps", self.report_.start, self.n_iter_)
        return self

    def _check_views(self, views: list[View], X: np.ndarray) -> None:
        power = LARGEST_POWER if self.weighting == "auto" else PLAIN_POWER
        for view in views:
            check_sizes(
                np.abs(X[:, view.columns]).max(axis=0), limit=10 ** (power / len(view.columns))
            )
        if self.concentration is not None and len(views) > MOST_VIEWS:
            raise InvalidInput(
                f"concentration with {len(views)} views is too many: scores walk through all sets "
                f"of views, {MOST_VIEWS} at most. Put columns together into fewer views."
            )

    def _plan(self, rng: np.random.Generator) -> Plan:
        a0 = 0.0 if self.concentration is None else float(self.concentration)
        plain = self.refine == "none" or a0 > 0
        asked = self.bandwidth if isinstance(self.bandwidth, str) else ""
        bandwidths = {"auto": "advise", "cv": "cv"}.get(asked, "fixed")
        steps = 0 if plain else self.max_refine_iter
        climb = Climb(steps, self.tol, self.n_starts, plain, bandwidths)
        settings = self._settings(rng)._replace(hedge=steps > 0)
        return Plan(settings, FeatureOptions(self.features, self.rank), a0, climb, self._log)

    def _take(self, solution: Solution, rows: KernelRows, passes: dict[str, Any]) -> None:
        """Fitted attributes, heaviest component first."""
        (X, w, views, _), found, refined = rows, solution.found, solution.refined
        order = canonical_order(found.weights)
        self.weights_ = found.weights[order]
        self.concentration_ = None
        if self.concentration is not None:
            self.concentration_ = self.weights_ * float(self.concentration)
        self.view_groups_ = [view.columns for view in views]
        self.bandwidths_ = [width[order] for width in found.bandwidths]
        self._family, self._n_rows = found.family, float(w.sum())
        self._fill = np.median(X, axis=0)  # columns outside all views
        self._tables, self._counts = found.tables[order], found.counts[order]
        self.converged_, self.n_iter_ = refined.converged, refined.steps
        self.lower_bound_ = refined.path[-1]
        if self.concentration_ is not None:
            scores = log_dirichlet_mixture(self._log_views(X), self.concentration_)
            self.lower_bound_ = float(w @ scores / w.sum())
        dependence = conditional_dependence(X, w, found.posterior[:, order], self.view_groups_)
        names, notes = (
            self._column_names(),
            equal_rows(len(solution.found.posterior), self.n_components),
        )
        if self.concentration_ is None:
            notes += dependence_note(dependence, self.view_groups_, names)
        self._kept_rows = kept_rows(found, rows, order, self._rng())
        notes += resolution_notes(found)
        notes += note_unfinished(
            refined.path, refined.converged, float(w.sum()), self.max_refine_iter
        )
        details = {
            "dependence": dependence.correlation,
            "nodes": [view.size for view in found.family.views],
            "left_out": found.left_out,
            **passes,
        }
        mass = found.posterior[:, order] * w[:, None]
        means = (mass.T @ X) / np.maximum(mass.sum(axis=0), 1e-300)[:, None]
        labels = column_labels(means, self.weights_, self._units.scale, names)
        self.report_ = solution.report(order, labels, notes, details)
