"""Tables of integer codes: reading, distinct rows, one-hot features. A missing cell is -1 here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from thirdmoment._array import CompiledRows, DenseRows, Rows, ShiftedRows
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import first_columns

# One-hot codes are kept dense up to this many numbers: one matrix product beats sparse ones there.
DENSE_SIZE = 300_000

# Below this share of observed cells a table is taken for a crowd: columns with the same categories.
SPARSE_SHARE = 0.5

# More categories in all columns together than this are taken for a mistake.
MOST_CATEGORIES = 1_000_000

# No column has a code above this: beyond it numbers are not exact.
LARGEST_CODE = 2**53

ENCODE = "encode the columns first, for instance with sklearn.preprocessing.OrdinalEncoder."


class CodeTable(NamedTuple):
    """Distinct rows of codes and how often each occurs."""

    codes: np.ndarray  # (m, l) int64, -1 missing
    counts: np.ndarray  # (m,)
    sizes: np.ndarray  # (l,) categories of each column


def read_codes(estimator: Any, X: Any, *, reset: bool, allow_nan: bool = True) -> np.ndarray:
    """Codes (n, l) as integers with -1 for missing cells (NaN in the input, if allowed)."""
    try:
        finite = "allow-nan" if allow_nan else True
        with np.errstate(all="ignore"):
            X = validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite=finite)
        X = X.astype(np.float64) if X.dtype.kind not in "iub" else X
    except (TypeError, ValueError) as error:
        text = str(error).lower()
        if "sparse" in text or not ("convert" in text or "isnan" in text):
            raise
        raise InvalidInput(f"X has values that are no numbers ({error}); {ENCODE}") from error
    high = np.nanmax(X, initial=0)
    if high > LARGEST_CODE:  # before any cast, which would wrap around
        raise InvalidInput(f"X has the code {high:g}; codes should count up from 0: {ENCODE}")
    low = np.nanmin(X, initial=0)
    if low < 0:
        raise InvalidInput(
            f"Negative values in data: X has the code {low:g}, but categories are integer codes "
            f"0, 1, 2, ...{' Write missing cells as NaN.' if allow_nan else ''}"
        )
    if X.dtype.kind in "iub":
        return X.astype(np.int64)
    missing = np.isnan(X)
    filled = np.where(missing, 0.0, X)
    wrong = filled != np.floor(filled)
    if wrong.any():
        raise InvalidInput(
            f"X has the value {filled[wrong][0]:g}, but categories are integer codes 0, 1, 2, "
            f"...: {ENCODE}"
        )
    return np.where(missing, -1, filled).astype(np.int64)


def column_sizes(
    codes: np.ndarray, weights: np.ndarray, n_categories: Any, *, name: str = "n_categories"
) -> np.ndarray:
    """Number of categories of each column: given, or the largest code plus one."""
    seen = codes.max(axis=0) + 1
    sizes = seen if n_categories is None else _given_sizes(n_categories, len(seen), name)
    if n_categories is None and observed_share(codes, weights) < SPARSE_SHARE:
        sizes = np.full_like(seen, seen.max())  # a crowd: columns that saw few labels are alike
    together = float(np.sum(sizes, dtype=np.float64))
    if together > MOST_CATEGORIES:
        raise InvalidInput(
            f"The columns have {together:.10g} categories in all (column {np.argmax(sizes)} alone "
            f"{sizes.max()}), more than {MOST_CATEGORIES}; codes should count up from 0: {ENCODE}"
        )
    if np.any(sizes < seen):
        column = int(np.argmax(seen - sizes))
        raise InvalidInput(
            f"Column {column} has the code {seen[column] - 1}, but {name} allows only codes "
            f"up to {sizes[column] - 1} there."
        )
    return np.maximum(sizes, 1)


def _given_sizes(n_categories: object, n_columns: int, name: str) -> np.ndarray:
    given = np.asarray(n_categories)
    if given.dtype.kind not in "iu" or given.ndim > 1 or np.any(given < 1):
        raise InvalidInput(
            f"{name}={n_categories!r} must be a positive integer, or one for each column."
        )
    if given.ndim == 1 and len(given) != n_columns:
        raise InvalidInput(f"{name} has {len(given)} entries, but X has {n_columns} columns.")
    return np.broadcast_to(given, (n_columns,)).astype(np.int64)


def check_known(
    codes: np.ndarray,
    sizes: np.ndarray,
    *,
    remedy: str = "Fit with n_categories to allow more, or write NaN.",
) -> None:
    """Codes at prediction must be among those of the fit."""
    over = codes >= sizes
    if over.any():
        row, column = np.argwhere(over)[0]
        raise InvalidInput(
            f"Column {column} has the code {codes[row, column]}, but the model knows only codes up "
            f"to {sizes[column] - 1} there. {remedy}"
        )


def row_keys(codes: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, int] | None:
    """One integer for each row of codes, the step of each column in it, and how many there are.

    None where the integers would be too large.
    """
    radix = sizes.astype(object)
    cells = int(np.prod(radix))
    if cells >= 2**62:
        return None
    steps = np.concatenate([np.cumprod(radix[::-1])[-2::-1], [1]]).astype(np.int64)
    return codes @ steps, steps, cells


def distinct_rows(codes: np.ndarray, weights: np.ndarray, sizes: np.ndarray) -> CodeTable:
    """Equal rows merged, their weights added: EM and moments then cost the distinct rows only."""
    keyed = row_keys(codes + 1, sizes + 1)
    if keyed is None:
        return CodeTable(codes, weights, sizes)
    key, steps, cells = keyed
    if cells <= max(4 * len(codes), 100_000):
        counts = np.bincount(key, weights=weights, minlength=cells)
        keys = np.flatnonzero(np.bincount(key, minlength=cells))
        counts = counts[keys]
    else:
        keys, inverse = np.unique(key, return_inverse=True)
        counts = np.bincount(inverse, weights=weights)
    rows = (keys[:, None] // steps) % (sizes + 1) - 1
    return CodeTable(rows, counts, sizes)


def observed_share(codes: np.ndarray, weights: np.ndarray) -> float:
    """Share of cells that are not missing."""
    return float(weights @ (codes >= 0).mean(axis=1) / weights.sum())


def used_categories(table: CodeTable) -> np.ndarray:
    """Which categories of all columns side by side occur at all (Σ d_v,)."""
    starts = first_columns(table.sizes)
    used = np.zeros(int(table.sizes.sum()), dtype=bool)
    for start, column in zip(starts, table.codes.T, strict=True):
        used[start + np.unique(column[column >= 0])] = True
    return used


def one_hot(codes: np.ndarray, sizes: np.ndarray) -> Rows:
    """One-hot codes of all columns side by side (m, Σ d_v); missing cells are empty."""
    return _features(codes, sizes, np.ones(int(sizes.sum())))


def standardised(codes: np.ndarray, sizes: np.ndarray, scale: np.ndarray, mean: np.ndarray) -> Rows:
    """scale · (one-hot - mean) where observed, zero where missing, and a last column of ones."""
    return _features(codes, sizes, scale, scale * mean)


def seen_cells(codes: np.ndarray, sizes: np.ndarray) -> Rows:
    """One in all categories of an observed cell, zero in a missing one, a last column of ones."""
    D = int(sizes.sum())
    return _features(codes, sizes, np.zeros(D), -np.ones(D))


def _features(
    codes: np.ndarray, sizes: np.ndarray, scale: np.ndarray, shift: np.ndarray | None = None
) -> Rows:
    """scale · one-hot - shift where observed; with a shift also a last column of ones.

    Many numbers are never written out: cost follows the cells, not the categories.
    """
    m, D = len(codes), int(sizes.sum())
    starts, observed = first_columns(sizes), codes >= 0
    row, column = np.nonzero(observed)
    place = starts[column] + codes[row, column]
    constant = shift is not None
    if m * (D + 1) <= DENSE_SIZE:
        Z = np.zeros((m, D + constant))
        Z[:, D:] = 1.0
        Z[row, place] = scale[place]
        if shift is not None:
            Z[:, :D] -= np.repeat(observed, sizes, axis=1) * shift
        return DenseRows(Z)
    codes_only = sp.csr_array((scale[place], (row, place)), shape=(m, D))
    if shift is None:
        return CompiledRows(codes_only)
    sparse = sp.hstack([codes_only, np.ones((m, 1))], format="csr")
    right = sp.csr_array((shift, np.arange(D), np.append(starts, D)), shape=(len(sizes), D + 1))
    return ShiftedRows(CompiledRows(sparse), observed.astype(np.float64), right)
