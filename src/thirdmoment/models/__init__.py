"""Estimators, one folder a family."""

from thirdmoment.models.topics import LatentDirichletAllocation, SingleTopicModel

__all__ = ["LatentDirichletAllocation", "SingleTopicModel"]
