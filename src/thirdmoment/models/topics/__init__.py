"""Topic models."""
