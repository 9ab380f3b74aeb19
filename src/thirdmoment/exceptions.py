"""Every error and warning the library raises on purpose.

A message says what was found, why it blocks, the number against its limit, and what to do.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import TypeVar


class ThirdMomentError(Exception):
    """Base of the library's own errors."""


class InvalidInput(ThirdMomentError, ValueError):
    """The data or an argument cannot be used as it is."""


class UnknownArgument(InvalidInput, TypeError):
    """An argument that a model does not have."""


class UnusableMoments(ThirdMomentError, ValueError):
    """The moments cannot separate the components that were asked for."""


Problem = TypeVar("Problem", bound=BaseException)


def without_frames(problem: Problem) -> Problem:
    """An error that is kept for later, without the frames it came through.

    They hold the data; kept by one of them the error would hold it until garbage is collected.
    """
    problem.__traceback__, problem.__context__, problem.__cause__ = None, None, None
    return problem


class RankDeficientMoment(UnusableMoments):
    """The second moment has fewer usable eigenvalues than components (E_RANK, E_INDEF)."""

    def __init__(self, *, rank: int, k: int, smallest: float, floor: float) -> None:
        self.rank, self.k, self.smallest, self.floor = rank, k, smallest, floor
        super().__init__(
            f"The second moment has numerical rank {rank}, so it cannot separate "
            f"n_components={k} components (eigenvalue {k} is {smallest:.2g}, floor {floor:.2g}). "
            f"Lower n_components to {max(rank, 1)}, or give more samples."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_rank_error, (self.rank, self.k, self.smallest, self.floor)


def _rebuild_rank_error(rank: int, k: int, smallest: float, floor: float) -> RankDeficientMoment:
    return RankDeficientMoment(rank=rank, k=k, smallest=smallest, floor=floor)


class RankDeficientView(UnusableMoments):
    """A view shows fewer independent directions than components (E_RANK, MV-2)."""

    def __init__(
        self, *, view: int | str, k: int, spectrum: tuple[float, ...], floor: float
    ) -> None:
        self.view, self.k, self.spectrum, self.floor = view, k, spectrum, floor
        self.rank = sum(value > floor for value in spectrum)
        name = view if isinstance(view, str) else f"View {view}"
        values = ", ".join(f"{value:.2g}" for value in spectrum[: k + 2])
        super().__init__(
            f"{name} has rank {self.rank} against the other views, so it cannot separate "
            f"n_components={k} components (singular values {values}; floor {floor:.2g}). Lower "
            f"n_components to {max(self.rank, 1)}, give that view more columns, or give more "
            "samples."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_view_error, (self.view, self.k, self.spectrum, self.floor)


def _rebuild_view_error(
    view: int | str, k: int, spectrum: tuple[float, ...], floor: float
) -> RankDeficientView:
    return RankDeficientView(view=view, k=k, spectrum=spectrum, floor=floor)


class ComplexSpectrum(UnusableMoments):
    """No draw of the projection vector gives a real spectrum (E_COMPLEX)."""


class ThirdMomentWarning(UserWarning):
    """Base of the library's own warnings."""


class MomentWarning(ThirdMomentWarning):
    """The moments could not be used, and nothing that follows makes up for it."""


class InputWarning(ThirdMomentWarning):
    """The input is accepted, though an assumption of the model does not hold for it."""


# Frames of these packages are on the way from the user's line to a warning.
ON_THE_WAY = ("thirdmoment", "sklearn", "joblib", "contextlib")


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the line of the user that led here, however deep the call."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _package(frame) in ON_THE_WAY:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
