"""One component of a mixture from side information, without learning the others."""

from thirdmoment.search.component import Component, SearchReport
from thirdmoment.search.gaussian import GaussianSearch
from thirdmoment.search.regression import RegressionSearch
from thirdmoment.search.subspace import SubspaceSearch
from thirdmoment.search.topic_component import TopicComponent
from thirdmoment.search.topics import TopicSearch

__all__ = [
    "Component",
    "GaussianSearch",
    "RegressionSearch",
    "SearchReport",
    "SubspaceSearch",
    "TopicComponent",
    "TopicSearch",
]
