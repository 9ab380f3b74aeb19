"""Moments as mergeable sums, one file a data family."""
