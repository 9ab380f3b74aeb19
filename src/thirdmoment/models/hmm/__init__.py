"""Hidden Markov models."""

from thirdmoment.models.hmm.bernoulli import BernoulliHMM
from thirdmoment.models.hmm.categorical import CategoricalHMM
from thirdmoment.models.hmm.gaussian import GaussianHMM

__all__ = ["BernoulliHMM", "CategoricalHMM", "GaussianHMM"]
