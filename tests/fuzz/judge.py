"""Runs a hostile case: success with valid output, or one of the library's own errors."""

from __future__ import annotations

import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

import thirdmoment as tm
from thirdmoment.exceptions import InvalidInput, ThirdMomentError, ThirdMomentWarning

# Modules whose ValueError or TypeError is part of scikit-learn's contract for input.
CHECKS = ("sklearn/utils/", "sklearn/base.py")


class Fault(AssertionError):
    """What must not happen."""


def run(case: Any) -> str:
    """``"fitted"`` or ``"refused"``; raises `Fault` otherwise."""
    model = case.model()
    copies = pickle.dumps((case.X, case.extras, case.later))
    before = dict(vars(model))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = guarded(lambda: model.fit(case.X, **case.extras))
            if fitted is None:
                if dict(vars(model)) != before:
                    raise Fault("a failed fit changed the estimator")
            else:
                check_state(model)
                ask(model, case)
        finally:
            if pickle.dumps((case.X, case.extras, case.later)) != copies:
                raise Fault("the input was changed")
    for warning in caught:
        own = (ThirdMomentWarning, ConvergenceWarning, DataConversionWarning)
        if not issubclass(warning.category, own):
            raise Fault(f"{warning.category.__name__} from {warning.filename}: {warning.message}")
    return "refused" if fitted is None else "fitted"


def guarded(call: Any) -> Any:
    """The result, or None where the call was refused as it should be."""
    try:
        found = call()
    except ThirdMomentError as error:
        if not str(error).strip():
            raise Fault("an error without a message") from error
        return None
    except (ValueError, TypeError, NotFittedError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if any(part in last for part in CHECKS):
            return None
        raise Fault(f"{type(error).__name__}: {error}") from error
    except MemoryError as error:
        raise Fault("out of memory") from error
    except Exception as error:
        raise Fault(f"{type(error).__name__}: {error}") from error
    return True if found is None else found


def check_state(model: Any) -> None:
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            arrays = value if isinstance(value, (list, tuple)) else [value]
            for array in arrays:
                if isinstance(array, (np.ndarray, float)) and np.asarray(array).dtype.kind == "f":
                    allowed = ALLOWED_NAN.get(name, ())
                    if type(model).__name__ not in allowed and np.any(np.isnan(array)):
                        raise Fault(f"{name} has NaN")
    for name in ("weights_", "startprob_"):
        if hasattr(model, name):
            law(name, getattr(model, name))
    if hasattr(model, "transmat_"):
        law("transmat_", model.transmat_)
    if hasattr(model, "components_") and hasattr(model, "top_words"):
        law("components_", model.components_)
    model.report_.full()
    model.report_._repr_html_()
    pickle.loads(pickle.dumps(model))


# Cumulants that were not computed are not known, nor is the law of rates without moments, nor the
# trust in topics of few documents.
ALLOWED_NAN = {
    "topic_trust_": ("LatentDirichletAllocation", "SingleTopicModel", "PoissonTopicModel"),
    "rate_deviations_": ("PoissonTopicModel",),
    "rate_skewness_": ("PoissonTopicModel",),
    "kurtosis_": ("IndependentFactors",),
    "skewness_": ("IndependentFactors",),
}


def law(name: str, values: Any) -> None:
    values = np.asarray(values, dtype=float)
    if not (values.min() >= 0 and np.allclose(values.sum(axis=-1), 1, atol=1e-5)):
        raise Fault(f"{name} is no law: from {values.min()} with sums {values.sum(axis=-1)}")


def ask(model: Any, case: Any) -> None:
    """Every question on the rows that were fitted and on others."""
    extra = {"lengths": case.extras["lengths"]} if "lengths" in case.extras else {}
    # codes that only rows without weight have are not known afterwards
    known = not isinstance(model, tm.CategoricalMixture) or "sample_weight" not in case.extras
    for rows, own in ((case.X, known), (case.later, False)):
        if "y" in case.extras:
            if hasattr(model, "posterior"):
                found = guarded(lambda rows=rows: model.posterior(rows, case.extras["y"]))
                proportions("posterior", found, own)
                finite("predict", guarded(lambda rows=rows: model.predict(rows)), own)
        elif hasattr(model, "search"):
            ask_search(model, rows, own)
        else:
            more = extra if own else {}
            for name in ("predict_proba", "transform", "score_samples", "predict", "score"):
                if not hasattr(model, name):
                    continue
                found = guarded(
                    lambda name=name, rows=rows, more=more: getattr(model, name)(rows, **more)
                )
                if name == "predict_proba" or (
                    name == "transform" and isinstance(model, tm.LatentDirichletAllocation)
                ):
                    proportions(name, found, own)
                else:
                    finite(name, found, own, infinite=name.startswith("score"))
    if hasattr(model, "sample") and not isinstance(model, tm.MixedLinearRegression):
        drawn = guarded(lambda: model.sample(7)[0])
        finite("sample", drawn.toarray() if sp.issparse(drawn) else drawn, True)
    for name in ("aic", "bic"):
        if hasattr(model, name) and not extra and "y" not in case.extras:
            finite(name, guarded(lambda name=name: getattr(model, name)(case.X)), known)


def ask_search(model: Any, rows: Any, own: bool) -> None:
    if isinstance(model, tm.TopicSearch):
        for hint in (0, [0], -1):
            found = guarded(lambda hint=hint: model.search(hint))
            if found is not None:
                law("parameters", found.parameters)
                str(found.report)
        return
    if not isinstance(model, tm.RegressionSearch) and not sp.issparse(rows) and len(rows):
        found = guarded(lambda: model.search(rows[:3]))
        if found is not None:
            finite("parameters", found.parameters, own)
            str(found.report)


def proportions(name: str, found: Any, own: bool) -> None:
    """Refusing the rows that were fitted is a fault, as is anything but a law."""
    if found is None:
        if own:
            raise Fault(f"{name} refuses what fit took")
        return
    if not np.isfinite(np.asarray(found, dtype=float)).all():
        raise Fault(f"{name} is not finite")
    law(name, found)


def finite(name: str, found: Any, own: bool, *, infinite: bool = False) -> None:
    """``infinite``: minus infinity is an answer, as for rows that the model calls impossible."""
    if found is None:
        if own:
            raise Fault(f"{name} refuses what fit took")
        return
    values = np.asarray(found, dtype=float)
    good = ~np.isnan(values) & (values < np.inf) if infinite else np.isfinite(values)
    if not np.all(good):
        raise Fault(f"{name} is not finite")


def run_file(name: str, content: bytes, folder: Path) -> str:
    """A file is read, or refused in the library's own words."""
    path = folder / name
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            X = tm.datasets.load_bag_of_words(path).X
        except InvalidInput:
            return "refused"
    X.check_format(full_check=True)
    return "fitted"
