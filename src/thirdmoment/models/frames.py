"""Fitted parameters as a table with the names of the columns, one row a component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from thirdmoment.exceptions import InvalidInput

# What a fitted attribute (k,) is called in a table.
SINGLE = {
    "weights_": "weight", "startprob_": "start", "intercept_": "intercept",
    "subspace_dims_": "dimension", "skewness_": "skewness", "kurtosis_": "kurtosis",
}  # fmt: skip

Columns = Iterator[tuple[str, np.ndarray]]


def pandas() -> Any:
    """pandas, which is loaded when a table is asked for."""
    try:
        import pandas as found
    except ImportError as error:
        raise InvalidInput("Tables are pandas frames: pip install pandas.") from error
    return found


def components_frame(model: Any) -> Any:
    """The table of any model with components."""
    if not (hasattr(model, "weights_") or hasattr(model, "components_")):
        raise InvalidInput(
            f"{type(model).__name__} has no components: each search finds one, with all about it."
        )
    table: dict[str, np.ndarray] = {}
    for name, values in _columns(model):
        table[f"{name}_" if name in table else name] = values  # a word may be called weight
    return pandas().DataFrame(table, index=pandas().RangeIndex(_count(model), name="component"))


def _count(model: Any) -> int:
    return len(model.weights_ if hasattr(model, "weights_") else model.components_)


def _columns(model: Any) -> Columns:
    k = _count(model)
    names = list(map(str, getattr(model, "words_", model._column_names())))
    trust = getattr(model, "topic_trust_", getattr(getattr(model, "report_", None), "trust", None))
    for attribute, name in SINGLE.items():
        if hasattr(model, attribute):
            yield name, np.asarray(getattr(model, attribute))
        if attribute == "weights_" and trust is not None and len(trust) == k:
            yield "trust", np.asarray(trust)
    for j in range(k) if hasattr(model, "transmat_") else ():
        yield f"to {j}", model.transmat_[:, j]
    if hasattr(model, "expectation"):
        yield from _expectations(model, names)
    if hasattr(model, "means_"):
        yield from _means(model, names)
    if hasattr(model, "probabilities_") or hasattr(model, "emissionprob_"):
        yield from _probabilities(model, names)
    for attribute in ("coef_", "components_"):
        if hasattr(model, attribute):
            yield from zip(names, np.asarray(getattr(model, attribute)).T, strict=True)
    noise = np.asarray(getattr(model, "noise_variance_", np.nan))
    if np.all(noise == noise):
        yield "noise sd", np.sqrt(np.broadcast_to(noise, (k,)))
    if hasattr(model, "bases_"):
        shares = (np.asarray(model.bases_) ** 2).sum(axis=2)
        yield from ((f"share {name}", own) for name, own in zip(names, shares.T, strict=True))


def _expectations(model: Any, names: list[str]) -> Columns:
    for view, group in enumerate(model.view_groups_):
        means = model.expectation(lambda rows: rows, view)
        yield from ((f"mean {names[j]}", means[:, i]) for i, j in enumerate(group))


def _means(model: Any, names: list[str]) -> Columns:
    """Means, and standard deviations where the model has them."""
    means, groups = model.means_, getattr(model, "view_groups_", None)
    if not isinstance(means, list):
        means, groups = [np.asarray(means)], [np.arange(len(names))]
    assert groups is not None
    for own, group in zip(means, groups, strict=True):
        yield from ((f"mean {names[j]}", own[:, i]) for i, j in enumerate(group))
    spreads = getattr(model, "covariances_", getattr(model, "covars_", None))
    if spreads is None:
        return
    if not isinstance(spreads, list):
        spreads = [np.asarray(spreads)]
    kind, k = getattr(model, "covariance_type", ""), len(means[0])
    groups = model.view_groups_ if kind == "block" else groups
    for own, group in zip(spreads, groups, strict=True):
        own = own[None] if kind == "tied" else own
        sd = np.sqrt(np.broadcast_to(_variances(own), (k, len(group))))
        yield from ((f"sd {names[j]}", sd[:, i]) for i, j in enumerate(group))


def _variances(spread: np.ndarray) -> np.ndarray:
    """Variances (k, d) or (k, 1) of covariances, a matrix, a row or a number a component."""
    if spread.ndim == 3:
        return np.diagonal(spread, axis1=1, axis2=2)
    return spread if spread.ndim == 2 else spread[:, None]


def _probabilities(model: Any, names: list[str]) -> Columns:
    tables = getattr(model, "probabilities_", getattr(model, "emissionprob_", None))
    if isinstance(tables, np.ndarray) and getattr(model, "_marks", False):
        yield from zip(names, tables.T, strict=True)  # of ones
        return
    each: list[np.ndarray] = [tables] if isinstance(tables, np.ndarray) else list(tables or ())
    for name, table in zip(names, each, strict=True):
        yield from ((f"{name} = {code}", table[:, code]) for code in range(table.shape[1]))
