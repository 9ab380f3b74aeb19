"""Hidden Markov models of binary vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import Categories
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.models.base import check_number
from thirdmoment.models.hmm.coded import CodedHMM
from thirdmoment.models.hmm.sequences import Training
from thirdmoment.models.hmm.source import SequenceLook
from thirdmoment.models.read import in_memory
from thirdmoment.starts.given import given_array


class BernoulliHMM(CodedHMM):
    """Hidden Markov model of vectors of binary marks.

    Columns are independent given the state, as in chromatin segmentation. See `CategoricalHMM` for
    how it is learned; distinct rows are the symbols.

    Parameters
    ----------
    n_components : int, default=2
        Number of states k.
    binarize : float or None, default=0.0
        Values above this are ones, as in ``sklearn.naive_bayes.BernoulliNB``; with None only 0 and
        1 (or booleans) are accepted.
    prior_count : float, default=0.001
        Count added to ones and zeros of every mark in every state.
    solver : {"auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"}, default="auto"
        What decomposes the moments.
    refine : {"auto", "none", "em"}, default="auto"
        ``"none"`` gives the moment estimate itself and raises where the moments are unusable.
    weighting : {"auto", "none"}, default="auto"
        Scale symbols to even noise; ``"none"``: the papers' form.
    n_starts : int or "auto", default="auto"
        Starts without third moments that race against them. ``"auto"``: none where the moments
        are clear, else up to six. More of them make the answer hang less on ``random_state``.
    startprob_init, transmat_init, emissionprob_init : array, default=None
        A start by hand, shaped as the fitted attributes, that joins the race; see
        `CategoricalHMM`.
    max_refine_iter : int, default=100
        Largest number of EM steps of the main run.
    tol : float, default=0.02
        Stop when steps of EM gain less than this many units of total log-likelihood (or less than
        1e-7 of it).
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
    emissionprob_ : (n_components, n_features)
        Probability of each mark in each state.
    weights_ : (n_components,)
        Share of the training observations in each state, the largest first.
    stationary_ : (n_components,)
    converged_ : bool
    n_iter_ : int
        EM steps of all starts together.
    lower_bound_ : float
        Mean (penalised) log-likelihood of a training observation.
    report_ : Report

    References
    ----------
    Anandkumar, Hsu and Kakade (2012), A method of moments for mixture models and hidden Markov
    models, COLT.
    Ernst and Kellis (2012), ChromHMM: automating chromatin-state discovery and characterization,
    Nature Methods.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment import BernoulliHMM
    >>> rng = np.random.default_rng(0)
    >>> on = np.repeat(rng.random(200) < 0.5, 10)
    >>> X = rng.random((2000, 4)) < np.where(on[:, None], 0.8, 0.1)
    >>> model = BernoulliHMM(n_components=2).fit(X)
    >>> np.round(np.sort(model.emissionprob_.mean(axis=1)), 1).tolist()
    [0.1, 0.8]
    """

    _marks = True  # each column is a mark that is there or not

    def __init__(
        self,
        n_components: int = 2,
        *,
        binarize: float | None = 0.0,
        prior_count: float = 0.001,
        solver: str = "auto",
        refine: str = "auto",
        weighting: str = "auto",
        n_starts: int | str = "auto",
        startprob_init: Any = None,
        transmat_init: Any = None,
        emissionprob_init: Any = None,
        max_refine_iter: int = 100,
        tol: float = 0.02,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.binarize = binarize
        self.prior_count = prior_count
        self.solver = solver
        self.refine = refine
        self.weighting = weighting
        self.n_starts = n_starts
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.emissionprob_init = emissionprob_init
        self.max_refine_iter = max_refine_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _check_own(self) -> None:
        super()._check_own()
        if self.binarize is not None:
            check_number("binarize", self.binarize)

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        X = in_memory(X)
        with np.errstate(all="ignore"):
            X = validate_data(self, X, dtype="numeric", reset=reset)
        return self._read_rows(X)

    def _read_rows(self, rows: Any) -> np.ndarray:
        X = rows
        if self.binarize is not None:
            return (self.binarize < X).astype(np.int64)
        wrong = (X != 0) & (X != 1)
        if wrong.any():
            raise InvalidInput(
                f"X has the value {X[wrong][0]:g}, but with binarize=None only 0 and 1 are "
                "accepted. Give a threshold as binarize."
            )
        return X.astype(np.int64)

    @staticmethod
    def _sizes_of(tables: Any) -> np.ndarray:
        return np.full(np.shape(tables)[1], 2)

    def _prepare_source(self, look: SequenceLook) -> Categories:
        self._sizes = np.full(len(look.table.seen), 2)
        return Categories(self._sizes, float(self.prior_count))

    def _prepare(self, X: np.ndarray) -> Categories:
        self._sizes = np.full(X.shape[1], 2)
        return Categories(self._sizes, float(self.prior_count))

    def _set_emission(self, emission: Parameters) -> None:
        self.n_categories_ = self._sizes
        self.emissionprob_ = emission[0][:, 1::2]

    def _given_emission(self, data: Training, k: int) -> Parameters | None:
        if self.emissionprob_init is None:
            return None
        p = given_array("emissionprob_init", self.emissionprob_init, (k, data.X.shape[1]))
        if p.min() < 0 or p.max() > 1:
            raise InvalidInput("emissionprob_init must have entries between 0 and 1.")
        return (_tables(p),)

    def _emission(self) -> Parameters:
        return (_tables(self.emissionprob_),)

    def _n_emission_parameters(self) -> int:
        return self.emissionprob_.size

    def _draw(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        p = self.emissionprob_[states]
        return (rng.random(p.shape) < p).astype(np.int64)

    def _emission_moments(self) -> tuple[np.ndarray, np.ndarray]:
        p = self.emissionprob_
        return p, p * (1 - p)


def _tables(p: np.ndarray) -> np.ndarray:
    """Zero and one of each mark side by side (k, 2 marks), none impossible."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return np.stack([1 - p, p], axis=2).reshape(len(p), -1)
