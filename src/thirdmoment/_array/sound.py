"""Sparse matrices as they come from outside: checked in full before compiled code reads them."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from thirdmoment.exceptions import InvalidInput


def check_sparse(X: Any) -> None:
    """Raise where a sparse matrix points outside itself; anything else passes.

    SciPy checks this when a matrix is made, but not when its arrays are changed afterwards or come
    from a file, and reading such a matrix reads or writes memory that is not its own.
    """
    if not sp.issparse(X):
        return
    if X.format in ("csr", "csc", "bsr"):
        try:
            X.check_format(full_check=True)
        except (ValueError, IndexError, TypeError) as error:
            raise _unsound(str(error)) from None
    elif X.format == "coo":
        for place, size in zip(X.coords, X.shape, strict=True):
            if len(place) and not (place.min() >= 0 and place.max() < size):
                raise _unsound(f"indices go from {place.min()} to {place.max()} of {size}")


def _unsound(reason: str) -> InvalidInput:
    return InvalidInput(
        f"X is not a sound sparse matrix ({reason}): its arrays were changed, or the file is "
        "broken. Build it anew from its entries."
    )
