"""Topic models: several topics a document (LDA), or one."""

from thirdmoment.models.topics.lda import LatentDirichletAllocation
from thirdmoment.models.topics.single_topic import SingleTopicModel

__all__ = ["LatentDirichletAllocation", "SingleTopicModel"]
