"""Tables and column groups at the door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_integer
from thirdmoment.models.units import check_largest
from thirdmoment.streaming import Source
from thirdmoment.streaming.dask import DaskSource, is_dask

DTYPES = [np.float64, np.float32]


def read_table(estimator: Any, X: Any, *, reset: bool = True, **options: Any) -> Any:
    """X (n, d) as float64, or float32 where it comes so, with numbers that can be squared."""
    X = in_memory(X)
    options = {"dtype": DTYPES, **options}
    if reset:
        options.setdefault("ensure_min_samples", 2)
    with np.errstate(all="ignore"):  # sums of infinite values, which are refused
        X = validate_data(estimator, X, reset=reset, **options)
    dense = X.data if sp.issparse(X) else X
    check_largest(dense)
    return X


def check_batch(model: Any, X: Any) -> None:
    """``partial_fit`` takes one batch at a time, on the host."""
    if getattr(model, "device", None) is not None:
        raise InvalidInput("Batches are learned on the host: leave device out.")
    if isinstance(X, Source) or is_dask(X):
        raise InvalidInput(
            "partial_fit takes one batch: for chunk in source: model.partial_fit(chunk.rows). fit "
            "takes a source as it is."
        )


def check_targets(y: Any) -> None:
    """Targets must be numbers, and there."""
    if y is None:
        raise InvalidInput(
            "This model requires y to be passed, but the target y is None: give one number for "
            "each row of X."
        )
    if np.asarray(y).dtype.kind in "USmM":
        raise InvalidInput("y has values that are no numbers; a regression needs numbers.")


def in_memory(X: Any, *, missing: bool = False) -> Any:
    """Rows of a source or of Dask as one table; a generator could be read once only."""
    if isinstance(X, str | Path):
        raise InvalidInput(f"X is a path, {str(X)!r}: give thirdmoment.source({str(X)!r}).")
    if hasattr(X, "__next__"):
        raise InvalidInput(
            "X is a generator, which can be read once only. Give a callable that makes it anew, "
            "thirdmoment.source(lambda: generator()), or call partial_fit for each batch."
        )
    X = DaskSource(X) if is_dask(X) else X
    if not isinstance(X, Source):
        return X
    return (X.with_missing() if missing else X).gather()


def read_regression(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> Any:
    """X (n, d) and targets y (n,) in float64."""
    X = in_memory(X)
    check_targets(y)
    options = {"ensure_min_samples": 2} if reset else {}
    with np.errstate(all="ignore"):
        X, y = validate_data(estimator, X, y, reset=reset, dtype=DTYPES, y_numeric=True, **options)
        y = np.asarray(y, dtype=np.float64)
    check_largest(X)
    check_largest(y, name="y")
    return X, y


def check_views(
    views: Any, n_columns: int, rng: np.random.Generator, names: Any = None
) -> list[np.ndarray]:
    """Column groups from ``views``: a number of random groups, or the groups themselves.

    With column ``names`` given, groups may use them.
    """
    if isinstance(views, (int, np.integer)) and not isinstance(views, bool):
        if views < 3:
            raise InvalidInput(
                f"views={views} is too few: two views do not identify such a model, three do."
            )
        parts = np.array_split(rng.permutation(n_columns), min(int(views), n_columns))
        return [np.sort(part) for part in parts]
    if isinstance(views, str) or not hasattr(views, "__len__"):
        raise InvalidInput(
            f"views={views!r} must be an integer of at least 3 or a list of column groups."
        )
    place = {} if names is None else {name: i for i, name in enumerate(names)}
    groups = [
        _column_group(number, _by_name(group, place), n_columns)
        for number, group in enumerate(views)
    ]
    if len(groups) < 3:
        raise InvalidInput(
            f"views has {len(groups)} column groups; two views do not identify such a model, three "
            "do."
        )
    columns, counts = np.unique(np.concatenate(groups), return_counts=True)
    if np.any(counts > 1):
        raise InvalidInput(
            f"Views share column {columns[counts > 1][0]}: views must be independent given the "
            "component, so every column may stand in one view only."
        )
    return groups


def _by_name(group: Any, place: dict[str, int]) -> Any:
    """Column names of a group replaced by their numbers, where all of them are known."""
    if isinstance(group, str) and group in place:
        return place[group]
    if hasattr(group, "__iter__") and not isinstance(group, str):
        entries = list(group)
        if entries and all(isinstance(entry, str) and entry in place for entry in entries):
            return [place[entry] for entry in entries]
    return group


def _column_group(number: int, group: Any, n_columns: int) -> np.ndarray:
    """One view as column numbers; a mask of all columns is read as such."""
    try:
        columns = np.array(group if np.ndim(group) else [group])
    except ValueError:
        columns = np.empty(0, dtype=object)
    if columns.dtype == bool and columns.shape == (n_columns,):
        columns = np.flatnonzero(columns)
    if columns.ndim != 1 or not len(columns) or columns.dtype.kind not in "iu":
        raise InvalidInput(
            f"View {number} is {group!r}; a view is a non-empty list of column numbers, or a mask "
            f"of all {n_columns} columns."
        )
    outside = columns[(columns < 0) | (columns >= n_columns)]
    if len(outside):
        raise InvalidInput(
            f"View {number} names column {outside[0]}, but X has {n_columns} columns (0 to "
            f"{n_columns - 1})."
        )
    return columns.astype(int)


def read_dimensions(value: Any, k: int) -> list[int] | None:
    """Dimension of each of k subspaces, or None for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise InvalidInput(f"subspace_dim={value!r} must be an integer, a list or 'auto'.")
        return None
    if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) == 0:
        return [check_integer("subspace_dim", value, 1)] * k
    dims = [check_integer("subspace_dim", one, 1) for one in value]
    if len(dims) != k:
        raise InvalidInput(
            f"subspace_dim has {len(dims)} entries, but n_components={k}: give one for each "
            "subspace, or one number for all."
        )
    return dims
