"""Mixtures of linear regressions."""

from thirdmoment.models.regression.mixed import MixedLinearRegression

__all__ = ["MixedLinearRegression"]
