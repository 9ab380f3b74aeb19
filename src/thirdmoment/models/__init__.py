"""Estimators, one folder a family."""

from typing import TYPE_CHECKING

from thirdmoment._lazy import lazy

if TYPE_CHECKING:
    from thirdmoment.models.factors import IndependentFactors
    from thirdmoment.models.hmm import BernoulliHMM, CategoricalHMM, GaussianHMM
    from thirdmoment.models.kernel import KernelMixture
    from thirdmoment.models.mixtures import CategoricalMixture, GaussianMixture, MultiViewMixture
    from thirdmoment.models.regression import MixedLinearRegression
    from thirdmoment.models.subspace import SubspaceClustering
    from thirdmoment.models.topics import (
        LatentDirichletAllocation,
        PoissonTopicModel,
        SingleTopicModel,
    )

__getattr__, __dir__ = lazy(
    __name__,
    {
        "factors": ("IndependentFactors",),
        "hmm": ("BernoulliHMM", "CategoricalHMM", "GaussianHMM"),
        "kernel": ("KernelMixture",),
        "mixtures": ("CategoricalMixture", "GaussianMixture", "MultiViewMixture"),
        "regression": ("MixedLinearRegression",),
        "subspace": ("SubspaceClustering",),
        "topics": ("LatentDirichletAllocation", "PoissonTopicModel", "SingleTopicModel"),
    },
)

__all__ = [
    "BernoulliHMM",
    "CategoricalHMM",
    "CategoricalMixture",
    "GaussianHMM",
    "GaussianMixture",
    "IndependentFactors",
    "KernelMixture",
    "LatentDirichletAllocation",
    "MixedLinearRegression",
    "MultiViewMixture",
    "PoissonTopicModel",
    "SingleTopicModel",
    "SubspaceClustering",
]
