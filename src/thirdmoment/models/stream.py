"""Batches one after another: fits of all rows while they are few, stepwise EM after that.

A batch cannot be seen twice. Up to `KEPT_ROWS` rows are kept, and while all rows seen so far are
among them every call fits them anew, moments first: the result is that of ``fit`` on all of them.
Beyond that the expected statistics of each new batch under the current parameters are added to
those of all before, and the parameters follow from the sums (docs/decisions/streaming_mixtures.md).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import all_or_nothing, check_weights
from thirdmoment.models.read import check_batch
from thirdmoment.recovery.order import canonical_order
from thirdmoment.report import Report

# Rows of a stream that are kept and fitted together before stepwise EM takes over.
KEPT_ROWS: Choice[int] = 10_000


class Stream:
    """The kept rows and the sums of a stream; subclasses fit rows and give statistics.

    A batch is a pair: rows, and what goes with them (weights of rows, lengths of sequences).
    """

    def _forget_stream(self) -> None:
        for name in ("_stream", "n_seen_"):
            vars(self).pop(name, None)

    def _take_batch(self, X: np.ndarray, extra: np.ndarray, k: int) -> None:
        """Fit the kept rows with this batch, or add its statistics."""
        first = not hasattr(self, "_stream")
        if not first and self._stream["sums"] is not None and k != len(self._stream["sums"][0]):
            raise InvalidInput(
                f"n_components={k}, but this stream was begun with {len(self._stream['sums'][0])}. "
                "Call fit, or a new model, to begin again."
            )
        kept = (X[:0], extra[:0]) if first else self._stream["kept"]
        if first or (kept is not None and len(kept[0]) + len(X) <= KEPT_ROWS):
            rows, extras = np.concatenate([kept[0], X]), np.concatenate([kept[1], extra])
            self._fit_rows(rows, extras, k)  # type: ignore[attr-defined]
            self._stream: dict[str, Any] = {"kept": (rows, extras), "sums": None}
        else:
            self._step(X, extra)
        self.n_seen_ = getattr(self, "n_seen_", 0) + len(X)

    def _step(self, X: np.ndarray, extra: np.ndarray) -> None:
        """Add the statistics of a batch, and of the kept rows the first time."""
        with single_threaded_blas():
            if self._stream["sums"] is None:
                sums = self._batch_statistics(*self._stream["kept"])  # type: ignore[attr-defined]
            else:
                sums = self._stream["sums"]
            new = self._batch_statistics(X, extra)  # type: ignore[attr-defined]
            sums = tuple(a + b for a, b in zip(sums, new, strict=True))
            sums = self._in_order(sums)  # as the parameters will be
            self._stream = {"kept": None, "sums": sums}
            self._take_statistics(sums)  # type: ignore[attr-defined]
        self.report_: Report = self.report_.outdated("later batches have changed the fit")

    @abstractmethod
    def _in_order(self, sums: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """The sums in the order that their components will have."""


class StreamingMixture(Stream):
    """``partial_fit`` for mixtures; subclasses read batches and give statistics."""

    def _shared_statistics(self) -> int:
        """How many of the last statistics belong to all components."""
        return 0

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more batch of rows; see ``fit``.

        The first 10,000 rows are kept and fitted together, so batches up to there give what
        ``fit`` gives; later batches refine by stepwise EM (``report_`` then is "not checked").
        Batches should come in random order. The first call after ``fit`` starts anew.
        """
        k = self._check_arguments()  # type: ignore[attr-defined]
        check_batch(self, X)
        first = not hasattr(self, "_stream")
        X = self._read_batch(X, first=first)  # type: ignore[attr-defined]
        w = check_weights(sample_weight, X)
        self._take_batch(X, np.ones(len(X)) if w is None else w, k)
        return self

    def _in_order(self, sums: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        order = canonical_order(sums[0])
        own = len(sums) - self._shared_statistics()
        return (*(a[order] for a in sums[:own]), *sums[own:])
