"""Subspace clustering: groups of whitened rows, then assignment and principal components."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from thirdmoment._array import single_threaded_blas
from thirdmoment.exceptions import InvalidInput, UnusableMoments
from thirdmoment.models.base import (
    all_or_nothing,
    check_components,
    check_integer,
    check_jobs,
    check_option,
    check_positive,
)
from thirdmoment.models.read import read_dimensions
from thirdmoment.models.subspace_fitted import FittedSubspaces
from thirdmoment.models.tables import open_table, stream_details
from thirdmoment.models.units import cast
from thirdmoment.recovery.order import canonical_order
from thirdmoment.refinement.halves import Examined, two_halves
from thirdmoment.refinement.race import LAST_STEPS
from thirdmoment.refinement.subspaces import (
    Alternated,
    Flats,
    Layered,
    alternate,
    alternate_on_all,
    fit_layers,
    layered,
    log_densities,
    square_distances,
)
from thirdmoment.report import About, Finding, Judged, Report
from thirdmoment.report.findings import unusable
from thirdmoment.report.labels import size
from thirdmoment.starts.start import Start, no_facts
from thirdmoment.starts.subspaces import (
    NO_NEARER,
    SubspaceData,
    check_dimensions,
    drawn_labels,
    flats_from_labels,
    grouped_labels,
    nearness,
    trust_of_subspaces,
)
from thirdmoment.streaming import Source, Streamed
from thirdmoment.streaming.dask import is_dask


class SubspaceClustering(
    ClusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittedSubspaces
):
    """A union of k subspaces of dimension p, through the origin or affine.

    Whitened rows of independent subspaces are orthogonal: rows are grouped by their whitened
    cosines, and alternating assignment and principal components finish. Where the second moment
    cannot hold all subspaces (k·p above the number of columns) flats through a few rows start it
    instead.

    Parameters
    ----------
    n_components : int, default=2
        Number of subspaces k.
    subspace_dim : int, list of int or "auto", default=1
        Dimension p of all subspaces; or one for each, in any order; or ``"auto"``, by the data.
        Where dimensions differ rows go to the most probable subspace instead of the nearest,
        which would always be a larger one.
    affine : bool, default=False
        Subspaces that need not pass through the origin.
    refine : {"auto", "none", "alternate"}, default="auto"
        ``"none"`` returns the principal components of the groups and raises where the moments are
        unusable. It can be the better choice where rows do not fill their subspaces evenly.
    max_refine_iter : int, default=100
        Largest number of rounds of assignment and principal components.
    tol : float, default=1e-6
        Stop when a round lowers the mean square distance by less than this share (where dimensions
        may differ: raises the mean log-density of a row by less than this).
    random_state : int, RandomState instance or None, default=0
        Draws of the grouping and of the flats through few rows.
    n_jobs : int, default=None
        Threads; None is all cores.
    verbose : int, default=0

    Attributes
    ----------
    bases_ : (n_components, n_features, subspace_dim)
        Orthonormal bases, heaviest subspace first; where dimensions may differ a list of
        (n_features, p) arrays.
    subspace_dims_ : (n_components,)
        Dimension of each.
    variances_ : list of arrays
        Variances along the bases, only where dimensions may differ.
    means_ : (n_components, n_features)
        A point of each subspace; zero unless ``affine``.
    weights_ : (n_components,)
        Share of rows.
    labels_ : (n_samples,)
    noise_variance_ : float
        Mean square distance of a row in each of the remaining dimensions.
    n_iter_ : int
    report_ : Report

    References
    ----------
    Ray, Neeman, Sanghavi and Shakkottai (2018), The search problem in mixture models, JMLR 18.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import SubspaceClustering
    >>> rng = np.random.default_rng(0)
    >>> bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(4)]
    >>> labels = rng.integers(4, size=1000)
    >>> X = np.stack([bases[j] @ rng.standard_normal(3) for j in labels])
    >>> X += 0.05 * rng.standard_normal(X.shape)
    >>> model = SubspaceClustering(4, 3).fit(X)
    >>> model.bases_.shape, model.report_.start
    ((4, 20, 3), 'groups of whitened rows')
    """

    def __init__(
        self,
        n_components: int = 2,
        subspace_dim: Any = 1,
        *,
        affine: bool = False,
        refine: str = "auto",
        max_refine_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.subspace_dim = subspace_dim
        self.affine = affine
        self.refine = refine
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SubspaceClustering:
        """Learn the subspaces of X (n_samples, n_features).

        Parameters
        ----------
        X : array, Dask array, or rows of `thirdmoment.source`
        y : ignored, as in scikit-learn
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k, dims = self._check_arguments()
        streamed = isinstance(X, Source) or is_dask(X)
        table = open_table(self, X, sample_weight, k)
        d, w = table.X.shape[1], table.weights
        if dims is not None and max(dims) > d:
            raise InvalidInput(
                f"subspace_dim={max(dims)} exceeds the number of columns (n_features = {d})."
            )
        table_rows = table.X.astype(np.float64)
        middle = np.zeros(d)
        if self.affine:
            middle = w @ table_rows / w.sum() if table.look is None else table.look.mean
        table_rows -= middle  # far from the origin the spread of the rows would drown
        unit = float(np.abs(table_rows).max()) or 1.0
        unit *= float(np.sqrt(np.average(((table_rows / unit) ** 2).sum(axis=1), weights=w))) or 1.0
        data = SubspaceData(table_rows / unit, w, bool(self.affine))
        with single_threaded_blas():
            labels, start, notes, rows = self._start(data, k, dims)
            found: Alternated | Layered
            if dims is not None and len(set(dims)) == 1:
                found = self._alternated(data, flats_from_labels(data, labels, k, dims[0], rows))
            else:
                found = self._layered(data, labels, dims, rows)
            examined, doubts = self._examined(data, found.labels, dims)
            found, mass = self._on_all(table.whole(partial(_in_units, middle, unit)), found)
        order = self._set_parameters(found, data, unit, table.dtype)
        if mass is not None:
            self.weights_ = (mass[order] / mass.sum()).astype(table.dtype)
        self.means_: np.ndarray = cast(self.means_ + middle, table.dtype)
        self.__dict__.pop("labels_", None)
        if not streamed:  # rows of a source are labelled by predict, chunk by chunk
            self.labels_ = self._labels(np.asarray(X, dtype=np.float64))
        self.n_iter_ = len(found.path) - 1
        if examined is not None:
            examined = examined._replace(trust=examined.trust[order])
        passes = stream_details(table.stream)
        self.report_ = self._describe(found, start, [*notes, *doubts], examined, passes)
        return self

    def _on_all(
        self, rows: Streamed | None, found: Alternated | Layered
    ) -> tuple[Alternated | Layered, np.ndarray | None]:
        """What a sample showed, taken to all rows of a source; equal dimensions only."""
        steps = 0 if self.refine == "none" else min(int(self.max_refine_iter), LAST_STEPS)
        if rows is None or isinstance(found, Layered) or not steps:
            return found, None
        flats, mass, path = alternate_on_all(
            rows, found.flats, affine=bool(self.affine), max_steps=steps, n_threads=self._threads()
        )
        return found._replace(flats=flats, path=(*found.path, *path)), mass

    def _examined(
        self, data: SubspaceData, labels: np.ndarray, dims: list[int] | None
    ) -> tuple[Examined | None, list[Finding]]:
        """What either half of the rows makes of the subspaces, and whether there are any."""
        k, rng = int(self.n_components), self._own_rng()
        halves = two_halves(data.weights, k, rng, cells=data.X.shape[1])
        if k == 1 or halves is None or self.refine == "none":
            return None, []

        def fit(part: SubspaceData, known: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            if dims is not None and len(set(dims)) == 1:
                flats = self._alternated(part, flats_from_labels(part, known, k, dims[0])).flats
            else:
                flats = self._layered(part, known, dims, None).layers.flats
            return lambda rows: square_distances(rows, flats, n_threads=self._threads())

        place, w = halves[0]
        some = SubspaceData(data.X[place], w, data.affine)
        notes, near = [], nearness(some, labels[place], fit, rng)
        if near > NO_NEARER:
            text = (
                f"Rows of a Gaussian cloud with the same covariance lie as near to {k} subspaces: "
                f"these rows have {near:.2f} of their squared distance, at most {NO_NEARER} wanted."
            )
            action = "Do not use these groups: look for clusters of another kind."
            notes.append(Finding("no subspaces", text, action, "grave"))
        return Examined(trust_of_subspaces(data, labels, halves, fit), ()), notes

    def _check_arguments(self) -> tuple[int, list[int] | None]:
        """Number of subspaces and the dimension of each, or None where the data decides."""
        k = check_components(self.n_components)
        dims = read_dimensions(self.subspace_dim, k)
        check_integer("max_refine_iter", self.max_refine_iter, 0)
        check_positive("tol", self.tol, zero=True)
        check_option("refine", self.refine, ("auto", "none", "alternate"))
        check_jobs(self.n_jobs)
        return k, dims

    def _start(
        self, data: SubspaceData, k: int, dims: list[int] | None
    ) -> tuple[np.ndarray, Start, list[Finding], np.ndarray | None]:
        """Labels to refine from, by groups of whitened rows or by flats through few rows.

        The last value has the rows that are labelled, None for all.
        """
        rng = self._rng()
        try:
            if dims is not None:
                check_dimensions(dims, data.X.shape[1], affine=data.affine)
            labels, facts = grouped_labels(data, k, dims, rng, n_threads=self._threads())
            return labels, Start((), "groups of whitened rows", facts), [], None
        except (UnusableMoments, InvalidInput) as error:
            if self.refine == "none":
                raise
            reason = str(error)
        p = 1 if dims is None else round(float(np.mean(dims)))
        rows, labels = drawn_labels(data, k, p, rng)
        return labels, Start((), "flats through few rows"), [unusable(reason)], rows

    def _layered(
        self,
        data: SubspaceData,
        labels: np.ndarray,
        dims: list[int] | None,
        rows: np.ndarray | None,
    ) -> Layered:
        """Subspaces of different dimensions, refined by likelihood."""
        k, steps = int(self.n_components), 0 if self.refine == "none" else self.max_refine_iter
        options: dict[str, Any] = {"affine": data.affine, "tol": float(self.tol)}
        starts = [labels]
        if rows is not None:
            few = fit_layers(data.X[rows], np.ones(len(rows)), labels, k, dims, affine=data.affine)
            starts = [np.argmax(log_densities(data.X, few), axis=1)]
        other = self._by_own_rank(data, k) if dims is not None and steps else None
        starts += [] if other is None else [other]  # subspaces may share directions
        runs = [layered(data.X, data.weights, one, k, dims, max_steps=steps, **options)
                for one in starts]  # fmt: skip
        return max(runs, key=lambda run: max(run.path))

    def _by_own_rank(self, data: SubspaceData, k: int) -> np.ndarray | None:
        """Groups by as many directions as the second moment shows, whatever dimensions say."""
        try:
            return grouped_labels(data, k, None, self._rng(), n_threads=self._threads())[0]
        except UnusableMoments:
            return None

    def _alternated(self, data: SubspaceData, flats: Flats) -> Alternated:
        steps = 0 if self.refine == "none" else int(self.max_refine_iter)
        return alternate(
            data.X, data.weights, flats, affine=data.affine, tol=float(self.tol), max_steps=steps,
            n_threads=self._threads(),
        )  # fmt: skip

    def _set_parameters(
        self, best: Alternated | Layered, data: SubspaceData, unit: float, dtype: Any
    ) -> np.ndarray:
        """Fitted attributes, the subspace of most rows first; returns the order."""
        flats = best.flats if isinstance(best, Alternated) else best.layers.flats
        k, d, p = flats.bases.shape
        mass = np.bincount(best.labels, weights=data.weights, minlength=k)
        order = canonical_order(mass / mass.sum())
        self.means_ = cast(flats.centres[order] * unit, dtype)
        self.weights_ = (mass[order] / mass.sum()).astype(dtype)
        self._n_features_out = k
        if isinstance(best, Alternated):
            self.subspace_dims_ = np.full(k, p)
            self.bases_: Any = flats.bases[order].astype(dtype)
            self.noise_variance_ = best.path[-1] * unit**2 / max(d - p, 1)
            return order
        layers = best.layers
        self.subspace_dims_ = layers.dims[order]
        sizes = zip(order, self.subspace_dims_, strict=True)
        self.bases_ = [flats.bases[j, :, :size].astype(dtype) for j, size in sizes]
        sizes = zip(order, self.subspace_dims_, strict=True)
        self.variances_ = [layers.variances[j, :size] * unit**2 for j, size in sizes]
        self.noise_variance_ = layers.noise * unit**2
        self._shares = layers.shares[order]  # that rows are assigned by
        return order

    def _describe(
        self,
        best: Alternated | Layered,
        start: Start,
        notes: list[Finding],
        examined: Examined | None,
        details: dict[str, Any],
    ) -> Report:
        k = int(self.n_components)
        facts = start.facts or no_facts(k)
        q = int(np.sum(self.subspace_dims_)) + k * int(bool(self.affine))
        q = int(facts.details.get("dimensions", q))  # that were whitened
        empty = int(np.sum(self.weights_ == 0))
        if empty:
            text = f"{empty} of {k} subspaces hold no row."
            notes.append(Finding("empty", text, f"Set n_components to {k - empty}.", "care"))
        together = int(np.sum(self.subspace_dims_)) + (k - 1) * int(bool(self.affine))
        if isinstance(self.subspace_dim, str) and together > self.n_features_in_:
            text = (
                f"The dimensions found add up to {together}, more than the columns "
                f"({self.n_features_in_}): these rows do not look like independent subspaces."
            )
            action = "Give subspace_dim, or cluster the rows otherwise."
            notes.append(Finding("too many dimensions", text, action, "care"))
        labels = tuple(f"{size(weight)} of rows" for weight in self.weights_)
        judged = Judged(examined, labels, About("subspace"), "Use fewer subspaces.")
        notes += judged.findings(k, refining=self.refine != "none")
        return Report(
            n_components=q,
            spectrum=facts.spectrum,
            noise=facts.noise,
            snr=facts.snr(q),
            residual=np.nan,
            clipped_mass=np.full(k, np.nan),
            raw_weights=facts.raw_weights,
            solver=facts.solver,
            start=start.name,
            passes=facts.details["passes"],
            refine_path=best.path,
            findings=tuple(notes),
            **judged.fields(k),
            unchecked="the groups of rows were taken as they are",
            details={"converged": best.converged, **facts.details, **details},
        )


def _in_units(middle: np.ndarray, unit: float, rows: np.ndarray) -> np.ndarray:
    return (rows - middle) / unit
