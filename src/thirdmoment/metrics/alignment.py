"""Components come in arbitrary order: compare them only after an optimal assignment."""

from __future__ import annotations

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist


def align(estimate: np.ndarray, truth: np.ndarray, *, metric: str = "cityblock") -> np.ndarray:
    """Row order of ``estimate`` that matches ``truth`` best.

    Parameters
    ----------
    estimate, truth : arrays of shape (k, d)
        Components in their rows.
    metric : str
        Any metric of `scipy.spatial.distance.cdist`; L1 by default, as for topics.

    Returns
    -------
    order : (k,) integers
        ``estimate[order]`` is aligned with ``truth``; apply the same order to every array.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import align
    >>> truth = np.eye(3)
    >>> align(truth[[2, 0, 1]], truth)
    array([1, 2, 0])
    """
    estimate, truth = np.asarray(estimate), np.asarray(truth)
    if estimate.shape != truth.shape:
        raise ValueError(
            f"estimate has shape {estimate.shape} and truth {truth.shape}; "
            "only sets of components of the same shape can be aligned."
        )
    return scipy.optimize.linear_sum_assignment(cdist(truth, estimate, metric))[1]


def recovery_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Mean L1 distance of aligned rows, 0 (equal) to 2 (disjoint) for probability rows.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import recovery_error
    >>> recovery_error(np.eye(2)[::-1], np.eye(2))
    0.0
    """
    estimate, truth = np.asarray(estimate), np.asarray(truth)
    return float(np.abs(estimate[align(estimate, truth)] - truth).sum(axis=1).mean())
