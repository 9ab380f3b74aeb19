"""Comparison with a known truth, and scores of topics on real text."""

from thirdmoment.metrics.alignment import align, recovery_error
from thirdmoment.metrics.topics import npmi_coherence, perplexity, topic_diversity

__all__ = ["align", "npmi_coherence", "perplexity", "recovery_error", "topic_diversity"]
