"""Topic models: several topics a document (LDA), one, or independent Poisson rates."""

from thirdmoment.models.topics.lda import LatentDirichletAllocation
from thirdmoment.models.topics.poisson import PoissonTopicModel
from thirdmoment.models.topics.single_topic import SingleTopicModel

__all__ = ["LatentDirichletAllocation", "PoissonTopicModel", "SingleTopicModel"]
