"""The argument ``subspace_dim``."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_integer


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
