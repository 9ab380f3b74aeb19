"""Hidden Markov models of symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import Categories
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.models.codes import (
    check_known,
    checked_codes,
    read_codes,
    sizes_from,
)
from thirdmoment.models.hmm.coded import CodedHMM
from thirdmoment.models.hmm.sequences import Training
from thirdmoment.models.hmm.source import SequenceLook
from thirdmoment.starts.given import given_tables


class CategoricalHMM(CodedHMM):
    """Hidden Markov model of symbols.

    Windows of three observations (past, present, future) are conditionally independent views of
    the state in the middle; their joint moments give emissions, transitions and start at once, and
    accelerated EM from there makes the estimate efficient. Where the windows do not show a clear
    hidden Markov model, as in most real data, a few other starts race against them on a part of
    the data; the report says which won.

    Parameters
    ----------
    n_components : int, default=2
        Number of states k. With fewer symbols than states, windows over several steps are used.
    n_features : int, default=None
        Number of symbols; by default the largest code plus one.
    prior_count : float, default=0.001
        Count added to every symbol in every state, so that none is impossible.
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
        A start by hand, shaped as the fitted attributes, that joins the race: where another start
        ends with a higher likelihood, that one is taken. Any of them may be left out. They are
        starts, not constraints: probabilities of zero need not stay so.
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
    emissionprob_ : (n_components, n_symbols)
        Rows sum to one. With several columns, which are independent given the state, a list of
        one table a column.
    weights_ : (n_components,)
        Share of the training observations in each state, the largest first.
    stationary_ : (n_components,)
        Stationary distribution of the transitions.
    n_categories_ : (n_features,) integers
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
    Colombo and Vlassis (2016), Stable spectral learning based on Schur decomposition, UAI.

    Examples
    --------
    >>> from thirdmoment import CategoricalHMM
    >>> from thirdmoment.datasets import make_categorical_hmm
    >>> data = make_categorical_hmm(500, 20, n_symbols=6, n_components=3)
    >>> model = CategoricalHMM(n_components=3).fit(data.X, lengths=data.lengths)
    >>> model.transmat_.shape, model.emissionprob_.shape
    ((3, 3), (3, 6))
    >>> model.predict(data.X, data.lengths).shape
    (10000,)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_features: int | None = None,
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
        self.n_features = n_features
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        codes = read_codes(self, X, reset=reset, allow_nan=False)
        kept = getattr(self, "_stream", {"kept": None})["kept"]
        if not reset and (kept is None or self.n_features is not None):
            check_known(codes, self._sizes_fitted, remedy="Fit with n_features to allow more.")
        return codes

    @staticmethod
    def _sizes_of(tables: Any) -> np.ndarray:
        tables = [tables] if isinstance(tables, np.ndarray) else tables
        return np.array([np.shape(table)[1] for table in tables])

    def _read_rows(self, rows: Any) -> np.ndarray:
        return checked_codes(rows, allow_nan=False)

    def _prepare_source(self, look: SequenceLook) -> Categories:
        seen = np.array([len(column) for column in look.table.seen])
        self._sizes = sizes_from(seen, 1.0, self.n_features, "n_features")
        return Categories(self._sizes, float(self.prior_count))

    def _prepare(self, X: np.ndarray) -> Categories:
        self._sizes = sizes_from(X.max(axis=0) + 1, 1.0, self.n_features, "n_features")
        return Categories(self._sizes, float(self.prior_count))

    def _set_emission(self, emission: Parameters) -> None:
        self.n_categories_ = self._sizes
        tables = np.split(emission[0], np.cumsum(self._sizes)[:-1], axis=1)
        self.emissionprob_: Any = tables[0] if len(tables) == 1 else tables

    def _given_emission(self, data: Training, k: int) -> Parameters | None:
        if self.emissionprob_init is None:
            return None
        return (given_tables("emissionprob_init", self.emissionprob_init, k, data.family.sizes),)

    def _emission(self) -> Parameters:
        tables = self.emissionprob_
        whole = tables if isinstance(tables, np.ndarray) else np.concatenate(tables, axis=1)
        return (np.maximum(whole, 1e-12),)  # scoring smooths zeros that the papers' form leaves

    def _n_emission_parameters(self) -> int:
        return int(len(self.startprob_) * np.sum(self._sizes_fitted - 1))

    def _draw(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        columns = []
        for law in np.split(self._emission()[0], np.cumsum(self._sizes_fitted)[:-1], axis=1):
            edges = np.cumsum(law, axis=1)
            levels = rng.random(len(states)) * edges[states, -1]
            code = np.empty(len(states), dtype=np.int64)
            for j in range(len(law)):
                own = states == j
                code[own] = np.searchsorted(edges[j], levels[own], side="right")
            columns.append(np.minimum(code, law.shape[1] - 1))
        return np.stack(columns, axis=1)

    def _emission_moments(self) -> tuple[np.ndarray, np.ndarray]:
        p = self._emission()[0]
        return p, p * (1 - p)

    def to_hmmlearn(self) -> Any:
        """The same model as ``hmmlearn.hmm.CategoricalHMM``; its ``fit`` goes on from there."""
        from hmmlearn.hmm import CategoricalHMM as Peer

        check_is_fitted(self, "startprob_")
        if not isinstance(self.emissionprob_, np.ndarray):
            raise InvalidInput("hmmlearn's CategoricalHMM has one column, this model several.")
        peer = Peer(n_components=len(self.startprob_), init_params="")
        peer.n_features = int(self._sizes_fitted[0])
        peer.startprob_, peer.transmat_ = self.startprob_.copy(), self.transmat_.copy()
        peer.emissionprob_ = self.emissionprob_.copy()
        return peer
