"""The door for tables of real numbers, in fits and in predictions alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.units import check_largest

DTYPES = [np.float64, np.float32]


def read_table(estimator: Any, X: Any, *, reset: bool = True, **options: Any) -> Any:
    """X (n, d) as float64, or float32 where it comes so, with numbers that can be squared."""
    options = {"dtype": DTYPES, **options}
    if reset:
        options.setdefault("ensure_min_samples", 2)
    with np.errstate(all="ignore"):  # sums of infinite values, which are refused
        X = validate_data(estimator, X, reset=reset, **options)
    dense = X.data if sp.issparse(X) else X
    check_largest(dense)
    return X


def read_regression(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> Any:
    """X (n, d) and targets y (n,) in float64."""
    if np.asarray(y).dtype.kind in "USmM":
        raise InvalidInput("y has values that are no numbers; a regression needs numbers.")
    options = {"ensure_min_samples": 2} if reset else {}
    with np.errstate(all="ignore"):
        X, y = validate_data(estimator, X, y, reset=reset, dtype=DTYPES, y_numeric=True, **options)
        y = np.asarray(y, dtype=np.float64)
    check_largest(X)
    check_largest(y, name="y")
    return X, y
