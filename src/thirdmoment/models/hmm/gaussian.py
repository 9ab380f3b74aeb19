"""Hidden Markov models of vectors with Gaussian emissions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._array import if_room, ones, sent_rows
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.gaussians import Block, Diagonal, Spherical
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.likelihood.packed import Sequences, sequences
from thirdmoment.likelihood.tensor_chains import TensorSequences
from thirdmoment.models.base import check_option
from thirdmoment.models.hmm.base import HiddenMarkovModel
from thirdmoment.models.hmm.sequences import Training
from thirdmoment.models.hmm.source import SequenceLook
from thirdmoment.models.read import read_table
from thirdmoment.models.tables import TableLook, dense_rows
from thirdmoment.models.units import (
    Units,
    cast,
    check_floor,
    check_sizes,
    column_units,
    units_and_floor,
)
from thirdmoment.refinement.chains import Observations
from thirdmoment.report import Finding
from thirdmoment.report.findings import collapsed_finding
from thirdmoment.report.labels import column_labels
from thirdmoment.starts.gaussian_chains import WholeVectors, label_starts, moment_starts
from thirdmoment.starts.given import (
    Shape,
    around_means,
    finite_start,
    given_array,
    given_matrices,
    given_positive,
    needs,
)
from thirdmoment.starts.start import Settings, Start
from thirdmoment.streaming import row_ranges

TYPES = ("spherical", "diag", "full")  # in the order of the dimensions of covars_


class GaussianHMM(HiddenMarkovModel):
    """Hidden Markov model with Gaussian emissions.

    Windows of three observations are conditionally independent views of the state in the middle;
    their moments give means, covariances, transitions and start, and accelerated EM from there
    makes the estimate efficient. With more states than columns (plus one) products of columns are
    features too. Where the windows do not show a clear hidden Markov model a few other starts race
    against them; the report says which won.

    Parameters
    ----------
    n_components : int, default=2
        Number of states k.
    covariance_type : {"diag", "spherical", "full"}, default="diag"
    reg_covar : float or "auto", default="auto"
        Smallest variance of a state in any direction. ``"auto"`` is a millionth of each column's
        own variance (of their mean for ``"spherical"``); a number is absolute.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
        What decomposes the moments.
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    weighting : {"auto", "none"}, default="auto"
        Use all pairs of views; ``"none"``: the papers' form.
    n_starts : int or "auto", default="auto"
        Starts without third moments that race against them. ``"auto"``: none where the moments
        are clear, else up to fifteen. More of them make the answer hang less on ``random_state``.
    startprob_init, transmat_init, means_init, covars_init : array, default=None
        A start by hand, shaped as the fitted attributes, that joins the race: where another start
        ends with a higher likelihood, that one is taken. Any of them may be left out (but not
        ``means_init`` beside ``covars_init``). They are starts, not constraints: transitions of
        zero need not stay so.
    max_refine_iter : int, default=100
        Largest number of EM steps of the main run.
    tol : float, default=0.02
        Stop when a cycle of EM gains less than this many units of total log-likelihood (or less
        than 1e-7 of it).
    random_state : int, RandomState instance or None, default=0
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
    device : str, default=None
        ``"cuda"`` runs EM on long data on a GPU, as for tensors that are on one.
    verbose : int, default=0

    Attributes
    ----------
    startprob_ : (n_components,)
    transmat_ : (n_components, n_components)
        Rows sum to one.
    means_ : (n_components, n_features)
    covars_ : (n_components, n_features) for "diag", (n_components,) for "spherical", else
        (n_components, n_features, n_features).
    weights_ : (n_components,)
        Share of the training observations in each state, the largest first.
    stationary_ : (n_components,)
    converged_ : bool
    n_iter_ : int
        EM steps of all starts together.
    lower_bound_ : float
        Mean log-likelihood of a training observation.
    report_ : Report

    References
    ----------
    Anandkumar, Hsu and Kakade (2012), A method of moments for mixture models and hidden Markov
    models, COLT.

    Examples
    --------
    >>> from thirdmoment import GaussianHMM
    >>> from thirdmoment.datasets import make_gaussian_hmm
    >>> data = make_gaussian_hmm(20, 200, n_features=3)
    >>> model = GaussianHMM(n_components=3).fit(data.X, lengths=data.lengths)
    >>> model.means_.shape, model.covars_.shape
    ((3, 3), (3, 3))
    >>> model.forecast(data.X, n_steps=5, lengths=data.lengths).mean.shape
    (20, 5, 3)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance_type: str = "diag",
        reg_covar: float | str = "auto",
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        n_starts: int | str = "auto",
        startprob_init: Any = None,
        transmat_init: Any = None,
        means_init: Any = None,
        covars_init: Any = None,
        max_refine_iter: int = 100,
        tol: float = 0.02,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.n_starts = n_starts
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.means_init = means_init
        self.covars_init = covars_init
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    # what a fit learns about the data, and what a model set by hand has instead
    _units: Units | None = None
    _floor: Any = 1e-100
    _dtype: Any = np.float64

    def _check_own(self) -> None:
        check_option("covariance_type", self.covariance_type, TYPES)
        check_floor(self.reg_covar)

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        return read_table(self, X, reset=reset, ensure_min_samples=1)

    def _read_rows(self, rows: Any) -> np.ndarray:
        return dense_rows(rows)

    def _row_look(self, width: int) -> Any:
        return partial(TableLook, width, sampled=False)

    def _prepare_source(self, look: SequenceLook) -> Any:
        seen = look.table
        check_sizes(seen.largest)
        return self._with_units(seen.units(), np.float64, len(seen.mean))

    def _prepare(self, X: np.ndarray) -> Any:
        return self._with_units(column_units(X), X.dtype, X.shape[1])

    def _with_units(self, units: Units, dtype: Any, d: int) -> Any:
        kind = self.covariance_type
        self._units, self._floor = units_and_floor(
            units, self.reg_covar, diagonal=kind == "diag", compared=kind == "spherical"
        )
        self._dtype = dtype
        return self._family(kind, d)

    def _family(self, kind: str, d: int) -> Any:
        floor, varies = self._floor, self._own_units().varies
        if kind == "spherical":
            return Spherical(floor)
        if kind == "diag":
            return Diagonal(floor, varies)
        return Block(floor, [np.arange(d)], varies)

    def _fitted_type(self) -> str:
        """By the shape of ``covars_``: arguments may have changed since, or nothing was fitted."""
        return TYPES[np.ndim(self.covars_) - 1]

    def _fitted_family(self) -> Any:
        return self._family(self._fitted_type(), self.means_.shape[1])

    def _observations(self, family: Any, X: np.ndarray, lengths: np.ndarray) -> Observations:
        rows, where, unit = self._rows(X), sequences(lengths), -self._own_units().log_volume()
        if self._runs_there(len(rows)):
            sent = if_room(lambda: self._sent(family, rows, where, unit), lambda: None)
            if sent is not None:
                return sent
        weights = np.ones(len(rows))
        ranges = row_ranges(len(rows), size=20_000)
        chunks = [family.rows(rows[a:b], weights[a:b]) for a, b in ranges]
        return Observations(chunks, None, where, unit)

    def _sent(
        self, family: Any, rows: np.ndarray, where: Sequences, unit: float
    ) -> Observations | None:
        """The same on the device of a fit."""
        X = sent_rows(rows, self._device)
        there = TensorSequences(where, X[:1, 0])
        return Observations([family.rows(X, ones(len(X), like=X))], None, where, unit, there)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """Rows in units of the columns' standard deviations."""
        return self._own_units().rows(X)

    def _own_units(self) -> Units:
        """Those of the fit; a model set by hand has none."""
        if self._units is not None:
            return self._units
        return Units.plain(np.zeros(np.shape(self.means_)[1]))

    def _one_state(self, data: Training) -> Start:
        return label_starts(data.family, data.rows, self._rows(data.X), 1, self._rng(), count=1)[0]

    def _moment_starts(self, data: Training, k: int, settings: Settings) -> list[Start]:
        offsets, whole = data.rows.where.offsets, None
        if data.whole is not None:
            units = self._own_units()
            deviation = np.sqrt(data.whole.look.table.variance) / units.scale
            whole = WholeVectors(data.whole.chunks, units.rows, deviation)
        return moment_starts(data.family, self._rows(data.X), offsets, k, settings, whole)

    def _other_starts(
        self, data: Training, k: int, rng: np.random.Generator, count: int | None
    ) -> list[Start]:
        return label_starts(data.family, data.rows, self._rows(data.X), k, rng, count=count)

    def _given_emission(self, data: Training, k: int) -> Parameters | None:
        X = data.X
        needs("covars_init", self.covars_init, "means_init", self.means_init)
        if self.means_init is None:
            return None
        d, kind, name = X.shape[1], self.covariance_type, "covars_init"
        units = self._own_units()
        means = (given_array("means_init", self.means_init, (k, d)) - units.location) / units.scale
        if self.covars_init is None:
            shape = Shape(kind, [np.arange(d)])
            found = around_means(self._rows(X), np.ones(len(X)), means, shape)[1:]
            return finite_start(found, "means_init")
        if kind == "full":
            covars = given_matrices(name, self.covars_init, (k, d, d))
        else:
            covars = given_positive(name, self.covars_init, (k,) if kind == "spherical" else (k, d))
        return means, covars / self._unit(covars.ndim)

    def _labels(self) -> tuple[str, ...]:
        scale, names = self._own_units().scale, self._column_names()
        return column_labels(self.means_, self.weights_, scale, names, "observations")

    def _emission_notes(self) -> list[Finding]:
        family = self._fitted_family()
        at_floor = family.collapsed((self.startprob_, *self._emission()))
        if not at_floor:
            return []
        return [collapsed_finding(at_floor, len(self.means_), "states", np.min(family.floor))]

    def _dtype_out(self) -> Any:
        return self._dtype

    def _set_emission(self, emission: Parameters) -> None:
        (means, covars), units = emission, self._own_units()
        self.means_ = cast(means * units.scale + units.location, self._dtype)
        self.covars_ = cast(covars * self._unit(covars.ndim), self._dtype)

    def _emission(self) -> Parameters:
        covars, units = np.asarray(self.covars_, dtype=np.float64), self._own_units()
        return (self.means_ - units.location) / units.scale, covars / self._unit(covars.ndim)

    def _unit(self, dimensions: int) -> Any:
        """What variances in units of `_rows` are to be multiplied by."""
        scale = self._own_units().scale
        if dimensions == 3:
            return scale[:, None] * scale
        if dimensions == 2:
            return scale**2
        if np.ptp(scale) > 0:  # every column has its unit
            raise InvalidInput(
                "covars_ has one variance a state, but this model was fitted with one for each "
                "column. Set spherical parameters in a model that was not fitted otherwise."
            )
        return scale[0] ** 2

    def _n_emission_parameters(self) -> int:
        k, d = self.means_.shape
        each = {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[self._fitted_type()]
        return k * (d + each)

    def _variances(self) -> np.ndarray:
        """Of each column in each state (k, d)."""
        covars, d = np.asarray(self.covars_, dtype=np.float64), self.means_.shape[1]
        if covars.ndim == 3:
            return np.diagonal(covars, axis1=1, axis2=2)
        return np.broadcast_to(covars.reshape(len(covars), -1), (len(covars), d))

    def _draw(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal((len(states), self.means_.shape[1]))
        if np.ndim(self.covars_) < 3:
            return (self.means_[states] + np.sqrt(self._variances())[states] * noise).astype(
                self._dtype
            )
        for j, factor in enumerate(np.linalg.cholesky(np.asarray(self.covars_, np.float64))):
            own = states == j
            noise[own] = self.means_[j] + noise[own] @ factor.T
        return noise.astype(self._dtype)

    def _emission_moments(self) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(self.means_, dtype=np.float64), self._variances()

    def to_hmmlearn(self) -> Any:
        """The same model as ``hmmlearn.hmm.GaussianHMM``; its ``fit`` goes on from there."""
        from hmmlearn.hmm import GaussianHMM as Peer

        check_is_fitted(self, "startprob_")
        peer = Peer(
            n_components=len(self.startprob_), covariance_type=self._fitted_type(), init_params=""
        )
        peer.n_features = self.means_.shape[1]
        given = self.startprob_, self.transmat_, self.means_, self.covars_
        start, T, means, covars = (np.array(a, dtype=np.float64) for a in given)  # copies
        peer.startprob_, peer.transmat_ = start / start.sum(), T / T.sum(axis=1, keepdims=True)
        peer.means_, peer.covars_ = means, covars
        return peer
