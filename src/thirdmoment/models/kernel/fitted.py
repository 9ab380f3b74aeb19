"""What a fitted kernel mixture can do.

Given the densities, Pr(x) = E_θ Π_v Σ_h θ_h p_v(x_v|h) is a sum over the components of all views,
with probability Π_h α_h(α_h+1)...(α_h+c_h-1) / (a0(a0+1)...(a0+l-1)) for counts c. It runs over
components instead, with the set of views already explained as the state: exact, 3^l k a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_array, check_is_fitted

from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import MomentEstimator, check_integer
from thirdmoment.models.kernel.describe import KeptRows
from thirdmoment.models.kernel.views import view_panels
from thirdmoment.models.mixture import PosteriorMixin
from thirdmoment.models.read import read_table
from thirdmoment.models.units import Units
from thirdmoment.refinement.smooth import SmoothTables, places_of
from thirdmoment.streaming import row_ranges

# Sets of more views than this are not walked through.
MOST_VIEWS: Limit[int] = 8


def log_dirichlet_mixture(logs: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """log Pr(x) (n,) from log p_v(x_v|h) (views, k, n) and α (k,)."""
    views, k, n = logs.shape
    top = logs.max(axis=1, keepdims=True)  # (views, 1, n)
    p = np.exp(logs - top)
    sets = 1 << views
    member = [[v for v in range(views) if S >> v & 1] for S in range(sets)]
    done = np.zeros((sets, n))
    done[0] = 1.0
    for h in range(k):
        own = np.ones((sets, n))
        for S in range(1, sets):
            v = member[S][-1]
            own[S] = own[S ^ (1 << v)] * p[v, h] * (alpha[h] + len(member[S]) - 1)
        done = _joined(done, own)
    a0 = float(alpha.sum())
    norm = gammaln(a0 + views) - gammaln(a0)
    return np.log(np.maximum(done[-1], 1e-300)) + top[:, 0].sum(axis=0) - norm


def _joined(done: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Σ over ways to split a set in the part explained before and the part of this component."""
    out = np.zeros_like(done)
    for S in range(len(done)):
        part = S
        while True:
            out[S] += done[S ^ part] * own[part]
            if part == 0:
                break
            part = (part - 1) & S
    return out


def expected_proportions(logs: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """E[θ | x] (n, k): E[θ_h Π...] is α_h/a0 times the likelihood with one more count at h."""
    k = len(alpha)
    whole = log_dirichlet_mixture(logs, alpha)
    found = np.empty((logs.shape[2], k))
    for h in range(k):
        more = alpha + (np.arange(k) == h)
        found[:, h] = alpha[h] / alpha.sum() * np.exp(log_dirichlet_mixture(logs, more) - whole)
    return found / found.sum(axis=1, keepdims=True)


class FittedKernelMixture(PosteriorMixin, DensityMixin, MomentEstimator):
    """Everything that needs the fitted tables only."""

    _units: Units
    _family: SmoothTables
    _tables: np.ndarray  # (k, Σ G_v) densities on the nodes
    _kept_rows: dict[int, KeptRows]
    _fill: np.ndarray  # (n_features,) what samples have in columns outside all views
    _counts: np.ndarray  # (k, Σ G_v) weights of the rows on the nodes, before any smoothing

    def _check_loaded(self) -> None:
        super()._check_loaded()
        k, family = len(self.weights_), self._family
        sizes = [view.size for view in family.views]
        if family.place != places_of(sizes) or len(sizes) != len(self.view_groups_):
            raise InvalidInput("its tables are not where its views are")
        for table in (self._tables, self._counts):
            if table.shape != (k, sum(sizes)):
                raise InvalidInput(f"its tables have shape {table.shape}")
        for view, columns in zip(family.views, self.view_groups_, strict=True):
            view.check(len(columns))
            if not np.all((columns >= 0) & (columns < self.n_features_in_)):
                raise InvalidInput("its views have columns that are not there")

    def density(self, X: Any, view: int, component: int | None = None) -> np.ndarray:
        """Density of one view in one component, or in all of them.

        Parameters
        ----------
        X : (n_samples, n_features) or (n_samples, columns of the view)
            Whole rows, or only the columns of the view; one column may be a plain vector.
        view : int
            Number of the view in ``view_groups_``.
        component : int, optional
            By default all components.

        Returns
        -------
        (n_samples,), or (n_samples, n_components) without ``component``
            Never negative, and integrates to one; probabilities where the kernel is "delta".
        """
        check_is_fitted(self)
        v, rows = self._view_rows(X, view)
        table = self._tables[:, self._family.place[v]]
        found = np.concatenate(
            [self._family.views[v].rows(rows[a:b]).read.dot_t(table).T
             for a, b in row_ranges(len(rows))]
        )  # fmt: skip
        if component is None:
            return found
        return found[:, _existing("component", component, len(self.weights_))]

    def expectation(self, f: Callable[[np.ndarray], Any], view: int) -> np.ndarray:
        """Mean of f over one view in every component, E[f(x_v) | component].

        Rows are weighted, nothing is smoothed (K-12): variances are not inflated by a bandwidth.
        Rows count at the nodes of a fine lattice within the range of the data; for views of three
        and more columns up to 20,000 rows are kept for it.

        Parameters
        ----------
        f : callable
            Takes rows of the view (m, columns) and returns one value, or an array, for each.
        view : int

        Returns
        -------
        (n_components, ...)
        """
        check_is_fitted(self)
        v = self._view(view)
        if v in self._kept_rows:
            rows, shares = self._kept_rows[v].X, self._kept_rows[v].weights.T
        else:
            counts = self._counts[:, self._family.place[v]]
            used = np.any(counts != 0, axis=0)  # f may be undefined beyond the data
            rows, shares = self._family.views[v].points_of(clipped=True)[used], counts[:, used]
        values = np.asarray(f(rows))
        if values.ndim == 0 or len(values) != len(rows):
            raise InvalidInput(
                f"f returned shape {values.shape} for {len(rows)} rows; it must return one value "
                "(or array) for each row."
            )
        mass = shares.sum(axis=1).reshape(-1, *([1] * (values.ndim - 1)))
        return np.tensordot(shares, values, axes=(1, 0)) / mass

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their components, grouped by component.

        With Dirichlet proportions every view has its own component, and so have the labels
        (n_samples, views).
        """
        check_is_fitted(self)
        n = check_integer("n_samples", n_samples, 1)
        rng = self._sampling_rng(random_state)
        k, count = len(self.weights_), len(self.view_groups_)
        if self.concentration_ is None:
            each = np.repeat(np.arange(k), rng.multinomial(n, self.weights_ / self.weights_.sum()))
            labels = np.repeat(each[:, None], count, axis=1)
        else:
            shares = np.cumsum(rng.dirichlet(self.concentration_, size=n), axis=1)
            labels = (rng.random((n, count))[:, :, None] > shares[:, None, :]).sum(axis=2)
            labels = labels.clip(max=k - 1)
        out = np.tile(self._fill, (n, 1))
        for v, (columns, place) in enumerate(
            zip(self.view_groups_, self._family.place, strict=True)
        ):
            for h in range(k):
                rows = np.flatnonzero(labels[:, v] == h)
                drawn = self._family.views[v].draw(self._tables[h, place], len(rows), rng)
                out[np.ix_(rows, columns)] = drawn
        return out, labels[:, 0] if self.concentration_ is None else labels

    def plot_components(self, *, views: Any = None, figure: Any = None) -> Any:
        """Draw the density of every component in every view over the histogram of the rows.

        A view of one column gets curves, each component's share of the histogram behind them; a
        view of two columns contours around half and nine tenths of each component; wider views a
        panel for each column; exact values bars. Views of one distribution are drawn once. Returns
        the matplotlib figure.
        """
        from thirdmoment.report.plot import plot_densities

        check_is_fitted(self)
        if views is not None and (np.ndim(views) != 1 or not len(views)):
            raise InvalidInput(f"views={views!r} must be a non-empty list of numbers of views.")
        chosen = list(range(len(self.view_groups_)))
        if views is not None:
            chosen = [self._view(v) for v in views]
        elif self._family.shared:  # all alike
            chosen = chosen[:1]
        panels = [panel for v in chosen for panel in self._panels(v)]
        return plot_densities(panels, self.weights_, figure=figure)

    def plot(self, view: int = 0, *, ax: Any = None) -> Any:
        """Draw the components in one view, as `plot_components` does; returns the axes."""
        from thirdmoment.report.plot import new_axes, plot_panel
        from thirdmoment.report.plot_models import legend

        check_is_fitted(self)
        panels = self._panels(self._view(view))
        if len(panels) != 1:
            raise InvalidInput(
                f"View {view} takes {len(panels)} pictures: use plot_components(views=[{view}])."
            )
        ax = plot_panel(new_axes() if ax is None else ax, panels[0], self.weights_)
        legend(ax, self.weights_, "component")
        return ax

    def _panels(self, v: int) -> list[Any]:
        """What there is to draw of a view."""
        place, names = self._family.place[v], self._column_names()
        label = [names[c] for c in self.view_groups_[v]]
        view = self._family.views[v]
        return view_panels(view, self._tables[:, place], self._counts[:, place], label)

    def _view(self, view: Any) -> int:
        return _existing("view", view, len(self.view_groups_))

    def _view_rows(self, X: Any, view: Any) -> tuple[int, np.ndarray]:
        v = self._view(view)
        columns = self.view_groups_[v]
        rows = X if hasattr(X, "columns") else np.asarray(X)
        if np.ndim(rows) == 1 and len(columns) == 1:
            rows = np.asarray(rows)[:, None]
        if np.ndim(rows) == 2 and rows.shape[1] == self.n_features_in_:
            return v, self._read(rows)[:, columns]
        rows = check_array(rows, dtype=np.float64)
        if rows.shape[1] != len(columns):
            raise InvalidInput(
                f"X has {rows.shape[1]} columns; give whole rows of {self.n_features_in_} columns "
                f"or the {len(columns)} of view {v}."
            )
        return v, rows

    def _read(self, X: Any) -> np.ndarray:
        X = read_table(self, X, dtype=np.float64, reset=False)
        return self._units.without_rounding(X)

    def _log_views(self, X: np.ndarray) -> np.ndarray:
        """log p_v(x_v | h) (views, k, n) of rows already read."""
        parts = []
        for a, b in row_ranges(len(X)):
            rows = [
                table.rows(X[a:b][:, columns])
                for table, columns in zip(self._family.views, self.view_groups_, strict=True)
            ]
            parts.append(np.stack(self._family.log_views(self._tables, rows)))
        return np.concatenate(parts, axis=2)

    def _log_joint(self, X: Any) -> np.ndarray:
        joint = self._log_views(self._read(X)).sum(axis=0)
        return (joint + np.log(np.maximum(self.weights_, 1e-12))[:, None]).T

    def predict_proba(self, X: Any) -> np.ndarray:
        """Posterior of each row's component; with Dirichlet proportions their expected value."""
        check_is_fitted(self)
        if self.concentration_ is None:
            return super().predict_proba(X)
        return expected_proportions(self._log_views(self._read(X)), self.concentration_)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable component of each row."""
        return np.argmax(self.predict_proba(X), axis=1)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row (n_samples,)."""
        check_is_fitted(self)
        if self.concentration_ is None:
            return super().score_samples(X)
        return log_dirichlet_mixture(self._log_views(self._read(X)), self.concentration_)

    def _n_parameters(self) -> int:
        """Effective number: what a row adds to the estimate of its own density, summed (trace)."""
        total = len(self.weights_) - 1.0
        for view, place, width in zip(
            self._family.views, self._family.place, self.bandwidths_, strict=True
        ):
            rows = np.maximum(self.weights_ * self._n_rows, 1.0)[:, None]
            share = np.maximum(self._counts[:, place], 0.0)
            share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
            if not view.smooth:  # one for each value that occurs
                total += float(np.sum((share > 0).sum(axis=1) - 1))
                continue
            peak = 1 / np.prod(np.sqrt(2 * np.pi) * width, axis=1)[:, None]
            there = view.rows(view.points_of()).read.dot_t(self._tables[:, place])
            own = peak / np.maximum(there, peak / rows)  # a row adds at most itself
            total += float(np.sum(np.sum(share * own, axis=1) - 1))
        return max(round(total), len(self.weights_))


def _existing(name: str, value: Any, count: int) -> int:
    """A number of a view or component that there is."""
    number = check_integer(name, value, 0)
    if number >= count:
        raise InvalidInput(
            f"{name}={number} does not exist; there are {count} {name}s, 0 to {count - 1}."
        )
    return number
