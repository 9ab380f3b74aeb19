"""One component of a mixture from side information, without learning the others."""

from typing import TYPE_CHECKING

from thirdmoment._lazy import lazy

if TYPE_CHECKING:
    from thirdmoment.search.component import Component, SearchReport
    from thirdmoment.search.gaussian import GaussianSearch
    from thirdmoment.search.regression import RegressionSearch
    from thirdmoment.search.subspace import SubspaceSearch
    from thirdmoment.search.topic_component import TopicComponent
    from thirdmoment.search.topics import TopicSearch

__getattr__, __dir__ = lazy(
    __name__,
    {
        "component": ("Component", "SearchReport"),
        "gaussian": ("GaussianSearch",),
        "regression": ("RegressionSearch",),
        "subspace": ("SubspaceSearch",),
        "topic_component": ("TopicComponent",),
        "topics": ("TopicSearch",),
    },
)

__all__ = [
    "Component",
    "GaussianSearch",
    "RegressionSearch",
    "SearchReport",
    "SubspaceSearch",
    "TopicComponent",
    "TopicSearch",
]
