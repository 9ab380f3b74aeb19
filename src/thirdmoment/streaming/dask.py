"""Dask collections as sources: accumulators are summed where the blocks are, and merged in a tree.

Only accumulators travel, and their sizes do not hang on the number of rows. The tree is fixed by
the order of the blocks, so that the answer is the same on any scheduler and any number of workers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from thirdmoment._array import single_threaded_blas
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput
from thirdmoment.streaming.source import Chunk, Source

# Accumulators that are merged at one place.
BRANCHES: Work[int] = 8

# Times that a pass is tried.
TRIES: Work[int] = 3

logger = logging.getLogger("thirdmoment")


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask; nothing is loaded to find out."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "to_delayed")


class DaskSource(Source):
    """Blocks of rows of a Dask array or frame, left where they are."""

    def __init__(self, collection: Any) -> None:
        if getattr(collection, "ndim", 2) != 2:
            raise InvalidInput(f"X has {collection.ndim} dimensions instead of 2.")
        self.blocks = _row_blocks(collection)
        chunks = getattr(collection, "chunks", None)
        self.sizes = chunks[0] if chunks else (float("nan"),) * len(self.blocks)
        width = collection.shape[1]
        if isinstance(width, float):  # Dask writes sizes that it does not know as NaN
            raise InvalidInput(
                "The number of columns of X is not known. Give it: X.rechunk or "
                "X.compute_chunk_sizes() say it."
            )
        names = getattr(collection, "columns", None)
        super().__init__(self._computed, width=int(width), name="The Dask collection",
                         words=None if names is None else list(names))  # fmt: skip
        self.named = names is not None

    def beside(self, y: Any) -> DaskSource:
        """The same rows with Dask targets as their last column, block by block."""
        import dask

        targets = np.asarray(y.to_delayed()).ravel().tolist()
        if len(targets) != len(self.blocks):
            raise InvalidInput(
                f"y has {len(targets)} blocks, but X has {len(self.blocks)}: cut both alike."
            )
        join = dask.delayed(_with_targets, pure=False)
        other = object.__new__(DaskSource)
        vars(other).update(vars(self))
        other.blocks = [join(*pair) for pair in zip(self.blocks, targets, strict=True)]
        other._width = self.width + 1
        return other

    def _computed(self) -> Iterator[Any]:
        """Blocks on this machine, one after another."""
        for block in self.blocks:
            yield block.compute()

    def reduce(self, new: Callable[[], Any], prepare: Callable[[Any], Any]) -> Any:
        """``new()`` updated with every prepared block, on the workers, and merged in a tree.

        Dask makes the tasks of a lost worker again; where it was lost while it was sent something,
        the pass is begun anew, for it changes nothing but its own sums.
        """
        for left in reversed(range(TRIES)):
            try:
                return self._reduced(new, prepare)
            except (OSError, CancelledError) as error:
                if isinstance(error, FileNotFoundError | PermissionError):
                    raise
                if not left:
                    raise ConnectionError(
                        f"The Dask cluster was lost in the middle of a pass ({error}); the model "
                        "is as it was. Start the cluster again, and fit."
                    ) from error
                logger.warning("a pass over the Dask collection is begun anew (%s)", error)
        raise AssertionError

    def _reduced(self, new: Callable[[], Any], prepare: Callable[[Any], Any]) -> Any:
        import dask

        held = _placed((new, prepare, self))
        task, join = dask.delayed(_updated, pure=False), dask.delayed(_merged, pure=False)
        level = [task(held, block, number) for number, block in enumerate(self.blocks)]
        while len(level) > 1:
            groups = [level[i : i + BRANCHES] for i in range(0, len(level), BRANCHES)]
            level = [join(group) for group in groups]
        return level[0].compute()

    def __getstate__(self) -> dict[str, Any]:
        """What a worker needs to check a block; the blocks themselves stay away."""
        return {**vars(self), "blocks": [], "_batches": None, "_seen": None}


def _row_blocks(collection: Any) -> list[Any]:
    """One delayed block for each range of rows."""
    delayed = collection.to_delayed()
    if getattr(delayed, "ndim", 1) == 2:
        if delayed.shape[1] != 1:
            raise InvalidInput(
                f"X is cut into {delayed.shape[1]} blocks of columns; rows must be whole. Give "
                "X.rechunk({1: -1})."
            )
        delayed = delayed[:, 0]
    return list(delayed)


def _with_targets(rows: Any, y: Any) -> np.ndarray:
    rows, y = np.asarray(rows), np.asarray(y, dtype=np.float64).ravel()
    if len(rows) != len(y):
        raise InvalidInput(f"A block of y has {len(y)} entries for {len(rows)} rows of X.")
    return np.column_stack([rows, y])


def _placed(held: Any) -> Any:
    """What all tasks read, sent to every worker once."""
    import dask

    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return dask.delayed(held, pure=False, traverse=False)
    try:
        from distributed import get_client

        return get_client().scatter(held, broadcast=True, hash=False)
    except (ImportError, ValueError):  # no cluster
        return dask.delayed(held, pure=False, traverse=False)


def _updated(held: Any, block: Any, number: int) -> Any:
    new, prepare, source = held
    with single_threaded_blas():
        rows = source._matrix(block, number)
        if rows.shape[1] != source.width:
            raise InvalidInput(
                f"Block {number} of X has {rows.shape[1]} columns instead of {source.width}."
            )
        return new().update(prepare(Chunk(rows, number << 32))) if rows.shape[0] else new()


def _merged(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total
