"""Tables of numbers in memory or in a source: one look at all rows, and a sample of them.

A model reads `Table.X`, which is all rows or a sample of them, wherever it looks at rows; what is
summed goes over `Table.stream` where there is one. A source of few rows is read into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thirdmoment._array import (
    Array,
    array_namespace,
    find_device,
    first_rows,
    in_double,
    is_array,
    on_gpu,
    on_host,
    sent_rows,
    to_numpy,
)
from thirdmoment._constants import Choice
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_rows, check_weights
from thirdmoment.models.read import check_targets, read_regression, read_table
from thirdmoment.models.rows import counted_rows
from thirdmoment.models.units import Units, check_sizes, column_units, units_from
from thirdmoment.streaming import Chunk, Source, Streamed, fold
from thirdmoment.streaming.dask import DaskSource, is_dask
from thirdmoment.streaming.sample import SampledRows
from thirdmoment.streaming.source import with_column
from thirdmoment.streaming.tensors import TensorSource

# Rows of the sample that is looked at and raced on, and numbers in them; a source that has no more
# of either is read into memory (docs/decisions/streams.md).
SAMPLED: Choice[int] = 50_000
SAMPLED_NUMBERS: Choice[int] = 20_000_000


# Methods of mixtures that read tensors where they are.
MIXTURE_READS = frozenset(
    ("fit", "fit_predict", "predict", "predict_proba", "score_samples", "score", "log_likelihood")
    + ("aic", "bic")
)


class SparseRows(InvalidInput):
    """Rows of a source that are sparse where dense ones are needed."""


class TableLook:
    """Sizes, means and spreads of the columns of all rows, and a sample of the rows."""

    def __init__(self, width: int, *, sampled: bool = True) -> None:
        self.n = 0
        self.mean, self.square = np.zeros(width), np.zeros(width)  # Σ (x - mean)²
        self.largest = np.zeros(width)
        self.single = True  # whether all numbers came in single precision
        self.sampled, self.sample = sampled, SampledRows(SAMPLED, SAMPLED_NUMBERS)

    def update(self, chunk: Chunk) -> TableLook:
        if self.n:
            new = TableLook(len(self.mean), sampled=self.sampled)
            return self.merge(new.update(chunk))
        X = dense_rows(chunk.rows)
        xp = array_namespace(X)
        self.single &= str(chunk.rows.dtype).endswith("float32")
        self.n, self.largest = X.shape[0], to_numpy(xp.max(xp.abs(X), axis=0))
        with np.errstate(over="ignore", invalid="ignore"):  # sizes are checked after the pass
            mean = xp.mean(X, axis=0)
            mean = mean + xp.mean(X - mean, axis=0)  # what the first sum rounded
            self.mean, self.square = to_numpy(mean), to_numpy(xp.sum((X - mean) ** 2, axis=0))
        if not self.sampled:
            return self
        few, keys = first_rows(chunk.start, chunk.start + self.n, SAMPLED, like=X)
        self.sample.add(keys, to_numpy(xp.take(X, few, axis=0)))  # copies, for chunks are freed
        return self

    def merge(self, other: TableLook) -> TableLook:
        """Sums of squares about the common mean (Chan, Golub and LeVeque 1983)."""
        n = self.n + other.n
        if not other.n:
            return self
        with np.errstate(over="ignore", invalid="ignore"):
            apart = other.mean - self.mean
            self.square = self.square + other.square + apart**2 * (self.n * other.n / n)
            self.mean = self.mean + apart * (other.n / n)
        self.n, self.largest = n, np.maximum(self.largest, other.largest)
        self.single &= other.single
        self.sample.merge(other.sample)
        return self

    @property
    def small(self) -> bool:
        """Whether the sample would be everything."""
        return self.n <= SAMPLED and self.n * len(self.mean) <= SAMPLED_NUMBERS

    @property
    def variance(self) -> np.ndarray:
        return self.square / self.n

    def units(self) -> Units:
        """Units of the columns, as those of a table in memory."""
        eps = float(np.finfo(np.float32 if self.single else np.float64).eps)
        return units_from(self.mean, np.sqrt(self.variance), self.largest, eps)


class Table(NamedTuple):
    """Rows that count, in memory, or a sample of those of a source."""

    X: np.ndarray  # (m, d) distinct rows
    weights: np.ndarray  # (m,)
    dtype: Any  # of the results
    look: TableLook | None = None  # of all rows of a source
    stream: Streamed | None = None  # all rows of a source, as float64 chunks

    @property
    def total(self) -> float:
        """Rows that the table is worth."""
        return float(self.weights.sum()) if self.look is None else float(self.look.n)

    def units(self) -> Units:
        """Units of the columns."""
        return column_units(self.X, self.weights) if self.look is None else self.look.units()

    def whole(self, make: Callable[[Array], Array], *, width: int | None = None) -> Streamed | None:
        """Rows of a source after ``make``, with the numbers of their first ones."""
        if self.stream is None:
            return None
        return self.stream.mapped(partial(with_rows, make), width=width)


def with_rows(make: Callable[[Array], Array], chunk: Chunk) -> Chunk:
    """A chunk whose rows are taken one step further."""
    return chunk._replace(rows=make(chunk.rows))


def open_table(model: Any, X: Any, sample_weight: Any, k: int) -> Table:
    """Rows of a matrix, a Dask collection or a source, checked; at least k of them.

    Many rows without weights go to the device that is asked for, or stay where they are.
    """
    device = device_of(model, X)  # before any work
    X = DaskSource(X) if is_dask(X) else X
    if isinstance(X, Source) and sample_weight is not None:
        raise InvalidInput("Rows of a source count alike: leave sample_weight out.")
    X = resident(model, X, device) if sample_weight is None else on_host(X)
    if isinstance(X, Source):
        found = _streamed(model, X, k)
        if found is not None:
            return found
    X = read_table(model, X)
    place, w = counted_rows(X, check_weights(sample_weight, X), k)
    return Table(X[place], w, X.dtype)


def device_of(model: Any, X: Any = None) -> Any:
    """The device that a model is to learn on, None where that follows the data."""
    name = getattr(model, "device", None)
    if name is not None and is_dask(X):
        raise InvalidInput("Dask's workers learn where they are: leave device out.")
    return None if name is None else find_device(name)


def place_for(model: Any, X: Any) -> Any:
    """The device that is asked for, or the GPU that X is on; None for the host."""
    device = device_of(model, X)
    if device is None and is_array(X) and on_gpu(X):
        device = sent_rows(X[:0], None).device
    return device


def resident(model: Any, X: Any, device: Any) -> Any:
    """Many rows as a source of tensors, where X is on a device or one is asked for; else X."""
    if is_array(X) and _many(X):
        return TensorSource(sent_rows(_numbers(X), device))
    if device is None or isinstance(X, Source) or not _many(X):
        return on_host(X)
    X = read_table(model, X)
    names = getattr(model, "feature_names_in_", None)
    return TensorSource(sent_rows(X, device), words=names)


def rows_to_score(model: Any, X: Any) -> Array:
    """Rows for a fitted model: many tensors where they are, or on the device that is asked for."""
    device = device_of(model)
    if not is_array(X) or not _many(X):
        X = read_table(model, on_host(X), reset=False)
        return sent_rows(X, device if _many(X) else None)
    if X.shape[1] != model.n_features_in_:
        raise InvalidInput(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    source = TensorSource(sent_rows(_numbers(X), device))
    for _ in source:  # which checks every number
        pass
    return source.rows


def _numbers(X: Array) -> Array:
    """Rows of any library as real numbers."""
    xp = array_namespace(X)
    if not xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        raise InvalidInput(f"X holds {X.dtype} instead of numbers.")
    return xp.astype(X, xp.uint8) if xp.isdtype(X.dtype, "bool") else X


def _many(X: Any) -> bool:
    """Whether a sample of the rows is not everything."""
    shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
    large = len(shape) == 2 and shape[1] > 0
    return large and (shape[0] > SAMPLED or int(np.prod(shape)) > SAMPLED_NUMBERS)


def open_regression(model: Any, X: Any, y: Any, sample_weight: Any, k: int) -> Table:
    """Rows with their targets as the last column; targets of a source are in memory."""
    X = DaskSource(X) if is_dask(X) else X
    if isinstance(X, Source):
        if isinstance(X, DaskSource) and is_dask(y):
            X = X.beside(y)
        else:
            check_targets(y)
            X = with_column(X, np.asarray(y, dtype=np.float64))
    if isinstance(X, Source):
        if sample_weight is not None:
            raise InvalidInput("Rows of a source count alike: leave sample_weight out.")
        found = _streamed(model, X, k)
        model.n_features_in_ = X.width - 1
        if found is not None:
            return found
        table = X.gather()
        X, y = table[:, :-1], table[:, -1]
    X, y = read_regression(model, X, y)
    place, w = counted_rows(X, check_weights(sample_weight, X), k, y)
    return Table(np.column_stack([X[place], y[place]]).astype(np.float64), w, X.dtype)


def _streamed(model: Any, source: Source, k: int) -> Table | None:
    device, prepare = getattr(source, "device", None), _dense
    rows = Streamed(source, _same, source.width, tell=model._log, device=device)
    look = fold(partial(TableLook, source.width), rows, n_threads=model._threads())
    if look.small:
        return None
    check_rows(look.n, k)
    check_sizes(look.largest)
    source.n_rows = look.n
    name_columns(model, source)
    rows.passes[0] = rows.passes[0]._replace(bytes=8 * look.n * source.width)
    sample = look.sample.rows()
    place, w = counted_rows(sample, None, k)
    if device is None and (device := device_of(model)) is not None:
        prepare = partial(_dense_there, device)
    stream = Streamed(source, prepare, source.width, 8 * look.n * source.width,
                      model._log, rows.passes, device)  # fmt: skip
    return Table(
        sample[place], w, np.dtype(np.float32 if look.single else np.float64), look, stream
    )


def name_columns(model: Any, source: Source, *, frames_only: bool = False) -> None:
    """Columns and their names, as validation sets them for a matrix or a frame."""
    vars(model).pop("feature_names_in_", None)
    model.n_features_in_ = source.width
    names = source.words if source.named or not frames_only else None
    if names is not None and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.array(names, dtype=object)


def _same(chunk: Chunk) -> Chunk:
    return chunk


def _dense(chunk: Chunk) -> Chunk:
    return chunk._replace(rows=dense_rows(chunk.rows))


def _dense_there(device: Any, chunk: Chunk) -> Chunk:
    return chunk._replace(rows=in_double(sent_rows(_plain(chunk.rows), device)))


def dense_rows(rows: Any) -> Array:
    """Rows of a source in float64; sparse ones are refused."""
    return in_double(_plain(rows))


def _plain(rows: Any) -> Array:
    if sp.issparse(rows):
        raise SparseRows("The source has sparse rows, and this model needs dense ones.")
    return rows


def stream_details(stream: Streamed | None) -> dict[str, Any]:
    """Every walk over a source, with its seconds and bytes."""
    return {} if stream is None else {"stream_passes": [one._asdict() for one in stream.passes]}
