"""Latent-variable models by the method of moments, refined by likelihood.

>>> import thirdmoment as tm
>>> corpus = tm.datasets.make_lda_corpus(1000, 200, 3)
>>> tm.LatentDirichletAllocation(n_components=3).fit(corpus.X).components_.shape
(3, 200)
"""

from typing import TYPE_CHECKING

from thirdmoment._lazy import lazy
from thirdmoment._version import __version__

if TYPE_CHECKING:
    from thirdmoment import datasets, exceptions, metrics, text
    from thirdmoment.app import Explorer, explore
    from thirdmoment.io.sources import source
    from thirdmoment.models import (
        BernoulliHMM,
        CategoricalHMM,
        CategoricalMixture,
        GaussianHMM,
        GaussianMixture,
        IndependentFactors,
        KernelMixture,
        LatentDirichletAllocation,
        MixedLinearRegression,
        MultiViewMixture,
        PoissonTopicModel,
        SingleTopicModel,
        SubspaceClustering,
    )
    from thirdmoment.models.saving import load
    from thirdmoment.report import Report
    from thirdmoment.search import GaussianSearch, RegressionSearch, SubspaceSearch, TopicSearch

__getattr__, __dir__ = lazy(
    __name__,
    {
        "app": ("Explorer", "explore"),
        "datasets": (),
        "decomposition": (),
        "exceptions": (),
        "io": (),
        "io.sources": ("source",),
        "likelihood": (),
        "linalg": (),
        "metrics": (),
        "models": (),
        "moments": (),
        "recovery": (),
        "refinement": (),
        "search": (),
        "starts": (),
        "streaming": (),
        "text": (),
        "models.factors": ("IndependentFactors",),
        "models.hmm": ("BernoulliHMM", "CategoricalHMM", "GaussianHMM"),
        "models.kernel": ("KernelMixture",),
        "models.mixtures": ("CategoricalMixture", "GaussianMixture", "MultiViewMixture"),
        "models.saving": ("load",),
        "models.regression": ("MixedLinearRegression",),
        "models.subspace": ("SubspaceClustering",),
        "models.topics": ("LatentDirichletAllocation", "PoissonTopicModel", "SingleTopicModel"),
        "report": ("Report",),
        "search.gaussian": ("GaussianSearch",),
        "search.regression": ("RegressionSearch",),
        "search.subspace": ("SubspaceSearch",),
        "search.topics": ("TopicSearch",),
    },
)

__all__ = [
    "BernoulliHMM",
    "CategoricalHMM",
    "CategoricalMixture",
    "Explorer",
    "GaussianHMM",
    "GaussianMixture",
    "GaussianSearch",
    "IndependentFactors",
    "KernelMixture",
    "LatentDirichletAllocation",
    "MixedLinearRegression",
    "MultiViewMixture",
    "PoissonTopicModel",
    "RegressionSearch",
    "Report",
    "SingleTopicModel",
    "SubspaceClustering",
    "SubspaceSearch",
    "TopicSearch",
    "__version__",
    "datasets",
    "exceptions",
    "explore",
    "load",
    "metrics",
    "source",
    "text",
]
