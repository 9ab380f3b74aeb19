"""Formulas changed on purpose: `python -m tests.mutants`."""
