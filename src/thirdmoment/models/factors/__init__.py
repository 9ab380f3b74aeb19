"""Independent latent factors."""

from thirdmoment.models.factors.independent import IndependentFactors

__all__ = ["IndependentFactors"]
