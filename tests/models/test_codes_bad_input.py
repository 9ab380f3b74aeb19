"""Codes near the limits of numbers are refused by one reader, at fit and at prediction alike."""

import numpy as np
import pytest

from thirdmoment import CategoricalHMM, CategoricalMixture
from thirdmoment.exceptions import InvalidInput

HUGE = [
    np.int64(2**63 - 1),
    np.uint64(2**64 - 1),
    np.uint64(2**63),
    1e19,
    1e300,
    np.float64(2**53 + 2),
]


@pytest.mark.parametrize("model", [CategoricalMixture(2), CategoricalHMM(2)])
@pytest.mark.parametrize("code", HUGE, ids=str)
def test_codes_near_the_limit(model, code):
    small = np.random.default_rng(0).integers(3, size=(60, 4 if "Mixture" in str(model) else 1))
    X = small.astype(np.asarray(code).dtype)
    X[7, 0] = code
    with pytest.raises(InvalidInput, match="has the code"):
        model.fit(X)
    fitted = model.fit(small)
    for method in (fitted.predict, fitted.score, fitted.predict_proba):
        with pytest.raises(InvalidInput, match="has the code"):
            method(X)


def test_many_columns_of_large_codes_do_not_overflow_together():
    X = np.full((5, 2000), 2**53, dtype=np.int64)
    with pytest.raises(InvalidInput, match="categories in all"):
        CategoricalMixture(2).fit(X)
