"""Mixtures of components of any shape."""

from thirdmoment.models.kernel.mixture import KernelMixture

__all__ = ["KernelMixture"]
