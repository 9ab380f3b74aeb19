"""Unions of subspaces."""

from thirdmoment.models.subspace.clustering import SubspaceClustering

__all__ = ["SubspaceClustering"]
