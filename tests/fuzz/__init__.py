"""Hostile input: `python -m tests.fuzz N`."""
