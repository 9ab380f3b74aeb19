"""Hidden Markov models of vectors with Gaussian emissions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from thirdmoment.exceptions import UnusableMoments
from thirdmoment.models.base import check_option, check_positive
from thirdmoment.models.candidates import Candidate, warn_unusable
from thirdmoment.models.hmm.base import HiddenMarkovModel
from thirdmoment.models.hmm.em import Observations
from thirdmoment.models.hmm.facts import is_clear
from thirdmoment.models.hmm.gaussian_start import label_starts, moment_starts
from thirdmoment.models.hmm.sequences import sequences
from thirdmoment.refinement.em import Parameters
from thirdmoment.refinement.gaussians import Block, Diagonal, Spherical
from thirdmoment.streaming import row_ranges

TYPES = ("spherical", "diag", "full")


class GaussianHMM(HiddenMarkovModel):
    """Hidden Markov model with Gaussian emissions, without restarts.

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
    reg_covar : float, default=1e-6
        Smallest variance of a state in any direction.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
        What decomposes the moments.
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    weighting : {"auto", "none"}, default="auto"
        Use all pairs of views; ``"none"``: the papers' form.
    max_refine_iter : int, default=100
        Largest number of EM steps of the main run.
    tol : float, default=0.02
        Stop when a cycle of EM gains less than this many units of total log-likelihood (or less
        than 1e-7 of it).
    random_state : int, RandomState instance or None, default=0
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
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
        reg_covar: float = 1e-6,
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        max_refine_iter: int = 100,
        tol: float = 0.02,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_own(self) -> None:
        check_option("covariance_type", self.covariance_type, TYPES)
        check_positive("reg_covar", self.reg_covar, zero=True)

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)

    def _prepare(self, X: np.ndarray) -> Any:
        self._location = X.mean(axis=0, dtype=np.float64)
        self._dtype = X.dtype
        size = float(np.mean((X - self._location) ** 2))
        return self._family(max(float(self.reg_covar), 1e-12 * size, 1e-100), X.shape[1])

    def _family(self, floor: float, d: int) -> Any:
        self._floor = floor
        if self.covariance_type == "spherical":
            return Spherical(floor)
        return Diagonal(floor) if self.covariance_type == "diag" else Block(floor, [np.arange(d)])

    def _fitted_family(self) -> Any:
        return self._family(self._floor, self.means_.shape[1])

    def _observations(self, family: Any, X: np.ndarray, lengths: np.ndarray) -> Observations:
        rows = X.astype(np.float64) - self._location
        ones = np.ones(len(rows))
        ranges = row_ranges(len(rows), size=20_000)
        return Observations(
            [family.rows(rows[a:b], ones[a:b]) for a, b in ranges], None, sequences(lengths)
        )

    def _candidates(
        self, family: Any, X: np.ndarray, lengths: np.ndarray, k: int
    ) -> tuple[list[Candidate], list[str]]:
        refining, rng = self.refine != "none", self._rng()
        data = self._observations(family, X, lengths)
        rows = X.astype(np.float64) - self._location
        if k == 1:
            return label_starts(family, data, rows, 1, rng, count=1), []
        found: list[Candidate] = []
        notes: list[str] = []
        try:
            found = moment_starts(
                family, rows, data.where.offsets, k, self.solver, rng,
                weighted=self.weighting == "auto", hedge=refining, n_threads=self._threads(),
            )  # fmt: skip
        except UnusableMoments as error:
            if not refining:
                raise
            notes.append(f"The moments were not usable: {error} The fit started otherwise.")
            warn_unusable(str(error), stacklevel=6)
        if refining and not is_clear(found):
            found += label_starts(family, data, rows, k, rng)
        return found, notes

    def _set_emission(self, emission: Parameters) -> None:
        means, covars = emission
        self.means_ = (means + self._location).astype(self._dtype)
        self.covars_ = covars.astype(self._dtype)

    def _emission(self) -> Parameters:
        return self.means_ - self._location, np.asarray(self.covars_, dtype=np.float64)

    def _n_emission_parameters(self) -> int:
        k, d = self.means_.shape
        each = {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[self.covariance_type]
        return k * (d + each)

    def _covariances(self) -> np.ndarray:
        """All as matrices (k, d, d)."""
        covars, d = np.asarray(self.covars_, dtype=np.float64), self.means_.shape[1]
        if self.covariance_type == "full":
            return covars
        diagonal = covars[:, None] if self.covariance_type == "spherical" else covars
        return diagonal[:, :, None] * np.eye(d)

    def _draw(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        factors = np.linalg.cholesky(self._covariances())
        noise = rng.standard_normal((len(states), self.means_.shape[1]))
        return self.means_[states] + np.einsum("aij,aj->ai", factors[states], noise)

    def _emission_moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self.means_, np.diagonal(self._covariances(), axis1=1, axis2=2)

    def to_hmmlearn(self) -> Any:
        """The same model as ``hmmlearn.hmm.GaussianHMM``."""
        from hmmlearn.hmm import GaussianHMM as Peer

        peer = Peer(n_components=len(self.startprob_), covariance_type=self.covariance_type)
        peer.n_features = self.means_.shape[1]
        peer.startprob_, peer.transmat_, peer.means_ = (
            self.startprob_, self.transmat_, self.means_
        )  # fmt: skip
        peer.covars_ = self.covars_
        return peer
