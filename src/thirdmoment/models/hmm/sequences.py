"""The arguments of a hidden Markov model: lengths, one table of all sequences, no target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.refinement.chains import MarkovProblem, Observations
from thirdmoment.streaming import Source

if TYPE_CHECKING:
    from thirdmoment.models.hmm.source import WholeSequences


class Training(NamedTuple):
    """Sequences in all forms that a fit needs."""

    family: Any
    X: np.ndarray
    lengths: np.ndarray
    rows: Observations  # as EM reads them
    whole: WholeSequences | None = None  # of what X is a sample, None where it is everything

    def counts(self) -> tuple[int, int]:
        """Sequences, and those of fewer than three observations."""
        if self.whole is not None:
            return self.whole.look.sequences, self.whole.look.short
        return len(self.lengths), int(np.sum(self.lengths < 3))

    def windows(self) -> float:
        """Windows of three observations."""
        if self.whole is not None:
            return float(self.whole.look.windows)
        return float(np.sum(np.maximum(self.lengths - 2, 0)))


class SmallProblem(NamedTuple):
    """A part of the data to race on, the starts there, and the way back."""

    problem: MarkovProblem
    starts: list[Parameters]
    back: Callable[[Parameters], Parameters]


def read_lengths(lengths: Any, n: int | None) -> np.ndarray:
    """Lengths as integers that add up to the n observations, if known; None is one sequence."""
    if lengths is None:
        return np.array([n], dtype=np.int64)
    try:
        given = np.atleast_1d(np.asarray(_as_list(lengths), dtype=np.float64))
    except (TypeError, ValueError):
        given = np.empty((0, 0))
    if given.ndim != 1 or len(given) == 0:
        raise InvalidInput(f"lengths must be a list of positive integers, not {lengths!r}.")
    wrong = ~np.isfinite(given) | (given != np.floor(given)) | (given < 1)
    if wrong.any():
        raise InvalidInput(
            f"lengths has the entry {given[wrong][0]:g}, but lengths of sequences are positive "
            "integers. Leave empty sequences out."
        )
    found = given.astype(np.int64)
    check_sum(found, n)
    return found


def check_sum(lengths: np.ndarray, n: int | None) -> None:
    """Lengths must add up to the number of observations, where that is known."""
    if n is not None and lengths.sum() != n:
        raise InvalidInput(
            f"lengths adds up to {lengths.sum()} in {len(lengths)} sequences, but X has {n} "
            "observations. X must hold all sequences one after another."
        )


def chunk_lengths(X: Any) -> list[int] | None:
    """Every chunk of a source is a sequence; None for a table."""
    if not isinstance(X, Source):
        return None
    if not X.given_chunks:
        raise InvalidInput(
            f"{X.name} does not say where sequences end. Give lengths=, of one sequence "
            "lengths=[number of rows]."
        )
    return [chunk.rows.shape[0] for chunk in X]


def _as_list(values: Any) -> Any:
    if isinstance(values, str):
        raise TypeError
    return values if hasattr(values, "__len__") or np.isscalar(values) else list(values)


def check_one_table(X: Any) -> None:
    """A list of sequences is a likely mistake, with a remedy."""
    if not isinstance(X, list | tuple) or len(X) < 1:
        return
    sizes = {len(part) if hasattr(part, "__len__") else -1 for part in X}
    if -1 not in sizes and (len(sizes) > 1 or any(np.ndim(part) > 1 for part in X)):
        raise InvalidInput(
            f"X looks like a list of {len(X)} sequences. Give them one after another: "
            "fit(np.concatenate(sequences), lengths=[len(s) for s in sequences])."
        )


def check_target(y: Any, n: int, method: str = "fit") -> None:
    """``y`` is ignored, but lengths in its place are a mistake with a name."""
    if y is None:
        return
    size = len(y) if hasattr(y, "__len__") else 1
    if size != n:
        raise InvalidInput(
            f"The second argument has {size} entries for {n} observations. Here it is y, which is "
            "ignored, as everywhere in scikit-learn; if these are the lengths of sequences, write "
            f"{method}(X, lengths=lengths)."
        )
