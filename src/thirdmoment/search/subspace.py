"""One subspace of a union, from labelled rows or a direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import blas_as_before, single_threaded_blas
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import (
    all_or_nothing,
    check_components,
    check_integer,
    check_jobs,
    check_weights,
)
from thirdmoment.models.read import read_table
from thirdmoment.moments.gaussian import directed_subspace, subspace_whitening
from thirdmoment.moments.views import PairSums
from thirdmoment.recovery.search import FoundSubspace, resolution, subspace_search
from thirdmoment.report import Report
from thirdmoment.search.component import (
    Component,
    Limits,
    SearchReport,
    judge,
    more_components,
    preparation_report,
)
from thirdmoment.search.rows import RowSearch, one_hint, training_rows
from thirdmoment.starts.subspaces import check_dimensions
from thirdmoment.streaming import fold

# The noise of a fourth moment lies mostly within the subspace that is found, where it does no harm:
# answers were right above a gap of one (docs/decisions/search.md).
LIMITS = Limits(gap_snr=1.0)


class SubspaceSearch(RowSearch):
    """Find the one subspace of a union of subspaces that labelled rows or a direction point at.

    Rows lie near one of k subspaces through the origin, with spherical noise. ``fit`` gathers the
    second moment once; a query is a weighted second moment in k·p dimensions and one eigenproblem.
    Give at least ``subspace_dim`` labelled rows where you can: one alone finds its subspace only
    if no other comes near it.

    Parameters
    ----------
    n_components : int, default=2
        Number of subspaces k.
    subspace_dim : int, default=1
        Dimension p of each; k·p may not exceed the number of columns.
    random_state : ignored, present for consistency
    n_jobs : int or None, default=None
        Threads; None uses every core.
    verbose : int, default=0

    Attributes
    ----------
    noise_variance_ : float
    report_ : Report
        Spectrum and noise of the second moment.
    n_features_in_ : int

    See Also
    --------
    SubspaceClustering : all subspaces at once.

    References
    ----------
    Ray, Neeman, Sanghavi and Shakkottai (2018), The search problem in mixture models, JMLR 18.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import SubspaceSearch
    >>> rng = np.random.default_rng(0)
    >>> bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(4)]
    >>> labels = rng.integers(4, size=4000)
    >>> X = np.stack([bases[j] @ rng.standard_normal(3) for j in labels])
    >>> X += 0.1 * rng.standard_normal(X.shape)
    >>> search = SubspaceSearch(4, 3).fit(X)
    >>> found = search.search(X[labels == 2][:6])
    >>> overlap = np.linalg.svd(found.parameters.T @ bases[2], compute_uv=False)
    >>> bool(overlap.min() > 0.99)
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        subspace_dim: int = 1,
        *,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.subspace_dim = subspace_dim
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SubspaceSearch:
        """Prepare the rows X (n_samples, n_features) for queries.

        Parameters
        ----------
        X : array
        y : ignored, as in scikit-learn
        sample_weight : (n_samples,), optional
            How often each row counts.
        """
        k = check_components(self.n_components)
        p = check_integer("subspace_dim", self.subspace_dim, 1)
        check_jobs(self.n_jobs)
        X = read_table(self, X)
        check_dimensions([p] * k, X.shape[1])
        data = training_rows(X, check_weights(sample_weight, X), k)
        self._unit = float(np.abs(data.X).max()) or 1.0
        data = data._replace(X=data.X / self._unit)
        with single_threaded_blas():
            sums = fold(lambda: PairSums(X.shape[1]), data.samples(), n_threads=self._threads())
            self._white = subspace_whitening(sums, k * p)
            self._rows = data.whitened(data.X @ self._white.W)
        self.noise_variance_ = self._white.sigma2 * self._unit * self._unit
        noise = float(np.linalg.norm(sums.noise, 2))
        self.report_: Report = preparation_report(self._white.spectrum, noise, k * p, passes=1)
        self._doubts = more_components(self._white.spectrum, noise, k * p)
        return self

    def search(
        self, samples: Any = None, *, direction: Any = None, whiten: bool = True
    ) -> Component:
        """The subspace that the hint points at.

        Parameters
        ----------
        samples : (n_labels, n_features) or (n_features,) array, optional
            Rows that belong to the subspace; they need not be part of the data.
        direction : (n_features,) array, optional
            Any v; the subspace with the longest projection of v is found.
        whiten : bool, default=True
            Whiten the labelled rows, so that they have no part in other subspaces whatever the
            angles between them.

        Returns
        -------
        Component
            ``parameters`` (n_features, subspace_dim) is an orthonormal basis;
            ``report.details["variance"]`` the variance of a coordinate in it.
        """
        check_is_fitted(self)
        white = self._white
        if one_hint(samples=samples, direction=direction) == "direction":
            v = self._direction(direction)
            return self._found((white.unwhitener.T @ v)[:, None], v[None])
        labels = self._labelled(samples) / self._unit
        # Q = WWᵀ[labels] = W c (SR-24), or EEᵀ[labels]
        c = (white.W if whiten else white.unwhitener).T @ labels.T
        return self._found(c, labels)

    @blas_as_before
    def _found(self, c: np.ndarray, labels: np.ndarray) -> Component:
        white, rows, p = self._white, self._rows, int(self.subspace_dim)
        size = float(np.abs(c).max())
        if not size > 0:
            raise InvalidInput("The hint has no part in the data, so it points at no subspace.")
        c = c / size
        with single_threaded_blas():
            score = np.einsum("aj,aj->a", rows.Y @ c, rows.Y @ c)  # ‖Qᵀx‖²
            raw = rows.gram(score, n_threads=self._threads())
        Q = white.W @ c
        R = directed_subspace(raw.whole, white, Q)
        found = subspace_search(R, white.unwhitener, p, single=np.linalg.matrix_rank(c) == 1)
        # coordinates of variance s² within the subspace: UᵀA⁺U = I/(w s²), tr R = (p+2) s² tr(PS)
        taken = float(np.einsum("ij,ik,kj->", found.directions, R, found.directions))
        target = float(np.sum((found.basis.T @ Q) ** 2))
        variance = taken / ((p + 2) * max(target, 1e-300))
        inside = float(np.sum((white.W.T @ found.basis) ** 2))
        weight = p / (inside * variance) if variance > 0 else np.nan
        report = self._report(found, R, raw.difference, c, weight, variance, labels)
        return Component(
            weight, found.basis, report.margin, report.alignment, not report.warnings, report
        )

    def _report(
        self,
        found: FoundSubspace,
        R: np.ndarray,
        difference: np.ndarray,
        c: np.ndarray,
        weight: float,
        variance: float,
        labels: np.ndarray,
    ) -> SearchReport:
        """Section 8: gap after the p-th eigenvalue, agreement of the halves, alignment."""
        p, values = int(self.subspace_dim), found.eigenvalues
        clear = resolution(R, difference, values, p)
        following = values[p] if len(values) > p else 0.0
        inside = float(np.linalg.norm(found.directions.T @ c))
        aligned = inside / float(np.linalg.norm(c))
        left = labels - (labels @ found.basis) @ found.basis.T
        whole = np.sum(labels**2)
        ratio = float(whole / np.maximum(np.sum(left**2), 1e-30 * whole)) if whole > 0 else 1.0
        reasons = judge(
            gap_snr=clear.gap_snr,
            stability=clear.stability,
            consistency=np.nan,
            alignment=aligned,
            weight=weight,
            limits=LIMITS,
        )
        if found.third_rule:
            reasons.append(
                "Another subspace comes so near the one label that its members were told by the "
                "pattern of eigenvalues. Give subspace_dim or more labelled rows."
            )
        return SearchReport(
            scores=values,
            margin=float(values[p - 1] / following - 1) if following > 0 else np.inf,
            gap_snr=clear.gap_snr,
            stability=clear.stability,
            consistency=np.nan,
            alignment=aligned,
            label_score=float(np.log(ratio) / 2),
            warnings=(*self._doubts, *reasons),
            details={
                "variance": variance * self._unit * self._unit,
                "third_rule": found.third_rule,
                "labels": c.shape[1],
            },
        )
