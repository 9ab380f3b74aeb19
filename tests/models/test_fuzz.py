"""Any shape, dtype, sparse format and degenerate corpus: a valid model or a clear error."""

import warnings

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from thirdmoment import LatentDirichletAllocation, SingleTopicModel
from thirdmoment.exceptions import ThirdMomentError, ThirdMomentWarning

FORMATS = ["dense", "csr_array", "csr_matrix", "csc_array", "coo_array", "lil_array"]


@st.composite
def corpora(draw):
    n, d = draw(st.integers(0, 30)), draw(st.integers(0, 12))
    kind = draw(st.sampled_from(["poisson", "constant", "one word", "zeros", "huge", "blocks"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.poisson(draw(st.floats(0.05, 4)), size=(n, d)).astype(float)
    if kind == "constant":
        X[:] = 2
    elif kind == "one word" and d:
        X[:, 1:] = 0
    elif kind == "zeros":
        X[:] = 0
    elif kind == "huge":
        X *= 1e6
    elif kind == "blocks":
        X[: n // 2, : d // 2] = 0
        X[n // 2 :, d // 2 :] = 0
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "uint8", "bool"]))
    X = np.minimum(X, 200).astype(dtype) if dtype == "uint8" else X.astype(dtype)
    if draw(st.booleans()) and dtype.startswith("float"):
        X = X * draw(st.sampled_from([0.3, 1e-8, 1e8]))
    name = draw(st.sampled_from(FORMATS))
    return X if name == "dense" else getattr(sp, name)(X)


@settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    corpora(),
    st.integers(1, 6),
    st.sampled_from([LatentDirichletAllocation, SingleTopicModel]),
    st.sampled_from(["auto", "none"]),
    st.sampled_from(["auto", "none"]),
    st.sampled_from(["auto", "power", "eig", "schur", "joint-schur", "joint"]),
)
def test_fit_succeeds_or_says_why(X, k, model, refine, weighting, solver):
    estimator = model(k, refine=refine, weighting=weighting, solver=solver, max_refine_iter=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ThirdMomentWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimator.fit(X)
        except ThirdMomentError:
            assert not hasattr(estimator, "components_")
            return
        except ValueError:  # empty shapes, which scikit-learn itself refuses
            assert 0 in X.shape
            return
        components = estimator.components_
        assert components.shape == (k, X.shape[1])
        assert np.isfinite(components).all()
        assert components.min() >= 0
        np.testing.assert_allclose(components.sum(axis=1), 1, atol=1e-5)
        assert np.isfinite(estimator.weights_).all()
        scores = estimator.score_samples(X)
        assert np.isfinite(scores).all()
        str(estimator.report_)
