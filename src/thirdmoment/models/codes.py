"""Tables of integer codes at the door. A missing cell is -1 from here on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from thirdmoment._constants import Limit
from thirdmoment.exceptions import InvalidInput
from thirdmoment.likelihood.categories import SPARSE_SHARE, observed_share
from thirdmoment.models.read import in_memory

# More categories in all columns together than this are taken for a mistake.
MOST_CATEGORIES: Limit[int] = 1_000_000

# No column has a code above this: beyond it numbers are not exact.
LARGEST_CODE: Limit[int] = 2**53

ENCODE = "encode the columns first, for instance with sklearn.preprocessing.OrdinalEncoder."


def read_codes(estimator: Any, X: Any, *, reset: bool, allow_nan: bool = True) -> np.ndarray:
    """Codes (n, l) as integers with -1 for missing cells (NaN in the input, if allowed)."""
    try:
        finite = "allow-nan" if allow_nan else True
        X = in_memory(X, missing=allow_nan)
        with np.errstate(all="ignore"):
            X = validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite=finite)
        X = X.astype(np.float64) if X.dtype.kind not in "iub" else X
    except (TypeError, ValueError) as error:
        text = str(error).lower()
        if "sparse" in text or not ("convert" in text or "isnan" in text):
            raise
        raise InvalidInput(f"X has values that are no numbers ({error}); {ENCODE}") from error
    return checked_codes(X, allow_nan=allow_nan)


def checked_codes(X: np.ndarray, *, allow_nan: bool) -> np.ndarray:
    """Numbers (n, l) as codes, -1 where missing."""
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
        return X.astype(np.int64, copy=False)
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
    return sizes_from(codes.max(axis=0) + 1, observed_share(codes, weights), n_categories, name)


def sizes_from(
    seen: np.ndarray, share: float, n_categories: Any, name: str = "n_categories"
) -> np.ndarray:
    """The same from the largest codes (l,) plus one and the share of cells that are there."""
    sizes = seen if n_categories is None else _given_sizes(n_categories, len(seen), name)
    if n_categories is None and share < SPARSE_SHARE:
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
