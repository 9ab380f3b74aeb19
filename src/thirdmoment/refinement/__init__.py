"""Likelihood refinement from a moment start."""
