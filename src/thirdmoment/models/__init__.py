"""Estimators, one folder a family."""

from thirdmoment.models.factors import IndependentFactors, PoissonTopicModel
from thirdmoment.models.mixtures import CategoricalMixture, GaussianMixture, MultiViewMixture
from thirdmoment.models.topics import LatentDirichletAllocation, SingleTopicModel

__all__ = [
    "CategoricalMixture",
    "GaussianMixture",
    "IndependentFactors",
    "LatentDirichletAllocation",
    "MultiViewMixture",
    "PoissonTopicModel",
    "SingleTopicModel",
]
