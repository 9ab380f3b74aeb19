"""Mixtures: Gaussian, categorical, any multi-view mixture."""

from thirdmoment.models.mixtures.categorical import CategoricalMixture
from thirdmoment.models.mixtures.gaussian import GaussianMixture
from thirdmoment.models.mixtures.multiview import MultiViewMixture

__all__ = ["CategoricalMixture", "GaussianMixture", "MultiViewMixture"]
