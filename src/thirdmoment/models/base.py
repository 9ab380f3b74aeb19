"""What every estimator shares: failed fits leave no trace, saved layouts are checked."""

from __future__ import annotations

import copy
import functools
import logging
import numbers
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from thirdmoment._array import blas_as_before, effective_threads
from thirdmoment._constants import Limit
from thirdmoment.decomposition import choose_solver
from thirdmoment.exceptions import InputWarning, InvalidInput, warn
from thirdmoment.models.frames import components_frame
from thirdmoment.models.libraries import follow_library
from thirdmoment.models.other_names import check_names
from thirdmoment.models.saving import SavedModel
from thirdmoment.starts.start import Settings

logger = logging.getLogger("thirdmoment")

# Samples count at most so often, on average, next to the counts of a prior.
MOST_WEIGHT: Limit[float] = 1e12

# More components than this are taken for a mistake.
MOST_COMPONENTS: Limit[int] = 100_000

Fit = TypeVar("Fit", bound=Callable[..., Any])


class MomentEstimator(SavedModel, BaseEstimator):
    """Base of the estimators: documentation links and a version on saved state."""

    # Raise when fitted attributes change, those of one class or what all share: an older file is
    # then refused, never misread.
    _layout = 4
    _shared_layout = 1
    _doc_link_module = "thirdmoment"
    _doc_link_template = "https://thirdmoment.readthedocs.io/en/latest/api/{estimator_name}.html"

    def _doc_link_url_param_generator(self, *_: Any) -> dict[str, str]:
        return {"estimator_name": type(self).__name__}

    # methods that read tensors where they are; all others are given NumPy's arrays
    _reads_tensors: frozenset[str] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        follow_library(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        check_names(cls, kwargs)
        return super().__new__(cls)

    # arguments that take over fitted attributes, where the name is not that of the attribute
    _init_names: Mapping[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__(), "_saved_layout": self._layouts()}
        state.pop("_learned", None)
        return state

    def _layouts(self) -> tuple[int, int]:
        return MomentEstimator._shared_layout, self._layout

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        found = state.pop("_saved_layout", None)
        if found != self._layouts():
            raise InvalidInput(
                f"This {type(self).__name__} was saved with layout {found}, but this release of "
                f"thirdmoment reads layout {self._layouts()}. Fit it again, or load it with the "
                "release that saved it."
            )
        super().__setstate__(state)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_jobs(getattr(self, "n_jobs", None))

    def _check_shared(self, refinements: tuple[str, ...]) -> int:
        """The constructor words that estimators share; returns n_components."""
        k = check_components(self.n_components)
        check_integer("max_refine_iter", self.max_refine_iter, 0)
        check_positive("tol", self.tol, zero=True)
        check_option("refine", self.refine, refinements)
        if "weighting" in self.get_params(deep=False):
            check_option("weighting", self.weighting, ("auto", "none"))
        choose_solver(self.solver)
        check_starts(self)
        check_jobs(self.n_jobs)
        return k

    def _column_names(self) -> list[str]:
        """Names of the columns of the training data, numbers where it had none."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"column {j}" for j in range(self.n_features_in_)]
        return [str(name) for name in names]

    def _column(self, column: Any) -> int:
        """Number of a column that was given by number or name."""
        names, d = list(getattr(self, "feature_names_in_", ())), self.n_features_in_
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, str) or check_integer("column", column, 0) >= d:
            raise InvalidInput(f"There is no column {column!r}; the model has {d} of them.")
        return int(column)

    def components_frame(self) -> Any:
        """The fitted parameters as a pandas frame, one row a component, by names of columns."""
        check_is_fitted(self)
        return components_frame(self)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _sampling_rng(self, random_state: Any) -> np.random.Generator:
        """What ``sample`` draws from: a seed or state of its own, else that of the estimator."""
        seed = self.random_state if random_state is None else random_state
        return np.random.default_rng(check_random_state(seed).randint(2**31))

    def _own_rng(self) -> np.random.Generator:
        """Another one, for checks: what a user draws from later does not hang on them."""
        state = copy.deepcopy(check_random_state(self.random_state))
        return np.random.default_rng([state.randint(2**31), 1])

    @property
    def _refining(self) -> bool:
        """Whether likelihood follows the moments."""
        return self.refine != "none" and self.max_refine_iter > 0

    def _settings(self, rng: np.random.Generator) -> Settings:
        """How the starts of this estimator are made."""
        weighted = getattr(self, "weighting", "auto") == "auto"
        return Settings(self.solver, weighted, self.refine != "none", self._threads(), rng)

    def _threads(self) -> int:
        return effective_threads(self.n_jobs)

    def _log(self, text: str, *values: object) -> None:
        """Progress; with ``verbose`` it is shown whatever the level, and nothing is set up."""
        if not self.verbose:
            logger.debug(text, *values)
            return
        record = logger.makeRecord(logger.name, logging.INFO, __file__, 0, text, values, None)
        (logger if logger.hasHandlers() else logging.StreamHandler()).handle(record)


def all_or_nothing(fit: Fit) -> Fit:
    """A fit that fails leaves the estimator exactly as it was before.

    One that succeeds warns if it threw away parameters that the user had set by hand.
    """

    @functools.wraps(fit)
    @blas_as_before
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        by_hand = _set_by_hand(self) if fit.__name__ == "fit" else {}
        try:
            found = fit(self, *args, **kwargs)
            _warn_thrown_away(self, by_hand)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        self._learned = {name: id(value) for name, value in _public_state(self).items()}
        return found

    return guarded  # type: ignore[return-value]


def _public_state(model: Any) -> dict[str, Any]:
    state = vars(model)
    return {name: state[name] for name in state if name.endswith("_") and name[0] != "_"}


def _set_by_hand(model: Any) -> dict[str, Any]:
    """Fitted attributes that no fit of this object has set."""
    learned = vars(model).get("_learned")
    if learned is None:  # never fitted, or loaded from a file
        return {} if hasattr(model, "report_") else _public_state(model)
    state = _public_state(model)
    return {name: value for name, value in state.items() if learned.get(name) != id(value)}


def _warn_thrown_away(model: Any, by_hand: dict[str, Any]) -> None:
    lost = [name for name in by_hand if vars(model).get(name) is not by_hand[name]]
    if not lost:
        return
    arguments = model.get_params(deep=False)
    takes = [model._init_names.get(name, f"{name}init") for name in lost]
    takes = [name for name in takes if name in arguments]
    instead = "No argument takes them as a start."
    if takes:
        instead = f"To start from them, give {' and '.join(dict.fromkeys(takes))} instead."
    text = f"fit learned {', '.join(lost)} anew: what had been set by hand is gone. {instead}"
    warn(text, InputWarning)


def check_integer(name: str, value: Any, lowest: int) -> int:
    """An argument that must be an integer of at least ``lowest``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidInput(f"{name}={value!r} must be an integer of at least {lowest}.")
    if value < lowest:
        raise InvalidInput(f"{name}={value} must be at least {lowest}.")
    return int(value)


def check_components(n_components: Any) -> int:
    """The argument ``n_components``; lists of that length are made before any data is seen."""
    k = check_integer("n_components", n_components, 1)
    if k > MOST_COMPONENTS:
        raise InvalidInput(f"n_components={k} must be at most {MOST_COMPONENTS}.")
    return k


def check_starts(model: BaseEstimator) -> None:
    """``n_starts`` and starts given by hand, of the models that have them."""
    arguments = model.get_params(deep=False)
    count = arguments.get("n_starts", "auto")
    if not isinstance(count, str):
        check_integer("n_starts", count, 0)
    elif count != "auto":
        raise InvalidInput(f"n_starts={count!r} must be 'auto' or an integer.")
    by_hand = (name for name in arguments if name.endswith("_init"))
    given = [name for name in by_hand if arguments[name] is not None]
    if given and arguments["refine"] == "none":
        raise InvalidInput(
            f"{given[0]} is a start for the refinement, and refine='none' leaves that out. Drop "
            "one of the two."
        )


def check_jobs(n_jobs: Any) -> None:
    """``n_jobs`` must be None or a non-zero integer."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise InvalidInput(f"n_jobs={n_jobs!r} must be None or a non-zero integer.")


def check_option(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """An argument that must be one of a few names."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(option) for option in allowed)
        raise InvalidInput(f"{name}={value!r} is unknown. Choose one of {names}.")
    return value


def check_number(name: str, value: Any) -> float:
    """An argument that must be a finite number."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not np.isfinite(float(value)):
        raise InvalidInput(f"{name}={value!r} must be a finite number.")
    return float(value)


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """An argument that must be a finite positive number."""
    kind = "non-negative" if zero else "positive"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name}={value!r} must be a {kind} number.")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InvalidInput(f"{name}={value} must be a finite {kind} number.")
    return number


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Sample weights (n,), or None; negative or all-zero weights are refused."""
    if sample_weight is None:
        return None
    if not np.any(np.asarray(sample_weight)):
        raise InvalidInput("sample_weight is zero for every sample; nothing is left to learn from.")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weight < 0):
        raise InvalidInput(
            f"sample_weight has a negative entry ({weight.min():.3g}); weights say how often a "
            "sample counts, so give non-negative ones."
        )
    return weight


def beside_a_prior(weights: np.ndarray) -> np.ndarray:
    """Weights as counts next to those of a prior: a mean below one is scaled up to it."""
    mean = float((weights / weights.max()).mean()) * float(weights.max())
    if not mean <= MOST_WEIGHT:
        raise InvalidInput(
            f"sample_weight has a mean of {mean:.3g}; weights say how often a sample counts, and "
            f"{MOST_WEIGHT:.0g} times is the limit. Divide them by a constant."
        )
    return weights / min(1.0, mean)


def check_rows(n: int, k: int) -> None:
    """At least as many rows as components."""
    if n < k:
        raise InvalidInput(
            f"There are {n} rows (n_samples = {n}), fewer than n_components={k}: every component "
            f"needs at least one. Lower n_components to {n} or less, or give more rows."
        )
