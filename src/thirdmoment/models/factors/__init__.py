"""Independent latent factors."""

from thirdmoment.models.factors.independent import IndependentFactors
from thirdmoment.models.factors.poisson import PoissonTopicModel

__all__ = ["IndependentFactors", "PoissonTopicModel"]
