"""Components come in arbitrary order: compare them only after an optimal assignment."""

from __future__ import annotations

import numpy as np
import scipy.optimize
from scipy.spatial.distance import cdist

from thirdmoment._array import Array, array_namespace, holds_tensors, like_one, to_numpy


def align(estimate: np.ndarray, truth: np.ndarray, *, metric: str = "cityblock") -> np.ndarray:
    """Row order of ``estimate`` that matches ``truth`` best.

    Parameters
    ----------
    estimate : array of shape (k, d)
        Components in its rows.
    truth : array of shape (m, d)
        Components to compare with; there may be more or fewer of them.
    metric : str
        Any metric of `scipy.spatial.distance.cdist`; L1 by default, as for topics.

    Returns
    -------
    order : (m,) integers
        ``estimate[order]`` is aligned with ``truth``; apply the same order to every array. Where
        there are fewer rows than in ``truth``, -1 stands for those without a partner.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import align
    >>> truth = np.eye(3)
    >>> align(truth[[2, 0, 1]], truth)
    array([1, 2, 0])
    >>> align(truth[:2], truth)
    array([ 0,  1, -1])
    """
    there = holds_tensors(truth) or holds_tensors(estimate)
    if metric == "cosine":
        distance = _cosines(truth, estimate)
    elif metric == "cityblock" and there:
        distance = _sums_of_differences(*_on_one_device(truth, estimate))
    else:
        estimate, truth = _tables(to_numpy(estimate), to_numpy(truth))
        distance = cdist(truth, estimate, metric)
    rows, partner = scipy.optimize.linear_sum_assignment(distance)
    order = np.full(len(truth), -1)
    order[rows] = partner
    return order


def _cosines(a: Array, b: Array) -> np.ndarray:
    """1 - cosine of each two rows, by one matrix product: two tables of topics may be large.

    On the device that holds one of them.
    """
    if not (holds_tensors(a) or holds_tensors(b)):
        a, b = _tables(a, b)
        sizes = [np.sqrt(np.einsum("ij,ij->i", one, one)) for one in (a, b)]
        return 1 - (a @ b.T) / np.maximum(np.outer(*sizes), 1e-300)
    a, b = _on_one_device(a, b)
    xp = array_namespace(a)
    sizes = [to_numpy(xp.linalg.vector_norm(one, axis=1)) for one in (a, b)]
    return 1 - to_numpy(a @ b.T) / np.maximum(np.outer(*sizes), 1e-300)


def _sums_of_differences(a: Array, b: Array) -> np.ndarray:
    """L1 distance of each two rows of tensors."""
    xp = array_namespace(a)
    rows = [xp.sum(xp.abs(b - a[i, :]), axis=1) for i in range(a.shape[0])]
    return to_numpy(xp.stack(rows))


def _on_one_device(a: Array, b: Array) -> tuple[Array, Array]:
    return (a, like_one(a, b)) if holds_tensors(a) else (like_one(b, a), b)


def recovery_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Mean L1 distance of aligned rows, 0 (equal) to 2 (disjoint) for probability rows.

    Rows of ``truth`` without a partner are compared with zeros; further rows of ``estimate`` do not
    count.

    Examples
    --------
    >>> import numpy as np
    >>> from thirdmoment.metrics import recovery_error
    >>> recovery_error(np.eye(2)[::-1], np.eye(2))
    0.0
    """
    estimate, truth = _tables(estimate, truth)
    order = align(estimate, truth)
    found = np.zeros(truth.shape)
    found[order >= 0] = estimate[order[order >= 0]]
    return float(np.abs(found - truth).sum(axis=1).mean())


def _tables(estimate: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    estimate, truth = np.asarray(estimate), np.asarray(truth)
    if estimate.ndim != 2 or truth.ndim != 2 or estimate.shape[1] != truth.shape[1]:
        raise ValueError(
            f"estimate has shape {estimate.shape} and truth {truth.shape}; "
            "only components with the same columns can be aligned."
        )
    return estimate, truth
