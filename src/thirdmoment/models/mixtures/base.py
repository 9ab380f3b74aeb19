"""What the mixture models share: arguments, the way of a fit, posteriors and scores."""

from __future__ import annotations

from sklearn.base import DensityMixin

from thirdmoment.models.posterior import PosteriorMixin
from thirdmoment.models.refined import RefinedEstimator


class MixtureEstimator(PosteriorMixin, DensityMixin, RefinedEstimator):
    """Base of the mixtures: subclasses read data, give starts and know their family."""
